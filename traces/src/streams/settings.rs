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

    /// `ra_pages` of the device, where it was printed; `stated` is what the sidecar says.
    pub(super) fn device_ra_pages(&self, stated: Option<u64>) -> Option<u64> {
        // fadvise doubles it for single opens, so the smallest one is the device's.
        let smallest = *self.ra_pages.keys().next()?;
        let advised = self.advised_sequential && self.ra_pages.len() == 1;
        Some(if advised || self.is_doubled(stated) { smallest / 2 } else { smallest })
    }

    /// Whether every open had twice what the sidecar says of the device, which only
    /// `POSIX_FADV_SEQUENTIAL` makes of it. Without its system call nothing else tells.
    fn is_doubled(&self, stated: Option<u64>) -> bool {
        let smallest = self.ra_pages.keys().next();
        stated.is_some_and(|device| smallest == Some(&(2 * device)))
    }

    /// Offers what was seen, `largest_sectors` being the size of the largest read of a file.
    pub(super) fn apply(&self, settings: &mut Settings, stated: Option<u64>, largest_sectors: u64) {
        // What events print of other opens than the device's does not replace the sidecar.
        let printed = self.device_ra_pages(stated).filter(|_| !self.is_doubled(stated));
        if let Some(ra_pages) = printed {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ra_pages: &[u64], advised_sequential: bool) -> Seen {
        let ra_pages = ra_pages.iter().map(|pages| (*pages, 1)).collect();
        Seen { ra_pages, advised_sequential, ..Seen::default() }
    }

    #[test]
    fn read_ahead_of_the_device_is_told_from_that_of_advised_opens() {
        // Of what was printed, with or without a sidecar that says 32.
        for (ra_pages, advised, stated, device) in [
            (&[][..], false, Some(32), None),
            (&[64], false, None, Some(64)),
            (&[64], true, None, Some(32)),
            (&[64], false, Some(32), Some(32)),
            (&[64], true, Some(32), Some(32)),
            (&[32, 64], false, Some(32), Some(32)),
            // A sidecar that does not fit is of another time.
            (&[256], false, Some(32), Some(256)),
            (&[0], false, Some(0), Some(0)),
        ] {
            let seen = seen(ra_pages, advised);
            assert_eq!(seen.device_ra_pages(stated), device, "{ra_pages:?} {advised} {stated:?}");
        }
    }

    #[test]
    fn opens_that_were_advised_leave_the_sidecar_its_word() {
        for (printed, value, origin) in [(64, 32, Origin::Sidecar), (256, 256, Origin::Recorded)] {
            let mut settings = Settings::default();
            settings.ra_pages.offer(32, Origin::Sidecar);
            seen(&[printed], false).apply(&mut settings, Some(32), 0);
            assert_eq!((settings.ra_pages.value, settings.ra_pages.origin), (value, origin));
        }
    }
}
