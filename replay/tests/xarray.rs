//! The hole searches against a literal model of the kernel's tree and cursor.
//!
//! The model keeps real nodes of 64 slots, sibling entries and a cursor that
//! holds a node and an offset, and steps it one slot at a time. It shares
//! nothing with the implementation but the rules.

use std::collections::HashMap;

use proptest::prelude::*;
use replay::page_cache::{Folio, PageCache};
use replay::xarray::{NoHole, next_miss, prev_miss};
use traces::units::{Order, PageIndex};

const LEVELS: u32 = 4;

/// What a slot of a node holds.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Slot {
    Empty,
    Node,
    /// The folio's first slot in this node.
    Head,
    /// A later slot of the same folio, and the offset of its first one.
    Sibling(u64),
}

/// Slots by (level, absolute slot number). A missing one is empty.
#[derive(Default)]
struct Tree {
    slots: HashMap<(u32, u64), Slot>,
}

impl Tree {
    fn store(&mut self, folio: Folio) {
        let level = u32::from(folio.order.0) / 6;
        let first = folio.index.0 >> (6 * level);
        let count = folio.pages() >> (6 * level);
        self.slots.insert((level, first), Slot::Head);
        for slot in first + 1..first + count {
            self.slots.insert((level, slot), Slot::Sibling(first));
        }
        for above in level + 1..LEVELS {
            self.slots.insert((above, folio.index.0 >> (6 * above)), Slot::Node);
        }
    }

    fn slot(&self, level: u32, number: u64) -> Slot {
        self.slots.get(&(level, number)).copied().unwrap_or(Slot::Empty)
    }
}

/// The cursor: which node (level and number of its first slot), which offset, which index.
struct Cursor<'a> {
    tree: &'a Tree,
    index: u64,
    level: u32,
    node: u64,
    offset: u64,
    bounds: bool,
}

impl<'a> Cursor<'a> {
    fn load(tree: &'a Tree, index: u64) -> (Self, bool) {
        let level = LEVELS - 1;
        let mut cursor = Cursor { tree, index, level, node: 0, offset: 0, bounds: false };
        cursor.offset = cursor.wanted();
        let present = cursor.settle();
        // xas_descend puts the offset on the first slot of a multi-slot entry.
        if let Slot::Sibling(first) = tree.slot(cursor.level, cursor.node + cursor.offset) {
            cursor.offset = first - cursor.node;
        }
        (cursor, present)
    }

    fn wanted(&self) -> u64 {
        self.index >> (6 * self.level) & 63
    }

    /// Goes down while the slot holds a node.
    fn settle(&mut self) -> bool {
        while self.tree.slot(self.level, self.node + self.offset) == Slot::Node {
            self.node = (self.node + self.offset) * 64;
            self.level -= 1;
            self.offset = self.wanted();
        }
        self.tree.slot(self.level, self.node + self.offset) != Slot::Empty
    }

    fn up(&mut self) -> bool {
        if self.level + 1 == LEVELS {
            self.bounds = true;
            return false;
        }
        let own = self.node / 64;
        self.level += 1;
        self.node = own & !63;
        self.offset = own & 63;
        true
    }

    fn next(&mut self) -> bool {
        self.index += 1;
        if self.level == 0 && self.offset != 63 {
            self.offset += 1;
            return self.tree.slot(0, self.node + self.offset) != Slot::Empty;
        }
        if self.offset != self.wanted() {
            self.offset += 1;
        }
        while self.offset == 64 {
            if !self.up() {
                return false;
            }
            self.offset += 1;
        }
        self.settle()
    }

    fn prev(&mut self) -> bool {
        self.index = self.index.wrapping_sub(1);
        if self.level == 0 && self.offset != 0 {
            self.offset -= 1;
            return self.tree.slot(0, self.node + self.offset) != Slot::Empty;
        }
        let mut offset = self.offset.cast_signed();
        if self.offset != self.wanted() {
            offset -= 1;
        }
        while offset < 0 {
            if !self.up() {
                return false;
            }
            offset = self.offset.cast_signed() - 1;
        }
        self.offset = offset.cast_unsigned();
        self.settle()
    }
}

fn model_next(tree: &Tree, index: u64, max_scan: u64) -> u64 {
    let (mut cursor, mut present) = Cursor::load(tree, index);
    for scanned in 1..=max_scan {
        if !present {
            return cursor.index;
        }
        if scanned < max_scan {
            present = cursor.next();
        }
    }
    cursor.index + 1
}

fn model_prev(tree: &Tree, index: u64, max_scan: u64) -> u64 {
    let (mut cursor, mut present) = Cursor::load(tree, index);
    for scanned in 1..=max_scan {
        if !present || cursor.index == u64::MAX {
            return cursor.index;
        }
        if scanned < max_scan {
            present = cursor.prev();
        }
    }
    cursor.index.wrapping_sub(1)
}

/// Folios of mixed orders with gaps between, from page 0 on or a little later.
fn layout() -> impl Strategy<Value = Vec<Folio>> {
    let step = (0_u64..40, 0_u8..10);
    proptest::collection::vec(step, 1..120).prop_map(|steps| {
        let mut page = 0;
        let mut folios = Vec::new();
        for (gap, order) in steps {
            // Most folios follow each other; few are large.
            page += u64::saturating_sub(gap, 30);
            let order = if order > 6 && gap % 4 != 0 { order - 5 } else { order };
            let order = Order(order.min(page.trailing_zeros().min(9) as u8));
            let folio = Folio { index: PageIndex(page), order };
            page = folio.end().0;
            folios.push(folio);
        }
        folios
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn searches_step_as_the_kernels_cursor(folios in layout(), max_scan in 1_u64..300) {
        let mut cache = PageCache::new();
        let mut tree = Tree::default();
        for folio in &folios {
            cache.insert(*folio, false, true).unwrap();
            tree.store(*folio);
        }
        let end = folios.last().unwrap().end().0;
        for index in (0..end + 8).step_by(3) {
            prop_assert_eq!(
                next_miss(&cache, index, max_scan, NoHole::PastLastPage),
                model_next(&tree, index, max_scan),
                "next from {} of {:?}", index, folios
            );
            prop_assert_eq!(
                prev_miss(&cache, index, max_scan, NoHole::PastLastPage),
                model_prev(&tree, index, max_scan),
                "prev from {} of {:?}", index, folios
            );
        }
    }
}

/// Fidelity notes: a search from the middle of a folio reports a hole as far off as it began
/// inside.
#[test]
fn cursor_drift_over_reports() {
    let mut cache = PageCache::new();
    for index in [16, 20] {
        let folio = Folio { index: PageIndex(index), order: Order(2) };
        cache.insert(folio, false, true).unwrap();
    }
    assert_eq!(next_miss(&cache, 16, 32, NoHole::PastLastPage), 24);
    assert_eq!(next_miss(&cache, 17, 32, NoHole::PastLastPage), 25);
    assert_eq!(next_miss(&cache, 19, 32, NoHole::PastLastPage), 27);
}
