//! Which of the inserted pages the program used.

use std::collections::BTreeMap;
use std::ops::Range;

use roaring::RoaringTreemap;
use traces::access::{Access, AccessKind, RecordedFolio, Source};
use traces::units::{ByteOffset, PAGE_SHIFT};

/// The bytes an access uses; `None` if it uses none.
fn span(kind: &AccessKind, size_bytes: u64) -> Option<Range<u64>> {
    match *kind {
        AccessKind::Read { pos, count } => {
            let start = pos.0.min(size_bytes);
            Some(start..pos.0.saturating_add(count).clamp(start, size_bytes.max(start)))
        }
        AccessKind::Touch { page } | AccessKind::Fault { page, retry: false } => {
            Some(page.offset().0..(page + 1).offset().0)
        }
        // The second try of a fault maps what the first one waited for.
        AccessKind::FaultAround { first, last, served, retry } if served || retry => {
            Some(first.offset().0..(last + 1).offset().0)
        }
        _ => None,
    }
}

/// What the accesses of a source use, and what they do not.
pub(super) struct Used {
    /// Per access, the bytes it uses.
    pub(super) spans: Vec<Option<Range<u64>>>,
    /// Per file, the inserted pages that no access covered while they were cached.
    pub(super) unused_pages: Vec<u64>,
}

/// One file, page by page.
#[derive(Default)]
struct FileUse {
    /// Inserted and not used yet.
    pending: RoaringTreemap,
    /// Pages of the folios that are cached, by their first page.
    folios: BTreeMap<u64, u64>,
    /// Pages of the access each thread is in, which uses what it inserts.
    running: Vec<(u32, Range<u64>)>,
    unused: u64,
}

impl FileUse {
    /// Takes in an access; returns the bytes it uses.
    fn access(&mut self, access: &Access, size_bytes: u64) -> Option<Range<u64>> {
        let mut bytes = span(&access.kind, size_bytes)?;
        if matches!(access.kind, AccessKind::FaultAround { .. }) {
            bytes = self.whole_folios(bytes);
        }
        let pages = bytes.start >> PAGE_SHIFT..ByteOffset(bytes.end).page_up().0;
        self.pending.remove_range(pages.clone());
        self.running.push((access.thread, pages));
        Some(bytes)
    }

    fn end(&mut self, thread: u32) {
        self.running.retain(|(running, _)| *running != thread);
    }

    fn insert(&mut self, pages: Range<u64>) {
        self.folios.insert(pages.start, pages.end - pages.start);
        self.pending.insert_range(pages.clone());
        for (_, used) in &self.running {
            let both = pages.start.max(used.start)..pages.end.min(used.end);
            if !both.is_empty() {
                self.pending.remove_range(both);
            }
        }
    }

    fn evict(&mut self, pages: Range<u64>) {
        self.folios.remove(&pages.start);
        self.unused += self.pending.remove_range(pages);
    }

    /// Bytes of the folios that hold these bytes.
    ///
    /// Fault-around uses all of a folio that it maps: newer kernels map all of it, and a touch of a
    /// mapped page leaves no event.
    fn whole_folios(&self, bytes: Range<u64>) -> Range<u64> {
        let around = |byte: u64| {
            let page = byte >> PAGE_SHIFT;
            let (first, pages) = self.folios.range(..=page).next_back()?;
            (page < first + pages).then_some(first << PAGE_SHIFT..(first + pages) << PAGE_SHIFT)
        };
        let start = around(bytes.start).map_or(bytes.start, |folio| folio.start);
        let end = around(bytes.end - 1).map_or(bytes.end, |folio| folio.end);
        start..end
    }
}

/// What happens to the page cache, by the event that shows it.
enum Happening<'a> {
    Access(usize, &'a Access),
    Insertion(&'a RecordedFolio),
}

/// Everything that happens, in the order of the events.
fn happenings(source: &Source) -> Vec<Happening<'_>> {
    let accesses = source.accesses.iter().enumerate();
    let accesses = accesses.map(|(n, access)| (access.seq, Happening::Access(n, access)));
    let folios = source.recorded.iter().flat_map(|recorded| &recorded.folios);
    let folios = folios.map(|folio| (folio.seq, Happening::Insertion(folio)));
    let mut happenings: Vec<_> = accesses.chain(folios).collect();
    happenings.sort_by_key(|(seq, _)| *seq);
    happenings.into_iter().map(|(_, happening)| happening).collect()
}

/// Follows the page cache through the accesses of a source.
pub(super) fn follow(source: &Source) -> Used {
    let mut files: Vec<FileUse> = source.files.iter().map(|_| FileUse::default()).collect();
    let mut file_of_thread = vec![None; source.threads.len()];
    let mut spans = vec![None; source.accesses.len()];
    for happening in happenings(source) {
        match happening {
            Happening::Insertion(folio) => {
                let first = folio.page.0;
                files[folio.file as usize].insert(first..first + folio.order.pages());
            }
            Happening::Access(n, access) => {
                let file = source.opens[access.open as usize].file as usize;
                if let AccessKind::Evict { page, order } = access.kind {
                    files[file].evict(page.0..page.0 + order.pages());
                    continue;
                }
                if let Some(before) = file_of_thread[access.thread as usize].replace(file) {
                    files[before].end(access.thread);
                }
                spans[n] = files[file].access(access, source.files[file].size_bytes);
            }
        }
    }
    let unused_pages = files.into_iter().map(|file| file.unused + file.pending.len());
    Used { spans, unused_pages: unused_pages.collect() }
}
