//! Which pages of a mapping are in the page table.

use traces::units::PageIndex;

use crate::page_cache::Folio;

/// Pages with a page-table entry, one bit each.
#[derive(Debug, Default)]
pub struct PageTable {
    words: Vec<u64>,
    mapped: u64,
}

impl PageTable {
    /// Whether the page has an entry.
    pub fn is_mapped(&self, page: PageIndex) -> bool {
        self.words.get(page.0 as usize / 64).is_some_and(|word| word >> (page.0 % 64) & 1 != 0)
    }

    /// Gives the page an entry.
    pub fn map(&mut self, page: PageIndex) {
        let word = page.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.mapped += u64::from(!self.is_mapped(page));
        self.words[word] |= 1 << (page.0 % 64);
    }

    /// Takes a folio's entries away.
    pub fn unmap(&mut self, folio: Folio) {
        if self.mapped == 0 {
            return;
        }
        for page in folio.index.0..folio.end().0 {
            if self.is_mapped(PageIndex(page)) {
                self.words[page as usize / 64] &= !(1 << (page % 64));
                self.mapped -= 1;
            }
        }
    }
}
