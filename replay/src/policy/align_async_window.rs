//! The proposed change "mm/readahead: align the async window in `page_cache_ra_order()`" (v2).
//!
//! Instead of cutting the async window to a multiple of the order before the order is clamped,
//! the window is cut after clamping, by an order that keeps at least half of it.

use super::change::{Change, DEFAULT_BASE, stack};
use super::mainline::{advance_window, begin_window, clamp_order, fill_clamped};
use super::{Entry, Make, Policy};
use crate::page_cache::Folio;
use crate::readahead::Readahead;

pub(super) const ENTRY: Entry = Entry {
    name: "align-async-window-v2",
    summary: "change on 6.16 and later: async windows keep at least half when aligned",
    follows: "the mail of that subject (2026-10), against 18ebe55a9236",
    checked: "captures of 7.3-rc7 with the changed functions; the mail's folio and read counts",
    make: Make::Change {
        base: DEFAULT_BASE,
        stack: |base| stack::<AlignAsyncWindow>(base, ENTRY.name),
    },
};

#[derive(Default)]
struct AlignAsyncWindow;

impl Change for AlignAsyncWindow {
    fn async_ra(&self, base: &dyn Policy, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        if !advance_window(base.rules(), rac, folio, req_count) {
            return;
        }
        rac.ra.order += 2;
        rac.ra.async_size = rac.ra.size;
        rac.index = rac.ra.start;
        let Some(start) = begin_window(rac) else { return };
        rac.ra.order = align_end(rac, start);
        rac.note_window(rac.ra.order);
        fill_clamped(rac, start);
    }
}

/// Shortens the window so that it ends on a folio boundary; the order to use.
fn align_end(rac: &mut Readahead<'_>, start: u64) -> u32 {
    let order_min = u32::from(rac.limits.order_min.0);
    let end = start + rac.ra.size;
    let mut order = clamp_order(rac, rac.ra.order);
    while order > order_min {
        let aligned = end >> order << order;
        if aligned <= start {
            break;
        }
        if 2 * (aligned - start) >= rac.ra.size {
            rac.cut_pages = end - aligned;
            rac.ra.size = aligned - start;
            rac.ra.async_size = rac.ra.size;
            return order.min(rac.ra.size.ilog2());
        }
        order -= 1;
    }
    order
}
