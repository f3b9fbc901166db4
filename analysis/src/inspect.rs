//! What is in a capture: `rareplay.inspect/1`.
//!
//! Counts come from the events themselves, so that a capture without access
//! streams is described as far as it goes; what needs streams (files, access
//! patterns, unused pages) is there when they can be built.
//!
//! [`inspect_path`] takes a capture in one pass and holds none of it; [`inspect`] describes one that
//! is in memory.

mod files;
mod filter;
mod pass;
mod pattern;
mod percentiles;
mod requests;
mod survey;
mod usage;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use traces::access::{Fidelity, Source};
use traces::capture::{Capture, Header, Losses};
use traces::event::Event;
use traces::join::Join;
use traces::streams::Passed;
use traces::units::{PAGE_SIZE, Time};

use crate::result::{DeviceReads, FolioCounts, SettingView, StreamCounts, view_settings};

use files::{Follower, Insertions};
use requests::Requests;

pub use files::FileStats;
pub use filter::{Filter, FilterView};
pub use pass::inspect_path;
pub use pattern::{AccessPattern, PatternCounts};
pub use percentiles::Percentiles;
pub use requests::DeviceStats;

/// A capture, described.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InspectReport {
    /// `rareplay.inspect/1`.
    pub schema: &'static str,
    /// The capture.
    pub source: String,
    /// What the file says about itself.
    #[serde(flatten)]
    pub header: Header,
    /// Time stamp of the first event, or of the first access where there are no events.
    pub first_ns: u64,
    /// From the first to the last event.
    pub span_ns: u64,
    /// What part of the capture the rest is of, where it is not all.
    pub filter: Option<FilterView>,
    /// Further files of the run that were joined to the first.
    pub joins: Vec<Join>,
    /// Events.
    pub events: EventCounts,
    /// The access streams, where there are any.
    pub streams: Option<StreamsView>,
    /// Why there are no access streams.
    pub no_streams: Option<String>,
    /// Folios inserted into the page cache, of all files.
    pub folios: FolioCounts,
    /// What became of the pages; needs access streams.
    pub usage: Option<Usage>,
    /// Block devices that got requests, by number.
    pub devices: Vec<DeviceStats>,
    /// Files, most bytes asked for first.
    pub files: Vec<FileStats>,
    /// Files left out of the list.
    pub files_omitted: u64,
    /// What the capture lost.
    pub losses: Losses,
}

/// Events of a capture by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventCounts {
    /// Events this program uses.
    pub total: u64,
    /// These by name.
    pub by_kind: BTreeMap<&'static str, u64>,
    /// Events of the capture that say nothing about readahead.
    pub unused: BTreeMap<String, u64>,
}

/// Access streams and the settings they are replayed under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamsView {
    /// How much of what the programs did they reproduce.
    pub fidelity: Fidelity,
    /// Their size.
    #[serde(flatten)]
    pub counts: StreamCounts,
    /// Settings and where each came from.
    pub settings: Vec<SettingView>,
}

/// Bytes asked for, read and used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Bytes of all reads, up to the end of the file, and one page for each fault.
    pub asked_bytes: u64,
    /// Reads of the files from the device.
    pub device_reads: DeviceReads,
    /// Pages inserted.
    pub pages_inserted: u64,
    /// Pages inserted that no read, fault or fault-around covered while they were cached.
    pub pages_unused: u64,
    /// Bytes read from the device for each byte of the pages that were used.
    pub read_amplification: Option<f64>,
}

impl Usage {
    fn total(files: &[FileStats]) -> Self {
        let mut usage = Self::default();
        for file in files {
            usage.asked_bytes += file.asked_bytes;
            usage.device_reads.count += file.device_reads.count;
            usage.device_reads.bytes += file.device_reads.bytes;
            usage.pages_inserted += file.pages_inserted;
            usage.pages_unused += file.pages_unused;
        }
        let used_bytes = (usage.pages_inserted - usage.pages_unused) * PAGE_SIZE;
        let measured = used_bytes > 0 && usage.device_reads.count > 0;
        usage.read_amplification =
            measured.then(|| usage.device_reads.bytes as f64 / used_bytes as f64);
        usage
    }
}

/// Describes a capture. `streams` are its access streams, or why there are none.
pub fn inspect(name: &str, capture: &Capture, streams: Result<&Source, String>) -> InspectReport {
    let mut seen = Seen::default();
    for event in &capture.events {
        seen.event(event);
    }
    let streams = streams.map(Streams::whole);
    seen.report(name, capture, streams)
}

/// What events say by themselves.
#[derive(Default)]
struct Seen {
    total: u64,
    by_kind: FxHashMap<&'static str, u64>,
    /// Time of the first and the last event.
    bounds: Option<(Time, Time)>,
    insertions: Insertions,
    requests: Requests,
}

impl Seen {
    fn event(&mut self, event: &Event) {
        self.total += 1;
        *self.by_kind.entry(event.kind.name()).or_default() += 1;
        let (first, last) = self.bounds.unwrap_or((event.time, event.time));
        self.bounds = Some((first.min(event.time), last.max(event.time)));
        self.insertions.event(&event.kind);
        self.requests.event(event);
    }

    /// Describes a capture whose events were taken in.
    fn report(
        self,
        name: &str,
        capture: &Capture,
        streams: Result<Streams, String>,
    ) -> InspectReport {
        let of_accesses = streams.as_ref().ok().and_then(|streams| streams.bounds);
        let (first, last) = self.bounds.or(of_accesses).unwrap_or_default();
        let folios = self.insertions.folios();
        let (streams, no_streams, files) = match streams {
            Ok(Streams { view, files, .. }) => (Some(view), None, files),
            Err(why) => (None, Some(why), self.insertions.files()),
        };
        InspectReport {
            schema: "rareplay.inspect/1",
            source: name.to_owned(),
            header: capture.header.clone(),
            first_ns: first.0,
            span_ns: last - first,
            filter: None,
            joins: capture.joins.clone(),
            events: EventCounts {
                total: self.total,
                by_kind: self.by_kind.into_iter().collect(),
                unused: capture.unused_events.clone(),
            },
            usage: streams.is_some().then(|| Usage::total(&files)),
            streams,
            no_streams,
            folios,
            devices: self.requests.finish(),
            files,
            files_omitted: 0,
            losses: capture.losses.clone(),
        }
    }
}

/// The access streams of a capture, described.
struct Streams {
    view: StreamsView,
    files: Vec<FileStats>,
    /// Time of the first and the last access.
    bounds: Option<(Time, Time)>,
}

impl Streams {
    /// Of a source that is there as a whole.
    fn whole(source: &Source) -> Self {
        let follower = Follower::of(source);
        let numbers: Vec<_> = (0..source.files.len() as u32).map(Some).collect();
        Self::new(source, StreamCounts::of(source), follower, &numbers)
    }

    /// Of a source whose accesses were followed.
    fn followed(passed: Passed<Follower>) -> Self {
        let counts = StreamCounts { accesses: passed.accesses, ..StreamCounts::of(&passed.source) };
        Self::new(&passed.source, counts, passed.taker, &passed.files)
    }

    fn new(
        source: &Source,
        counts: StreamCounts,
        follower: Follower,
        numbers: &[Option<u32>],
    ) -> Self {
        let view = StreamsView {
            fidelity: source.fidelity,
            counts,
            settings: view_settings(&source.settings),
        };
        let bounds = follower.bounds;
        Self { view, files: follower.finish(source, numbers), bounds }
    }
}

impl InspectReport {
    /// Leaves out all files but the first `count`.
    pub fn keep_files(&mut self, count: usize) {
        self.files_omitted += self.files.len().saturating_sub(count) as u64;
        self.files.truncate(count);
    }
}

#[cfg(test)]
mod tests;
