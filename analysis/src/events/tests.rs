//! Events that go through a table and come back.

use std::ops::RangeInclusive;

use parser::{Collector, Input, Sink};
use proptest::collection::vec;
use proptest::prelude::*;
use traces::access::FileExtent;
use traces::capture::{Capture, Comms, LossKind, Losses};
use traces::event::{Comm, Device, Event, EventKind, Extent, FileId, RecordedRa, Rwbs, Syscall};
use traces::sidecar::{FileFacts, Sidecar};
use traces::units::{ByteOffset, Order, PageIndex, Sector, Time};

use super::convert::RowSink;
use super::notes::Stated;
use super::read::{EVER, Streamed, stream};

/// A capture as a table.
fn write(capture: &Capture, stated: Stated) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rows = RowSink::new(&mut bytes, "test").expect("starts");
    rows.events(&capture.events, &capture.comms);
    rows.finish(Capture { events: Vec::new(), ..capture.clone() }, stated).expect("finishes");
    bytes
}

fn read(bytes: &[u8], times: &RangeInclusive<Time>) -> Streamed {
    let mut collector = Collector::default();
    let input = Input::open(bytes, "test").expect("opens");
    let streamed = stream(input, times, &mut collector).expect("reads");
    Streamed { capture: collector.finish(streamed.capture), ..streamed }
}

/// Events with the names of their threads, which may have other numbers.
fn named(capture: &Capture) -> Vec<(Event, &str)> {
    let events = capture.events.iter();
    events.map(|e| (Event { comm: Comm(0), ..*e }, capture.comms.name(e.comm))).collect()
}

fn file() -> impl Strategy<Value = FileId> {
    (any::<u32>(), any::<u32>(), any::<u64>())
        .prop_map(|(major, minor, inode)| FileId { device: Device { major, minor }, inode })
}

fn page() -> impl Strategy<Value = PageIndex> {
    any::<u64>().prop_map(PageIndex)
}

fn ra() -> impl Strategy<Value = RecordedRa> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    (any::<u32>(), numbers, any::<u32>(), any::<i64>()).prop_map(
        |(order, (size, async_size, ra_pages), mmap_miss, prev_pos)| RecordedRa {
            order,
            size,
            async_size,
            ra_pages,
            mmap_miss,
            prev_pos,
        },
    )
}

fn page_cache() -> impl Strategy<Value = EventKind> {
    let order = (0..Order::COUNT as u8).prop_map(Order);
    (0..6, file(), page(), page(), order, any::<u64>(), any::<u64>()).prop_map(
        |(kind, file, index, last, order, pfn, count)| match kind {
            0 => {
                let pos = ByteOffset(index.0);
                EventKind::BufferedRead { file, size_bytes: last.0, pos, count }
            }
            1 => EventKind::GetPages { file, index, last },
            2 => EventKind::Fault { file, index },
            3 => EventKind::MapPages { file, index, last },
            4 => EventKind::AddToPageCache { file, index, order, pfn },
            _ => EventKind::DeleteFromPageCache { file, index, order },
        },
    )
}

fn readahead() -> impl Strategy<Value = EventKind> {
    (0..4, file(), page(), any::<u64>(), ra()).prop_map(|(kind, file, index, count, ra)| {
        let RecordedRa { order, size, async_size, ra_pages, .. } = ra;
        match kind {
            0 => EventKind::RaUnbounded { file, index, nr_to_read: count, lookahead_size: size },
            1 => EventKind::RaOrder { file, index, order, size, async_size, ra_pages },
            2 => EventKind::SyncRa { file, index, req_count: count, ra },
            _ => EventKind::AsyncRa { file, index, req_count: count, ra },
        }
    })
}

fn block() -> impl Strategy<Value = EventKind> {
    let flags =
        any::<[bool; 4]>().prop_map(|[read, write, ahead, meta]| Rwbs { read, write, ahead, meta });
    let sectors = (any::<u64>(), any::<u64>(), any::<u64>());
    (0..6, file(), sectors, flags, any::<i32>()).prop_map(
        |(kind, file, (sector, sectors, rest), rwbs, error)| {
            let extent = Extent { device: file.device, sector: Sector(sector), sectors };
            match kind {
                0 => EventKind::BioQueue { extent, rwbs },
                1 => EventKind::BioMerge { extent, rwbs },
                2 => EventKind::BioSplit { extent, rest: Sector(rest), rwbs },
                3 => EventKind::Unplug { requests: error.cast_unsigned() },
                4 => EventKind::RqIssue { extent, rwbs },
                _ => EventKind::RqComplete { extent, rwbs, error },
            }
        },
    )
}

fn task() -> impl Strategy<Value = EventKind> {
    let call = prop::sample::select(Syscall::ALL.map(|(call, ..)| call).to_vec());
    (0..3, call, any::<[u64; 6]>()).prop_map(|(kind, call, args)| match kind {
        0 => EventKind::SyscallEnter { call, args },
        1 => EventKind::SyscallExit { call, ret: args[0].cast_signed() },
        _ => EventKind::NewTask { pid: args[0] as u32, clone_flags: args[1] },
    })
}

/// Any events, in the order of a capture that was read.
fn capture() -> impl Strategy<Value = Capture> {
    let kind = prop_oneof![page_cache(), readahead(), block(), task()];
    let event = (any::<u64>(), any::<u32>(), any::<u32>(), "[a-c<>. ]{0,3}", kind);
    let loss = (any::<u64>(), ".{0,8}");
    (vec(event, 0..60), loss).prop_map(|(events, (count, first))| {
        let mut capture = Capture::default();
        for (time, cpu, pid, comm, kind) in events {
            let comm = capture.comms.intern(&comm);
            capture.events.push(Event { time: Time(time), cpu, pid, comm, kind });
        }
        capture.events.sort_by_key(|event| event.time);
        capture.header.format = "ftrace text".to_owned();
        capture.header.kernel = Some("7.3.0".to_owned());
        capture.header.cpus = Some(2);
        capture.unused_events.insert("sched_switch".to_owned(), 7);
        capture.losses.add(LossKind::LostEvents, count, || first);
        capture
    })
}

proptest! {
    #[test]
    fn a_capture_comes_back_as_it_was(capture in capture()) {
        let settings = [("read_ahead_kb".to_owned(), 512.into()), ("fs".to_owned(), "xfs".into())];
        let extents = vec![FileExtent { page: PageIndex(0), pages: 2, sector: Sector(80) }];
        let file = FileFacts { size_bytes: 8192, extents, ..FileFacts::default() };
        let sidecar = Sidecar {
            settings: settings.into_iter().collect(),
            files: vec![file],
            ..Sidecar::default()
        };
        let given = vec![("memory".to_owned(), "64M".to_owned())];
        let accesses = Some("read 0 4096\n".to_owned());
        let stated = Stated { sidecar, given, accesses };
        let Streamed { capture: back, stated: stated_back, .. } =
            read(&write(&capture, stated.clone()), &EVER);
        prop_assert_eq!(named(&back), named(&capture));
        prop_assert_eq!(back.header, capture.header);
        prop_assert_eq!(back.unused_events, capture.unused_events);
        prop_assert_eq!(back.losses, capture.losses);
        prop_assert_eq!(stated_back, stated);
    }

    /// Damage is an error, or changes nothing that counts.
    #[test]
    fn damage_does_not_panic(capture in capture(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = write(&capture, Stated::default());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let input = Input::open(&bytes[..], "test").expect("opens");
        let mut collector = Collector::default();
        if let Ok(streamed) = stream(input, &EVER, &mut collector) {
            let back = collector.finish(streamed.capture);
            prop_assert_eq!(named(&back), named(&capture));
        }
    }
}

/// Events a microsecond apart.
fn numbered(events: u64) -> Capture {
    let mut capture = Capture::default();
    let comm = capture.comms.intern("reader");
    capture.events = (0..events)
        .map(|n| Event {
            time: Time(n * 1000),
            cpu: 0,
            pid: 10,
            comm,
            kind: EventKind::Fault { file: FileId::default(), index: PageIndex(n) },
        })
        .collect();
    capture
}

#[test]
fn groups_of_other_times_are_not_read() {
    const EVENTS: u64 = 600_000;
    let bytes = write(&numbered(EVENTS), Stated::default());
    let count = |times: RangeInclusive<Time>| {
        let Streamed { capture, passed_over, .. } = read(&bytes, &times);
        assert_eq!(capture.events.len() as u64 + passed_over, EVENTS);
        capture.events.len() as u64
    };
    assert_eq!(count(EVER), EVENTS);
    let late = count(Time(590_000_000)..=Time(u64::MAX));
    assert!((10_000..200_000).contains(&late), "{late}");
    assert_eq!(count(Time(EVENTS * 1000)..=Time(u64::MAX)), 0);
}

/// A table of another kind, as `R` declares it.
macro_rules! other {
    ($schema:expr, $row:expr) => {{
        columns::record! { $schema; struct Row { time_ns: i64, pid: u32 } }
        let mut writer = columns::Writer::new(Vec::new(), "test").expect("starts");
        writer.push($row).expect("takes a row");
        let bytes = writer.finish(&[]).expect("finishes");
        let input = Input::open(&bytes[..], "x.parquet").expect("opens");
        stream(input, &EVER, &mut Collector::default()).expect_err("refused").to_string()
    }};
}

#[test]
fn tables_that_are_no_capture_are_refused() {
    assert_eq!(
        other!("rareplay.events/2", Row { time_ns: 1, pid: 1 }),
        "x.parquet: table `rareplay.events/2` is of another version than `rareplay.events/1`, \
         which this one reads"
    );
    assert_eq!(
        other!("rareplay.result/1", Row { time_ns: 1, pid: 1 }),
        "x.parquet: expected a table `rareplay.events/1`, found `rareplay.result/1`"
    );
    let incomplete = other!("rareplay.events/1", Row { time_ns: 1, pid: 1 });
    assert!(incomplete.contains("column `cpu`"), "{incomplete}");
}

#[test]
fn losses_are_kept_in_words() {
    let mut losses = Losses::default();
    losses.add(LossKind::Overwritten, 3, || "line 2".to_owned());
    let capture = Capture { losses: losses.clone(), comms: Comms::default(), ..Capture::default() };
    assert_eq!(read(&write(&capture, Stated::default()), &EVER).capture.losses, losses);
}
