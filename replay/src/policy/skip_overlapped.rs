//! The proposed change "mm/readahead: Skip fully overlapped range".
//!
//! A forced readahead publishes its range in the readahead state of the open file while it runs.
//! Another one on the same open file that lies within the published range returns at once.

use super::change::{Change, DEFAULT_BASE, stack};
use super::{Entry, Make, Policy};
use crate::log::Decision;
use crate::readahead::{ForcedFill, Readahead};

pub(super) const ENTRY: Entry = Entry {
    name: "skip-fully-overlapped",
    summary: "change: a forced readahead covered by one in flight on the same open is skipped",
    follows: "the mail of that subject, against force_page_cache_ra of 6.17",
    checked: "the rules of the mail; the calls it can reach are counted from captures of 6.18.44",
    make: Make::Change {
        base: DEFAULT_BASE,
        stack: |base| stack::<SkipOverlapped>(base, ENTRY.name),
    },
};

#[derive(Default)]
struct SkipOverlapped;

impl Change for SkipOverlapped {
    fn begin_forced(
        &self,
        base: &dyn Policy,
        rac: &mut Readahead<'_>,
        nr_to_read: u64,
    ) -> Option<ForcedFill> {
        let nr_to_read = nr_to_read.min(rac.forced_pages_max());
        let (index, end) = (rac.index, rac.index + nr_to_read);
        if rac.ra.start <= index && end <= rac.ra.start + rac.ra.size {
            rac.log.cache_lock.forced_skipped += 1;
            rac.log.decision(|| Decision::Skipped { index, nr_to_read });
            return None;
        }
        rac.ra.start = index;
        rac.ra.size = nr_to_read;
        base.begin_forced(rac, nr_to_read)
    }

    fn end_forced(&self, base: &dyn Policy, rac: &mut Readahead<'_>) {
        base.end_forced(rac);
        rac.ra.start = 0;
        rac.ra.size = 0;
    }
}
