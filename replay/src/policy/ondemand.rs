//! `ondemand_readahead`, the one decision function of kernels before 6.11.
//!
//! Follows `mm/readahead.c` of 6.1; 5.15 has the same function without large folios.

use super::mainline::first_window_rule;
use crate::page_cache::Folio;
use crate::readahead::{Readahead, Rule, initial_size, next_size};
use crate::xarray::{next_miss, prev_miss};

/// Where the next window is expected to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// The mark rounded down to the folio (ab4443fe3ca6, 6.8).
    RoundedDown,
    /// The mark rounded up to the folio.
    RoundedUp,
}

pub(super) fn sync_ra(rac: &mut Readahead<'_>, expected: Expected, req_count: u64) {
    if rac.ra.random || rac.ra.ra_pages == 0 {
        let req_count = if rac.ra.ra_pages == 0 { 1 } else { req_count };
        return rac.force(req_count);
    }
    ondemand(rac, expected, None, req_count);
}

pub(super) fn async_ra(rac: &mut Readahead<'_>, expected: Expected, folio: Folio, req_count: u64) {
    if rac.ra.ra_pages != 0 {
        rac.cache.clear_mark(folio);
        ondemand(rac, expected, Some(folio), req_count);
    }
}

fn ondemand(rac: &mut Readahead<'_>, expected: Expected, folio: Option<Folio>, req_count: u64) {
    let max = rac.max_pages(req_count);
    let index = rac.index;
    let folio_pages = folio.map_or(1, Folio::pages);
    let mark = match expected {
        Expected::RoundedDown => rac.ra.mark() & !(folio_pages - 1),
        Expected::RoundedUp => rac.ra.mark().next_multiple_of(folio_pages),
    };
    if index != 0 && (index == mark || index == rac.ra.start + rac.ra.size) {
        rac.rule = Rule::Expected;
        rac.ra.start += rac.ra.size;
        rac.ra.size = rac.ra.size.max(next_size(rac.ra.size, max));
        rac.ra.async_size = rac.ra.size;
    } else if let Some(_marked) = folio.filter(|_| index != 0) {
        // The mark belongs to another stream: what is cached from here on stands for its window.
        let start = next_miss(rac.cache, index + 1, max, rac.policy.rules().next_no_hole);
        if start == 0 || start - index > max {
            return;
        }
        rac.rule = Rule::StrangeMark;
        rac.ra.start = start;
        rac.ra.size = next_size(start - index + req_count, max);
        rac.ra.async_size = rac.ra.size;
    } else if index == 0 || req_count > max || index.wrapping_sub(rac.ra.prev_index()) <= 1 {
        rac.rule = first_window_rule(index, req_count, max);
        rac.ra.start = index;
        rac.ra.size = initial_size(req_count, max);
        rac.ra.async_size = match rac.ra.size.checked_sub(req_count) {
            Some(after) if after > 0 => after,
            _ => rac.ra.size,
        };
    } else if !from_history(rac, req_count, max) {
        return rac.fill_order0_in_file(req_count, 0);
    }
    merge_with_next(rac, index, max);
    rac.index = rac.ra.start;
    rac.policy.ra_order(rac, folio.map_or(0, |folio| u32::from(folio.order.0)));
}

/// `try_context_readahead`: a window from what a sequential stream would have left in the cache.
fn from_history(rac: &mut Readahead<'_>, req_count: u64, max: u64) -> bool {
    let index = rac.index;
    let miss = prev_miss(rac.cache, index - 1, max, rac.policy.rules().prev_no_hole);
    let mut history = index.wrapping_sub(1).wrapping_sub(miss);
    if history <= req_count {
        return false;
    }
    if history >= index {
        history *= 2;
    }
    rac.rule = Rule::History;
    rac.ra.start = index;
    rac.ra.size = (history + req_count).min(max);
    rac.ra.async_size = 1;
    true
}

/// A window that this very read would trigger again takes the next one in at once.
fn merge_with_next(rac: &mut Readahead<'_>, index: u64, max: u64) {
    if index != rac.ra.start || rac.ra.size != rac.ra.async_size {
        return;
    }
    let add_pages = next_size(rac.ra.size, max);
    if rac.ra.size + add_pages <= max {
        rac.ra.async_size = add_pages;
        rac.ra.size += add_pages;
    } else {
        rac.ra.size = max;
        rac.ra.async_size = max >> 1;
    }
}
