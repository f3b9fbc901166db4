//! Hole searches as the kernel's `XArray` cursor really performs them.
//!
//! `page_cache_next_miss` and `page_cache_prev_miss` step a cursor slot by slot.
//! The cursor keeps an index and, separately, a slot. Loading an index in the
//! middle of a multi-slot entry puts the slot on the entry's first slot but
//! leaves the index alone, so from there on index and slot run apart until the
//! cursor leaves the node and derives the slot from the index again. Searches
//! that start inside a large folio therefore report holes that lie elsewhere;
//! readahead decisions of interleaved streams and databases depend on it.
//!
//! Follows `lib/xarray.c` and `include/linux/xarray.h` (6.1 to 7.3 alike) and
//! the two search functions of `mm/filemap.c` per version.

use traces::units::PageIndex;

use crate::page_cache::{LEAF_PAGES, PageCache};

/// What a search returns when it saw no hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHole {
    /// The last page looked at.
    LastPage,
    /// One step beyond the last page looked at.
    PastLastPage,
}

const NODE_SHIFT: u32 = 6;
const SLOT_MASK: u64 = (1 << NODE_SHIFT) - 1;

/// `struct xa_state`: the index and, as a page number, the slot it stands on.
struct Cursor<'a> {
    cache: &'a PageCache,
    index: u64,
    slot: u64,
    /// Height of the node: 0 for a slot per page, 1 for a slot per 64 pages.
    level: u32,
}

impl<'a> Cursor<'a> {
    /// `xas_load` on a fresh cursor: whether something is cached at `index`.
    fn load(cache: &'a PageCache, index: u64) -> (Self, bool) {
        let mut cursor = Self { cache, index, slot: index, level: 0 };
        let folio = cache.folio_at(PageIndex(index));
        if let Some(folio) = folio {
            cursor.slot = folio.index.0;
            cursor.level = u32::from(folio.pages() >= LEAF_PAGES);
        }
        (cursor, folio.is_some())
    }

    fn shift(&self) -> u32 {
        self.level * NODE_SHIFT
    }

    fn offset(&self) -> u64 {
        self.slot >> self.shift() & SLOT_MASK
    }

    /// Whether the index asks for the slot the cursor stands on, as `get_offset` compares them.
    fn in_step(&self) -> bool {
        self.index >> self.shift() & SLOT_MASK == self.offset()
    }

    /// `xas_next`: whether something is cached at the next slot.
    fn next(&mut self) -> bool {
        self.index += 1;
        if self.level > 0 || self.offset() == SLOT_MASK {
            if self.in_step() {
                return self.entry();
            }
            if self.offset() == SLOT_MASK {
                let Some(level) = self.level_with_room(SLOT_MASK) else {
                    return false;
                };
                return self.descend((self.slot >> (level * NODE_SHIFT)) + 1, level);
            }
        }
        self.slot += 1 << self.shift();
        self.entry()
    }

    /// `xas_prev`: whether something is cached at the slot before.
    fn prev(&mut self) -> bool {
        self.index = self.index.wrapping_sub(1);
        if self.level > 0 || self.offset() == 0 {
            if self.in_step() {
                return self.entry();
            }
            if self.offset() == 0 {
                let Some(level) = self.level_with_room(0) else {
                    return false;
                };
                return self.descend((self.slot >> (level * NODE_SHIFT)) - 1, level);
            }
        }
        self.slot -= 1 << self.shift();
        self.entry()
    }

    /// The lowest level above whose slot is not the outermost one (`edge`) of its node.
    fn level_with_room(&self, edge: u64) -> Option<u32> {
        (self.level + 1..u64::BITS / NODE_SHIFT)
            .find(|level| self.slot >> (level * NODE_SHIFT) & SLOT_MASK != edge)
    }

    /// Goes down from slot number `slot` of `level`, taking the lower slots from the index.
    fn descend(&mut self, slot: u64, level: u32) -> bool {
        let shift = level * NODE_SHIFT;
        self.slot = slot << shift | self.index & ((1 << shift) - 1);
        self.level = 0;
        if self.cache.leaf(self.slot / LEAF_PAGES).is_some_and(|leaf| leaf.big != 0) {
            self.level = 1;
        }
        self.entry()
    }

    /// Whether the slot holds a folio (or a sibling of one).
    fn entry(&mut self) -> bool {
        if self.level > 0 {
            match self.cache.leaf(self.slot / LEAF_PAGES) {
                Some(leaf) if leaf.big != 0 => return true,
                // A node below: the cursor descends into it, to the slot of the index.
                Some(_) => {
                    self.level = 0;
                    self.slot = self.slot & !SLOT_MASK | self.index & SLOT_MASK;
                }
                None => return false,
            }
        }
        self.cache.contains(PageIndex(self.slot))
    }
}

/// `page_cache_next_miss`: the first hole from `index` on, within `max_scan` pages.
pub fn next_miss(cache: &PageCache, index: u64, max_scan: u64, no_hole: NoHole) -> u64 {
    if max_scan == 0 {
        return index;
    }
    let (mut cursor, mut cached) = Cursor::load(cache, index);
    for _ in 1..max_scan {
        if !cached {
            return cursor.index;
        }
        cached = cursor.next();
    }
    match no_hole {
        _ if !cached => cursor.index,
        NoHole::LastPage => cursor.index,
        NoHole::PastLastPage => cursor.index + 1,
    }
}

/// `page_cache_prev_miss`: the last hole from `index` back, within `max_scan` pages.
///
/// `u64::MAX` (`ULONG_MAX`) when everything from `index` to the start of the file is cached.
pub fn prev_miss(cache: &PageCache, index: u64, max_scan: u64, no_hole: NoHole) -> u64 {
    if max_scan == 0 {
        return index;
    }
    let (mut cursor, mut cached) = Cursor::load(cache, index);
    for _ in 1..max_scan {
        if !cached || cursor.index == u64::MAX {
            return cursor.index;
        }
        cached = cursor.prev();
    }
    match no_hole {
        _ if !cached || cursor.index == u64::MAX => cursor.index,
        NoHole::LastPage => cursor.index,
        NoHole::PastLastPage => cursor.index.wrapping_sub(1),
    }
}
