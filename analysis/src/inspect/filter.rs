//! Part of a capture: some threads, devices or files, or some time of it.
//!
//! Requests carry the bios of a thread, and are issued and completed by whoever runs then. A filter
//! on threads or files keeps the requests that hold sectors of what it keeps.

use std::ops::RangeInclusive;

use serde::Serialize;
use traces::capture::Comms;
use traces::event::{Device, Event, EventKind, Extent};
use traces::units::Time;

use super::survey::Requests;
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

    /// What it left of `total` events.
    pub(super) fn view(&self, events_kept: u64, events_total: u64) -> FilterView {
        FilterView { conditions: self.conditions(), events_kept, events_total }
    }

    /// Whether it keeps an event; `requests` are those that a survey found.
    pub(super) fn keeps(&self, event: &Event, comms: &Comms, requests: &Requests) -> bool {
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

    /// Whether it chooses by thread.
    pub(super) fn is_by_thread(&self) -> bool {
        !(self.pids.is_empty() && self.comms.is_empty())
    }

    /// Whether it chooses by file.
    pub(super) fn is_by_file(&self) -> bool {
        !self.inodes.is_empty()
    }

    pub(super) fn is_thread(&self, event: &Event, comms: &Comms) -> bool {
        is_any(&self.pids, &event.pid)
            && (self.comms.is_empty()
                || self.comms.iter().any(|comm| comm == comms.name(event.comm)))
    }
}

/// Whether `value` is one of `wanted`, where anything is.
fn is_any<T: PartialEq>(wanted: &[T], value: &T) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

/// The sectors of a bio or request.
pub(super) fn extent(kind: &EventKind) -> Option<Extent> {
    match *kind {
        EventKind::BioQueue { extent, .. }
        | EventKind::BioMerge { extent, .. }
        | EventKind::BioSplit { extent, .. }
        | EventKind::RqIssue { extent, .. }
        | EventKind::RqComplete { extent, .. } => Some(extent),
        _ => None,
    }
}
