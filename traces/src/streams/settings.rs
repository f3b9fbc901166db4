//! Settings that a capture gives away.

use std::collections::BTreeMap;

use crate::settings::{Origin, Settings};
use crate::units::{Order, PAGE_SHIFT, SECTOR_SHIFT};

/// What the pass over the events saw.
#[derive(Default)]
pub(super) struct Seen {
    /// How often each `ra_pages` was printed.
    pub(super) ra_pages: BTreeMap<u64, u64>,
    /// `POSIX_FADV_SEQUENTIAL` was given.
    pub(super) advised_sequential: bool,
    /// Pages of the largest window.
    pub(super) window_pages_max: u64,
    /// Windows that a filesystem with large folios fills with some.
    pub(super) large_windows: u64,
    /// A folio above order 0 was inserted.
    pub(super) large_folios: bool,
    /// A bio was split.
    pub(super) split: bool,
    forced_pages_max: u64,
    forced_at_max: u64,
}

impl Seen {
    /// A forced readahead of this many pages was made.
    pub(super) fn forced(&mut self, pages: u64) {
        if pages > self.forced_pages_max {
            self.forced_pages_max = pages;
            self.forced_at_max = 0;
        }
        self.forced_at_max += u64::from(pages == self.forced_pages_max);
    }

    /// `ra_pages` of the device, where it was printed.
    pub(super) fn device_ra_pages(&self) -> Option<u64> {
        // fadvise doubles it for single opens, so the smallest one is the device's.
        let smallest = *self.ra_pages.keys().next()?;
        let doubled = self.advised_sequential && self.ra_pages.len() == 1;
        Some(if doubled { smallest / 2 } else { smallest })
    }

    /// Offers what was seen, `largest_sectors` being the size of the largest read of a file.
    pub(super) fn apply(&self, settings: &mut Settings, largest_sectors: u64) {
        if let Some(ra_pages) = self.device_ra_pages() {
            settings.ra_pages.offer(ra_pages, Origin::Recorded);
        }
        if self.large_windows > 0 && !self.large_folios {
            settings.order_max.offer(Order(0), Origin::Recovered);
        }
        let largest = largest_sectors << SECTOR_SHIFT >> PAGE_SHIFT;
        if let Some(pages) = self.io_pages(settings.ra_pages.value, largest) {
            settings.max_sectors_kb.offer(pages_kb(pages), Origin::Recovered);
        }
        // No request is larger than the limit, and no window beyond `ra_pages`.
        let beyond = self.window_pages_max > settings.ra_pages.value;
        let window = if beyond { self.window_pages_max } else { 0 };
        let bound = pages_kb(largest.max(window));
        if settings.max_sectors_kb.value < bound {
            settings.max_sectors_kb.offer(bound, Origin::Recovered);
        }
    }

    /// The largest request, where something shows that the limit and nothing else bounded it.
    fn io_pages(&self, ra_pages: u64, largest: u64) -> Option<u64> {
        if self.split {
            return Some(largest);
        }
        let forced_to_limit = self.forced_at_max > 1 && self.forced_pages_max > ra_pages;
        forced_to_limit.then_some(self.forced_pages_max)
    }
}

fn pages_kb(pages: u64) -> u64 {
    pages << (PAGE_SHIFT - 10)
}
