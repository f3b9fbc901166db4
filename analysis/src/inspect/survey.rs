//! Whose the requests of a capture are: what a filter on threads or files has to know before it can
//! choose among them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use traces::access::{Access, FileExtent, RecordedFolio, RecordedRead};
use traces::capture::{Capture, Comms};
use traces::event::{Event, EventKind, Extent};
use traces::streams::{Pass, StreamOptions, Taker};
use traces::units::SECTORS_PER_PAGE;

use super::filter::{Filter, extent};
use super::pass::WINDOW_EVENTS;

fn range(extent: Extent) -> (u64, u64) {
    (extent.sector.0, extent.sector.0.saturating_add(extent.sectors))
}

/// Sectors that requests must hold some of; `None` where it does not matter.
#[derive(Debug, Default)]
pub(super) struct Requests {
    of_threads: Option<Sectors>,
    of_files: Option<Sectors>,
}

impl Requests {
    pub(super) fn hold(&self, extent: Extent) -> bool {
        [&self.of_threads, &self.of_files]
            .into_iter()
            .flatten()
            .all(|sectors| sectors.overlap(range(extent)))
    }
}

/// Ranges of sectors, each by its first and its end.
#[derive(Debug, Default)]
struct Sectors(BTreeMap<u64, u64>);

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

/// A pass over the events that comes before the one that chooses.
pub(super) struct Survey<'a> {
    filter: &'a Filter,
    /// Where the threads' bios are.
    bios: Sectors,
    /// Where the requests are that the threads issued.
    issued: Sectors,
    has_bios: bool,
    /// Finds where files are.
    files: Option<Pass<'a, Places>>,
}

/// Where each file of a pass is.
#[derive(Default)]
struct Places(FxHashMap<u32, Sectors>);

impl Taker for Places {
    fn access(&mut self, _: u32, _: u64, _: &Access) {}
    fn folio(&mut self, _: &RecordedFolio) {}
    fn read(&mut self, _: &RecordedRead) {}

    fn extent(&mut self, file: u32, extent: FileExtent) {
        let (first, end) = sectors(&extent);
        self.0.entry(file).or_default().add(first, end);
    }
}

fn sectors(extent: &FileExtent) -> (u64, u64) {
    (extent.sector.0, extent.sector.0 + extent.pages * SECTORS_PER_PAGE)
}

impl<'a> Survey<'a> {
    /// `None` where the filter can choose without one.
    pub(super) fn new(filter: &'a Filter, options: &'a StreamOptions) -> Option<Self> {
        let pass = || Pass::windowed(options, Places::default(), WINDOW_EVENTS);
        (filter.is_by_thread() || filter.is_by_file()).then(|| Self {
            filter,
            bios: Sectors::default(),
            issued: Sectors::default(),
            has_bios: false,
            files: filter.is_by_file().then(pass),
        })
    }

    pub(super) fn event(&mut self, event: &Event, comms: &Comms) {
        if let Some(files) = &mut self.files {
            files.event(event);
        }
        let sectors = match event.kind {
            EventKind::BioQueue { .. } => {
                self.has_bios = true;
                &mut self.bios
            }
            EventKind::RqIssue { .. } => &mut self.issued,
            _ => return,
        };
        if let Some(extent) = extent(&event.kind).filter(|_| self.filter.is_thread(event, comms)) {
            let (first, end) = range(extent);
            sectors.add(first, end);
        }
    }

    /// What was found. Where no bio is recorded, whoever issued a request counts as who wanted it.
    pub(super) fn finish(self, capture: &Capture) -> Requests {
        let of_threads = if self.has_bios { self.bios } else { self.issued };
        let filter = self.filter;
        Requests {
            of_threads: filter.is_by_thread().then_some(of_threads),
            of_files: self.files.map(|files| places(files, capture, filter)),
        }
    }
}

/// Where the files of a filter are, as far as the capture and its sidecar tell.
fn places(files: Pass<'_, Places>, capture: &Capture, filter: &Filter) -> Sectors {
    let mut all = Sectors::default();
    let Ok(mut passed) = files.finish(capture, "") else { return all };
    for (number, place) in (0..).zip(&passed.files) {
        let file = place.map(|place| &passed.source.files[place as usize]);
        let Some(file) = file.filter(|file| filter.inodes.contains(&file.id.inode)) else {
            continue;
        };
        let seen = passed.taker.0.remove(&number).unwrap_or_default();
        for (first, end) in seen.0.into_iter().chain(file.extents.iter().map(sectors)) {
            all.add(first, end);
        }
    }
    all
}
