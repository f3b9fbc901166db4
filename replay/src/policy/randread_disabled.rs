//! The proposed change "mm/readahead: improve randread performance with readahead disabled" (RFC).
//!
//! With `ra_pages` 0 a read is served as one request of its own size instead of page by page.

use std::sync::Arc;

use super::{Entry, Make, Policy, Rules, stacked_name};
use crate::page_cache::Folio;
use crate::readahead::{ForcedFill, Readahead};

pub(super) const ENTRY: Entry = Entry {
    name: "randread-readahead-disabled",
    summary: "change: with readahead off, a read is one request instead of one per page",
    follows: "the RFC of that subject (2025-07)",
    checked: "captures of 7.3-rc7 with the changed function",
    make: Make::Change {
        base: "linux-6.18",
        stack: |base| {
            let name = stacked_name(&*base, "linux-6.18", "randread-readahead-disabled");
            Arc::new(RandreadDisabled { name, base })
        },
    },
};

struct RandreadDisabled {
    name: String,
    base: Arc<dyn Policy>,
}

impl Policy for RandreadDisabled {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> Rules {
        self.base.rules()
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        if rac.ra.ra_pages == 0 {
            rac.force(req_count);
        } else {
            self.base.sync_ra(rac, req_count);
        }
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        self.base.async_ra(rac, folio, req_count);
    }

    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32) {
        self.base.ra_order(rac, order);
    }

    fn begin_forced(&self, rac: &mut Readahead<'_>, nr_to_read: u64) -> Option<ForcedFill> {
        self.base.begin_forced(rac, nr_to_read)
    }

    fn end_forced(&self, rac: &mut Readahead<'_>) {
        self.base.end_forced(rac);
    }
}
