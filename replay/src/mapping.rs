//! Which pages of a mapping are in the page table.

use rustc_hash::FxHashMap;
use traces::units::PageIndex;

use crate::page_cache::Folio;

/// Pages with a page-table entry, one bit each.
#[derive(Debug, Default)]
pub struct PageTable {
    words: FxHashMap<u64, u64>,
}

impl PageTable {
    /// Whether the page has an entry.
    pub fn is_mapped(&self, page: PageIndex) -> bool {
        self.words.get(&(page.0 / 64)).is_some_and(|word| word >> (page.0 % 64) & 1 != 0)
    }

    /// Gives the page an entry.
    pub fn map(&mut self, page: PageIndex) {
        *self.words.entry(page.0 / 64).or_default() |= 1 << (page.0 % 64);
    }

    /// Whether a page of the folio has an entry.
    pub fn maps_any(&self, folio: Folio) -> bool {
        !self.words.is_empty()
            && (folio.index.0..folio.end().0).any(|page| self.is_mapped(PageIndex(page)))
    }

    /// Takes a folio's entries away.
    pub fn unmap(&mut self, folio: Folio) {
        if self.words.is_empty() {
            return;
        }
        for page in folio.index.0..folio.end().0 {
            if let Some(word) = self.words.get_mut(&(page / 64)) {
                *word &= !(1 << (page % 64));
            }
        }
    }
}
