//! A set of pages of one file.

use rustc_hash::FxHashMap;

/// Pages as 64-bit maps of 64 pages each.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    words: FxHashMap<u64, u64>,
}

impl PageSet {
    pub(super) fn contains(&self, page: u64) -> bool {
        self.words.get(&(page / 64)).is_some_and(|word| word >> (page % 64) & 1 != 0)
    }

    pub(super) fn insert(&mut self, first: u64, pages: u64) {
        for page in first..first + pages {
            *self.words.entry(page / 64).or_default() |= 1 << (page % 64);
        }
    }
}
