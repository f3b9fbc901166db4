//! A small capture, made by hand: one file read in order, half of another's readahead wasted.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use traces::capture::{Capture, LossKind};
use traces::event::{Comm, Device, Event, EventKind, Extent, FileId, RecordedRa, Rwbs, Syscall};
use traces::streams::{self, StreamOptions};
use traces::units::{ByteOffset, Order, PageIndex, Sector, Time};

use super::pattern::Classifier;
use super::*;
use crate::feed::Feed;
use crate::load::{self, LoadOptions, Stated};

const DISK: Device = Device { major: 259, minor: 1 };
const DATA: Rwbs = Rwbs { read: true, write: false, ahead: true, meta: false };

fn file(inode: u64) -> FileId {
    FileId { device: DISK, inode }
}

#[derive(Default)]
struct Events(Vec<Event>);

impl Events {
    fn at(&mut self, time_us: u64, kind: EventKind) {
        let time = Time(time_us * 1000);
        self.0.push(Event { time, cpu: 0, pid: 7, comm: Comm::default(), kind });
    }

    /// A read of `pages` that inserts `folios` of `order` and reads them in one request.
    fn read(&mut self, time_us: u64, inode: u64, page: u64, pages: u64, folios: u64, order: u8) {
        let file = file(inode);
        let pos = PageIndex(page).offset();
        let count = pages << 12;
        self.at(time_us, EventKind::BufferedRead { file, size_bytes: 1 << 20, pos, count });
        if folios == 0 {
            return;
        }
        let order = Order(order);
        for n in 0..folios {
            let index = PageIndex(page + n * order.pages());
            self.at(time_us + 1, EventKind::AddToPageCache { file, index, order, pfn: 0 });
        }
        let sector = Sector((inode << 20) + page * 8);
        let extent = Extent { device: DISK, sector, sectors: folios * order.pages() * 8 };
        self.at(time_us + 2, EventKind::BioQueue { extent, rwbs: DATA });
        self.at(time_us + 5, EventKind::RqIssue { extent, rwbs: DATA });
        self.at(time_us + 5 + 10 * folios, EventKind::RqComplete { extent, rwbs: DATA, error: 0 });
    }
}

fn capture() -> Capture {
    let mut events = Events::default();
    events.read(100, 0x83, 0, 4, 4, 2);
    events.read(200, 0x83, 4, 4, 0, 0);
    events.read(300, 0x83, 8, 8, 0, 0);
    events.read(400, 0x91, 64, 1, 8, 0);
    let meta = Extent { device: DISK, sector: Sector(8), sectors: 8 };
    let rwbs = Rwbs { meta: true, ..DATA };
    events.at(900, EventKind::RqIssue { extent: meta, rwbs });
    let mut capture = Capture { events: events.0, ..Capture::default() };
    capture.header.format = "ftrace text".to_owned();
    capture.header.kernel = Some("6.18.44".to_owned());
    capture.unused_events.insert("sched_switch".to_owned(), 12);
    capture.losses.add(LossKind::Unparsed, 2, || "line 9: garbage".to_owned());
    capture
}

fn report() -> InspectReport {
    let capture = capture();
    let source = streams::build(&capture, "small", &StreamOptions::default());
    inspect("small", &capture, source.as_ref().map_err(ToString::to_string))
}

#[test]
fn counts_events_and_keeps_losses() {
    let report = report();
    assert_eq!(report.schema, "rareplay.inspect/1");
    assert_eq!(report.events.total, 23);
    assert_eq!(report.events.by_kind["xfs_file_buffered_read"], 4);
    assert_eq!(report.events.by_kind["mm_filemap_add_to_page_cache"], 12);
    assert_eq!(report.events.unused["sched_switch"], 12);
    assert_eq!(report.span_ns, 800_000);
    assert_eq!(report.losses.0[&LossKind::Unparsed].count, 2);
}

#[test]
fn files_come_by_bytes_asked_with_their_waste() {
    let report = report();
    assert_eq!(report.streams.as_ref().map(|streams| streams.fidelity), Some(Fidelity::Exact));
    let [first, second] = &report.files[..] else { panic!("{:?}", report.files) };
    assert_eq!(first.file, "259:1/0x83");
    assert_eq!((first.accesses, first.asked_bytes), (3, 64 << 10));
    assert_eq!((first.pages_inserted, first.pages_unused), (16, 0));
    assert_eq!(first.folios.by_order, [0, 0, 4]);
    assert_eq!(first.pattern.main(), Some((AccessPattern::Sequential, 1.0)));
    assert_eq!((second.pages_inserted, second.pages_unused), (8, 7));
    assert_eq!(second.device_reads, DeviceReads { count: 1, bytes: 32 << 10 });
    assert_eq!(second.pattern.main(), None);
    let usage = report.usage.expect("streams were built");
    assert_eq!(usage.read_amplification, Some(24.0 / 17.0));
}

#[test]
fn evicted_unused_pages_stay_unused() {
    let mut capture = capture();
    let mut events = Events(std::mem::take(&mut capture.events));
    let index = PageIndex(64 + 4);
    let evicted = EventKind::DeleteFromPageCache { file: file(0x91), index, order: Order(0) };
    events.at(1000, evicted);
    events.read(1100, 0x91, 68, 1, 1, 0);
    capture.events = events.0;
    let source = streams::build(&capture, "small", &StreamOptions::default());
    let report = inspect("small", &capture, source.as_ref().map_err(ToString::to_string));
    assert_eq!((report.files[1].pages_inserted, report.files[1].pages_unused), (9, 7));
}

#[test]
fn fault_around_uses_whole_folios() {
    let file = file(0x83);
    let mut events = Events::default();
    let fault = |events: &mut Events, time_us, page| {
        let index = PageIndex(page);
        events.at(time_us, EventKind::Fault { file, index });
        for index in [index, index + 32].into_iter().filter(|index| page == 0 || index.0 > page) {
            let order = Order(5);
            events.at(time_us + 1, EventKind::AddToPageCache { file, index, order, pfn: 0 });
        }
        let last = index + 15;
        events.at(time_us + 9, EventKind::MapPages { file, index, last });
    };
    for n in 0..4 {
        fault(&mut events, 100 * (n + 1), 32 * n);
    }
    let capture = Capture { events: events.0, ..Capture::default() };
    let source = streams::build(&capture, "mapped", &StreamOptions::default());
    let report = inspect("mapped", &capture, source.as_ref().map_err(ToString::to_string));
    let [mapped] = &report.files[..] else { panic!("{:?}", report.files) };
    assert_eq!((mapped.accesses, mapped.asked_bytes), (4, 4 * 4096));
    assert_eq!(mapped.pattern.main(), Some((AccessPattern::Sequential, 1.0)));
    // Each fault reads one folio ahead: only the last of these stays unused.
    assert_eq!((mapped.pages_inserted, mapped.pages_unused), (5 * 32, 32));
}

#[test]
fn requests_are_timed_by_device() {
    let report = report();
    let [disk] = &report.devices[..] else { panic!("{:?}", report.devices) };
    assert_eq!(disk.device, "259:1");
    assert_eq!(disk.data_reads, DeviceReads { count: 2, bytes: (64 + 32) << 10 });
    assert_eq!((disk.metadata_reads, disk.writes, disk.uncompleted), (1, 0, 0));
    let sizes: Vec<_> = disk.sizes.iter().map(|size| (size.bytes >> 10, size.count)).collect();
    assert_eq!(sizes, [(32, 1), (64, 1)]);
    let latency = disk.issue_to_complete_ns.expect("both completed");
    assert_eq!((latency.p50, latency.p99, latency.max), (40_000, 80_000, 80_000));
    assert_eq!(disk.queue_to_issue_ns.map(|queue| (queue.count, queue.max)), Some((2, 3_000)));
}

#[test]
fn a_split_bio_waits_from_its_queueing() {
    let mut events = Events::default();
    let part = |first, sectors| Extent { device: DISK, sector: Sector(first), sectors };
    events.at(10, EventKind::BioQueue { extent: part(0, 16), rwbs: DATA });
    events.at(11, EventKind::BioSplit { extent: part(0, 8), rest: Sector(8), rwbs: DATA });
    events.at(12, EventKind::RqIssue { extent: part(0, 8), rwbs: DATA });
    events.at(20, EventKind::RqIssue { extent: part(8, 8), rwbs: DATA });
    let capture = Capture { events: events.0, ..Capture::default() };
    let report = inspect("split", &capture, Err("no access events".to_owned()));
    let disk = &report.devices[0];
    assert_eq!(disk.queue_to_issue_ns.map(|queue| (queue.p50, queue.max)), Some((2000, 10_000)));
    assert_eq!((disk.uncompleted, disk.issue_to_complete_ns), (2, None));
}

#[test]
fn without_streams_files_still_show_their_folios() {
    let report = inspect("small", &capture(), Err("no access events".to_owned()));
    assert_eq!(report.no_streams.as_deref(), Some("no access events"));
    assert_eq!((report.usage, &report.streams), (None, &None));
    let pages: Vec<_> = report.files.iter().map(|file| file.pages_inserted).collect();
    assert_eq!(pages, [16, 8]);
}

/// The main pattern of 4 KiB accesses to these pages.
fn pattern_of(pages: &[u64]) -> Option<AccessPattern> {
    let mut classifier = Classifier::default();
    let mut counts = PatternCounts::default();
    for &page in pages {
        let start = ByteOffset(page << 12).0;
        classifier.access(start..start + 4096, &mut counts);
    }
    counts.main().map(|(pattern, _)| pattern)
}

#[test]
fn patterns_are_told_apart() {
    let cases: &[(&[u64], Option<AccessPattern>)] = &[
        (&[5], None),
        (&[0, 1, 2, 3, 4], Some(AccessPattern::Sequential)),
        (&[0, 100, 1, 101, 2, 102, 3, 103], Some(AccessPattern::Interleaved)),
        (&[0, 16, 32, 48, 64], Some(AccessPattern::Strided)),
        (&[64, 62, 60, 58, 56], Some(AccessPattern::Backward)),
        (&[9, 400, 31, 220, 77, 5], Some(AccessPattern::Random)),
    ];
    for (pages, expected) in cases {
        assert_eq!(pattern_of(pages), *expected, "{pages:?}");
    }
}

/// Captures of the corpus of every kernel, and files of other formats.
fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let corpus = root.join("traces/corpus");
    let folders =
        fs::read_dir(&corpus).expect("the corpus").map(|entry| entry.expect("entry").path());
    let folders = folders.filter(|path| path.is_dir()).chain([root.join("parser/tests/fixtures")]);
    let files = folders.flat_map(|folder| {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("entry").path())
    });
    let is_capture = |file: &PathBuf| {
        let name = file.to_string_lossy();
        let others = ["README.md", ".toml", ".ops.txt", ".parquet"];
        !others.iter().any(|other| name.ends_with(other))
    };
    files.filter(is_capture).collect()
}

/// The report of one pass in which accesses wait for this many events.
fn passed(path: &Path, filter: &Filter, window_events: u64) -> InspectReport {
    let stated = Stated::read(path, &LoadOptions::default()).expect("the sidecar is good");
    let feed = Feed::open(path, &stated.joined, stated.clock.clone()).expect("it opens");
    pass::inspect_feed("capture", feed, stated, filter, window_events).expect("it is a capture")
}

#[test]
fn one_pass_says_what_the_whole_capture_says() {
    let captures = captures();
    assert!(captures.len() > 40, "{}", captures.len());
    for path in captures {
        let opened = load::open(&path, &LoadOptions::default()).expect("it opens");
        let streams = opened
            .source
            .as_ref()
            .map_err(|why| why.to_string().replace(&path.display().to_string(), "capture"));
        let whole = inspect("capture", &opened.capture, streams);
        for window_events in [pass::WINDOW_EVENTS, 2048] {
            let report = passed(&path, &Filter::default(), window_events);
            assert_eq!(report, whole, "{} {window_events}", path.display());
        }
    }
}

/// A number that mostly is small, and now and then what only damage makes.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![20 => 0..64_u64, 1 => any::<u64>()]
}

/// What a few threads do to two files on one disk.
fn happening() -> impl Strategy<Value = EventKind> {
    (0..15_u8, 0..2_u64, [(); 3].map(|()| number())).prop_map(|(kind, inode, [a, b, c])| {
        let (file, index, last) = (file(inode), PageIndex(a), PageIndex(a.max(b)));
        let order = Order((b % 4) as u8);
        let extent = Extent { device: DISK, sector: Sector(a), sectors: b };
        let ra = RecordedRa { size: b, async_size: c, ra_pages: 32, ..RecordedRa::default() };
        match kind {
            0 => {
                let pos = ByteOffset(a.saturating_mul(1000));
                EventKind::BufferedRead {
                    file,
                    size_bytes: 1 << 18,
                    pos,
                    count: b.saturating_mul(999),
                }
            }
            1 => EventKind::GetPages { file, index, last },
            2 => EventKind::Fault { file, index },
            3 => EventKind::MapPages { file, index, last },
            4 | 5 => EventKind::AddToPageCache { file, index, order, pfn: c },
            6 => EventKind::DeleteFromPageCache { file, index, order },
            7 => EventKind::SyncRa { file, index, req_count: b, ra },
            8 => EventKind::RaOrder { file, index, order: 0, size: b, async_size: c, ra_pages: 32 },
            9 => EventKind::RaUnbounded { file, index, nr_to_read: b, lookahead_size: c },
            10 => EventKind::BioQueue { extent, rwbs: DATA },
            11 => EventKind::RqIssue { extent, rwbs: DATA },
            12 => EventKind::RqComplete { extent, rwbs: DATA, error: 0 },
            13 => {
                let call = Syscall::ALL[(c % 16) as usize].0;
                EventKind::SyscallEnter { call, args: [a % 4, b, 4096, c, 0, 0] }
            }
            _ => EventKind::SyscallExit { call: Syscall::Read, ret: (a % 5).cast_signed() },
        }
    })
}

fn happenings() -> impl Strategy<Value = Vec<Event>> {
    let event = (1..4_u32, happening(), any::<bool>());
    prop::collection::vec(event, 0..300).prop_map(|events| {
        let event = |((pid, kind, forks), time)| {
            let kind = if forks && pid == 3 {
                EventKind::NewTask { pid: 1, clone_flags: 0x400 * (time % 2) }
            } else {
                kind
            };
            Event { time: Time(time), cpu: 0, pid, comm: Comm::default(), kind }
        };
        events.into_iter().zip(1..).map(event).collect()
    })
}

proptest! {
    /// What happens after an access within the window is known; what the window does not matter for
    /// is known whatever it is.
    #[test]
    fn a_window_over_everything_is_exact(
        events in happenings(),
        allow_inferred in any::<bool>(),
        narrow in 0..64_u64,
    ) {
        let options = StreamOptions { allow_inferred, ..StreamOptions::default() };
        let mut capture = Capture { events, ..Capture::default() };
        let pass = |window_events| {
            let mut inspection = pass::Inspection::new(&options, window_events);
            for event in &capture.events {
                inspection.event(event);
            }
            inspection.finish("any", Capture { events: Vec::new(), ..capture.clone() })
        };
        let (wide, narrow) = (pass(1000), pass(narrow));
        let source = streams::build(&capture, "any", &options);
        if let Ok(source) = &source {
            capture.losses = source.losses.clone();
        }
        let whole = inspect("any", &capture, source.as_ref().map_err(ToString::to_string));
        prop_assert_eq!(&wide, &whole);
        prop_assert_eq!(narrow.events, whole.events);
        prop_assert_eq!(narrow.folios, whole.folios);
        prop_assert_eq!(narrow.devices, whole.devices);
        prop_assert_eq!(narrow.losses, whole.losses);
        let sizes = |report: &Option<StreamsView>| {
            report.as_ref().map(|view| (view.counts.files, view.counts.threads, view.counts.accesses))
        };
        prop_assert_eq!(sizes(&narrow.streams), sizes(&whole.streams));
    }
}
