//! 6.11 to 6.15: separate sync and async paths; the order comes from the marked folio.
//!
//! Follows `mm/readahead.c` of 6.12. Against 6.8: the "hits its own mark" merge and the
//! "index equals the window's end" case are gone, order 1 exists, mappings have a smallest order.

use std::sync::Arc;

use super::mainline::{advance_window, sync_window};
use super::{Entry, FaultAroundHits, Make, Policy, PrevPos, Rules};
use crate::page_cache::Folio;
use crate::readahead::{Mark, Readahead};
use crate::xarray::NoHole;

pub(super) const ENTRY: Entry = Entry {
    name: "linux-6.12",
    summary: "6.11 to 6.15: order of the marked folio plus 2, windows of any end",
    follows: "Jan Kara's readahead clean-ups (6.11); mm/readahead.c and mm/filemap.c of 6.12",
    checked: "captures of 6.12.117",
    make: Make::Generation(|| Arc::new(Linux612)),
};

const RULES: Rules = Rules {
    next_no_hole: NoHole::PastLastPage,
    prev_no_hole: NoHole::LastPage,
    prev_pos: PrevPos::AtReturn,
    batch_folios_max: 31,
    batch_waits: true,
    mark_at_eof: true,
    large_folios: true,
    fault_around_hits: FaultAroundHits::Pages,
    maps_whole_folio: false,
    exec_window: false,
};

struct Linux612;

impl Policy for Linux612 {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn rules(&self) -> Rules {
        RULES
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        if !rac.ra.random && rac.ra.ra_pages != 0 {
            return sync_window(RULES, rac, req_count);
        }
        let req_count = if rac.ra.ra_pages == 0 { 1 } else { req_count };
        rac.force(req_count);
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        if advance_window(RULES, rac, folio, req_count) {
            rac.ra.async_size = rac.ra.size;
            rac.index = rac.ra.start;
            rac.policy.ra_order(rac, u32::from(folio.order.0));
        }
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32) {
        let limits = rac.limits;
        let (size, async_size) = (rac.ra.size, rac.ra.async_size);
        let large = limits.order_max.0 > 0 && size >= limits.order_min.pages().max(4);
        let Some(last) = limits.last_page().filter(|_| large) else {
            rac.note_window(0);
            return rac.fill_order0_in_file(size, async_size);
        };
        let order_max = u32::from(limits.order_max.0);
        let order = if order < order_max { order + 2 } else { order };
        let order = order.min(order_max).min(size.ilog2()).max(u32::from(limits.order_min.0));
        rac.note_window(order);
        let mark = Mark::On(rac.index + size - async_size);
        let limit = last.0.min(rac.index + size - 1);
        if rac.fill_window(limit, order, mark, |order| order) {
            // The whole size again from the folio in the way, not what is left of the window.
            rac.fill_order0_in_file(size, async_size);
        }
    }
}
