//! Ftrace text: whole fixtures, then each trap of the format under its name.

use crate::common::{read_fixture, read_text, render};
use traces::capture::{Capture, LossKind};
use traces::event::{Device, EventKind, Extent, FileId, Rwbs, Syscall};
use traces::units::{ByteOffset, Order, PageIndex, Sector, Time};

const FILE: FileId = FileId { device: Device { major: 8, minor: 1 }, inode: 0x83 };

fn snapshot(name: &str) {
    insta::assert_snapshot!(name, render(&read_fixture(name)));
}

#[test]
fn fixture_linux_6_1() {
    snapshot("linux-6.1-tgid.trace.txt");
}

#[test]
fn fixture_linux_6_12() {
    snapshot("linux-6.12-tgid.trace.txt");
}

#[test]
fn fixture_linux_6_18_xfs() {
    snapshot("linux-6.18-xfs.trace.txt");
}

#[test]
fn fixture_linux_6_18_ext4_syscalls() {
    snapshot("linux-6.18-ext4-syscalls.trace.txt");
}

/// A line with `prefix` and a fixed event.
fn with_prefix(prefix: &str) -> String {
    format!("{prefix} block_bio_queue: 8,1 RA 2048 + 8 [cat]\n")
}

/// What the prefix of the only event says.
fn prefix_of(text: &str) -> (String, u32, u32, Time) {
    let capture = read_text(text);
    assert!(capture.losses.0.is_empty(), "{text}: {}", capture.losses);
    let [event] = capture.events[..] else { panic!("{text}: one event") };
    (capture.comms.name(event.comm).to_owned(), event.pid, event.cpu, event.time)
}

#[test]
fn prefixes() {
    let time = Time(72_531_607_000);
    let cases = [
        ("            less-901     [005] .....    72.531607:", "less", 901, 5, time),
        // 4 flag columns, before 5.12.
        ("     kworker/0:1-100   [000] d..2    72.531607:", "kworker/0:1", 100, 0, time),
        // 6 to 8 flag columns, real-time kernels.
        ("            less-901     [005] d...1.    72.531607:", "less", 901, 5, time),
        ("            less-901     [005] dN.h1.b    72.531607:", "less", 901, 5, time),
        ("            less-901     [005] dNLh1.b2    72.531607:", "less", 901, 5, time),
        // Option irq-info off.
        ("          fio-4518  [012]    72.531607:", "fio", 4518, 12, time),
        // Option record-tgid, known or not, in old and new widths.
        ("            less-901     (    901) [005] .....    72.531607:", "less", 901, 5, time),
        (" MediaStoreImpor-27212 (27176) [000] .... 72.531607:", "MediaStoreImpor", 27212, 0, time),
        ("            less-901   (-----) [005] .... 72.531607:", "less", 901, 5, time),
        ("          <idle>-0       (-------) [000] d.H1. 72.531607:", "<idle>", 0, 0, time),
        ("          fio-4518  (   12) [012]    72.531607:", "fio", 4518, 12, time),
        // Nanoseconds, as `trace-cmd report -t` prints them.
        ("   less-901   [005]    72.531607123:", "less", 901, 5, Time(72_531_607_123)),
        // A clock that counts ticks.
        ("   less-901   [005] .....   123456789012:", "less", 901, 5, Time(123_456_789_012)),
        ("\tless-901   [005] ..... 72.531607:", "less", 901, 5, time),
    ];
    for (prefix, comm, pid, cpu, time) in cases {
        let expected = (comm.to_owned(), pid, cpu, time);
        assert_eq!(prefix_of(&with_prefix(prefix)), expected, "{prefix}");
    }
}

#[test]
fn trap_comm_with_spaces_dashes_brackets_and_colons() {
    for comm in [
        "Web Content",
        ".ugc.aweme.lite",
        "dmcrypt_write/2",
        "T7@ZeusThreadPo",
        "Binder:2030_3",
        "a-1 [2]",
        "x-12 [003] .",
        "a-1 (2) [3] b",
        "-",
        "(sd-pam)",
        "com.google.android.youtube",
        "<...>",
    ] {
        let prefix = format!("{comm:>16}-2711    [001] .....    72.531607:");
        let got = prefix_of(&with_prefix(&prefix));
        assert_eq!((got.0.as_str(), got.1, got.2), (comm, 2711, 1), "{comm}");
    }
}

#[test]
fn trap_name_of_a_buffer_instance_at_line_start() {
    let line = with_prefix("  mine:           less-901     [005] .....    72.531607:");
    assert_eq!(prefix_of(&line).0, "less");
}

#[test]
fn trap_cpu_over_three_digits() {
    assert_eq!(prefix_of(&with_prefix("  less-901     [1023] .....    72.531607:")).2, 1023);
}

#[test]
fn trap_carriage_returns() {
    let text = with_prefix("  less-901     [000] .....    72.531607:").replace('\n', "\r\n");
    assert_eq!(prefix_of(&text).0, "less");
}

fn loss(capture: &Capture, kind: LossKind) -> Option<(u64, &str)> {
    capture.losses.0.get(&kind).map(|loss| (loss.count, loss.first.as_str()))
}

#[test]
fn trap_lost_events_on_a_line_of_their_own() {
    let event = with_prefix("  less-901     [001] .....    72.531607:");
    let capture = read_text(&format!(
        "{event}CPU:1 [LOST 5 EVENTS]\n{event}CPU:0 [LOST EVENTS]\nCPU:3 [7 EVENTS DROPPED]\n\
         CPU:3 [EVENTS DROPPED]\n"
    ));
    assert_eq!(capture.events.len(), 2);
    let lost = loss(&capture, LossKind::LostEvents);
    assert_eq!(lost, Some((14, "line 2: CPU:1 [LOST 5 EVENTS]")));
}

#[test]
fn trap_subbuffer_start_glued_in_front() {
    let event = with_prefix("  less-901     [001] .....    72.531607:");
    let capture = read_text(&format!("CPU:1 [SUBBUFFER START]{event}{event}"));
    assert_eq!(capture.events.len(), 2);
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
}

#[test]
fn trap_buffer_started_is_no_loss() {
    let event = with_prefix("  less-901     [001] .....    72.531607:");
    let capture = read_text(&format!("{event}##### CPU 1 buffer started ####\n{event}"));
    assert_eq!((capture.events.len(), capture.losses.0.len()), (2, 0));
}

#[test]
fn trap_unequal_entries_mean_overwritten() {
    let event = with_prefix("  less-901     [001] .....    72.531607:");
    let header = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 89484/912978   #P:2\n#\n";
    let capture = read_text(&format!("{header}{event}"));
    assert_eq!(capture.header.cpus, Some(2));
    assert_eq!(capture.header.tracer.as_deref(), Some("nop"));
    assert_eq!(loss(&capture, LossKind::Overwritten).map(|l| l.0), Some(823_494));
}

#[test]
fn trap_events_out_of_order_between_cpus() {
    let late = with_prefix("  less-901     [001] .....    72.531607:");
    let early = with_prefix("  less-902     [000] .....    72.531600:");
    let capture = read_text(&format!("{late}{early}"));
    let pids: Vec<u32> = capture.events.iter().map(|event| event.pid).collect();
    assert_eq!(pids, [902, 901]);
    assert_eq!(loss(&capture, LossKind::OutOfOrder).map(|l| l.0), Some(1));
}

#[test]
fn trap_bodies_without_a_name() {
    let prefix = "  less-901     [001] .....    72.531607:";
    let capture = read_text(&format!(
        "{prefix} sys_read(fd: 3, buf: 7ffe0babea5f, count: 10000)\n\
         {prefix} sys_read -> 0xfffffffffffffff5\n\
         {prefix} sys_futex(uaddr: 3)\n\
         {prefix} sys_futex -> 0x0\n\
         {prefix} <stack trace>\n => vfs_read\n => ksys_read\n\
         {prefix} vfs_read <-ksys_read\n\
         {prefix} 0: old marker\n\
         {prefix} tracing_mark_write: B|1|x\n\
         {prefix} tracing_mark_write: trace_event_clock_sync: parent_ts=683201.375000\n\
         {prefix} bprint: 0xc044504c: cpu_load: cpu: 3\n"
    ));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    let kinds: Vec<_> = capture.events.iter().map(|event| event.kind).collect();
    let args = [3, 0x7ffe_0bab_ea5f, 0x10000, 0, 0, 0];
    assert_eq!(
        kinds,
        [
            EventKind::SyscallEnter { call: Syscall::Read, args },
            EventKind::SyscallExit { call: Syscall::Read, ret: -11 },
        ]
    );
    let unused: Vec<_> = capture.unused_events.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    assert_eq!(
        unused,
        [
            ("0", 1),
            ("<stack trace>", 1),
            ("bprint", 1),
            ("function", 1),
            ("sys_futex", 2),
            ("tracing_mark_write", 2),
        ]
    );
}

#[test]
fn unparsed_lines_are_counted_with_number_and_text() {
    let event = with_prefix("  less-901     [001] .....    72.531607:");
    let capture = read_text(&format!("{event}{event}what is this\n\n{event}nor this\n"));
    assert_eq!(loss(&capture, LossKind::Unparsed), Some((2, "line 3: what is this")));
    assert_eq!(capture.events.len(), 3);
}

/// The kind of an event given as `name: fields`.
fn kind(body: &str) -> EventKind {
    let capture = read_text(&format!("  less-901     [001] .....    72.531607: {body}\n"));
    assert!(capture.losses.0.is_empty(), "{body}: {}", capture.losses);
    capture.events.first().unwrap_or_else(|| panic!("{body}: an event")).kind
}

fn added(index: u64, order: u8, pfn: u64) -> EventKind {
    let (index, order) = (PageIndex(index), Order(order));
    EventKind::AddToPageCache { file: FILE, index, order, pfn }
}

#[test]
fn trap_insertions_of_every_kernel_version() {
    let name = "mm_filemap_add_to_page_cache:";
    let cases = [
        ("dev 8:1 ino 83 pfn=0x1b5f9 ofs=8192 order=2", added(2, 2, 0x1b5f9)),
        ("dev 8:1 ino 83 page=0000000060e990c7 pfn=2586272 ofs=8192", added(2, 0, 2_586_272)),
        ("dev 8:1 ino 83 page=0x2776a0 pfn=2586272 ofs=8192", added(2, 0, 2_586_272)),
        ("dev 8:1 ino 83 page=0x7daf4c pfn=0x7daf4c ofs=8192", added(2, 0, 0x7d_af4c)),
        ("dev 8:1 ino 0x83 page=0xffffff8076e3ef40 pfn=1 ofs=8192", added(2, 0, 1)),
        ("dev 8:1 ino 83 page=(null) pfn=1 ofs=8192", added(2, 0, 1)),
    ];
    for (fields, expected) in cases {
        assert_eq!(kind(&format!("{name} {fields}")), expected, "{fields}");
    }
}

#[test]
fn trap_inode_is_hexadecimal() {
    let body = "mm_filemap_fault: dev=8:1 ino=ffffffffffffffff ofs=4096";
    assert_eq!(kind(body).file().map(|file| file.inode), Some(u64::MAX));
}

#[test]
fn trap_range_ends() {
    let expected = EventKind::GetPages { file: FILE, index: PageIndex(0), last: PageIndex(15) };
    assert_eq!(kind("mm_filemap_get_pages: dev=8:1 ino=83 ofs=0-65535"), expected);
    // As first posted to the list.
    assert_eq!(kind("mm_filemap_get_pages: dev 8:1 ino 83 ofs=0 max_ofs=65536"), expected);
}

#[test]
fn trap_xfs_buffered_read_old_and_new() {
    let read = |pos, count| EventKind::BufferedRead {
        file: FILE,
        size_bytes: 0x1000_0000,
        pos: ByteOffset(pos),
        count,
    };
    let name = "xfs_file_buffered_read: dev 8:1 ino 0x83";
    let old = "size 0x10000000 offset 0x6f40000";
    assert_eq!(kind(&format!("{name} {old} count 0x10000")), read(0x6f4_0000, 0x10000));
    assert_eq!(kind(&format!("{name} {old} count 0xfffffffffffffff5")), read(0x6f4_0000, 0));
    let new = "disize 0x10000000 pos 0x6f40000 bytecount 0x10000";
    assert_eq!(kind(&format!("{name} {new}")), read(0x6f4_0000, 0x10000));
}

#[test]
fn trap_block_requests_with_and_without_ioprio() {
    let extent =
        Extent { device: Device { major: 259, minor: 1 }, sector: Sector(1000), sectors: 8 };
    let rwbs = Rwbs { read: true, ahead: true, ..Rwbs::default() };
    let issue = EventKind::RqIssue { extent, rwbs };
    for fields in [
        "259,1 RA 4096 () 1000 + 8 [fio]",
        "259,1 RA 4096 () 1000 + 8 none,0,0 [fio]",
        "259,1 RA 0 (12 00 00 24) 1000 + 8 be,0,4 [fio [1] x]",
    ] {
        assert_eq!(kind(&format!("block_rq_issue: {fields}")), issue, "{fields}");
    }
    let complete = |error| EventKind::RqComplete { extent, rwbs, error };
    for (fields, error) in
        [("259,1 RA () 1000 + 8 [0]", 0), ("259,1 RA () 1000 + 8 be,0,4 [-5]", -5)]
    {
        assert_eq!(kind(&format!("block_rq_complete: {fields}")), complete(error), "{fields}");
    }
}

#[test]
fn trap_empty_vendor_and_zone_rwbs() {
    let rwbs_of = |fields: &str| match kind(&format!("block_bio_queue: {fields}")) {
        EventKind::BioQueue { rwbs, .. } => rwbs,
        other => panic!("{fields}: {other:?}"),
    };
    assert_eq!(rwbs_of("12,48  332410072 + 8 [x]"), Rwbs::default());
    let write = Rwbs { write: true, ..Rwbs::default() };
    assert_eq!(rwbs_of("12,48 WFCHS 332410072 + 8 [x]"), write);
    assert_eq!(rwbs_of("12,48 ZA 332410072 + 8 [x]"), write);
    assert_eq!(rwbs_of("12,48 ZRA 332410072 + 8 [x]"), Rwbs::default());
}

#[test]
fn known_event_with_bad_fields_is_counted() {
    let prefix = "  less-901     [001] .....    72.531607:";
    let name = "mm_filemap_add_to_page_cache:";
    let good = "dev 8:1 ino 83 pfn=0x1 ofs=0 order=0";
    let bad = "dev 8:1 ino 83 pfn=0x1 ofs=0 order=99";
    let capture = read_text(&format!("{prefix} {name} {good}\n{prefix} {name} {bad}\n"));
    assert_eq!(capture.events.len(), 1);
    let (count, first) = loss(&capture, LossKind::BadFields).expect("counted");
    assert_eq!(count, 1);
    assert!(first.starts_with("line 2: ") && first.ends_with(bad), "{first}");
}
