//! The proposed change "mm/readahead: improve randread performance with readahead disabled" (RFC).
//!
//! With `ra_pages` 0 a read is served as one request of its own size instead of page by page.

use super::change::{Change, DEFAULT_BASE, stack};
use super::{Entry, Make, Policy};
use crate::readahead::Readahead;

pub(super) const ENTRY: Entry = Entry {
    name: "randread-readahead-disabled",
    summary: "change: with readahead off, a read is one request instead of one per page",
    follows: "the RFC of that subject (2025-07)",
    checked: "captures of 7.3-rc7 with the changed function",
    make: Make::Change {
        base: DEFAULT_BASE,
        stack: |base| stack::<RandreadDisabled>(base, ENTRY.name),
    },
};

#[derive(Default)]
struct RandreadDisabled;

impl Change for RandreadDisabled {
    fn sync_ra(&self, base: &dyn Policy, rac: &mut Readahead<'_>, req_count: u64) {
        if rac.ra.ra_pages == 0 {
            rac.force(req_count);
        } else {
            base.sync_ra(rac, req_count);
        }
    }
}
