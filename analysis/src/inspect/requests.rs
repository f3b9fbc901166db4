//! Requests of each block device: how many, how large, how long.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;
use traces::event::{Device, Event, EventKind, Extent, Rwbs};
use traces::streams::is_plausible;
use traces::units::{SECTOR_SHIFT, Sector, Time};

use super::percentiles::{Percentiles, Values};
use crate::result::{DeviceReads, SizeCount};

/// Requests of one block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStats {
    /// `MAJOR:MINOR`.
    pub device: String,
    /// Reads without metadata.
    pub data_reads: DeviceReads,
    /// Metadata reads.
    pub metadata_reads: u64,
    /// Writes.
    pub writes: u64,
    /// Data reads by size, smallest first.
    pub sizes: Vec<SizeCount>,
    /// Data reads, from issue to completion.
    pub issue_to_complete_ns: Option<Percentiles>,
    /// Bios of data reads, from queueing to the issue of their request.
    pub queue_to_issue_ns: Option<Percentiles>,
    /// Data reads whose completion is not in the capture.
    pub uncompleted: u64,
}

#[derive(Default)]
struct Collector {
    data_reads: DeviceReads,
    metadata_reads: u64,
    writes: u64,
    sizes: BTreeMap<u64, u64>,
    latencies_ns: Values,
    queued_ns: Values,
    issued: FxHashMap<Sector, Time>,
    /// Bios that wait for their request, by first sector.
    queued: BTreeMap<Sector, Time>,
}

fn is_data_read(rwbs: Rwbs) -> bool {
    rwbs.read && !rwbs.meta
}

/// What the block events of a capture say of its devices.
#[derive(Default)]
pub(super) struct Requests(BTreeMap<Device, Collector>);

impl Requests {
    pub(super) fn event(&mut self, event: &Event) {
        if let Some(extent) = extent(&event.kind).filter(|_| is_plausible(&event.kind)) {
            self.0.entry(extent.device).or_default().event(event);
        }
    }

    /// Statistics of every device that a request was issued to.
    pub(super) fn finish(self) -> Vec<DeviceStats> {
        self.0.into_iter().filter_map(|(device, collector)| collector.finish(device)).collect()
    }
}

fn extent(kind: &EventKind) -> Option<Extent> {
    match *kind {
        EventKind::BioQueue { extent, .. }
        | EventKind::BioSplit { extent, .. }
        | EventKind::RqIssue { extent, .. }
        | EventKind::RqComplete { extent, .. } => Some(extent),
        _ => None,
    }
}

impl Collector {
    fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::BioQueue { extent, rwbs } if is_data_read(rwbs) => {
                self.queued.insert(extent.sector, event.time);
            }
            EventKind::BioSplit { extent, rest, rwbs } if is_data_read(rwbs) => {
                self.split(extent.sector, rest);
            }
            EventKind::RqIssue { extent, rwbs } => self.issue(extent, rwbs, event.time),
            EventKind::RqComplete { extent, .. } => self.complete(extent, event.time),
            _ => {}
        }
    }

    /// The rest of a bio was queued when the whole of it was.
    fn split(&mut self, first: Sector, rest: Sector) {
        if let Some(&time) = self.queued.get(&first) {
            self.queued.insert(rest, time);
        }
    }

    fn issue(&mut self, extent: Extent, rwbs: Rwbs, now: Time) {
        if !is_data_read(rwbs) {
            self.metadata_reads += u64::from(rwbs.read);
            self.writes += u64::from(rwbs.write);
            return;
        }
        let bytes = extent.sectors << SECTOR_SHIFT;
        self.data_reads.count += 1;
        self.data_reads.bytes += bytes;
        *self.sizes.entry(bytes).or_default() += 1;
        self.issued.insert(extent.sector, now);
        let end = extent.sector + extent.sectors;
        while let Some((&bio, &queued)) = self.queued.range(extent.sector..end).next() {
            self.queued.remove(&bio);
            self.queued_ns.add(now.0.saturating_sub(queued.0));
        }
    }

    fn complete(&mut self, extent: Extent, now: Time) {
        if let Some(issued) = self.issued.remove(&extent.sector) {
            self.latencies_ns.add(now.0.saturating_sub(issued.0));
        }
    }

    fn finish(self, device: Device) -> Option<DeviceStats> {
        let requests = self.data_reads.count + self.metadata_reads + self.writes;
        (requests > 0).then(|| DeviceStats {
            device: device.to_string(),
            data_reads: self.data_reads,
            metadata_reads: self.metadata_reads,
            writes: self.writes,
            sizes: self
                .sizes
                .into_iter()
                .map(|(bytes, count)| SizeCount { bytes, count })
                .collect(),
            uncompleted: self.data_reads.count - self.latencies_ns.count(),
            issue_to_complete_ns: self.latencies_ns.percentiles(),
            queue_to_issue_ns: self.queued_ns.percentiles(),
        })
    }
}
