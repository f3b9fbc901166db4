//! Which folio leaves the page cache when memory is short.
//!
//! Two lists as `mm/vmscan.c` keeps them for clean file folios (without
//! MGLRU): new folios enter the inactive list, a second use while they are
//! there activates them, and reclaim takes the oldest inactive one, refilling
//! the inactive list from the active one when that grows larger. No refault
//! detection.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::page_cache::Folio;

type Key = (u32, u64);

#[derive(Clone, Copy)]
struct Entry {
    folio: Folio,
    /// Matches the one queue element that still counts.
    stamp: u64,
    active: bool,
    referenced: bool,
}

/// The lists of all files of a replay.
#[derive(Default)]
pub struct Lru {
    entries: FxHashMap<Key, Entry>,
    inactive: VecDeque<(Key, u64)>,
    active: VecDeque<(Key, u64)>,
    inactive_pages: u64,
    active_pages: u64,
    stamp: u64,
}

impl Lru {
    /// Pages on both lists.
    pub fn pages(&self) -> u64 {
        self.inactive_pages + self.active_pages
    }

    /// A folio of `file` entered the cache.
    pub fn insert(&mut self, file: u32, folio: Folio) {
        self.stamp += 1;
        let key = (file, folio.index.0);
        let entry = Entry { folio, stamp: self.stamp, active: false, referenced: false };
        self.entries.insert(key, entry);
        self.inactive.push_back((key, self.stamp));
        self.inactive_pages += folio.pages();
    }

    /// The program used a folio (`folio_mark_accessed`).
    pub fn mark_accessed(&mut self, file: u32, folio: Folio) {
        let key = (file, folio.index.0);
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if !entry.referenced {
            entry.referenced = true;
        } else if !entry.active {
            self.stamp += 1;
            *entry = Entry { stamp: self.stamp, active: true, referenced: false, ..*entry };
            self.active.push_back((key, self.stamp));
            self.inactive_pages -= folio.pages();
            self.active_pages += folio.pages();
        }
    }

    /// Takes the folio that reclaim would take next.
    pub fn reclaim(&mut self) -> Option<(u32, Folio)> {
        while self.active_pages > self.inactive_pages && self.deactivate() {}
        loop {
            let (key, stamp) = self.inactive.pop_front()?;
            if self.entries.get(&key).is_some_and(|entry| entry.stamp == stamp) {
                let entry = self.entries.remove(&key)?;
                self.inactive_pages -= entry.folio.pages();
                return Some((key.0, entry.folio));
            }
        }
    }

    /// Moves the oldest active folio to the inactive list.
    fn deactivate(&mut self) -> bool {
        while let Some((key, stamp)) = self.active.pop_front() {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.stamp == stamp)
            else {
                continue;
            };
            self.stamp += 1;
            entry.stamp = self.stamp;
            entry.active = false;
            self.active_pages -= entry.folio.pages();
            self.inactive_pages += entry.folio.pages();
            self.inactive.push_back((key, self.stamp));
            return true;
        }
        false
    }
}
