//! Which of the inserted pages the program used.

use std::ops::Range;

use roaring::RoaringTreemap;
use traces::access::{Access, AccessKind};
use traces::units::{ByteOffset, Order, PAGE_SHIFT, PageIndex};

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

/// The folios of one file that are in the page cache, by their naturally aligned first pages.
#[derive(Default)]
struct Folios([RoaringTreemap; Order::COUNT]);

impl Folios {
    /// A folio comes, and whatever was there goes.
    fn insert(&mut self, first: u64, order: Order) {
        for (other, folios) in (0..).zip(&mut self.0) {
            if !folios.is_empty() {
                folios.remove_range(first..first + order.pages());
                folios.remove(first_page(first, other));
            }
        }
        // One page is the same whether it is a folio or not known.
        if order.0 > 0 {
            self.0[usize::from(order.0)].insert(first);
        }
    }

    fn remove(&mut self, first: u64) {
        for folios in &mut self.0 {
            folios.remove(first);
        }
    }

    /// The pages of the folio that holds `page`; itself alone where none is known.
    fn around(&self, page: u64) -> Range<u64> {
        let holds = |&(order, folios): &(u8, &RoaringTreemap)| {
            !folios.is_empty() && folios.contains(first_page(page, order))
        };
        let order = (0..).zip(&self.0).find(holds).map_or(0, |(order, _)| order);
        let first = first_page(page, order);
        first..first + Order(order).pages()
    }
}

/// The first page of a folio of `order` that holds `page`.
fn first_page(page: u64, order: u8) -> u64 {
    page >> order << order
}

/// What was used of one file, page by page.
#[derive(Default)]
pub(super) struct FileUse {
    /// Inserted and not used yet.
    pending: RoaringTreemap,
    cached: Folios,
    /// Pages of the access each thread is in, which uses what it inserts.
    running: Vec<(u32, Range<u64>)>,
    unused: u64,
}

impl FileUse {
    /// Takes in an access; returns the bytes it uses.
    pub(super) fn access(&mut self, access: &Access, size_bytes: u64) -> Option<Range<u64>> {
        let mut bytes = span(&access.kind, size_bytes)?;
        if matches!(access.kind, AccessKind::FaultAround { .. }) {
            bytes = self.whole_folios(&bytes);
        }
        let pages = bytes.start >> PAGE_SHIFT..ByteOffset(bytes.end).page_up().0;
        self.pending.remove_range(pages.clone());
        self.running.push((access.thread, pages));
        Some(bytes)
    }

    /// A thread turns to another file, or makes another access to this one.
    pub(super) fn end(&mut self, thread: u32) {
        self.running.retain(|(running, _)| *running != thread);
    }

    pub(super) fn insert(&mut self, page: PageIndex, order: Order) {
        let pages = page.0..page.0 + order.pages();
        self.cached.insert(page.0, order);
        self.pending.insert_range(pages.clone());
        for (_, used) in &self.running {
            let both = pages.start.max(used.start)..pages.end.min(used.end);
            if !both.is_empty() {
                self.pending.remove_range(both);
            }
        }
    }

    pub(super) fn evict(&mut self, page: PageIndex, order: Order) {
        self.cached.remove(page.0);
        self.unused += self.pending.remove_range(page.0..page.0 + order.pages());
    }

    /// Inserted pages that no access covered while they were cached.
    pub(super) fn unused_pages(&self) -> u64 {
        self.unused + self.pending.len()
    }

    /// Bytes of the folios that hold these bytes.
    ///
    /// Fault-around uses all of a folio that it maps: newer kernels map all of it, and a touch of a
    /// mapped page leaves no event.
    fn whole_folios(&self, bytes: &Range<u64>) -> Range<u64> {
        let around = |byte: u64| self.cached.around(byte >> PAGE_SHIFT);
        around(bytes.start).start << PAGE_SHIFT..around(bytes.end - 1).end << PAGE_SHIFT
    }
}
