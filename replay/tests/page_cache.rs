//! The page cache against a plain list of folios.

use proptest::prelude::*;
use replay::page_cache::{Batch, Folio, PageCache, Stop};
use traces::units::{Order, PageIndex};

/// A folio with its flags.
#[derive(Clone, Copy, Debug)]
struct Plain {
    folio: Folio,
    mark: bool,
    uptodate: bool,
}

#[derive(Default)]
struct Model(Vec<Plain>);

impl Model {
    fn insert(&mut self, plain: Plain) -> bool {
        let free = self
            .0
            .iter()
            .all(|p| p.folio.end() <= plain.folio.index || plain.folio.end() <= p.folio.index);
        if free {
            self.0.push(plain);
        }
        free
    }

    fn at(&self, page: PageIndex) -> Option<Plain> {
        self.0.iter().copied().find(|p| p.folio.index <= page && page < p.folio.end())
    }

    fn walk(&self, index: PageIndex, last: PageIndex, folios_max: u32) -> Batch {
        let mut batch = Batch { end: index, folios: 0, stop: Stop::End };
        while batch.end < last {
            if batch.folios == folios_max {
                batch.stop = Stop::Full;
                break;
            }
            let Some(plain) = self.at(batch.end) else {
                batch.stop = Stop::Hole;
                break;
            };
            batch.end = plain.folio.end();
            batch.folios += 1;
            if plain.mark || !plain.uptodate {
                batch.stop = Stop::Flagged(plain.folio);
                break;
            }
        }
        batch
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(Plain),
    Remove(PageIndex),
    ClearMark(PageIndex),
    SetUptodate(PageIndex, u64),
}

fn op() -> impl Strategy<Value = Op> {
    let page = (0_u64..700).prop_map(PageIndex);
    let insert =
        (0_u64..700, 0_u8..9, any::<bool>(), 0_u8..4).prop_map(|(page, order, mark, up)| {
            let order = Order(if order > 4 { order } else { order / 2 });
            let index = PageIndex(page & !(order.pages() - 1));
            Op::Insert(Plain { folio: Folio { index, order }, mark, uptodate: up > 0 })
        });
    prop_oneof![
        8 => insert,
        1 => page.clone().prop_map(Op::Remove),
        1 => page.clone().prop_map(Op::ClearMark),
        1 => (page, 1_u64..90).prop_map(|(page, pages)| Op::SetUptodate(page, pages)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_list_of_folios(ops in proptest::collection::vec(op(), 1..120)) {
        let mut cache = PageCache::new();
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Insert(plain) => {
                    let inserted = cache.insert(plain.folio, plain.mark, plain.uptodate).is_ok();
                    prop_assert_eq!(inserted, model.insert(plain));
                }
                Op::Remove(page) => if let Some(plain) = model.at(page) {
                    cache.remove(plain.folio);
                    model.0.retain(|p| p.folio != plain.folio);
                },
                Op::ClearMark(page) => if let Some(plain) = model.at(page) {
                    cache.clear_mark(plain.folio);
                    for p in model.0.iter_mut().filter(|p| p.folio == plain.folio) {
                        p.mark = false;
                    }
                },
                Op::SetUptodate(page, pages) => {
                    cache.set_uptodate(page, page + pages);
                    for p in &mut model.0 {
                        p.uptodate |= page <= p.folio.index && p.folio.index < page + pages;
                    }
                }
            }
        }
        prop_assert_eq!(cache.live_folios(), model.0.len() as u64);
        prop_assert_eq!(cache.live_pages(), model.0.iter().map(|p| p.folio.pages()).sum::<u64>());
        for page in (0..1100).map(PageIndex) {
            let plain = model.at(page);
            prop_assert_eq!(cache.folio_at(page), plain.map(|p| p.folio));
            prop_assert_eq!(cache.contains(page), plain.is_some());
            if let Some(plain) = plain {
                prop_assert_eq!(cache.is_marked(plain.folio), plain.mark);
                prop_assert_eq!(cache.is_uptodate(plain.folio), plain.uptodate);
            }
            for (pages, folios_max) in [(1, 31), (40, 31), (40, 3), (700, 31)] {
                prop_assert_eq!(
                    cache.walk(page, page + pages, folios_max),
                    model.walk(page, page + pages, folios_max)
                );
            }
        }
        let mut folios: Vec<Folio> = model.0.iter().map(|p| p.folio).collect();
        folios.sort();
        prop_assert_eq!(cache.folios().collect::<Vec<_>>(), folios);
    }

    #[test]
    fn used_pages_are_counted_once(reads in proptest::collection::vec((0_u64..500, 1_u64..80), 0..20)) {
        let mut cache = PageCache::new();
        for index in (0..512).step_by(16) {
            let folio = Folio { index: PageIndex(index), order: Order(4) };
            cache.insert(folio, false, true).unwrap();
        }
        let mut used = [false; 600];
        for (page, pages) in reads {
            cache.set_used(PageIndex(page), PageIndex(page + pages));
            used[page as usize..(page + pages) as usize].fill(true);
        }
        let unused = used[..512].iter().filter(|used| !**used).count() as u64;
        prop_assert_eq!(cache.unused_pages(), unused);
        let removed: u64 = cache.folios().collect::<Vec<_>>().into_iter().map(|f| cache.remove(f)).sum();
        prop_assert_eq!(removed, unused);
        prop_assert_eq!(cache.live_pages(), 0);
    }
}

#[test]
fn bookkeeping_is_bounded_by_what_is_cached() {
    let mut cache = PageCache::new();
    for index in (0..1 << 20).step_by(32) {
        cache.insert(Folio { index: PageIndex(index), order: Order(5) }, false, true).unwrap();
    }
    let per_folio = cache.state_bytes() as u64 / cache.live_folios();
    assert!(per_folio <= 32, "{per_folio} bytes per folio of order 5");
    for folio in cache.folios().collect::<Vec<_>>() {
        cache.remove(folio);
    }
    let left = cache.state_bytes();
    assert!(left < 10_000, "{left} bytes for an empty cache");
}
