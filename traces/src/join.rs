//! Several files of one run as one capture: ftrace with the page-cache events, say, and blktrace
//! with the requests.
//!
//! Each file has the clock of its tracer, so the times of one have to become those of the other.
//! Where both recorded the same bios or requests, these tell how far the clocks are apart and how
//! they drift; the largest distance of a matched event from that line is the residual. Where they
//! have none in common, the clocks must be known to be the same one. Anything else is refused.
//!
//! What both files recorded is taken from the one that has more of it, so that nothing counts twice.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::capture::Capture;
use crate::event::{Device, Event, EventKind};
use crate::units::Time;

/// Least events that a fit is made from.
const MATCHED_MIN: usize = 3;
/// How far a matched event may be from the median distance of the clocks and still be the same
/// event: an interrupt may run between two tracers' probes.
const BAND_NS: f64 = 1e6;
/// How much two clocks of one machine drift apart at most; NTP slews by up to 500 ppm.
const DRIFT_MAX: f64 = 500e-6;
/// Time between two probes of one event, below which clocks of one name agree.
const SAME_CLOCK_NS: i64 = 1_000_000;

/// How a file was joined to the capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The file.
    pub name: String,
    /// What it was recognised as.
    pub format: String,
    /// What its clocks were aligned by.
    pub aligned_by: AlignedBy,
    /// What was added to its times, at its first event.
    pub offset_ns: i64,
    /// How much its clock was found to be slow, in billionths.
    pub drift_ppb: i64,
    /// The largest distance of an event in both files after alignment; `None` if there is none.
    pub residual_ns: Option<u64>,
    /// Events found in both files.
    pub events_matched: u64,
    /// Events left out because the other file has them.
    pub events_left_out: u64,
}

/// What clocks were aligned by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlignedBy {
    /// Both files have the same clock.
    Clock,
    /// Events that both files recorded.
    Events,
}

/// Files that cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Nothing tells how the clocks relate.
    #[error(
        "cannot join {second} to {first}: no request is in both, and their clocks are not known to \
         be the same ({first}: {first_clock}, {second}: {second_clock}); record \
         block:block_rq_issue in both, or ftrace with its clock set to mono, which is blktrace's \
         (`trace-cmd record -C mono`), and say --clock mono where the file does not"
    )]
    NoCommonEvents {
        /// The capture.
        first: String,
        /// The file to join.
        second: String,
        /// Clock of the capture.
        first_clock: String,
        /// Clock of the file.
        second_clock: String,
    },
    /// Events that look the same do not have the same distance.
    #[error(
        "cannot join {second} to {first}: of {matched} requests in both, only {agreeing} have the \
         same distance in time: are they files of one run?"
    )]
    Disagree {
        /// The capture.
        first: String,
        /// The file to join.
        second: String,
        /// Requests in both.
        matched: usize,
        /// Of these, near the median distance.
        agreeing: usize,
    },
    /// Both say that they have the same clock, and their events differ.
    #[error(
        "cannot join {second} to {first}: both are said to have the clock {clock}, but requests in \
         both are {apart_ns} ns apart: leave --clock out to align by these"
    )]
    OtherClock {
        /// The capture.
        first: String,
        /// The file to join.
        second: String,
        /// The clock.
        clock: String,
        /// Median distance of events in both.
        apart_ns: u64,
    },
    /// A file without events.
    #[error("cannot join {name}: it has no events")]
    NoEvents {
        /// The file.
        name: String,
    },
}

/// A capture with its name in messages.
#[derive(Debug)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The capture.
    pub capture: Capture,
}

/// Joins `second` to `first`, whose clock the result has.
pub fn join(first: Named, second: Named) -> Result<Capture, JoinError> {
    for Named { name, capture } in [&first, &second] {
        if capture.events.is_empty() {
            return Err(JoinError::NoEvents { name: name.clone() });
        }
    }
    let line = align(&first, &second)?;
    let Named { capture: mut joined, .. } = first;
    let Named { name, capture: mut added } = second;
    let start = added.events.first().map_or(Time(0), |event| event.time);
    let left_out = leave_out_doubles(&mut joined, &mut added);
    joined.joins.push(Join {
        format: added.header.format.clone(),
        aligned_by: line.by,
        offset_ns: line.shift(start),
        drift_ppb: (line.drift * 1e9).round() as i64,
        residual_ns: line.residual_ns,
        events_matched: line.matched,
        events_left_out: left_out,
        name: name.clone(),
    });
    add_events(&mut joined, &added, &line);
    add_rest(&mut joined, added, &name);
    Ok(joined)
}

/// How the times of one file become those of another: `time + offset + drift * (time - from)`.
#[derive(Clone, Copy, Debug)]
struct Line {
    by: AlignedBy,
    from: Time,
    offset_ns: i64,
    drift: f64,
    residual_ns: Option<u64>,
    matched: u64,
}

impl Line {
    /// What is added to a time.
    fn shift(&self, time: Time) -> i64 {
        let since = distance(time, self.from);
        self.offset_ns + (self.drift * since as f64).round() as i64
    }

    fn apply(&self, time: Time) -> Time {
        Time(time.0.saturating_add_signed(self.shift(time)))
    }
}

/// A moment in both files: its time in the second, and how much later the first has it.
type Match = (Time, i64);

fn distance(a: Time, b: Time) -> i64 {
    a.0.wrapping_sub(b.0).cast_signed()
}

fn align(first: &Named, second: &Named) -> Result<Line, JoinError> {
    let matches = matches(&first.capture.events, &second.capture.events);
    let clocks = [first, second].map(|named| named.capture.header.clock.as_deref());
    if let [Some(clock), Some(other)] = clocks
        && clock == other
    {
        return same_clock(first, second, clock, &matches);
    }
    let names = || (first.name.clone(), second.name.clone());
    if matches.len() < MATCHED_MIN {
        let (first, second) = names();
        let [first_clock, second_clock] =
            clocks.map(|clock| clock.unwrap_or("not recorded").to_owned());
        return Err(JoinError::NoCommonEvents { first, second, first_clock, second_clock });
    }
    let agreeing = agreeing(&matches);
    if agreeing.len() < MATCHED_MIN || agreeing.len() * 2 < matches.len() {
        let ((first, second), matched) = (names(), matches.len());
        return Err(JoinError::Disagree { first, second, matched, agreeing: agreeing.len() });
    }
    Ok(fit(&agreeing))
}

/// Nothing is to be done, unless an event in both files says otherwise.
fn same_clock(
    first: &Named,
    second: &Named,
    clock: &str,
    matches: &[Match],
) -> Result<Line, JoinError> {
    // One event may be matched with another of its kind, most are not.
    if let Some(apart) = median(matches).filter(|apart| apart.abs() > SAME_CLOCK_NS) {
        return Err(JoinError::OtherClock {
            first: first.name.clone(),
            second: second.name.clone(),
            clock: clock.to_owned(),
            apart_ns: apart.unsigned_abs(),
        });
    }
    Ok(Line {
        by: AlignedBy::Clock,
        from: Time(0),
        offset_ns: 0,
        drift: 0.0,
        residual_ns: matches.iter().map(|(_, apart)| apart.unsigned_abs()).max(),
        matched: matches.len() as u64,
    })
}

/// What makes an event of one file the same as one of another.
type Key = (u8, Device, u64, u64);

fn key(kind: &EventKind) -> Option<Key> {
    let (tag, extent) = match kind {
        EventKind::BioQueue { extent, .. } => (0, extent),
        EventKind::RqIssue { extent, .. } => (1, extent),
        EventKind::RqComplete { extent, .. } => (2, extent),
        _ => return None,
    };
    (extent.sectors > 0).then_some((tag, extent.device, extent.sector.0, extent.sectors))
}

/// Events that each file has once, in the order of the second file. Those that repeat may be other
/// ones where a file began later or lost some.
fn matches(first: &[Event], second: &[Event]) -> Vec<Match> {
    let in_first = once(first);
    let in_second = once(second);
    let both = in_second.into_iter().filter_map(|(key, time)| {
        let (in_first, in_second) = (in_first.get(&key).copied()??, time?);
        Some((in_second, distance(in_first, in_second)))
    });
    let mut matches: Vec<Match> = both.collect();
    matches.sort_unstable();
    matches
}

/// The time of every event that there is once; `None` for those that there are more of.
fn once(events: &[Event]) -> FxHashMap<Key, Option<Time>> {
    let mut times: FxHashMap<Key, Option<Time>> = FxHashMap::default();
    for event in events {
        if let Some(key) = key(&event.kind) {
            times.entry(key).and_modify(|time| *time = None).or_insert(Some(event.time));
        }
    }
    times
}

fn median(matches: &[Match]) -> Option<i64> {
    let mut apart: Vec<i64> = matches.iter().map(|(_, apart)| *apart).collect();
    apart.sort_unstable();
    apart.get(apart.len() / 2).copied()
}

/// Matches near the median distance, drift allowed for.
fn agreeing(matches: &[Match]) -> Vec<Match> {
    let Some(median) = median(matches) else { return Vec::new() };
    let middle = matches[matches.len() / 2].0;
    let is_near = |&&(time, apart): &&Match| {
        let allowed = BAND_NS + DRIFT_MAX * distance(time, middle).unsigned_abs() as f64;
        (apart - median).unsigned_abs() as f64 <= allowed
    };
    matches.iter().filter(is_near).copied().collect()
}

/// The line through matches with the least squares.
fn fit(matches: &[Match]) -> Line {
    let from = matches[0].0;
    let base = matches[0].1;
    let points: Vec<(f64, f64)> = matches
        .iter()
        .map(|&(time, apart)| (distance(time, from) as f64, (apart - base) as f64))
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let square: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let product: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let drift = if square > 0.0 { product / square } else { 0.0 };
    let offset_ns = base + (mean_y - drift * mean_x).round() as i64;
    let line = Line {
        by: AlignedBy::Events,
        from,
        offset_ns,
        drift,
        residual_ns: None,
        matched: matches.len() as u64,
    };
    let off = |&(time, apart): &Match| (apart - line.shift(time)).unsigned_abs();
    Line { residual_ns: matches.iter().map(off).max(), ..line }
}

/// Kinds of events, those of block devices per device.
type Class = (std::mem::Discriminant<EventKind>, Option<Device>);

fn class(event: &Event) -> Class {
    let device = match event.kind {
        EventKind::BioQueue { extent, .. }
        | EventKind::BioMerge { extent, .. }
        | EventKind::BioSplit { extent, .. }
        | EventKind::RqIssue { extent, .. }
        | EventKind::RqComplete { extent, .. } => Some(extent.device),
        _ => None,
    };
    (std::mem::discriminant(&event.kind), device)
}

/// Takes every kind of event that both captures have out of the one with fewer; returns how many
/// that were.
fn leave_out_doubles(joined: &mut Capture, added: &mut Capture) -> u64 {
    let (mine, theirs) = (count(joined), count(added));
    let fewer = |ours: &FxHashMap<Class, u64>, others: &FxHashMap<Class, u64>, or_equal: bool| {
        let is_fewer = |(class, count): (&Class, &u64)| {
            let other = others.get(class)?;
            (count < other || or_equal && count == other).then_some(*class)
        };
        ours.iter().filter_map(is_fewer).collect::<FxHashSet<Class>>()
    };
    let (drop_mine, drop_theirs) = (fewer(&mine, &theirs, false), fewer(&theirs, &mine, true));
    let before = joined.events.len() + added.events.len();
    joined.events.retain(|event| !drop_mine.contains(&class(event)));
    added.events.retain(|event| !drop_theirs.contains(&class(event)));
    (before - joined.events.len() - added.events.len()) as u64
}

fn count(capture: &Capture) -> FxHashMap<Class, u64> {
    let mut counts = FxHashMap::default();
    for event in &capture.events {
        *counts.entry(class(event)).or_default() += 1;
    }
    counts
}

/// Puts the events of `added` among those of `joined`, on its clock.
fn add_events(joined: &mut Capture, added: &Capture, line: &Line) {
    let moved = added.events.iter().map(|event| {
        let comm = joined.comms.intern(added.comms.name(event.comm));
        Event { time: line.apply(event.time), comm, ..*event }
    });
    let moved: Vec<Event> = moved.collect();
    joined.events.extend(moved);
    joined.events.sort_by_key(|event| event.time);
}

/// Takes over what a file says beside its events.
fn add_rest(joined: &mut Capture, added: Capture, name: &str) {
    let header = &mut joined.header;
    header.format = format!("{} + {}", header.format, added.header.format);
    header.kernel = header.kernel.take().or(added.header.kernel);
    header.cpus = header.cpus.max(added.header.cpus);
    for (event, count) in added.unused_events {
        *joined.unused_events.entry(event).or_default() += count;
    }
    joined.losses.merge(added.losses, &format!("{name}: "));
}
