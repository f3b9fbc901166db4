//! Properties over generated captures: what is written is what is read, whatever the values; and no
//! bytes whatever make a parser panic.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use traces::event::{Device, EventKind, Extent, FileId, RecordedRa, Rwbs, Syscall};
use traces::units::{ByteOffset, Order, PageIndex, Sector};

use crate::common::{fixture, read_text};

fn device() -> impl Strategy<Value = Device> {
    (0..4096_u32, 0..1_u32 << 20).prop_map(|(major, minor)| Device { major, minor })
}

fn file() -> impl Strategy<Value = FileId> {
    (device(), any::<u64>()).prop_map(|(device, inode)| FileId { device, inode })
}

/// Any page whose byte offset fits into 64 bits.
fn page() -> impl Strategy<Value = PageIndex> {
    (0..1_u64 << 52).prop_map(PageIndex)
}

fn recorded_ra() -> impl Strategy<Value = RecordedRa> {
    let numbers = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
    (numbers, -1..i64::MAX).prop_map(
        |((order, size, async_size, ra_pages, mmap_miss), prev_pos)| RecordedRa {
            order,
            size,
            async_size,
            ra_pages,
            mmap_miss,
            prev_pos,
        },
    )
}

fn extent() -> impl Strategy<Value = Extent> {
    (device(), any::<u64>(), any::<u32>()).prop_map(|(device, sector, sectors)| Extent {
        device,
        sector: Sector(sector),
        sectors: sectors.into(),
    })
}

fn rwbs() -> impl Strategy<Value = Rwbs> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(write, ahead, meta)| Rwbs {
        read: !write,
        write,
        ahead,
        meta,
    })
}

fn syscall() -> impl Strategy<Value = Syscall> {
    prop::sample::select(vec![
        Syscall::Read,
        Syscall::Pread64,
        Syscall::Openat,
        Syscall::Sendfile64,
    ])
}

fn filemap_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (file(), any::<u64>(), 0..i64::MAX.cast_unsigned(), 0..i64::MAX.cast_unsigned()).prop_map(
            |(file, size_bytes, pos, count)| {
                EventKind::BufferedRead { file, size_bytes, pos: ByteOffset(pos), count }
            }
        ),
        (file(), page(), page()).prop_map(|(file, index, last)| EventKind::GetPages {
            file,
            index,
            last
        }),
        (file(), page()).prop_map(|(file, index)| EventKind::Fault { file, index }),
        (file(), page(), page()).prop_map(|(file, index, last)| EventKind::MapPages {
            file,
            index,
            last
        }),
        (file(), page(), 0..16_u8, any::<u64>()).prop_map(|(file, index, order, pfn)| {
            EventKind::AddToPageCache { file, index, order: Order(order), pfn }
        }),
        (file(), page(), 0..16_u8).prop_map(|(file, index, order)| {
            EventKind::DeleteFromPageCache { file, index, order: Order(order) }
        }),
    ]
}

fn readahead_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (file(), page(), any::<u64>(), any::<u64>()).prop_map(
            |(file, index, nr_to_read, lookahead_size)| {
                EventKind::RaUnbounded { file, index, nr_to_read, lookahead_size }
            }
        ),
        (file(), page(), recorded_ra()).prop_map(|(file, index, ra)| {
            let RecordedRa { order, size, async_size, ra_pages, .. } = ra;
            EventKind::RaOrder { file, index, order, size, async_size, ra_pages }
        }),
        (file(), page(), any::<u64>(), recorded_ra()).prop_map(|(file, index, req_count, ra)| {
            EventKind::SyncRa { file, index, req_count, ra }
        }),
        (file(), page(), any::<u64>(), recorded_ra()).prop_map(|(file, index, req_count, ra)| {
            EventKind::AsyncRa { file, index, req_count, ra }
        }),
    ]
}

fn block_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (extent(), rwbs()).prop_map(|(extent, rwbs)| EventKind::BioQueue { extent, rwbs }),
        (extent(), rwbs()).prop_map(|(extent, rwbs)| EventKind::BioMerge { extent, rwbs }),
        (extent(), rwbs()).prop_filter_map("the sector overflows", |(extent, rwbs)| {
            let rest = Sector(extent.sector.0.checked_add(extent.sectors)?);
            Some(EventKind::BioSplit { extent, rest, rwbs })
        }),
        any::<u32>().prop_map(|requests| EventKind::Unplug { requests }),
        (extent(), rwbs()).prop_map(|(extent, rwbs)| EventKind::RqIssue { extent, rwbs }),
        (extent(), rwbs(), any::<i32>()).prop_map(|(extent, rwbs, error)| EventKind::RqComplete {
            extent,
            rwbs,
            error
        }),
    ]
}

fn syscall_kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (syscall(), any::<[u64; 6]>())
            .prop_map(|(call, args)| EventKind::SyscallEnter { call, args }),
        (syscall(), any::<i64>()).prop_map(|(call, ret)| EventKind::SyscallExit { call, ret }),
        any::<(u32, u64)>().prop_map(|(pid, clone_flags)| EventKind::NewTask { pid, clone_flags }),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    prop_oneof![filemap_kind(), readahead_kind(), block_kind(), syscall_kind()]
}

fn ra_fields(ra: &RecordedRa) -> String {
    let RecordedRa { order, size, async_size, ra_pages, mmap_miss, prev_pos } = ra;
    format!(
        "order={order} size={size} async_size={async_size} ra_pages={ra_pages} \
         mmap_miss={mmap_miss} prev_pos={prev_pos}"
    )
}

fn letters(rwbs: Rwbs) -> String {
    let operation = if rwbs.write { "W" } else { "R" };
    format!("{operation}{}{}", if rwbs.ahead { "A" } else { "" }, if rwbs.meta { "M" } else { "" })
}

fn call_name(call: Syscall) -> String {
    format!("sys_{}", format!("{call:?}").to_lowercase())
}

/// `dev 8:1 ino 83`, with the given separator.
fn file_fields(file: FileId, separator: char) -> String {
    format!("dev{separator}{} ino{separator}{:x}", file.device, file.inode)
}

/// First and last byte of pages, as the kernel prints them: signed.
fn bytes(index: PageIndex, last: PageIndex) -> String {
    let first = (index.0 << 12).cast_signed();
    let end = ((last.0 << 12) | 0xfff).cast_signed();
    format!("{first}-{end}")
}

/// `8,1 RA 2048 + 8`.
fn bio(extent: Extent, rwbs: Rwbs) -> String {
    let Extent { device, sector, sectors } = extent;
    format!("{},{} {} {sector} + {sectors}", device.major, device.minor, letters(rwbs))
}

fn filemap_body(kind: EventKind) -> String {
    match kind {
        EventKind::BufferedRead { file, size_bytes, pos, count } => format!(
            "xfs_file_buffered_read: dev {} ino {:#x} disize {size_bytes:#x} pos {:#x} \
             bytecount {count:#x}",
            file.device, file.inode, pos.0
        ),
        EventKind::GetPages { file, index, last } => {
            let bytes = bytes(index, last);
            format!("mm_filemap_get_pages: {} ofs={bytes}", file_fields(file, '='))
        }
        EventKind::MapPages { file, index, last } => {
            let bytes = bytes(index, last);
            format!("mm_filemap_map_pages: {} ofs={bytes}", file_fields(file, '='))
        }
        EventKind::Fault { file, index } => {
            let offset = (index.0 << 12).cast_signed();
            format!("mm_filemap_fault: {} ofs={offset}", file_fields(file, '='))
        }
        EventKind::AddToPageCache { file, index, order, pfn } => {
            let offset = (index.0 << 12).cast_signed();
            let file = file_fields(file, ' ');
            format!("mm_filemap_add_to_page_cache: {file} pfn={pfn:#x} ofs={offset} order={order}")
        }
        EventKind::DeleteFromPageCache { file, index, order } => {
            let offset = (index.0 << 12).cast_signed();
            let file = file_fields(file, ' ');
            format!("mm_filemap_delete_from_page_cache: {file} pfn=0x1 ofs={offset} order={order}")
        }
        other => readahead_body(other),
    }
}

fn readahead_body(kind: EventKind) -> String {
    match kind {
        EventKind::RaUnbounded { file, index, nr_to_read, lookahead_size } => format!(
            "page_cache_ra_unbounded: {} index={index} nr_to_read={nr_to_read} \
             lookahead_size={lookahead_size}",
            file_fields(file, '=')
        ),
        EventKind::RaOrder { file, index, order, size, async_size, ra_pages } => format!(
            "page_cache_ra_order: {} index={index} order={order} size={size} \
             async_size={async_size} ra_pages={ra_pages}",
            file_fields(file, '=')
        ),
        EventKind::SyncRa { file, index, req_count, ra } => format!(
            "page_cache_sync_ra: {} index={index} req_count={req_count} {}",
            file_fields(file, '='),
            ra_fields(&ra)
        ),
        EventKind::AsyncRa { file, index, req_count, ra } => format!(
            "page_cache_async_ra: {} index={index} req_count={req_count} {}",
            file_fields(file, '='),
            ra_fields(&ra)
        ),
        other => block_body(other),
    }
}

fn block_body(kind: EventKind) -> String {
    match kind {
        EventKind::BioQueue { extent, rwbs } => {
            format!("block_bio_queue: {} [a b]", bio(extent, rwbs))
        }
        EventKind::BioMerge { extent, rwbs } => {
            format!("block_bio_backmerge: {} [a b]", bio(extent, rwbs))
        }
        EventKind::BioSplit { extent, rest, rwbs } => {
            let Extent { device, sector, .. } = extent;
            let letters = letters(rwbs);
            let (major, minor) = (device.major, device.minor);
            format!("block_split: {major},{minor} {letters} {sector} / {rest} [a b]")
        }
        EventKind::Unplug { requests } => format!("block_unplug: [a b] {requests}"),
        EventKind::RqIssue { extent, rwbs } => {
            let body = bio(extent, rwbs).replacen(' ', " @", 1);
            let (device, rest) = body.split_once(" @").expect("a device");
            let (letters, rest) = rest.split_once(' ').expect("letters");
            format!("block_rq_issue: {device} {letters} 4096 () {rest} none,0,0 [a b]")
        }
        EventKind::RqComplete { extent, rwbs, error } => {
            let body = bio(extent, rwbs);
            let mut words = body.splitn(3, ' ');
            let mut word = || words.next().expect("three words");
            let (device, letters, rest) = (word(), word(), word());
            format!("block_rq_complete: {device} {letters} () {rest} none,0,0 [{error}]")
        }
        EventKind::SyscallEnter { call, args } => {
            let args: Vec<String> = args.iter().map(|arg| format!("a: {arg:#x}")).collect();
            format!("{}({})", call_name(call), args.join(", "))
        }
        EventKind::SyscallExit { call, ret } => format!("{} -> {ret:#x}", call_name(call)),
        EventKind::NewTask { pid, clone_flags } => format!(
            "task_newtask: pid={pid} comm=a clone_flags=b clone_flags={clone_flags:x} oom_score_adj=-1"
        ),
        other => panic!("not generated: {other:?}"),
    }
}

/// What a line says in front of its event, in one of the shapes of ftrace text.
fn prefix(shape: u8, comm: &str, pid: u32, cpu: u32, time_us: u64) -> String {
    let (s, us) = (time_us / 1_000_000, time_us % 1_000_000);
    match shape {
        0 => format!("{comm:>16}-{pid:<7} [{cpu:03}] d..2. {s:>5}.{us:06}: "),
        1 => format!("{comm:>16}-{pid:<7} ({pid:>7}) [{cpu:03}] ..... {s:>5}.{us:06}: "),
        2 => format!("{comm:>16}-{pid:<7} (-------) [{cpu:03}] dNh1 {s:>5}.{us:06}: "),
        3 => format!("{comm:>16}-{pid:<5} [{cpu:03}] {s:>5}.{us:06}: "),
        _ => format!("{comm:>8}-{pid:<7} {cpu:>3}d..1. {s:>5}.{us:06}: "),
    }
}

/// Names as the kernel allows them, without those that look like a whole prefix.
fn comm() -> impl Strategy<Value = String> {
    "[A-Za-z<.:/()\\[\\]@_][A-Za-z0-9 <.:/()\\[\\]@_-]{0,13}[A-Za-z<.:/@_]"
}

proptest! {
    #[test]
    fn ftrace_text_reads_back(
        lines in vec((kind(), comm(), any::<u32>(), 0..4096_u32, 0..5_u8), 1..20)
    ) {
        let mut text = String::new();
        for (i, (kind, comm, pid, cpu, shape)) in lines.iter().enumerate() {
            text += &prefix(*shape, comm, *pid, *cpu, 1_000_000 + i as u64);
            text += &filemap_body(*kind);
            text.push('\n');
        }
        let capture = read_text(&text);
        prop_assert!(capture.losses.0.is_empty(), "{text}{}", capture.losses);
        prop_assert_eq!(capture.events.len(), lines.len(), "{}", text);
        for (event, (kind, comm, pid, cpu, _)) in capture.events.iter().zip(&lines) {
            prop_assert_eq!(&event.kind, kind);
            prop_assert_eq!((event.pid, event.cpu), (*pid, *cpu));
            prop_assert_eq!(capture.comms.name(event.comm), comm.trim());
        }
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..2000)) {
        let _ = parser::read(&bytes[..], "test");
        let _ = parser::read_histograms(&bytes[..], "test");
    }

    /// Pieces of histograms in any order.
    #[test]
    fn any_histogram(pieces in vec(prop::sample::select(PIECES), 0..40)) {
        let _ = parser::read_histograms(pieces.concat().as_bytes(), "test");
    }

    /// Starts of every format, then anything.
    #[test]
    fn any_bytes_behind_a_known_start(
        start in prop::sample::select(starts()),
        bytes in vec(any::<u8>(), 0..2000),
    ) {
        let _ = parser::read(&[&start[..], &bytes].concat()[..], "test");
    }

    /// Real captures with some bytes changed, and a piece cut out.
    #[test]
    fn damaged_captures(
        name in prop::sample::select(FIXTURES),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<(prop::sample::Index, u8)>(),
    ) {
        let mut bytes = fs::read(fixture(name)).expect("fixture");
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let at = cut.0.index(bytes.len());
        let end = bytes.len().min(at + usize::from(cut.1));
        bytes.drain(at..end);
        let _ = parser::read(&bytes[..], "test");
    }
}

const PIECES: &[&str] = &[
    "@",
    "o",
    "[",
    "]",
    ":",
    "]:",
    ", ",
    ",",
    ")",
    "...",
    " -> ",
    ": count",
    "|@|",
    " ",
    "\n",
    "0",
    "7",
    "18446744073709551615",
];

const FIXTURES: &[&str] = &[
    "linux-6.12-tgid.trace.txt",
    "linux-6.18-ext4-syscalls.trace.txt",
    "linux-7.3.report.latency.txt",
    "linux-7.3.report.raw.txt",
    "linux-6.12.blkparse-t.txt",
    "linux-6.12.blkparse-f-comma.txt",
    "linux-6.12.blktrace.0",
    "fio-3.33.iolog",
];

fn starts() -> Vec<Vec<u8>> {
    let mut starts: Vec<Vec<u8>> = [
        &b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_page\0"[..],
        b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0zstd\x001.5.4\0",
        b"\x17\x08\x44tracing7\0\x01\x04\0\0\x10\0none\0\0",
        b"\x28\xb5\x2f\xfd",
        b"\x1f\x8b\x08",
        b"\xfd7zXZ\0",
        b"TRACE:\n\x78",
        b"<!DOCTYPE html>\n<script class=\"trace-data\">\n#\n",
        b"# tracer: nop\n#\n",
        b"# tracer: blk\n#\n  8,0    2     0.000012345   516  Q  RA ",
        b"  a-1 [000] 1.0: block_bio_queue: ",
        b"a 1 [000] 1.0: block:block_bio_queue: ",
        b"CPU:0 [LOST ",
        b"fio version 2 iolog\nf wait ",
        b"fio version 3 iolog\n7 f read ",
    ]
    .iter()
    .map(|start| start.to_vec())
    .collect();
    for version in [7, 8] {
        let magic = 0x6561_7400_u32 | version;
        starts.extend([magic.to_le_bytes().to_vec(), magic.to_be_bytes().to_vec()]);
    }
    starts
}
