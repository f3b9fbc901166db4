//! Device reads of a capture: requests, and where files lie on the device.
//!
//! A thread that adds folios and then queues bios reads those folios in that
//! order, which ties sectors to pages.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};

use super::extents::Extents;
use super::window::Taker;
use crate::access::{FileExtent, RecordedRead};
use crate::event::{Device, Event, EventKind, Extent, Rwbs};
use crate::units::{PageIndex, SECTORS_PER_PAGE, Sector, Time};

/// Folios added by a thread that no bio has covered yet.
#[derive(Default)]
struct Unread {
    runs: VecDeque<(u32, PageIndex, u64)>,
}

/// Runs of pages that a thread may leave unread; no window has as many.
const UNREAD_RUNS_MAX: usize = 1 << 16;

/// Collects device reads and extents.
pub(super) struct Blocks {
    unread: FxHashMap<u32, Unread>,
    extents: Extents,
    /// Devices that read folios of files: not always the `s_dev` of the filesystem.
    devices: FxHashSet<Device>,
    /// Reads whose file is not looked up yet, in the order they were issued.
    reads: VecDeque<Issued>,
    /// How many there were before these.
    settled: usize,
    /// Sectors of the largest read of each device.
    largest: FxHashMap<Device, u64>,
    /// Where all is kept: what becomes of reads and bios.
    fates: Option<Fates>,
    pub(super) metadata_reads: u64,
}

/// A read with the event that showed it.
struct Issued {
    seq: u64,
    device: Device,
    read: RecordedRead,
}

#[derive(Default)]
struct Fates {
    /// Number of the read that was issued there and has not completed.
    outstanding: FxHashMap<(Device, Sector), usize>,
    /// Sectors of data bios whose request was not issued yet: first to end.
    queued: BTreeMap<(Device, Sector), Sector>,
}

fn is_data_read(rwbs: Rwbs) -> bool {
    rwbs.read && !rwbs.meta
}

impl Blocks {
    /// With everything kept, or what may still matter.
    pub(super) fn new(is_whole: bool) -> Self {
        Self {
            unread: FxHashMap::default(),
            extents: Extents::new(is_whole),
            devices: FxHashSet::default(),
            reads: VecDeque::new(),
            settled: 0,
            largest: FxHashMap::default(),
            fates: is_whole.then(Fates::default),
            metadata_reads: 0,
        }
    }

    /// A folio of `file` was added by thread `pid`.
    pub(super) fn added(&mut self, pid: u32, file: u32, page: PageIndex, pages: u64) {
        let runs = &mut self.unread.entry(pid).or_default().runs;
        match runs.back_mut() {
            Some((last_file, first, len)) if *last_file == file && *first + *len == page => {
                *len += pages;
            }
            _ => runs.push_back((file, page, pages)),
        }
        if runs.len() > UNREAD_RUNS_MAX {
            runs.pop_front();
        }
    }

    /// Thread `pid` begins something new: what it added before and never read was a hole.
    pub(super) fn forget_unread(&mut self, pid: u32) {
        if let Some(unread) = self.unread.get_mut(&pid) {
            unread.runs.clear();
        }
    }

    /// Takes in a block event.
    pub(super) fn event(&mut self, seq: u64, event: &Event, taker: &mut impl Taker) {
        match event.kind {
            EventKind::BioQueue { extent, rwbs } if is_data_read(rwbs) => {
                if let Some(fates) = &mut self.fates {
                    let end = extent.sector + extent.sectors;
                    fates.queued.insert((extent.device, extent.sector), end);
                }
                self.bio(event.pid, extent, taker);
            }
            EventKind::RqIssue { extent, rwbs } if is_data_read(rwbs) => {
                self.issue(seq, extent, event.time);
            }
            EventKind::RqIssue { rwbs, .. } if rwbs.read => self.metadata_reads += 1,
            EventKind::RqComplete { extent, .. } => self.complete(extent, event.time),
            _ => {}
        }
    }

    fn issue(&mut self, seq: u64, extent: Extent, now: Time) {
        let Extent { device, sector, sectors } = extent;
        if let Some(fates) = &mut self.fates {
            fates.issued(extent);
            fates.outstanding.insert((device, sector), self.settled + self.reads.len());
        }
        let largest = self.largest.entry(device).or_default();
        *largest = sectors.max(*largest);
        let read = RecordedRead { sector, sectors, issued: now, completed: None, target: None };
        self.reads.push_back(Issued { seq, device, read });
    }

    fn bio(&mut self, pid: u32, extent: Extent, taker: &mut impl Taker) {
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
            self.extents.learn(*file, learned);
            taker.extent(*file, learned);
            *first += take;
            *len -= take;
            if *len == 0 {
                unread.runs.pop_front();
            }
            pages -= take;
            sector += take * SECTORS_PER_PAGE;
        }
    }

    fn complete(&mut self, extent: Extent, time: Time) {
        let Some(fates) = &mut self.fates else { return };
        if let Some(number) = fates.outstanding.remove(&(extent.device, extent.sector))
            && let Some(issued) = self.reads.get_mut(number - self.settled)
        {
            issued.read.completed = Some(time);
        }
    }

    /// Looks up the files of reads before the event `end`, and hands out those of devices that files
    /// lie on.
    pub(super) fn settle(&mut self, end: u64, taker: &mut impl Taker) {
        while self.reads.front().is_some_and(|issued| issued.seq < end) {
            let Some(issued) = self.reads.pop_front() else { return };
            self.settled += 1;
            if self.devices.contains(&issued.device) {
                let target = self.extents.page_at(issued.read.sector);
                taker.read(&RecordedRead { target, ..issued.read });
            }
        }
    }

    /// The extents of `file`, sorted and joined.
    pub(super) fn extents(&self, file: u32) -> Vec<FileExtent> {
        self.extents.of(file)
    }

    /// Sectors of the largest read of a file.
    pub(super) fn largest_sectors(&self) -> u64 {
        let of_files = self.largest.iter().filter(|(device, _)| self.devices.contains(device));
        of_files.map(|(_, sectors)| *sectors).max().unwrap_or(0)
    }

    /// Data bios that were queued and not seen issued, where any request was.
    pub(super) fn take_unissued(&mut self) -> Vec<(Sector, u64)> {
        let queued = self.fates.take().unwrap_or_default().queued;
        if self.largest.is_empty() {
            return Vec::new();
        }
        let of_files = queued.into_iter().filter(|((device, _), _)| self.devices.contains(device));
        of_files.map(|((_, first), end)| (first, end - first)).collect()
    }
}

impl Fates {
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
}
