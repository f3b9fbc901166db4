//! Settings that a capture gives away.

use std::collections::BTreeMap;

use super::opens::Raw;
use crate::access::{AccessKind, RecordedRead};
use crate::settings::{Origin, Settings};
use crate::units::{ByteOffset, PAGE_SHIFT, SECTOR_SHIFT};

/// What the pass over the events saw.
#[derive(Default)]
pub(super) struct Seen {
    /// How often each `ra_pages` was printed.
    pub(super) ra_pages: BTreeMap<u64, u64>,
    /// Pages of the largest request a trigger was called with.
    pub(super) request_pages_max: u64,
    /// Pages of the largest window.
    pub(super) window_pages_max: u64,
    /// Pages of the largest order-0 run asked for without a read (WILLNEED).
    pub(super) forced_pages_max: u64,
    /// A bio was split.
    pub(super) split: bool,
    /// A folio above order 0 was inserted, or a kernel that prints orders inserted none of many.
    pub(super) large_folios: bool,
    pub(super) folios: u64,
}

impl Seen {
    pub(super) fn apply(&self, settings: &mut Settings, raws: &[Raw], reads: &[RecordedRead]) {
        // fadvise doubles it for single opens, so the smallest one is the device's.
        if let Some(&ra_pages) = self.ra_pages.keys().next() {
            settings.ra_pages.offer(ra_pages, Origin::Recorded);
        }
        if let Some(pages) = self.io_pages(settings.ra_pages.value, raws, reads) {
            settings.max_sectors_kb.offer(pages << (PAGE_SHIFT - 10), Origin::Recovered);
        }
        let largest = reads.iter().map(|read| read.sectors).max().unwrap_or(0);
        let largest_kb = largest << SECTOR_SHIFT >> 10;
        if settings.max_sectors_kb.value < largest_kb {
            settings.max_sectors_kb.offer(largest_kb, Origin::Recorded);
        }
    }

    /// The largest window is `min(request, io_pages)` when requests exceed `ra_pages`, so one
    /// smaller than the largest request is `io_pages` itself.
    fn io_pages(&self, ra_pages: u64, raws: &[Raw], reads: &[RecordedRead]) -> Option<u64> {
        let largest_read =
            reads.iter().map(|read| read.sectors).max()? << SECTOR_SHIFT >> PAGE_SHIFT;
        if self.split || self.forced_pages_max > ra_pages {
            return Some(largest_read);
        }
        if self.window_pages_max > 0 {
            let bounded =
                ra_pages < self.window_pages_max && self.window_pages_max < self.request_pages_max;
            return bounded.then_some(self.window_pages_max);
        }
        let request = raws.iter().map(|raw| match raw.access.kind {
            AccessKind::Read { pos, count } => ByteOffset(pos.0 + count).page_up() - pos.page(),
            _ => 0,
        });
        let bounded = ra_pages < largest_read && largest_read < request.max().unwrap_or(0);
        bounded.then_some(largest_read)
    }
}
