//! Page faults of file mappings: fault-around, read-around, readahead marks.
//!
//! Follows `do_read_fault`, `filemap_map_pages`, `filemap_fault` and the two
//! mmap readahead functions of `mm/filemap.c`. A program's [`touch`] of a page
//! goes through all of it; a recorded capture shows the parts one by one, as
//! [`fault_around`] and [`fault`].
//!
//! [`touch`]: Machine::touch
//! [`fault_around`]: Machine::fault_around
//! [`fault`]: Machine::fault

use traces::units::{Order, PageIndex};

use crate::log::Decision;
use crate::machine::Machine;
use crate::page_cache::Folio;
use crate::policy::FaultAroundHits;
use crate::readahead::{Rule, Trigger};
use crate::task::{Hold, Reached, TaskAccess};

/// Pages that fault-around looks at, on a boundary of as many (`fault_around_bytes`).
const FAULT_AROUND_PAGES: u64 = 16;
/// Misses beyond hits above which read-around stops (`MMAP_LOTSAMISS`).
const MMAP_LOTSAMISS: u32 = 100;
/// Order of a 2 MiB folio (`HPAGE_PMD_ORDER`).
const PMD_ORDER: Order = Order(9);
/// Pages under one page table; fault-around never crosses it.
const PAGE_TABLE_PAGES: u64 = 512;

/// How a fault ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultResult {
    /// The page is mapped.
    Mapped,
    /// The fault gave up the mmap lock and starts over, once the folio (if any) is uptodate.
    Retry(Option<Folio>),
}

impl Machine<'_> {
    /// One try of an access of `thread` to a mapped page. `retry` is set on every try but the first.
    pub fn touch(
        &mut self,
        thread: usize,
        open: usize,
        page: PageIndex,
        retry: bool,
    ) -> FaultResult {
        if self.paths().own_faults() {
            return self.touch_as_task(thread, open, page, retry);
        }
        if self.opens[open].page_table.is_mapped(page) {
            return FaultResult::Mapped;
        }
        let size_pages = self.file_of(open).limits.last_page().map_or(0, |last| last.0 + 1);
        let first = PageIndex(page.0 & !(FAULT_AROUND_PAGES - 1));
        let last = PageIndex((first.0 + FAULT_AROUND_PAGES).min(size_pages).max(1) - 1);
        if self.fault_around(open, Some(page), first, last, retry) {
            return FaultResult::Mapped;
        }
        let result = self.fault(open, page, retry);
        if result == FaultResult::Mapped {
            let state = &mut self.opens[open];
            state.page_table.map(page);
            self.files[state.file].cache.set_used(page, page + 1);
        }
        result
    }

    /// The same, by the policy's own fault path.
    fn touch_as_task(
        &mut self,
        thread: usize,
        open: usize,
        page: PageIndex,
        retry: bool,
    ) -> FaultResult {
        let mapping = self.opens[open].mapping;
        if !retry && self.opens[open].page_table.is_mapped(page) {
            return FaultResult::Mapped;
        }
        let access = (!retry).then_some(TaskAccess::Touch { page, mapping });
        let step = self.run_task(thread, open, access, page.offset(), Hold::Never);
        match step.reached {
            Reached::Waits(folio) => FaultResult::Retry(Some(folio)),
            Reached::Returned => {
                let state = &mut self.opens[open];
                state.page_table.map(page);
                self.files[state.file].cache.set_used(page, page + 1);
                FaultResult::Mapped
            }
            _ => FaultResult::Retry(None),
        }
    }

    /// The page a recorded fault-around most likely served: the first one not mapped yet.
    pub fn first_unmapped(
        &self,
        open: usize,
        first: PageIndex,
        last: PageIndex,
    ) -> Option<PageIndex> {
        let table = &self.opens[open].page_table;
        (first.0..=last.0).map(PageIndex).find(|page| !table.is_mapped(*page))
    }

    /// `filemap_map_pages`: maps what is cached, uptodate and unmarked in `first..=last`. Whether
    /// that served the fault at `page`; a capture does not tell the page, and then any page that was
    /// not mapped before is taken for it.
    pub fn fault_around(
        &mut self,
        open: usize,
        page: Option<PageIndex>,
        first: PageIndex,
        last: PageIndex,
        retry: bool,
    ) -> bool {
        let rules = self.rules();
        let state = &mut self.opens[open];
        let file = &mut self.files[state.file];
        let mut hits = 0;
        let mut served = false;
        let mut at = first;
        while at <= last {
            let Some(folio) = file.cache.folio_at(at) else {
                at += 1;
                continue;
            };
            if !file.cache.is_uptodate(folio) || file.cache.is_marked(folio) {
                at = folio.end();
                continue;
            }
            let seen = (at, folio.end().min(last + 1));
            let (from, to) = if rules.maps_whole_folio && maps_whole(folio, file.limits.size_bytes)
            {
                (folio.index, folio.end())
            } else {
                seen
            };
            let mut serves = false;
            for mapped in (from.0..to.0).map(PageIndex) {
                let newly = !state.page_table.is_mapped(mapped);
                serves |= newly && page.is_none_or(|page| mapped == page);
                state.page_table.map(mapped);
            }
            served |= serves;
            hits += match rules.fault_around_hits {
                FaultAroundHits::Pages => (to - from) as u32,
                FaultAroundHits::Served => u32::from(serves && !retry),
            };
            at = folio.end();
        }
        if !(state.mapping.seq_read || state.mapping.exec)
            || rules.fault_around_hits == FaultAroundHits::Pages
        {
            state.ra.mmap_miss = state.ra.mmap_miss.saturating_sub(hits);
        }
        if served {
            let (from, to) = page.map_or((first, last + 1), |page| (page, page + 1));
            file.cache.set_used(from, to);
        }
        served
    }

    /// `filemap_fault`: the part of a fault that may start readahead.
    pub fn fault(&mut self, open: usize, page: PageIndex, retry: bool) -> FaultResult {
        let mut dropped_lock = false;
        match self.file_of(open).cache.folio_at(page) {
            Some(folio) if !retry => dropped_lock = self.async_mmap(open, page, folio),
            Some(_) => {}
            None => dropped_lock = self.sync_mmap(open, page),
        }
        let folio = match self.file_of(open).cache.folio_at(page) {
            Some(folio) => folio,
            None => self.readahead(open, page).single_folio(),
        };
        let cache = &mut self.file_of(open).cache;
        if !cache.is_uptodate(folio) {
            return FaultResult::Retry(Some(folio));
        }
        if dropped_lock {
            return FaultResult::Retry(None);
        }
        cache.set_used(page, page + 1);
        FaultResult::Mapped
    }

    /// `do_async_mmap_readahead`: the page is cached. Whether the mmap lock was given up.
    fn async_mmap(&mut self, open: usize, page: PageIndex, folio: Folio) -> bool {
        let by_pages = self.rules().fault_around_hits == FaultAroundHits::Pages;
        let state = &mut self.opens[open];
        let ra_pages = state.ra.ra_pages;
        if state.mapping.rand_read || ra_pages == 0 {
            return false;
        }
        let cache = &self.files[state.file].cache;
        // 7.x leaves the counter alone for a folio still being read, and for some advice.
        let advised = state.mapping.seq_read || state.mapping.exec;
        if by_pages || !advised && cache.is_uptodate(folio) {
            state.ra.mmap_miss = state.ra.mmap_miss.saturating_sub(1);
        }
        let marked = cache.is_marked(folio);
        if marked {
            self.async_ra(open, page, folio, ra_pages);
        }
        marked
    }

    /// `do_sync_mmap_readahead`: the page is not cached. Whether the mmap lock was given up.
    fn sync_mmap(&mut self, open: usize, page: PageIndex) -> bool {
        let rules = self.rules();
        let limits = self.file_of(open).limits;
        let state = &mut self.opens[open];
        let advice = state.mapping;
        let huge = advice.hugepage && rules.large_folios && limits.order_max.0 > 0;
        if !huge {
            let random = advice.rand_read && !(rules.exec_window && advice.exec);
            if random || state.ra.ra_pages == 0 {
                return false;
            }
            if advice.seq_read {
                let ra_pages = state.ra.ra_pages;
                self.sync_ra(open, page, ra_pages);
                return true;
            }
        }
        if !(huge && rules.fault_around_hits == FaultAroundHits::Pages)
            && !(rules.exec_window && (advice.seq_read || advice.exec))
        {
            let miss = &mut state.ra.mmap_miss;
            if *miss < MMAP_LOTSAMISS * 10 {
                *miss += 1;
            }
            if *miss > MMAP_LOTSAMISS {
                return false;
            }
        }
        let ra = state.ra;
        self.file_of(open).log.decision(|| Decision::Triggered {
            trigger: Trigger::ReadAround,
            index: page.0,
            req_count: 1,
            ra,
        });
        if huge {
            self.huge_window(open, page, limits.order_max.min(PMD_ORDER), advice.rand_read);
        } else {
            self.read_around(open, page, rules.exec_window && advice.exec);
        }
        true
    }

    /// Two 2 MiB folios around the page, or one where readahead is not wanted (`MADV_HUGEPAGE`).
    fn huge_window(&mut self, open: usize, page: PageIndex, order: Order, one: bool) {
        let pages = order.pages();
        let index = PageIndex(page.0 & !(pages - 1));
        let mut rac = self.readahead(open, index);
        rac.ra.size = if one { pages } else { 2 * pages };
        rac.ra.async_size = pages;
        rac.ra.order = u32::from(order.0);
        rac.rule = Rule::HugePage;
        rac.policy.ra_order(&mut rac, u32::from(order.0));
    }

    /// The window around a page: half of it before, a quarter after the mark.
    fn read_around(&mut self, open: usize, page: PageIndex, exec: bool) {
        let mut rac = self.readahead(open, page);
        let ra_pages = rac.ra.ra_pages;
        rac.ra.size = ra_pages;
        rac.ra.order = 0;
        if exec {
            rac.ra.start = page.0;
            rac.ra.async_size = 0;
        } else {
            rac.ra.start = page.0.saturating_sub(ra_pages / 2);
            rac.ra.async_size = ra_pages / 4;
        }
        rac.index = rac.ra.start;
        rac.rule = Rule::ReadAround;
        rac.policy.ra_order(&mut rac, 0);
    }
}

/// Whether fault-around maps a large folio as a whole: it lies inside the file and under one page
/// table.
fn maps_whole(folio: Folio, size_bytes: u64) -> bool {
    let one_table = folio.index.0 / PAGE_TABLE_PAGES == (folio.end().0 - 1) / PAGE_TABLE_PAGES;
    folio.order.0 > 0 && folio.end().offset().0 <= size_bytes && one_table
}
