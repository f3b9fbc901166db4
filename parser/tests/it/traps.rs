//! The traps of the formats: what other readers drop, misread or take for something else. Each has a
//! test of its name; those of one format stand with it, those of several here.
//!
//! | format | trap | test |
//! |---|---|---|
//! | ftrace | 4 to 8 columns of flags, or none; thread groups of old and new width, known or not; a tab or no padding in front; clocks that count ticks | `ftrace::prefixes` |
//! | | names of threads that hold spaces, dashes, colons or brackets, or overflow their column | `ftrace::trap_comm_with_spaces_dashes_brackets_and_colons` |
//! | | CPUs of four digits | `ftrace::trap_cpu_over_three_digits` |
//! | | the name of an instance in front of a line | `ftrace::trap_name_of_a_buffer_instance_at_line_start` |
//! | | the latency format, its delay marks, its verbose form | `report::latency_format_of_the_kernel`, `report::latency_format_with_the_verbose_option` |
//! | | `trace_pipe` has no header | `traps::trap_trace_pipe_has_no_header` |
//! | | entries written and in the buffer differ | `ftrace::trap_unequal_entries_mean_overwritten` |
//! | | lost events on lines of their own, counted or not | `ftrace::trap_lost_events_on_a_line_of_their_own` |
//! | | marks without a line of their own | `ftrace::trap_subbuffer_start_glued_in_front`, `ftrace::trap_buffer_started_is_no_loss` |
//! | | system calls, stacks, markers and functions have no `name:` | `ftrace::trap_bodies_without_a_name` |
//! | | names that the tracer has forgotten | `traps::trap_threads_without_a_name` |
//! | | time stamps go backwards between CPUs | `ftrace::trap_events_out_of_order_between_cpus` |
//! | | carriage returns | `ftrace::trap_carriage_returns` |
//! | trace-cmd report | `version = 6`, `cpus=8`, `CPU 3 is empty` | `report::head_of_old_reports` |
//! | | nine digits, time differences, raw fields, latency | `report::nanosecond_switch`, `report::raw_latency_and_time_difference_switches` |
//! | | `[FAILED TO PARSE]` | `report::trap_failed_to_parse` |
//! | | system calls in three spellings | `report::trap_system_calls_in_reports` |
//! | perf script | comm and pid apart by spaces, CPU and period optional, callchains | `perf::trap_prefixes`, `perf::header_callchains_and_losses` |
//! | systrace | several blocks of data in a page | `systrace::trap_html_with_several_data_blocks` |
//! | | the page's own script names a tracer | `traps::trap_script_of_the_page_names_a_tracer` |
//! | | the legacy page, zlib streams | `systrace::trap_legacy_html`, `systrace::trap_atrace_plain_and_compressed` |
//! | trace.dat | versions, byte orders, a userspace of other word size, compressions | `trace_dat::trap_versions_byte_orders_word_sizes_and_compressions` |
//! | | a version 6 file with the text of a latency tracer | `traps::trap_version_6_without_pages` |
//! | | overruns told in the statistics only | `trace_dat::trap_overrun_in_the_cpu_statistics` |
//! | | a clock of ticks | `trace_dat::trap_clock_that_counts_ticks` |
//! | ring buffer | padding, time extends, absolute stamps, long records | `trace_dat::trap_record_types` |
//! | | sub-buffers larger than a page | `trace_dat::trap_buffer_pages_larger_than_memory_pages` |
//! | | lost events told by bits of the commit | `trace_dat::trap_lost_events_before_a_page` |
//! | blktrace | both versions in both byte orders; the new one swaps pid and action | `blk::trap_both_versions_in_both_byte_orders` |
//! | | versions that are neither | `traps::trap_other_versions_of_blktrace` |
//! | | extra bytes are big-endian always | `blk::trap_extra_bytes_are_big_endian` |
//! | | a cgroup id in front of them | `blk::trap_cgroup_id_in_front_of_the_extra_bytes` |
//! | | messages have sequence 0 | `blk::trap_messages_have_sequence_zero_and_are_no_events` |
//! | | a CPU's file is missing, records are missing | `blk::trap_missing_cpu_file`, `blk::trap_missing_sequence_numbers_are_lost_events` |
//! | | the errno is cut to 16 bits | `blk::trap_error_is_the_low_half_of_an_errno` |
//! | | every buffered read is marked as readahead | `traps::trap_readahead_mark_is_no_speculation` |
//! | | ftrace's blk tracer writes it too, all sequences 0 | `traps::trap_binary_output_of_the_blk_tracer` |
//! | blkparse | formats of `-f`, header lines, summaries | `blk::blkparse_line_shapes`, `blk::trap_header_line_in_blkparse_text`, `blk::trap_skipped_events_of_the_summary` |
//! | | names with spaces, requests without sectors, commands in hexadecimal | `traps::trap_blkparse_ends_of_lines` |
//! | | the rest of a split loses its high half | `blk::trap_split_prints_the_low_half_of_the_sector` |
//! | blk tracer | cgroups, words instead of letters, the classic form | `blk::trap_blk_tracer_text`, `blk::trap_blk_tracer_classic` |
//! | events | insertions: pages and frames in decimal and hexadecimal by version | `ftrace::trap_insertions_of_every_kernel_version` |
//! | | inodes are hexadecimal without saying so | `ftrace::trap_inode_is_hexadecimal` |
//! | | devices with colon or comma | `traps::trap_device_separators` |
//! | | offsets are bytes, sectors 512 bytes, whatever the page | `traps::trap_units_of_offsets_and_sectors`, `trace_dat::other_memory_pages_are_refused` |
//! | | ends of ranges, inclusive or not | `ftrace::trap_range_ends` |
//! | | counts that are an errno | `ftrace::trap_xfs_buffered_read_old_and_new` |
//! | | requests with and without a priority; empty and vendors' flags | `ftrace::trap_block_requests_with_and_without_ioprio`, `ftrace::trap_empty_vendor_and_zone_rwbs` |
//! | | filesystems' events with decimal inodes, raw system calls: not used, and counted | `traps::trap_look_alikes_are_counted_and_not_used` |
//! | | a new thread's name holds what looks like a field | `traps::trap_new_thread_named_like_a_field` |
//! | | a batch is traced again for each retry | `traps::trap_repeated_batches_are_one_read` |
//! | | insertions are what readahead did, not what was asked for | `traps::trap_insertions_are_no_accesses` |
//! | | shared memory is inserted into the page cache too | `traps::trap_insertions_of_shared_memory` |
//! | iolog | waits are absolute and in milliseconds, stamps in microseconds | `iolog::waits_of_version_2_count_milliseconds_from_the_start`, `iolog::times_of_version_3_count_microseconds` |

use std::path::Path;

use traces::access::{AccessKind, Fidelity};
use traces::capture::{Capture, LossKind};
use traces::event::{Device, EventKind, Rwbs};
use traces::streams::{self, StreamError, StreamOptions};
use traces::units::{ByteOffset, PageIndex, Sector};

use crate::common::read_text;

const PREFIX: &str = "  less-901     [001] .....    72.531607:";

/// Lines of one thread with these events.
fn events(bodies: &[&str]) -> Capture {
    let lines: String = bodies.iter().map(|body| format!("{PREFIX} {body}\n")).collect();
    let capture = read_text(&lines);
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    capture
}

fn kinds(capture: &Capture) -> Vec<EventKind> {
    capture.events.iter().map(|event| event.kind).collect()
}

#[test]
fn trap_trace_pipe_has_no_header() {
    let capture = events(&["block_bio_queue: 8,1 RA 2048 + 8 [less]"]);
    assert_eq!((capture.events.len(), capture.header.tracer), (1, None));
    assert_eq!(capture.header.format, "ftrace text");
}

#[test]
fn trap_threads_without_a_name() {
    let capture = read_text(&format!(
        "           <...>-12      [000] .....     1.000000: {READ}\n\
         \x20          <...>-13      [001] .....     1.000010: {READ}\n"
    ));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    let source = streams::build(&capture, "x", &StreamOptions::default()).expect("reads");
    assert_eq!(source.threads, ["<...>-12", "<...>-13"]);
}

#[test]
fn trap_new_thread_named_like_a_field() {
    let capture = events(&[
        "task_newtask: pid=7 comm=a clone_flags=1 b clone_flags=3d0f00 oom_score_adj=0",
        "task_newtask: pid=0x8 comm=a clone_flags=0x11 oom_score_adj=0",
    ]);
    let expected = [(7, 0x3d_0f00), (8, 0x11)];
    let expected = expected.map(|(pid, clone_flags)| EventKind::NewTask { pid, clone_flags });
    assert_eq!(kinds(&capture), expected);
}

/// The table above names tests that are there.
#[test]
fn every_trap_has_its_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let table = include_str!("traps.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
    let names = table.flat_map(|row| row.split('`')).filter_map(|word| word.split_once("::"));
    let names: Vec<_> = names.filter(|(_, name)| !name.contains(' ')).collect();
    assert!(names.len() > 50, "{}", names.len());
    for (module, name) in names {
        let path = folder.join(module).with_extension("rs");
        let source = std::fs::read_to_string(&path).expect("the module is there");
        assert!(source.contains(&format!("#[test]\nfn {name}()")), "{module}::{name}");
    }
}

#[test]
fn trap_script_of_the_page_names_a_tracer() {
    let page = format!(
        "<!DOCTYPE html>\n<script>\nif (text.startsWith('# tracer: nop')) x();\n\
         var line = '{PREFIX} block_unplug: [less] 1';\n</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n#\n\
         {PREFIX} block_unplug: [less] 2\n</script>\n"
    );
    assert_eq!(kinds(&read_text(&page)), [EventKind::Unplug { requests: 2 }]);
}

#[test]
fn trap_version_6_without_pages() {
    let mut file = b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_page\0".to_vec();
    file.extend([0; 8]);
    file.extend(b"header_event\0");
    // No layouts, formats, symbols or names; one CPU.
    file.extend([0; 8 + 4 * 4 + 8]);
    file.extend([1, 0, 0, 0]);
    file.extend(b"latency  \0# tracer: nop\n");
    let error = parser::read(&file[..], "trace.dat").expect_err("no pages");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn trap_other_versions_of_blktrace() {
    for version in [6_u32, 9] {
        let bytes = (0x6561_7400 | version).to_le_bytes().repeat(16);
        let error = parser::read(&bytes[..], "sda.blktrace.0").expect_err("unknown version");
        assert!(error.to_string().starts_with("sda.blktrace.0: not a capture"), "{error}");
    }
}

#[test]
fn trap_readahead_mark_is_no_speculation() {
    let capture = events(&["block_rq_issue: 8,1 RA 4096 () 2048 + 8 [less]"]);
    let EventKind::RqIssue { rwbs, .. } = capture.events[0].kind else { panic!("an issue") };
    assert_eq!(rwbs, Rwbs { read: true, ahead: true, ..Rwbs::default() });
}

/// `cat trace_pipe` with the options `bin` and `nocontext-info`.
#[test]
fn trap_binary_output_of_the_blk_tracer() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/corpus/join");
    let binary = parser::read_path(&corpus.join("xfs_run.blktrace.zst")).expect("blktrace");
    let text = parser::read_path(&corpus.join("xfs_whole.ftrace.zst")).expect("ftrace");
    assert!(binary.losses.0.is_empty(), "{}", binary.losses);
    let of_requests = |capture: &Capture| -> Vec<EventKind> {
        let is_request = |kind: &EventKind| {
            matches!(kind, EventKind::BioQueue { .. } | EventKind::RqIssue { .. })
        };
        kinds(capture).into_iter().filter(is_request).collect()
    };
    assert_eq!(of_requests(&binary), of_requests(&text));
    assert!(of_requests(&text).len() > 100);
}

#[test]
fn trap_blkparse_ends_of_lines() {
    let capture = read_text(
        "  8,0    1        1     0.000000000   733  Q  RA 128 + 32 [DataXceiver for]\n\
         \x20 8,0    1        2     0.000000001   733  Q  FN [Readahead Threa]\n\
         \x20 8,0    1        3     0.000000002   733  D   R 36 (12 00 00 00 24 00 ..) [sr0]\n",
    );
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    let names: Vec<&str> =
        capture.events.iter().map(|event| capture.comms.name(event.comm)).collect();
    assert_eq!(names, ["DataXceiver for", "Readahead Threa", "sr0"]);
    let EventKind::BioQueue { extent, rwbs } = capture.events[1].kind else { panic!("a bio") };
    assert_eq!((extent.sectors, rwbs.read), (0, false));
}

#[test]
fn trap_device_separators() {
    let capture = events(&[
        "mm_filemap_fault: dev=259:1 ino=83 ofs=4096",
        "block_unplug: [less] 1",
        "block_bio_queue: 259,1 RA 8 + 8 [less]",
    ]);
    let device = Device { major: 259, minor: 1 };
    assert_eq!(capture.events[0].kind.file().map(|file| file.device), Some(device));
    let EventKind::BioQueue { extent, .. } = capture.events[2].kind else { panic!("a bio") };
    assert_eq!(extent.device, device);
}

#[test]
fn trap_units_of_offsets_and_sectors() {
    let capture = events(&[
        "mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1 ofs=8589934592 order=0",
        "block_rq_issue: 8,1 RA 4096 () 16777216 + 8 [less]",
    ]);
    let [EventKind::AddToPageCache { index, .. }, EventKind::RqIssue { extent, .. }] =
        kinds(&capture)[..]
    else {
        panic!("an insertion and an issue")
    };
    assert_eq!(index.offset(), ByteOffset(8 << 30));
    assert_eq!((extent.sector, extent.sectors), (Sector((8 << 30) >> 9), 8));
}

#[test]
fn trap_look_alikes_are_counted_and_not_used() {
    let capture = events(&[
        "ext4_read_folio: dev 8,1 ino 131 page_index 2",
        "f2fs_readpages: dev = (8,1), ino = 131, start = 2 nrpage = 4",
        "iomap_readahead: dev 8:1 ino 0x83 nr_pages 32",
        "android_fs_dataread_start: entry_name /a b, offset 0, bytes 4096, cmdline x, pid 2, \
         i_size 8192, ino 131",
        "sys_enter: NR 0 (3, 7ffe, 1000, 0, 0, 0)",
        "sys_exit: NR 0 = 4096",
    ]);
    assert_eq!(capture.events, []);
    assert_eq!(capture.unused_events.len(), 6);
    assert_eq!(capture.unused_events.values().sum::<u64>(), 6);
}

const READ: &str =
    "xfs_file_buffered_read: dev 8:1 ino 0x83 disize 0x100000 pos 0x0 bytecount 0x4000";

#[test]
fn trap_repeated_batches_are_one_read() {
    let batch = "mm_filemap_get_pages: dev=8:1 ino=83 ofs=0-16383";
    for bodies in [&[batch, batch, batch][..], &[READ, batch, batch]] {
        let capture = events(bodies);
        let source = streams::build(&capture, "x", &StreamOptions::default()).expect("a read");
        let reads: Vec<_> = source.accesses.iter().map(|access| access.kind).collect();
        assert_eq!(reads, [AccessKind::Read { pos: ByteOffset(0), count: 16384 }]);
    }
}

#[test]
fn trap_insertions_are_no_accesses() {
    let capture = events(&["mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1 ofs=0 order=2"]);
    let error = streams::build(&capture, "x", &StreamOptions::default()).expect_err("inferred");
    assert!(matches!(error, StreamError::OnlyInferred { fidelity: Fidelity::Insertions, .. }));
}

#[test]
fn trap_insertions_of_shared_memory() {
    let shared = "mm_filemap_add_to_page_cache: dev 0:1 ino 7 pfn=0x9 ofs=0 order=0";
    let own = "mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1 ofs=0 order=2";
    let capture = events(&[READ, shared, own]);
    let source = streams::build(&capture, "x", &StreamOptions::default()).expect("a read");
    let folios = source.recorded.expect("a capture").folios;
    assert_eq!(source.files.len(), 1);
    assert_eq!(folios.iter().map(|folio| folio.page).collect::<Vec<_>>(), [PageIndex(0)]);
    assert_eq!(capture.losses.0.get(&LossKind::Unparsed), None);
}
