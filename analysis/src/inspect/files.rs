//! Files of a capture: what was asked of each and what readahead made of it.

use std::collections::BTreeMap;

use serde::Serialize;
use traces::access::{Access, AccessKind, RecordedFolio, RecordedRead, Source};
use traces::event::{EventKind, FileId};
use traces::streams::Taker;
use traces::units::{Order, PAGE_SIZE, SECTOR_SHIFT, Time};

use super::pattern::{Classifier, PatternCounts};
use super::usage::FileUse;
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
#[derive(Default)]
pub(super) struct Insertions {
    all: Inserted,
    by_file: BTreeMap<FileId, Inserted>,
}

impl Insertions {
    pub(super) fn event(&mut self, kind: &EventKind) {
        if let EventKind::AddToPageCache { file, order, .. } = *kind {
            self.all.add(order);
            self.by_file.entry(file).or_default().add(order);
        }
    }

    pub(super) fn folios(&self) -> FolioCounts {
        FolioCounts::new(&self.all.0)
    }

    /// Files that only insertions tell of, most pages first.
    pub(super) fn files(self) -> Vec<FileStats> {
        let stats = self.by_file.into_iter().map(|(file, inserted)| FileStats {
            file: file.to_string(),
            folios: FolioCounts::new(&inserted.0),
            pages_inserted: inserted.pages(),
            ..FileStats::default()
        });
        let mut files: Vec<FileStats> = stats.collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.pages_inserted));
        files
    }
}

/// A file as its accesses come.
#[derive(Default)]
struct Accessed {
    /// Without what is known in the end.
    stats: FileStats,
    inserted: Inserted,
    usage: FileUse,
}

/// Files with access streams, from what happens to them, by their numbers there.
#[derive(Default)]
pub(super) struct Follower {
    files: Vec<Accessed>,
    /// By open file.
    classifiers: Vec<Classifier>,
    /// The file each thread turned to last.
    file_of_thread: Vec<Option<u32>>,
    /// Time of the first and the last access.
    pub(super) bounds: Option<(Time, Time)>,
}

/// The place at `index` of a list that grows to have one.
fn at<T: Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    let index = index as usize;
    if list.len() <= index {
        list.resize_with(index + 1, T::default);
    }
    &mut list[index]
}

impl Taker for Follower {
    fn access(&mut self, file: u32, size_bytes: u64, access: &Access) {
        let (first, _) = *self.bounds.get_or_insert((access.time, access.time));
        self.bounds = Some((first, access.time));
        if let AccessKind::Evict { page, order } = access.kind {
            at(&mut self.files, file).usage.evict(page, order);
            return;
        }
        if let Some(before) = at(&mut self.file_of_thread, access.thread).replace(file) {
            at(&mut self.files, before).usage.end(access.thread);
        }
        let Accessed { stats, usage, .. } = at(&mut self.files, file);
        stats.forced += u64::from(matches!(access.kind, AccessKind::WillNeed { .. }));
        let Some(span) = usage.access(access, size_bytes) else { return };
        let classifier = at(&mut self.classifiers, access.open);
        if matches!(access.kind, AccessKind::FaultAround { retry: true, .. }) {
            // The end of a fault that was counted already.
            classifier.extend(&span);
            return;
        }
        stats.accesses += 1;
        stats.asked_bytes += match access.kind {
            AccessKind::Read { .. } => span.end - span.start,
            _ => PAGE_SIZE,
        };
        classifier.access(span, &mut stats.pattern);
    }

    fn folio(&mut self, folio: &RecordedFolio) {
        let file = at(&mut self.files, folio.file);
        file.inserted.add(folio.order);
        file.usage.insert(folio.page, folio.order);
    }

    fn read(&mut self, read: &RecordedRead) {
        if let Some((file, _)) = read.target {
            let reads = &mut at(&mut self.files, file).stats.device_reads;
            reads.count += 1;
            reads.bytes += read.sectors << SECTOR_SHIFT;
        }
    }
}

impl Follower {
    /// Follows a source that is there as a whole.
    pub(super) fn of(source: &Source) -> Self {
        let mut follower = Self::default();
        let recorded = source.recorded.as_ref();
        let mut folios = recorded.iter().flat_map(|recorded| &recorded.folios).peekable();
        let mut accesses: Vec<_> = source.accesses.iter().collect();
        accesses.sort_by_key(|access| access.seq);
        for access in accesses {
            while let Some(folio) = folios.next_if(|folio| folio.seq < access.seq) {
                follower.folio(folio);
            }
            let file = source.opens[access.open as usize].file;
            follower.access(file, source.files[file as usize].size_bytes, access);
        }
        for folio in folios {
            follower.folio(folio);
        }
        for read in recorded.iter().flat_map(|recorded| &recorded.reads) {
            follower.read(read);
        }
        follower
    }

    /// The files of `source`, most bytes asked for first. `numbers` are their indices there by the
    /// number that each had here.
    pub(super) fn finish(mut self, source: &Source, numbers: &[Option<u32>]) -> Vec<FileStats> {
        let is_recorded = source.recorded.is_some();
        let mut files: Vec<FileStats> = Vec::with_capacity(source.files.len());
        let accessed =
            numbers.iter().zip(0..).filter_map(|(place, number)| Some(((*place)?, number)));
        for (place, number) in accessed {
            let Accessed { stats, inserted, usage } = std::mem::take(at(&mut self.files, number));
            let file = &source.files[place as usize];
            files.push(FileStats {
                file: file.name(),
                size_bytes: Some(file.size_bytes),
                folios: if is_recorded { FolioCounts::new(&inserted.0) } else { stats.folios },
                pages_inserted: inserted.pages(),
                pages_unused: usage.unused_pages(),
                ..stats
            });
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.asked_bytes));
        files
    }
}
