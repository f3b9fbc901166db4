//! Part of a capture: some threads, devices or files, or some time of it.
//!
//! Requests carry the bios of a thread, and are issued and completed by whoever runs then. A filter
//! on threads or files keeps the requests that hold sectors of what it keeps.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde::Serialize;
use traces::access::{FileExtent, Source};
use traces::capture::{Capture, Comms};
use traces::event::{Device, Event, EventKind, Extent};
use traces::units::{SECTORS_PER_PAGE, Time};

use crate::events::EVER;

/// What to keep; an empty list keeps everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Threads.
    pub pids: Vec<u32>,
    /// Names of threads.
    pub comms: Vec<String>,
    /// Devices, of files or of requests.
    pub devices: Vec<Device>,
    /// Inode numbers.
    pub inodes: Vec<u64>,
    /// Not before this time stamp.
    pub from: Option<Time>,
    /// Not after this time stamp.
    pub to: Option<Time>,
}

/// What a filter left of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilterView {
    /// Its conditions, all of which hold for what was kept.
    pub conditions: Vec<String>,
    /// Events it kept.
    pub events_kept: u64,
    /// Events of the capture.
    pub events_total: u64,
}

impl Filter {
    /// Whether it keeps everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The times that matter, where nothing else does: whose a request is can be told by events of
    /// other times.
    pub(crate) fn times_alone(&self) -> RangeInclusive<Time> {
        let times = Self { from: self.from, to: self.to, ..Self::default() };
        if *self != times {
            return EVER;
        }
        self.from.unwrap_or(*EVER.start())..=self.to.unwrap_or(*EVER.end())
    }

    /// The conditions in words.
    fn conditions(&self) -> Vec<String> {
        let mut conditions = Vec::new();
        let mut any_of = |what: &str, values: Vec<String>| {
            if !values.is_empty() {
                conditions.push(format!("{what} {}", values.join(" or ")));
            }
        };
        any_of("pid", self.pids.iter().map(u32::to_string).collect());
        any_of("comm", self.comms.clone());
        any_of("device", self.devices.iter().map(Device::to_string).collect());
        any_of("inode", self.inodes.iter().map(|inode| format!("{inode:#x}")).collect());
        any_of("from", self.from.iter().map(|time| time.seconds()).collect());
        any_of("to", self.to.iter().map(|time| time.seconds()).collect());
        conditions
    }

    /// Takes everything else out of `capture`. `source` is what its streams say, if it has any.
    pub fn apply(&self, capture: &mut Capture, source: Option<&Source>) -> FilterView {
        let events_total = capture.events.len() as u64;
        let requests = Requests {
            of_threads: self.sectors_of_threads(capture),
            of_files: self.sectors_of_files(source),
        };
        let comms = &capture.comms;
        capture.events.retain(|event| self.keeps(event, comms, &requests));
        let events_kept = capture.events.len() as u64;
        FilterView { conditions: self.conditions(), events_kept, events_total }
    }

    fn keeps(&self, event: &Event, comms: &Comms, requests: &Requests) -> bool {
        let is_early = self.from.is_some_and(|from| event.time < from);
        let is_late = self.to.is_some_and(|to| event.time > to);
        if is_early || is_late {
            return false;
        }
        if let Some(extent) = extent(&event.kind) {
            return is_any(&self.devices, &extent.device) && requests.hold(extent);
        }
        let of_file = event.kind.file().is_none_or(|file| {
            is_any(&self.inodes, &file.inode) && is_any(&self.devices, &file.device)
        });
        of_file && self.is_thread(event, comms)
    }

    fn is_thread(&self, event: &Event, comms: &Comms) -> bool {
        is_any(&self.pids, &event.pid)
            && (self.comms.is_empty()
                || self.comms.iter().any(|comm| comm == comms.name(event.comm)))
    }

    /// Where the threads' bios are; where no bio is recorded, the requests they issued.
    fn sectors_of_threads(&self, capture: &Capture) -> Option<Sectors> {
        if self.pids.is_empty() && self.comms.is_empty() {
            return None;
        }
        let is_bio = |event: &&Event| matches!(event.kind, EventKind::BioQueue { .. });
        let has_bios = capture.events.iter().any(|event| is_bio(&event));
        let begun = capture.events.iter().filter(|event| match event.kind {
            EventKind::BioQueue { .. } => true,
            EventKind::RqIssue { .. } => !has_bios,
            _ => false,
        });
        let of_threads = begun.filter(|event| self.is_thread(event, &capture.comms));
        Some(of_threads.filter_map(|event| extent(&event.kind)).map(range).collect())
    }

    /// Where the files are, as far as the capture tells.
    fn sectors_of_files(&self, source: Option<&Source>) -> Option<Sectors> {
        if self.inodes.is_empty() {
            return None;
        }
        let files = source.iter().flat_map(|source| &source.files);
        let kept = files.filter(|file| self.inodes.contains(&file.id.inode));
        let range = |extent: &FileExtent| {
            (extent.sector.0, extent.sector.0 + extent.pages * SECTORS_PER_PAGE)
        };
        Some(kept.flat_map(|file| &file.extents).map(range).collect())
    }
}

/// Whether `value` is one of `wanted`, where anything is.
fn is_any<T: PartialEq>(wanted: &[T], value: &T) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

fn range(extent: Extent) -> (u64, u64) {
    (extent.sector.0, extent.sector.0.saturating_add(extent.sectors))
}

/// Sectors that requests must hold some of; `None` where it does not matter.
struct Requests {
    of_threads: Option<Sectors>,
    of_files: Option<Sectors>,
}

impl Requests {
    fn hold(&self, extent: Extent) -> bool {
        [&self.of_threads, &self.of_files]
            .into_iter()
            .flatten()
            .all(|sectors| sectors.overlap(range(extent)))
    }
}

/// Ranges of sectors, each by its first and its end.
#[derive(Default)]
struct Sectors(BTreeMap<u64, u64>);

impl FromIterator<(u64, u64)> for Sectors {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(ranges: I) -> Self {
        let mut sectors = Self::default();
        for (first, end) in ranges {
            sectors.add(first, end);
        }
        sectors
    }
}

impl Sectors {
    /// Adds a range, joined with those it touches.
    fn add(&mut self, mut first: u64, mut end: u64) {
        while let Some((&start, &stop)) =
            self.0.range(..=end).next_back().filter(|(_, stop)| **stop >= first)
        {
            self.0.remove(&start);
            first = first.min(start);
            end = end.max(stop);
        }
        self.0.insert(first, end);
    }

    fn overlap(&self, (first, end): (u64, u64)) -> bool {
        self.0.range(..end.max(first + 1)).next_back().is_some_and(|(_, stop)| *stop > first)
    }
}

fn extent(kind: &EventKind) -> Option<Extent> {
    match *kind {
        EventKind::BioQueue { extent, .. }
        | EventKind::BioMerge { extent, .. }
        | EventKind::BioSplit { extent, .. }
        | EventKind::RqIssue { extent, .. }
        | EventKind::RqComplete { extent, .. } => Some(extent),
        _ => None,
    }
}
