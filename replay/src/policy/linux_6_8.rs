//! 5.18 to 6.10: large folios on top of `ondemand_readahead`.
//!
//! ab4443fe3ca6 ("readahead: avoid multiple marked readahead pages", 6.8, also in stable 6.1)
//! rounds the mark down where its parent f0b7a0d1d466 rounded it up; that is the only difference
//! between [`ENTRY_6_7`] and [`ENTRY_6_8`].

use std::sync::Arc;

use super::ondemand::{self, Expected};
use super::{Entry, FaultAroundHits, Make, Policy, PrevPos, Rules};
use crate::page_cache::Folio;
use crate::readahead::{Mark, Readahead};
use crate::xarray::NoHole;

pub(super) const ENTRY_6_1: Entry = Entry {
    name: "linux-6.1",
    summary: "stable 6.1 with ab4443fe3ca6: order of the marked folio plus 2, no order 1",
    follows: "793917d997df (5.18), ab4443fe3ca6 as backported; mm/readahead.c of 6.1.192",
    checked: "captures of 6.1.192",
    make: Make::Generation(|| {
        Arc::new(Linux68 { name: "linux-6.1", expected: Expected::RoundedDown, rules: RULES })
    }),
};

pub(super) const ENTRY_6_7: Entry = Entry {
    name: "linux-6.7",
    summary: "5.18 to 6.7: as linux-6.8, but the mark is rounded up and can appear twice",
    follows: "793917d997df (5.18); the parent f0b7a0d1d466 of ab4443fe3ca6",
    checked: "published folio counts of f0b7a0d1d466 (12 GiB dd)",
    make: Make::Generation(|| {
        Arc::new(Linux68 { name: "linux-6.7", expected: Expected::RoundedUp, rules: RULES })
    }),
};

pub(super) const ENTRY_6_8: Entry = Entry {
    name: "linux-6.8",
    summary: "6.8 to 6.10: order of the marked folio plus 2, no order 1, mark rounded down",
    follows: "ab4443fe3ca6 (6.8), 9cecde80aae0 (6.9)",
    checked: "published folio counts of ab4443fe3ca6 (12 GiB dd); captures of 6.1.192",
    make: Make::Generation(|| {
        let rules = Rules { batch_folios_max: 31, ..RULES };
        Arc::new(Linux68 { name: "linux-6.8", expected: Expected::RoundedDown, rules })
    }),
};

const RULES: Rules = Rules {
    next_no_hole: NoHole::LastPage,
    prev_no_hole: NoHole::LastPage,
    prev_pos: PrevPos::AsCopied,
    batch_folios_max: 15,
    batch_waits: true,
    mark_at_eof: true,
    large_folios: true,
    fault_around_hits: FaultAroundHits::Pages,
    maps_whole_folio: false,
    exec_window: false,
};

struct Linux68 {
    name: &'static str,
    expected: Expected,
    rules: Rules,
}

impl Policy for Linux68 {
    fn name(&self) -> &str {
        self.name
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        ondemand::sync_ra(rac, self.expected, req_count);
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        ondemand::async_ra(rac, self.expected, folio, req_count);
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32) {
        let (size, async_size) = (rac.ra.size, rac.ra.async_size);
        let order_max = u32::from(rac.limits.order_max.0);
        let large = order_max > 0 && size >= 4;
        let Some(last) = rac.limits.last_page().filter(|_| large) else {
            rac.note_window(0);
            return rac.fill_order0_in_file(size, async_size);
        };
        let order =
            if order < order_max { (order + 2).min(order_max).min(size.ilog2()) } else { order };
        rac.note_window(order);
        let mark = rac.index + size - async_size;
        let mark = match self.expected {
            Expected::RoundedDown => Mark::On(mark),
            Expected::RoundedUp => Mark::RoundedUp(mark),
        };
        let limit = last.0.min(rac.index + size - 1);
        if rac.fill_window(limit, order, mark, without_order_1) {
            // The whole size again from the folio in the way, not what is left of the window.
            rac.fill_order0_in_file(size, async_size);
        }
    }
}

/// Folios of order 1 did not exist before 6.11.
fn without_order_1(order: u32) -> u32 {
    if order == 1 { 0 } else { order }
}
