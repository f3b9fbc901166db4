//! Files of a capture: what was asked of each and what readahead made of it.

use std::collections::BTreeMap;

use serde::Serialize;
use traces::access::{AccessKind, Source};
use traces::capture::Capture;
use traces::event::EventKind;
use traces::units::{Order, PAGE_SIZE, SECTOR_SHIFT};

use super::pattern::{Classifier, PatternCounts};
use super::usage::{self, Used};
use crate::result::{DeviceReads, FolioCounts};

/// One file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileStats {
    /// The file, as `DEVICE/0xINODE`, with its path in front where that is known.
    pub file: String,
    /// `i_size`; `None` where only insertions tell of the file.
    pub size_bytes: Option<u64>,
    /// Reads and faults.
    pub accesses: u64,
    /// Forced readahead: fadvise WILLNEED and readahead(2).
    pub forced: u64,
    /// Bytes of the reads, up to the end of the file, and one page for each fault.
    pub asked_bytes: u64,
    /// How the accesses follow each other.
    pub pattern: PatternCounts,
    /// Folios inserted.
    pub folios: FolioCounts,
    /// Pages inserted.
    pub pages_inserted: u64,
    /// Pages inserted and not covered by an access while they were cached.
    pub pages_unused: u64,
    /// Reads of the file from the device.
    pub device_reads: DeviceReads,
}

/// Insertions by order.
#[derive(Clone, Copy, Default)]
struct Inserted([u64; Order::COUNT]);

impl Inserted {
    fn add(&mut self, order: Order) {
        self.0[usize::from(order.0).min(Order::COUNT - 1)] += 1;
    }

    fn pages(&self) -> u64 {
        self.0.iter().enumerate().map(|(order, count)| count << order).sum()
    }
}

/// Every insertion of a capture, of whatever file.
pub(super) fn folios_of_capture(capture: &Capture) -> FolioCounts {
    let mut inserted = Inserted::default();
    for event in &capture.events {
        if let EventKind::AddToPageCache { order, .. } = event.kind {
            inserted.add(order);
        }
    }
    FolioCounts::new(&inserted.0)
}

/// Files that only insertions tell of, most pages first.
pub(super) fn of_events(capture: &Capture) -> Vec<FileStats> {
    let mut inserted: BTreeMap<_, Inserted> = BTreeMap::new();
    for event in &capture.events {
        if let EventKind::AddToPageCache { file, order, .. } = event.kind {
            inserted.entry(file).or_default().add(order);
        }
    }
    let stats = inserted.into_iter().map(|(file, inserted)| FileStats {
        file: file.to_string(),
        folios: FolioCounts::new(&inserted.0),
        pages_inserted: inserted.pages(),
        ..FileStats::default()
    });
    let mut files: Vec<FileStats> = stats.collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.pages_inserted));
    files
}

/// Files with access streams, most bytes asked for first.
pub(super) fn of_streams(source: &Source) -> Vec<FileStats> {
    let mut files: Vec<FileStats> = source
        .files
        .iter()
        .map(|file| FileStats {
            file: file.name(),
            size_bytes: Some(file.size_bytes),
            ..FileStats::default()
        })
        .collect();
    let used = usage::follow(source);
    add_accesses(source, &used, &mut files);
    add_recorded(source, &used, &mut files);
    files.sort_by_key(|file| std::cmp::Reverse(file.asked_bytes));
    files
}

fn add_accesses(source: &Source, used: &Used, files: &mut [FileStats]) {
    let mut classifiers = vec![Classifier::default(); source.opens.len()];
    for (access, span) in source.accesses.iter().zip(&used.spans) {
        let stats = &mut files[source.opens[access.open as usize].file as usize];
        stats.forced += u64::from(matches!(access.kind, AccessKind::WillNeed { .. }));
        let Some(span) = span.clone() else { continue };
        let classifier = &mut classifiers[access.open as usize];
        if matches!(access.kind, AccessKind::FaultAround { retry: true, .. }) {
            // The end of a fault that was counted already.
            classifier.extend(&span);
            continue;
        }
        stats.accesses += 1;
        stats.asked_bytes += match access.kind {
            AccessKind::Read { .. } => span.end - span.start,
            _ => PAGE_SIZE,
        };
        classifier.access(span, &mut stats.pattern);
    }
}

fn add_recorded(source: &Source, used: &Used, files: &mut [FileStats]) {
    let Some(recorded) = &source.recorded else { return };
    let mut inserted = vec![Inserted::default(); files.len()];
    for folio in &recorded.folios {
        inserted[folio.file as usize].add(folio.order);
    }
    for ((stats, inserted), unused) in files.iter_mut().zip(&inserted).zip(&used.unused_pages) {
        stats.folios = FolioCounts::new(&inserted.0);
        stats.pages_inserted = inserted.pages();
        stats.pages_unused = *unused;
    }
    for read in &recorded.reads {
        if let Some((file, _)) = read.target {
            let reads = &mut files[file as usize].device_reads;
            reads.count += 1;
            reads.bytes += read.sectors << SECTOR_SHIFT;
        }
    }
}
