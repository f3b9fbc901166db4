//! Where files lie on their device, as bios tell it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::access::FileExtent;
use crate::units::{PageIndex, SECTORS_PER_PAGE, Sector};

/// Extents that a pass which passes everything on keeps: as many again from before these.
const RECENT_MAX: usize = 1 << 18;

/// Extents of all files. A page that was read twice from different places keeps its first place.
#[derive(Default)]
pub(super) struct Extents {
    recent: Maps,
    /// What was known before `recent` began, where not all is kept.
    before: Maps,
    is_whole: bool,
}

#[derive(Default)]
struct Maps {
    /// By file and first page.
    by_page: FxHashMap<u32, BTreeMap<PageIndex, FileExtent>>,
    /// The file and its extent by first sector.
    by_sector: BTreeMap<Sector, (u32, FileExtent)>,
}

impl Extents {
    /// With all of them kept, or those of late.
    pub(super) fn new(is_whole: bool) -> Self {
        Self { is_whole, ..Self::default() }
    }

    /// Takes in that these pages of `file` lie there.
    pub(super) fn learn(&mut self, file: u32, learned: FileExtent) {
        if !self.is_whole && self.recent.by_sector.len() >= RECENT_MAX {
            self.before = std::mem::take(&mut self.recent);
        }
        self.recent.learn(file, learned);
    }

    /// The file and the page that a sector holds.
    pub(super) fn page_at(&self, sector: Sector) -> Option<(u32, PageIndex)> {
        self.recent.page_at(sector).or_else(|| self.before.page_at(sector))
    }

    /// The extents of `file`, by page.
    pub(super) fn of(&self, file: u32) -> Vec<FileExtent> {
        let mut all = Maps::default();
        let maps = [&self.before, &self.recent].into_iter();
        for extent in maps.filter_map(|maps| maps.by_page.get(&file)).flat_map(BTreeMap::values) {
            all.learn(file, *extent);
        }
        all.by_page.remove(&file).unwrap_or_default().into_values().collect()
    }
}

impl Maps {
    /// Adds what of `learned` is not known yet.
    fn learn(&mut self, file: u32, learned: FileExtent) {
        let end = learned.page + learned.pages;
        let mut page = learned.page;
        while page < end {
            let of_file = self.by_page.entry(file).or_default();
            let known = of_file.range(..=page).next_back().map(|(_, known)| known);
            if let Some(known) = known.filter(|known| known.page + known.pages > page) {
                page = known.page + known.pages;
                continue;
            }
            let next = of_file.range(page..end).next().map_or(end, |(&next, _)| next);
            let sector = learned.sector + (page - learned.page) * SECTORS_PER_PAGE;
            self.add(file, FileExtent { page, pages: next - page, sector });
            page = next;
        }
    }

    /// Adds an extent whose pages are not known, as one with those it goes on from and to.
    fn add(&mut self, file: u32, mut added: FileExtent) {
        let of_file = self.by_page.entry(file).or_default();
        let before = of_file.range(..added.page).next_back().map(|(_, before)| *before);
        if let Some(before) = before.filter(|before| continues(before, &added)) {
            self.by_sector.remove(&before.sector);
            added = FileExtent { pages: before.pages + added.pages, ..before };
        }
        let after = of_file.get(&(added.page + added.pages)).copied();
        if let Some(after) = after.filter(|after| continues(&added, after)) {
            of_file.remove(&after.page);
            self.by_sector.remove(&after.sector);
            added.pages += after.pages;
        }
        of_file.insert(added.page, added);
        self.by_sector.insert(added.sector, (file, added));
    }

    fn page_at(&self, sector: Sector) -> Option<(u32, PageIndex)> {
        let (_, &(file, extent)) = self.by_sector.range(..=sector).next_back()?;
        let pages = (sector - extent.sector) / SECTORS_PER_PAGE;
        (pages < extent.pages).then(|| (file, extent.page + pages))
    }
}

/// Whether `next` lies where `extent` ends, so that both are one extent.
fn continues(extent: &FileExtent, next: &FileExtent) -> bool {
    extent.page + extent.pages == next.page
        && extent.sector + extent.pages * SECTORS_PER_PAGE == next.sector
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(page: u64, pages: u64, sector: u64) -> FileExtent {
        FileExtent { page: PageIndex(page), pages, sector: Sector(sector) }
    }

    #[test]
    fn pages_in_a_row_are_one_extent_in_whatever_order_they_come() {
        let mut extents = Extents::new(true);
        for page in [0, 2, 1, 7, 3] {
            extents.learn(4, extent(page, 1, 800 + page * 8));
        }
        assert_eq!(extents.of(4), [extent(0, 4, 800), extent(7, 1, 856)]);
        assert_eq!(extents.page_at(Sector(831)), Some((4, PageIndex(3))));
        assert_eq!(extents.page_at(Sector(832)), None);
        assert_eq!(extents.page_at(Sector(799)), None);
    }

    #[test]
    fn a_page_keeps_its_first_place() {
        let mut extents = Extents::new(true);
        extents.learn(0, extent(4, 4, 100));
        extents.learn(0, extent(2, 8, 1000));
        let expected = [extent(2, 2, 1000), extent(4, 4, 100), extent(8, 2, 1048)];
        assert_eq!(extents.of(0), expected);
        assert_eq!(extents.page_at(Sector(1016)), None);
    }

    #[test]
    fn what_was_learned_of_late_is_kept() {
        let mut extents = Extents::new(false);
        let count = 3 * RECENT_MAX as u64;
        for n in 0..count {
            extents.learn(0, extent(2 * n, 1, 16 * n));
        }
        assert!(extents.of(0).len() <= 2 * RECENT_MAX);
        assert_eq!(extents.page_at(Sector(16 * (count - 1))), Some((0, PageIndex(2 * count - 2))));
        assert_eq!(extents.page_at(Sector(16)), None);
    }
}
