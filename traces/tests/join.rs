//! Files of one run on different clocks.

use proptest::prelude::*;
use traces::capture::{Capture, LossKind};
use traces::event::{Comm, Device, Event, EventKind, Extent, FileId, Rwbs};
use traces::join::{AlignedBy, Join, JoinError, Named, join};
use traces::units::{Order, PageIndex, Sector, Time};

const DISK: Device = Device { major: 7, minor: 0 };
const READ: Rwbs = Rwbs { read: true, write: false, ahead: true, meta: false };

fn event(time: u64, kind: EventKind) -> Event {
    Event { time: Time(time), cpu: 0, pid: 7, comm: Comm::default(), kind }
}

fn added(page: u64) -> EventKind {
    let file = FileId { device: DISK, inode: 0x83 };
    EventKind::AddToPageCache { file, index: PageIndex(page), order: Order(0), pfn: 0 }
}

fn extent(page: u64) -> Extent {
    Extent { device: DISK, sector: Sector(page * 8), sectors: 8 }
}

fn issued(page: u64) -> EventKind {
    EventKind::RqIssue { extent: extent(page), rwbs: READ }
}

fn queued(page: u64) -> EventKind {
    EventKind::BioQueue { extent: extent(page), rwbs: READ }
}

fn capture(name: &str, clock: Option<&str>, events: Vec<Event>) -> Named {
    let mut capture = Capture { events, ..Capture::default() };
    capture.header.clock = clock.map(str::to_owned);
    name.clone_into(&mut capture.header.format);
    capture.comms.intern("reader");
    Named { name: name.to_owned(), capture }
}

/// Every read: an insertion, 2 us later its bio, then 3 us later its request; one each 100 us.
fn run(reads: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..reads).map(|page| (1_000_000 + page * 100_000, page))
}

/// The page cache's side of it, with the issues if `with_requests`.
fn ftrace(reads: u64, clock: Option<&str>, with_requests: bool) -> Named {
    let mut events = Vec::new();
    for (time, page) in run(reads) {
        events.push(event(time, added(page)));
        if with_requests {
            events.push(event(time + 5_000, issued(page)));
        }
    }
    capture("ftrace", clock, events)
}

/// The block layer's side, on a clock that is `offset` ahead and runs `ppm` too slow.
fn blktrace(reads: u64, clock: Option<&str>, offset: i64, ppm: f64) -> Named {
    let at = |time: u64| {
        let slow = (time as f64 * ppm * 1e-6).round() as i64;
        time.saturating_add_signed(offset - slow)
    };
    let both = |(time, page)| {
        [event(at(time + 2_000), queued(page)), event(at(time + 5_000), issued(page))]
    };
    capture("blktrace", clock, run(reads).flat_map(both).collect())
}

fn joined(first: Named, second: Named) -> (Capture, Join) {
    let capture = join(first, second).expect("they are of one run");
    let join = capture.joins[0].clone();
    (capture, join)
}

/// Kinds in order, a letter each.
fn order(capture: &Capture) -> String {
    let letter = |event: &Event| match event.kind {
        EventKind::AddToPageCache { .. } => 'a',
        EventKind::BioQueue { .. } => 'q',
        EventKind::RqIssue { .. } => 'i',
        _ => '?',
    };
    capture.events.iter().map(letter).collect()
}

#[test]
fn one_clock_needs_no_common_events() {
    let second = blktrace(3, Some("mono"), 0, 0.0);
    let (capture, join) = joined(ftrace(3, Some("mono"), false), second);
    assert_eq!(order(&capture), "aqiaqiaqi");
    assert_eq!((join.aligned_by, join.offset_ns, join.residual_ns), (AlignedBy::Clock, 0, None));
    assert_eq!(capture.header.format, "ftrace + blktrace");
}

#[test]
fn other_clocks_are_aligned_by_events_in_both() {
    let second = blktrace(9, Some("mono"), 123_456_789, 0.0);
    let (capture, join) = joined(ftrace(9, Some("local"), true), second);
    assert_eq!(order(&capture), "aqi".repeat(9));
    assert_eq!(join.aligned_by, AlignedBy::Events);
    assert_eq!((join.offset_ns, join.drift_ppb, join.residual_ns), (-123_456_789, 0, Some(0)));
    assert_eq!((join.events_matched, join.events_left_out), (9, 9));
}

#[test]
fn nothing_counts_twice() {
    let (capture, join) = joined(ftrace(9, None, true), blktrace(20, Some("mono"), -500_000, 0.0));
    // The second file has more of the requests, so that all of them are its own.
    assert_eq!(order(&capture).matches('i').count(), 20);
    assert_eq!((join.events_matched, join.events_left_out), (9, 9));
}

#[test]
fn no_common_event_on_unknown_clocks_is_refused() {
    let error = join(ftrace(9, None, false), blktrace(9, Some("mono"), 0, 0.0)).expect_err("no");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn a_wrong_clock_is_refused() {
    let first = ftrace(9, Some("mono"), true);
    let error = join(first, blktrace(9, Some("mono"), 30_000_000, 0.0)).expect_err("no");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn files_of_other_runs_are_refused() {
    let first = ftrace(9, None, true);
    let mut second = blktrace(9, None, 0, 0.0);
    for (n, event) in second.capture.events.iter_mut().enumerate() {
        event.time = Time(event.time.0 * 7 * (n as u64 / 2 + 1));
    }
    let error = join(first, second).expect_err("no");
    assert!(matches!(error, JoinError::Disagree { matched: 9, .. }), "{error}");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn a_file_without_events_is_refused() {
    let error = join(ftrace(1, None, false), blktrace(0, None, 0, 0.0)).expect_err("no");
    assert!(matches!(error, JoinError::NoEvents { .. }));
}

#[test]
fn what_the_second_file_lost_names_it() {
    let mut second = blktrace(3, Some("mono"), 0, 0.0);
    second.capture.losses.add(LossKind::MissingCpu, 1, || "run.blktrace.1".to_owned());
    let (capture, _) = joined(ftrace(3, Some("mono"), false), second);
    assert_eq!(capture.losses.0[&LossKind::MissingCpu].first, "blktrace: run.blktrace.1");
}

#[test]
fn repeated_requests_do_not_mislead() {
    let mut first = ftrace(9, None, true);
    // The page read last was read before, while only this file recorded.
    first.capture.events.insert(0, event(10, issued(8)));
    let (_, join) = joined(first, blktrace(9, None, 77_000, 0.0));
    assert_eq!((join.offset_ns, join.residual_ns, join.events_matched), (-77_000, Some(0), 8));
}

proptest! {
    /// Whatever the offset and the drift, every event comes where it belongs.
    #[test]
    fn any_offset_and_drift(
        offset in 0..1_i64 << 40,
        ppm in -200.0..200.0,
        reads in 3..200_u64,
    ) {
        let (capture, join) = joined(ftrace(reads, None, true), blktrace(reads, None, offset, ppm));
        prop_assert_eq!(order(&capture), "aqi".repeat(reads as usize));
        prop_assert!(join.residual_ns <= Some(2), "{:?}", join);
    }
}
