//! What is in a capture: `rareplay.inspect/1`.
//!
//! Counts come from the events themselves, so that a capture without access
//! streams is described as far as it goes; what needs streams (files, access
//! patterns, unused pages) is there when they can be built.

mod files;
mod filter;
mod pattern;
mod requests;
mod usage;

use std::collections::BTreeMap;

use serde::Serialize;
use traces::access::{Fidelity, Source};
use traces::capture::{Capture, Header, Losses};
use traces::join::Join;
use traces::units::{PAGE_SIZE, Time};

use crate::result::{DeviceReads, FolioCounts, SettingView, StreamCounts, view_settings};

pub use files::FileStats;
pub use filter::{Filter, FilterView};
pub use pattern::{AccessPattern, PatternCounts};
pub use requests::{DeviceStats, Percentiles};

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
    let (files, usage) = match streams {
        Ok(source) => {
            let files = files::of_streams(source);
            let usage = Usage::total(&files);
            (files, Some(usage))
        }
        Err(_) => (files::of_events(capture), None),
    };
    let (first, last) = bounds(capture, streams.as_ref().ok().copied());
    InspectReport {
        schema: "rareplay.inspect/1",
        source: name.to_owned(),
        header: capture.header.clone(),
        first_ns: first.0,
        span_ns: last - first,
        filter: None,
        joins: capture.joins.clone(),
        events: count_events(capture),
        streams: streams.as_ref().ok().map(|source| view_streams(source)),
        no_streams: streams.err(),
        folios: files::folios_of_capture(capture),
        usage,
        devices: requests::collect(capture),
        files,
        files_omitted: 0,
        losses: capture.losses.clone(),
    }
}

/// The first and the last time stamp.
fn bounds(capture: &Capture, source: Option<&Source>) -> (Time, Time) {
    let of_events = capture.events.first().zip(capture.events.last());
    let of_accesses = source.and_then(|source| source.accesses.first().zip(source.accesses.last()));
    let of_events = of_events.map(|(first, last)| (first.time, last.time));
    let of_accesses = of_accesses.map(|(first, last)| (first.time, last.time));
    of_events.or(of_accesses).unwrap_or_default()
}

impl InspectReport {
    /// Leaves out all files but the first `count`.
    pub fn keep_files(&mut self, count: usize) {
        self.files_omitted += self.files.len().saturating_sub(count) as u64;
        self.files.truncate(count);
    }
}

fn view_streams(source: &Source) -> StreamsView {
    StreamsView {
        fidelity: source.fidelity,
        counts: StreamCounts::of(source),
        settings: view_settings(&source.settings),
    }
}

fn count_events(capture: &Capture) -> EventCounts {
    let mut by_kind = BTreeMap::new();
    for event in &capture.events {
        *by_kind.entry(event.kind.name()).or_default() += 1;
    }
    EventCounts {
        total: capture.events.len() as u64,
        by_kind,
        unused: capture.unused_events.clone(),
    }
}

#[cfg(test)]
mod tests;
