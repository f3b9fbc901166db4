//! Which of the inserted pages the program used.

use std::ops::Range;

use roaring::RoaringTreemap;
use traces::access::{Access, AccessKind, RecordedFolio, Source};
use traces::units::{ByteOffset, PAGE_SHIFT};

/// The bytes an access uses; `None` if it uses none.
///
/// Fault-around uses all it maps, since a later touch of a mapped page leaves no event.
pub(super) fn span(kind: &AccessKind, size_bytes: u64) -> Option<Range<u64>> {
    match *kind {
        AccessKind::Read { pos, count } => {
            let start = pos.0.min(size_bytes);
            Some(start..pos.0.saturating_add(count).clamp(start, size_bytes.max(start)))
        }
        AccessKind::Touch { page } | AccessKind::Fault { page, retry: false } => {
            Some(page.offset().0..(page + 1).offset().0)
        }
        AccessKind::FaultAround { first, last, served: true, retry: false } => {
            Some(first.offset().0..(last + 1).offset().0)
        }
        _ => None,
    }
}

/// One file, page by page.
#[derive(Default)]
struct FileUse {
    /// Inserted and not used yet.
    pending: RoaringTreemap,
    /// Pages of the access each thread is in, which uses what it inserts.
    running: Vec<(u32, Range<u64>)>,
    unused: u64,
}

impl FileUse {
    fn begin(&mut self, thread: u32, pages: Range<u64>) {
        self.pending.remove_range(pages.clone());
        self.running.push((thread, pages));
    }

    fn end(&mut self, thread: u32) {
        self.running.retain(|(running, _)| *running != thread);
    }

    fn insert(&mut self, pages: Range<u64>) {
        self.pending.insert_range(pages.clone());
        for (_, used) in &self.running {
            let both = pages.start.max(used.start)..pages.end.min(used.end);
            if !both.is_empty() {
                self.pending.remove_range(both);
            }
        }
    }

    fn evict(&mut self, pages: Range<u64>) {
        self.unused += self.pending.remove_range(pages);
    }
}

/// What happens to the page cache, by the event that shows it.
enum Happening<'a> {
    Access(&'a Access),
    Insertion(&'a RecordedFolio),
}

/// Per file, the inserted pages that no access covered while they were cached.
pub(super) fn unused_pages(source: &Source) -> Vec<u64> {
    let Some(recorded) = &source.recorded else { return vec![0; source.files.len()] };
    let accesses = source.accesses.iter().map(|access| (access.seq, Happening::Access(access)));
    let folios = recorded.folios.iter().map(|folio| (folio.seq, Happening::Insertion(folio)));
    let mut happenings: Vec<_> = accesses.chain(folios).collect();
    happenings.sort_by_key(|(seq, _)| *seq);

    let mut files: Vec<FileUse> = source.files.iter().map(|_| FileUse::default()).collect();
    let mut file_of_thread = vec![None; source.threads.len()];
    for (_, happening) in happenings {
        match happening {
            Happening::Insertion(folio) => {
                let first = folio.page.0;
                files[folio.file as usize].insert(first..first + folio.order.pages());
            }
            Happening::Access(access) => {
                let file = source.opens[access.open as usize].file as usize;
                if let AccessKind::Evict { page, order } = access.kind {
                    files[file].evict(page.0..page.0 + order.pages());
                    continue;
                }
                if let Some(before) = file_of_thread[access.thread as usize].replace(file) {
                    files[before].end(access.thread);
                }
                if let Some(bytes) = span(&access.kind, source.files[file].size_bytes) {
                    let end = ByteOffset(bytes.end).page_up().0;
                    files[file].begin(access.thread, bytes.start >> PAGE_SHIFT..end);
                }
            }
        }
    }
    files.into_iter().map(|file| file.unused + file.pending.len()).collect()
}
