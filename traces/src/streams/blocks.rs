//! Device reads of a capture: requests, and where files lie on the device.
//!
//! A thread that adds folios and then queues bios reads those folios in that
//! order, which ties sectors to pages.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::access::{FileExtent, RecordedRead};
use crate::event::{Device, Event, EventKind, Extent, Rwbs};
use crate::units::{PageIndex, SECTORS_PER_PAGE, Sector, Time};

/// Folios added by a thread that no bio has covered yet.
#[derive(Default)]
struct Unread {
    runs: VecDeque<(u32, PageIndex, u64)>,
}

/// Collects device reads and extents.
#[derive(Default)]
pub(super) struct Blocks {
    unread: FxHashMap<u32, Unread>,
    extents: FxHashMap<u32, Vec<FileExtent>>,
    /// Devices that read folios of files: not always the `s_dev` of the filesystem.
    devices: FxHashSet<Device>,
    reads: Vec<(Device, RecordedRead)>,
    outstanding: FxHashMap<(Device, Sector), usize>,
    /// Sectors of data bios whose request was not issued yet: first to end.
    queued: BTreeMap<(Device, Sector), Sector>,
    pub(super) metadata_reads: u64,
}

fn is_data_read(rwbs: Rwbs) -> bool {
    rwbs.read && !rwbs.meta
}

impl Blocks {
    /// A folio of `file` was added by thread `pid`.
    pub(super) fn added(&mut self, pid: u32, file: u32, page: PageIndex, pages: u64) {
        let runs = &mut self.unread.entry(pid).or_default().runs;
        match runs.back_mut() {
            Some((last_file, first, len)) if *last_file == file && *first + *len == page => {
                *len += pages;
            }
            _ => runs.push_back((file, page, pages)),
        }
    }

    /// Thread `pid` begins something new: what it added before and never read was a hole.
    pub(super) fn forget_unread(&mut self, pid: u32) {
        if let Some(unread) = self.unread.get_mut(&pid) {
            unread.runs.clear();
        }
    }

    /// Takes in a block event.
    pub(super) fn event(&mut self, event: &Event) {
        match event.kind {
            EventKind::BioQueue { extent, rwbs } if is_data_read(rwbs) => {
                let end = extent.sector + extent.sectors;
                self.queued.insert((extent.device, extent.sector), end);
                self.bio(event.pid, extent);
            }
            EventKind::RqIssue { extent, rwbs } if is_data_read(rwbs) => {
                self.issued(extent);
                self.outstanding.insert((extent.device, extent.sector), self.reads.len());
                let read = RecordedRead {
                    sector: extent.sector,
                    sectors: extent.sectors,
                    issued: event.time,
                    completed: None,
                    target: None,
                };
                self.reads.push((extent.device, read));
            }
            EventKind::RqIssue { rwbs, .. } if rwbs.read => self.metadata_reads += 1,
            EventKind::RqComplete { extent, .. } => self.complete(extent, event.time),
            _ => {}
        }
    }

    fn bio(&mut self, pid: u32, extent: Extent) {
        let Some(unread) = self.unread.get_mut(&pid) else {
            return;
        };
        let mut sector = extent.sector;
        let mut pages = extent.sectors / SECTORS_PER_PAGE;
        while pages > 0 {
            let Some((file, first, len)) = unread.runs.front_mut() else {
                return;
            };
            let take = pages.min(*len);
            self.devices.insert(extent.device);
            let learned = FileExtent { page: *first, pages: take, sector };
            learn(self.extents.entry(*file).or_default(), learned);
            *first += take;
            *len -= take;
            if *len == 0 {
                unread.runs.pop_front();
            }
            pages -= take;
            sector += take * SECTORS_PER_PAGE;
        }
    }

    /// Takes the sectors of a request out of the queued ones.
    fn issued(&mut self, extent: Extent) {
        let device = extent.device;
        let end = extent.sector + extent.sectors;
        let in_reach = (device, Sector(0))..(device, end);
        while let Some((&(_, first), &last)) = self.queued.range(in_reach.clone()).next_back() {
            if last <= extent.sector {
                return;
            }
            self.queued.remove(&(device, first));
            if first < extent.sector {
                self.queued.insert((device, first), extent.sector);
            }
            if end < last {
                self.queued.insert((device, end), last);
            }
        }
    }

    fn complete(&mut self, extent: Extent, time: Time) {
        if let Some(read) = self.outstanding.remove(&(extent.device, extent.sector)) {
            self.reads[read].1.completed = Some(time);
        }
    }

    /// The extents of `file`, sorted and joined.
    pub(super) fn extents(&mut self, file: u32) -> Vec<FileExtent> {
        let mut extents = self.extents.remove(&file).unwrap_or_default();
        extents.sort_by_key(|extent| extent.page);
        let mut joined: Vec<FileExtent> = Vec::with_capacity(extents.len());
        for extent in extents {
            match joined.last_mut() {
                Some(last) if continues(last, &extent) => {
                    last.pages = last.pages.max(extent.page + extent.pages - last.page);
                }
                // A page that was read twice from different places keeps its first place.
                Some(last) if last.page + last.pages > extent.page => {}
                _ => joined.push(extent),
            }
        }
        joined
    }

    /// Gives a file another number.
    pub(super) fn renumber(&mut self, old: u32, new: u32) {
        if let Some(extents) = self.extents.remove(&old) {
            self.extents.insert(new, extents);
        }
    }

    /// Puts back extents that were taken.
    pub(super) fn keep_extents(&mut self, file: u32, extents: Vec<FileExtent>) {
        self.extents.insert(file, extents);
    }

    /// Data bios that were queued and not seen issued, where any request was.
    pub(super) fn take_unissued(&mut self) -> Vec<(Sector, u64)> {
        let queued = std::mem::take(&mut self.queued);
        if self.reads.is_empty() {
            return Vec::new();
        }
        let of_files = queued.into_iter().filter(|((device, _), _)| self.devices.contains(device));
        of_files.map(|((_, first), end)| (first, end - first)).collect()
    }

    /// All data reads of the devices that files lie on, in the order they were issued.
    pub(super) fn into_reads(self) -> Vec<RecordedRead> {
        let devices = self.devices;
        let reads = self.reads.into_iter().filter(|(device, _)| devices.contains(device));
        reads.map(|(_, read)| read).collect()
    }
}

/// Whether `next` lies where `extent` would go on, so that both are one extent.
fn continues(extent: &FileExtent, next: &FileExtent) -> bool {
    (extent.page..=extent.page + extent.pages).contains(&next.page)
        && next.sector == extent.sector + (next.page - extent.page) * SECTORS_PER_PAGE
}

fn learn(extents: &mut Vec<FileExtent>, learned: FileExtent) {
    match extents.last_mut() {
        Some(last) if continues(last, &learned) => {
            last.pages = last.pages.max(learned.page + learned.pages - last.page);
        }
        _ => extents.push(learned),
    }
}

/// The page of a file that a sector holds, by its extents.
pub(super) fn page_at(extents: &[FileExtent], sector: Sector) -> Option<PageIndex> {
    extents.iter().find_map(|extent| {
        let sectors = extent.pages * SECTORS_PER_PAGE;
        (extent.sector <= sector && sector < extent.sector + sectors)
            .then(|| extent.page + (sector - extent.sector) / SECTORS_PER_PAGE)
    })
}
