//! The page cache of one inode: folios, readahead marks, uptodate state.
//!
//! A file is divided into leaves of 64 pages, as an `XArray` node divides it. A
//! leaf is a handful of 64-bit maps, one bit per page, so a folio costs no
//! object of its own and a walk over cached pages is a few bit operations per
//! 64 pages. A folio of order 6 and above covers whole leaves.
//!
//! Invariants: no page belongs to two folios; a folio starts at a multiple of
//! its size.

use traces::units::{Order, PageIndex};

/// Pages per leaf, the number of slots of an `XArray` node.
pub(crate) const LEAF_PAGES: u64 = 64;
const LEAVES_PER_BLOCK: usize = 64;

/// A folio's place: its first page and its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Folio {
    /// First page.
    pub index: PageIndex,
    /// log2 of its pages.
    pub order: Order,
}

impl Folio {
    /// Pages in the folio.
    pub fn pages(self) -> u64 {
        self.order.pages()
    }

    /// The page after the folio.
    pub fn end(self) -> PageIndex {
        self.index + self.pages()
    }
}

/// A page of the range is already in the cache (`-EEXIST`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leaf {
    /// Pages that are cached.
    pub(crate) present: u64,
    /// First pages of folios; of a large folio, only in its first leaf.
    pub(crate) head: u64,
    /// Heads of folios with the readahead mark.
    mark: u64,
    /// Heads of folios that are not uptodate yet.
    pending: u64,
    /// Pages the program has used.
    used: u64,
    /// Order of the folio that covers the whole leaf, 0 if none does.
    pub(crate) big: u8,
}

impl Leaf {
    fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The folio of this leaf that holds bit `bit`, which must be present in a leaf without a big
    /// folio: (head bit, pages).
    pub(crate) fn small_folio(&self, bit: u32) -> (u32, u32) {
        let start = (self.head & (u64::MAX >> (63 - bit))).ilog2();
        let after = u64::MAX.checked_shl(start + 1).unwrap_or(0);
        let end = ((self.head | !self.present) & after).trailing_zeros();
        (start, end - start)
    }
}

/// Bits `from..to` of a leaf.
fn bits(from: u64, to: u64) -> u64 {
    debug_assert!(from < to && to <= LEAF_PAGES);
    (u64::MAX << from) & (u64::MAX >> (LEAF_PAGES - to))
}

type Block = [Leaf; LEAVES_PER_BLOCK];

/// Why a [`PageCache::walk`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The next page is not cached.
    Hole,
    /// The last folio carries the readahead mark or is not uptodate.
    Flagged(Folio),
    /// The end of the range is reached.
    End,
    /// The batch is full.
    Full,
}

/// A run of cached folios found by [`PageCache::walk`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The page after the last folio taken (the first page asked for, if none was).
    pub end: PageIndex,
    /// Folios taken.
    pub folios: u32,
    /// What ended the run.
    pub stop: Stop,
}

/// What is cached of one file.
#[derive(Debug, Default)]
pub struct PageCache {
    blocks: Vec<Option<Box<Block>>>,
    folios: u64,
    pages: u64,
    removals: u64,
}

impl PageCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Folios in the cache now.
    pub fn live_folios(&self) -> u64 {
        self.folios
    }

    /// Pages in the cache now.
    pub fn live_pages(&self) -> u64 {
        self.pages
    }

    /// Folios taken out so far. While it stands still, what was seen cached is cached.
    pub fn removals(&self) -> u64 {
        self.removals
    }

    /// Bytes of memory the cache's own bookkeeping takes now.
    pub fn state_bytes(&self) -> usize {
        let blocks = self.blocks.iter().flatten().count() * size_of::<Block>();
        blocks + self.blocks.capacity() * size_of::<Option<Box<Block>>>()
    }

    /// The leaf with number `leaf`, if any of its pages was ever cached.
    pub(crate) fn leaf(&self, leaf: u64) -> Option<&Leaf> {
        let block = self.blocks.get(leaf as usize / LEAVES_PER_BLOCK)?.as_ref()?;
        Some(&block[leaf as usize % LEAVES_PER_BLOCK])
    }

    fn leaf_if_cached(&mut self, leaf: u64) -> Option<&mut Leaf> {
        let block = self.blocks.get_mut(leaf as usize / LEAVES_PER_BLOCK)?.as_mut()?;
        Some(&mut block[leaf as usize % LEAVES_PER_BLOCK])
    }

    fn leaf_mut(&mut self, leaf: u64) -> &mut Leaf {
        let block = leaf as usize / LEAVES_PER_BLOCK;
        if block >= self.blocks.len() {
            self.blocks.resize_with(block + 1, || None);
        }
        let leaves = self.blocks[block].get_or_insert_with(|| Box::new([Leaf::default(); 64]));
        &mut leaves[leaf as usize % LEAVES_PER_BLOCK]
    }

    /// Whether `page` is cached.
    pub fn contains(&self, page: PageIndex) -> bool {
        self.leaf(page.0 / LEAF_PAGES)
            .is_some_and(|leaf| leaf.present >> (page.0 % LEAF_PAGES) & 1 != 0)
    }

    /// Whether every page of `from..to` is cached.
    pub fn contains_all(&self, from: PageIndex, to: PageIndex) -> bool {
        let mut page = from;
        while page < to {
            match self.folio_at(page) {
                Some(folio) => page = folio.end(),
                None => return false,
            }
        }
        true
    }

    /// The folio that holds `page`.
    pub fn folio_at(&self, page: PageIndex) -> Option<Folio> {
        let number = page.0 / LEAF_PAGES;
        let leaf = self.leaf(number)?;
        let bit = (page.0 % LEAF_PAGES) as u32;
        if leaf.present >> bit & 1 == 0 {
            return None;
        }
        if leaf.big != 0 {
            let order = Order(leaf.big);
            return Some(Folio { index: PageIndex(page.0 & !(order.pages() - 1)), order });
        }
        let (start, pages) = leaf.small_folio(bit);
        Some(Folio {
            index: PageIndex(number * LEAF_PAGES + u64::from(start)),
            order: Order(pages.trailing_zeros() as u8),
        })
    }

    /// Puts a folio into the cache, optionally with the readahead mark.
    ///
    /// `uptodate` says whether its data is there already.
    pub fn insert(&mut self, folio: Folio, mark: bool, uptodate: bool) -> Result<(), Conflict> {
        debug_assert_eq!(folio.index.0 % folio.pages(), 0, "folio not aligned");
        let from = folio.index.0 % LEAF_PAGES;
        if folio.pages() >= LEAF_PAGES {
            self.insert_big(folio)?;
        }
        let leaf = self.leaf_mut(folio.index.0 / LEAF_PAGES);
        if folio.pages() < LEAF_PAGES {
            let range = bits(from, from + folio.pages());
            if leaf.present & range != 0 {
                return Err(Conflict);
            }
            leaf.present |= range;
        }
        leaf.head |= 1 << from;
        leaf.mark |= u64::from(mark) << from;
        leaf.pending |= u64::from(!uptodate) << from;
        self.folios += 1;
        self.pages += folio.pages();
        Ok(())
    }

    fn insert_big(&mut self, folio: Folio) -> Result<(), Conflict> {
        let leaves = folio.index.0 / LEAF_PAGES..folio.end().0 / LEAF_PAGES;
        if leaves.clone().any(|leaf| self.leaf(leaf).is_some_and(|leaf| !leaf.is_empty())) {
            return Err(Conflict);
        }
        for leaf in leaves {
            *self.leaf_mut(leaf) =
                Leaf { present: u64::MAX, big: folio.order.0, ..Leaf::default() };
        }
        Ok(())
    }

    /// Takes a folio out of the cache.
    ///
    /// Returns how many of its pages were never used by the program.
    pub fn remove(&mut self, folio: Folio) -> u64 {
        let (first, end) = (folio.index.0, folio.end().0);
        let mut used = 0;
        let mut page = first;
        while page < end {
            let to = end.min((page / LEAF_PAGES + 1) * LEAF_PAGES);
            let range = bits(page % LEAF_PAGES, (to - 1) % LEAF_PAGES + 1);
            let leaf = self.leaf_mut(page / LEAF_PAGES);
            used += u64::from((leaf.used & range).count_ones());
            for map in [
                &mut leaf.present,
                &mut leaf.head,
                &mut leaf.mark,
                &mut leaf.pending,
                &mut leaf.used,
            ] {
                *map &= !range;
            }
            leaf.big = 0;
            page = to;
        }
        self.folios -= 1;
        self.removals += 1;
        self.pages -= folio.pages();
        self.free_block_of(first / LEAF_PAGES);
        folio.pages() - used
    }

    /// Frees the block around `leaf` when nothing in it is cached any more.
    fn free_block_of(&mut self, leaf: u64) {
        let slot = &mut self.blocks[leaf as usize / LEAVES_PER_BLOCK];
        if slot.as_ref().is_some_and(|block| block.iter().all(Leaf::is_empty)) {
            *slot = None;
        }
    }

    fn head_bit(&self, folio: Folio, map: impl Fn(&Leaf) -> u64) -> bool {
        self.leaf(folio.index.0 / LEAF_PAGES)
            .is_some_and(|leaf| map(leaf) >> (folio.index.0 % LEAF_PAGES) & 1 != 0)
    }

    /// Whether the folio carries the readahead mark (`PG_readahead`).
    pub fn is_marked(&self, folio: Folio) -> bool {
        self.head_bit(folio, |leaf| leaf.mark)
    }

    /// Takes the readahead mark off a folio.
    pub fn clear_mark(&mut self, folio: Folio) {
        self.leaf_mut(folio.index.0 / LEAF_PAGES).mark &= !(1 << (folio.index.0 % LEAF_PAGES));
    }

    /// Whether the folio's data is there (`PG_uptodate`).
    pub fn is_uptodate(&self, folio: Folio) -> bool {
        !self.head_bit(folio, |leaf| leaf.pending)
    }

    /// The folios that start in `from..to` are uptodate from now on.
    pub fn set_uptodate(&mut self, from: PageIndex, to: PageIndex) {
        self.for_leaves(from, to, |leaf, range| leaf.pending &= !range);
    }

    /// The program has used pages `from..to`.
    #[inline]
    pub fn set_used(&mut self, from: PageIndex, to: PageIndex) {
        self.for_leaves(from, to, |leaf, range| leaf.used |= range & leaf.present);
    }

    /// Cached pages that the program has not used.
    pub fn unused_pages(&self) -> u64 {
        let unused = |leaf: &Leaf| u64::from((leaf.present & !leaf.used).count_ones());
        self.blocks.iter().flatten().flat_map(|block| block.iter()).map(unused).sum()
    }

    #[inline]
    fn for_leaves(&mut self, from: PageIndex, to: PageIndex, change: impl Fn(&mut Leaf, u64)) {
        let mut page = from.0;
        while page < to.0 {
            let end = to.0.min((page / LEAF_PAGES + 1) * LEAF_PAGES);
            if let Some(leaf) = self.leaf_if_cached(page / LEAF_PAGES) {
                change(leaf, bits(page % LEAF_PAGES, (end - 1) % LEAF_PAGES + 1));
            }
            page = end;
        }
    }

    /// All folios, in order of their place.
    pub fn folios(&self) -> impl Iterator<Item = Folio> + '_ {
        let leaves = self.blocks.len() as u64 * LEAVES_PER_BLOCK as u64;
        (0..leaves).flat_map(move |number| {
            let mut heads = self.leaf(number).map_or(0, |leaf| leaf.head);
            std::iter::from_fn(move || {
                let bit = (heads != 0).then(|| heads.trailing_zeros())?;
                heads &= heads - 1;
                self.folio_at(PageIndex(number * LEAF_PAGES + u64::from(bit)))
            })
        })
    }

    /// Collects cached folios from `index` on, as `filemap_get_read_batch` does.
    ///
    /// The run ends before a hole or the first folio that starts at `last` or later, after a folio
    /// that is marked or not uptodate, and after `folios_max` folios.
    #[inline]
    pub fn walk(&self, index: PageIndex, last: PageIndex, folios_max: u32) -> Batch {
        let mut batch = Batch { end: index, folios: 0, stop: Stop::End };
        while batch.end < last {
            let Some(leaf) = self.leaf(batch.end.0 / LEAF_PAGES) else {
                batch.stop = Stop::Hole;
                break;
            };
            if leaf.present >> (batch.end.0 % LEAF_PAGES) & 1 == 0 {
                batch.stop = Stop::Hole;
                break;
            }
            let stopped = if leaf.big != 0 {
                self.walk_big(leaf, &mut batch)
            } else {
                walk_leaf(leaf, last, folios_max, &mut batch)
            };
            if stopped {
                break;
            }
            if batch.folios >= folios_max && batch.end < last {
                batch.stop = Stop::Full;
                break;
            }
        }
        batch
    }

    /// The part of [`walk`](Self::walk) in `leaf`, which is one of a big folio. Whether it ended.
    fn walk_big(&self, leaf: &Leaf, batch: &mut Batch) -> bool {
        let order = Order(leaf.big);
        let folio = Folio { index: PageIndex(batch.end.0 & !(order.pages() - 1)), order };
        batch.end = folio.end();
        batch.folios += 1;
        let flagged = self.head_bit(folio, |head| head.mark | head.pending);
        if flagged {
            batch.stop = Stop::Flagged(folio);
        }
        flagged
    }
}

/// The part of [`PageCache::walk`] that lies in one leaf without a big folio. Whether it ended.
#[inline]
fn walk_leaf(leaf: &Leaf, last: PageIndex, folios_max: u32, batch: &mut Batch) -> bool {
    let base = batch.end.0 / LEAF_PAGES * LEAF_PAGES;
    let (start, _) = leaf.small_folio((batch.end.0 % LEAF_PAGES) as u32);
    // Folios that begin from here on, before the end of the range.
    let to = (last.0 - base).min(LEAF_PAGES);
    let ahead = bits(u64::from(start), to.max(u64::from(start) + 1));
    let hole = (!leaf.present & (u64::MAX << start)).trailing_zeros();
    let run = if hole < 64 { ahead & ((1 << hole) - 1) } else { ahead };
    let flagged = ((leaf.mark | leaf.pending) & run).trailing_zeros();
    let mut heads = leaf.head & run;
    if flagged < 64 {
        heads &= u64::MAX >> (63 - flagged);
    }
    let room = folios_max - batch.folios;
    let full = heads.count_ones() > room;
    while heads.count_ones() > room {
        heads &= !(1 << heads.ilog2());
    }
    batch.folios += heads.count_ones();
    let (head, pages) = leaf.small_folio(heads.ilog2());
    batch.end = PageIndex(base + u64::from(head + pages));
    if full {
        batch.stop = Stop::Full;
        return true;
    }
    if flagged < 64 {
        let order = Order(pages.trailing_zeros() as u8);
        batch.stop = Stop::Flagged(Folio { index: PageIndex(base + u64::from(head)), order });
        return true;
    }
    false
}
