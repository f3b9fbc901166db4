//! Which folios hold a file.

use replay::page_cache::Folio;
use replay::run::History;
use serde::Serialize;
use traces::units::Order;

use super::FileShown;

/// Most parts a file is divided into.
const PARTS_MAX: u64 = 96;
/// Rows of the stretch that is shown folio by folio.
const STRETCH_ROWS: u64 = 8;
/// Pages of a row: a power of two, so that folios which fit into a row do not cross its end.
const ROW_PAGES_MIN: u64 = 64;
const ROW_PAGES_MAX: u64 = 256;

/// Orders along a file, and the folios of a stretch of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FolioMap {
    /// Pages of each part of the file, a power of two; the last one may have fewer.
    pub part_pages: u64,
    /// What is shown folio by folio.
    pub stretch: Stretch,
    /// One per policy.
    pub by_policy: Vec<PolicyMap>,
}

/// A stretch of a file: from where the first two policies' folios begin to differ, or from its
/// first folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// Its first page.
    pub first_page: u64,
    /// Pages of a row of the chart.
    pub row_pages: u64,
    /// Rows.
    pub rows: u64,
}

impl Stretch {
    /// The page after its last one.
    pub fn end_page(&self) -> u64 {
        self.first_page + self.rows * self.row_pages
    }
}

/// A policy's folios. A page that was inserted more than once counts with the folio it had first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyMap {
    /// For each part, its pages by the order of their folio.
    pub parts: Vec<Vec<u64>>,
    /// Folios of the stretch: first page and order.
    pub folios: Vec<(u64, u8)>,
}

impl FolioMap {
    pub(super) fn new(file: &FileShown, histories: &[History]) -> Self {
        let folios: Vec<_> = histories.iter().map(|history| folios_of(file, history)).collect();
        let part_pages = file.pages.div_ceil(PARTS_MAX).next_power_of_two();
        let stretch = stretch(&folios);
        let map = |folios: &Vec<Folio>| PolicyMap {
            parts: parts(folios, part_pages, file.pages),
            folios: in_stretch(folios, &stretch),
        };
        Self { part_pages, by_policy: folios.iter().map(map).collect(), stretch }
    }
}

/// A policy's folios of the file by page, without those that came when a page of theirs had been
/// there before.
fn folios_of(file: &FileShown, history: &History) -> Vec<Folio> {
    let mut rest = &history.folios[..];
    let mut folios: Vec<Folio> = Vec::new();
    for sent in &history.sent {
        let (own, after) = rest.split_at(sent.run.folios as usize);
        rest = after;
        if sent.run.file == file.index {
            folios.extend(own);
        }
    }
    // Stable, so that of several folios with one first page the first one inserted leads.
    folios.sort_by_key(|folio| folio.index);
    let mut end = 0;
    folios.retain(|folio| {
        let kept = folio.index.0 >= end;
        if kept {
            end = folio.end().0;
        }
        kept
    });
    folios
}

fn stretch(folios: &[Vec<Folio>]) -> Stretch {
    let first = folios.iter().filter_map(|folios| folios.first()).min();
    let first_page = match folios {
        [a, b] => first_difference(a, b).or(first.copied()),
        _ => first.copied(),
    };
    let order_max = folios.iter().flatten().map(|folio| folio.order).max();
    let row_pages = order_max.map_or(1, Order::pages).clamp(ROW_PAGES_MIN, ROW_PAGES_MAX);
    let first_page = first_page.map_or(0, |folio| folio.index.0) / row_pages * row_pages;
    Stretch { first_page, row_pages, rows: STRETCH_ROWS }
}

/// The first folio that one list has and the other has not.
fn first_difference(a: &[Folio], b: &[Folio]) -> Option<Folio> {
    let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    [a.get(shared), b.get(shared)].into_iter().flatten().min().copied()
}

fn parts(folios: &[Folio], part_pages: u64, file_pages: u64) -> Vec<Vec<u64>> {
    let orders = folios.iter().map(|folio| usize::from(folio.order.0) + 1).max().unwrap_or(1);
    let mut parts = vec![vec![0; orders]; file_pages.div_ceil(part_pages) as usize];
    for folio in folios {
        let end = folio.end().0.min(file_pages);
        let mut page = folio.index.0;
        while page < end {
            let part = page / part_pages;
            let next = end.min((part + 1) * part_pages);
            parts[part as usize][usize::from(folio.order.0)] += next - page;
            page = next;
        }
    }
    parts
}

fn in_stretch(folios: &[Folio], stretch: &Stretch) -> Vec<(u64, u8)> {
    let shown = folios
        .iter()
        .skip_while(|folio| folio.end().0 <= stretch.first_page)
        .take_while(|folio| folio.index.0 < stretch.end_page());
    shown.map(|folio| (folio.index.0, folio.order.0)).collect()
}
