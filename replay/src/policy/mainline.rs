//! The readahead of 6.16 and later: the order lives in the readahead state.
//!
//! Follows `mm/readahead.c` of 7.3 with 38b0ece6d763 ("mm/filemap: allow arch
//! to request folio size for exec memory") and 18ebe55a9236 ("mm/readahead:
//! terminate async readahead on natural boundary"). 6.16 to 7.3 differ only in
//! [`Rules`].

use std::sync::Arc;

use super::{Entry, FaultAroundHits, Make, Policy, PrevPos, Rules};
use crate::page_cache::Folio;
use crate::readahead::{Mark, Readahead, Rule, initial_size, next_size};
use crate::xarray::{NoHole, next_miss, prev_miss};

pub(super) const ENTRY: Entry = Entry {
    name: "linux-7.3",
    summary: "7.2 to 7.3: 6.18's windows, exact hole searches, mmap_miss lowered by one per fault",
    follows: "18ebe55a9236 (6.16), 38b0ece6d763 (6.16); mm/readahead.c and mm/filemap.c of 7.3-rc7",
    checked: "captures of 7.3-rc7",
    make: Make::Generation(|| Arc::new(Mainline { name: "linux-7.3", rules: RULES_7_3 })),
};

pub(super) const RULES_7_3: Rules = Rules {
    next_no_hole: NoHole::PastLastPage,
    prev_no_hole: NoHole::PastLastPage,
    prev_pos: PrevPos::AtReturn,
    batch_folios_max: 31,
    batch_waits: false,
    mark_at_eof: false,
    large_folios: true,
    fault_around_hits: FaultAroundHits::Served,
    maps_whole_folio: true,
    exec_window: true,
};

/// A generation with 6.16's window code.
pub(super) struct Mainline {
    pub(super) name: &'static str,
    pub(super) rules: Rules,
}

impl Policy for Mainline {
    fn name(&self) -> &str {
        self.name
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        if !rac.ra.random && rac.ra.ra_pages != 0 {
            return sync_window(self.rules, rac, req_count);
        }
        let req_count = if rac.ra.ra_pages == 0 { 1 } else { req_count };
        rac.force(req_count);
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        if !advance_window(self.rules, rac, folio, req_count) {
            return;
        }
        rac.ra.order += 2;
        // The lowest bit of the largest window bounds the boundary that windows end on.
        let max = rac.max_pages(req_count);
        let align_order = rac.ra.order.min(max.trailing_zeros());
        let end = rac.ra.start + rac.ra.size;
        let end_aligned = end >> align_order << align_order;
        if end_aligned > rac.ra.start {
            rac.cut_pages = end - end_aligned;
            rac.ra.size -= rac.cut_pages;
        }
        rac.ra.async_size = rac.ra.size;
        rac.index = rac.ra.start;
        rac.policy.ra_order(rac, rac.ra.order);
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32) {
        let Some(start) = begin_window(rac) else {
            return;
        };
        rac.ra.order = clamp_order(rac, order);
        rac.note_window(rac.ra.order);
        fill_clamped(rac, start);
    }
}

/// `page_cache_sync_ra` once the forced cases are out of the way.
pub(super) fn sync_window(rules: Rules, rac: &mut Readahead<'_>, req_count: u64) {
    let index = rac.index;
    let max = rac.max_pages(req_count);
    let sequential = index.wrapping_sub(rac.ra.prev_index()) <= 1;
    if index == 0 || req_count > max || sequential {
        rac.rule = first_window_rule(index, req_count, max);
        rac.ra.start = index;
        rac.ra.size = initial_size(req_count, max);
        rac.ra.async_size = match rac.ra.size.checked_sub(req_count) {
            Some(after) if after > 0 => after,
            _ => rac.ra.size >> 1,
        };
    } else {
        let miss = prev_miss(rac.cache, index - 1, max, rules.prev_no_hole);
        let contiguous = index.wrapping_sub(miss).wrapping_sub(1);
        if contiguous <= req_count {
            return rac.fill_order0_in_file(req_count, 0);
        }
        // Cached from the start of the file: probably a stream over the whole file.
        let history = if miss == u64::MAX { contiguous * 2 } else { contiguous };
        rac.rule = Rule::History;
        rac.ra.start = index;
        rac.ra.size = (history + req_count).min(max);
        rac.ra.async_size = 1;
    }
    rac.ra.order = 0;
    rac.policy.ra_order(rac, 0);
}

/// Why a read opens a window without history.
pub(super) fn first_window_rule(index: u64, req_count: u64, max: u64) -> Rule {
    match (index, req_count) {
        (0, _) => Rule::StartOfFile,
        (_, count) if count > max => Rule::Oversize,
        _ => Rule::Sequential,
    }
}

/// The first half of `page_cache_async_ra`: moves the window on. `false` if there is nothing to do.
pub(super) fn advance_window(
    rules: Rules,
    rac: &mut Readahead<'_>,
    folio: Folio,
    req_count: u64,
) -> bool {
    if rac.ra.ra_pages == 0 {
        return false;
    }
    rac.cache.clear_mark(folio);
    let max = rac.max_pages(req_count);
    let index = rac.index;
    if index == rac.ra.mark() & !(folio.pages() - 1) {
        rac.rule = Rule::Expected;
        rac.ra.start += rac.ra.size;
        // A window of MADV_HUGEPAGE may be larger than the maximum.
        rac.ra.size = rac.ra.size.max(next_size(rac.ra.size, max));
        return true;
    }
    // The mark belongs to another stream: what is cached from here on stands for its window.
    let start = next_miss(rac.cache, index + 1, max, rules.next_no_hole);
    if start == 0 || start - index > max {
        return false;
    }
    rac.rule = Rule::StrangeMark;
    rac.ra.start = start;
    rac.ra.size = next_size(start - index + req_count, max);
    true
}

/// The start of a window that takes the large-folio path; without one, the order-0 path is taken
/// here and nothing is left to do.
pub(super) fn begin_window(rac: &mut Readahead<'_>) -> Option<u64> {
    if rac.limits.order_max.0 == 0 {
        rac.ra.order = 0;
        rac.note_window(0);
        rac.fill_order0_in_file(rac.ra.size, rac.ra.async_size);
        return None;
    }
    Some(rac.index)
}

/// The preferred order within the mapping's limits and the window.
pub(super) fn clamp_order(rac: &Readahead<'_>, order: u32) -> u32 {
    let limits = &rac.limits;
    order
        .min(u32::from(limits.order_max.0))
        .min(rac.ra.size.max(1).ilog2())
        .max(u32::from(limits.order_min.0))
}

/// The second half of `page_cache_ra_order`: folios of `ra.order`, and the order-0 path for what
/// lies behind a folio that was already cached.
pub(super) fn fill_clamped(rac: &mut Readahead<'_>, start: u64) {
    let Some(last) = rac.limits.last_page() else {
        return;
    };
    let window_last = start + rac.ra.size - 1;
    let (limit, mark) = if last.0 > window_last {
        (window_last, Mark::On(start + rac.ra.size - rac.ra.async_size))
    } else {
        (last.0, Mark::None)
    };
    if rac.fill_window(limit, rac.ra.order, mark, |order| order) {
        let done = rac.index.saturating_sub(start);
        if rac.ra.size > done {
            rac.fill_order0_in_file(rac.ra.size - done, rac.ra.async_size);
        }
    }
}
