//! Up to 5.17: `ondemand_readahead` with single pages only.

use std::sync::Arc;

use super::ondemand::{self, Expected};
use super::{Entry, FaultAroundHits, Make, Policy, PrevPos, Rules};
use crate::page_cache::Folio;
use crate::readahead::Readahead;
use crate::xarray::NoHole;

pub(super) const ENTRY: Entry = Entry {
    name: "linux-5.15",
    summary: "up to 5.17: single pages only, one window function for both triggers",
    follows: "mm/readahead.c before 793917d997df (5.18)",
    checked: "shares its window function with linux-6.1, which matches captures of 6.1.192",
    make: Make::Generation(|| Arc::new(Linux515)),
};

const RULES: Rules = Rules {
    next_no_hole: NoHole::LastPage,
    prev_no_hole: NoHole::LastPage,
    prev_pos: PrevPos::AsCopied,
    batch_folios_max: 15,
    batch_waits: true,
    mark_at_eof: true,
    large_folios: false,
    fault_around_hits: FaultAroundHits::Pages,
    maps_whole_folio: false,
    exec_window: false,
};

struct Linux515;

impl Policy for Linux515 {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn rules(&self) -> Rules {
        RULES
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        ondemand::sync_ra(rac, Expected::RoundedDown, req_count);
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        ondemand::async_ra(rac, Expected::RoundedDown, folio, req_count);
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, _order: u32) {
        rac.note_window(0);
        rac.fill_order0_in_file(rac.ra.size, rac.ra.async_size);
    }
}
