//! What is asked for and what is read ahead, over time and place in a file.

use std::collections::BTreeMap;

use replay::run::History;
use serde::Serialize;
use traces::access::{AccessKind, Source};
use traces::units::{PAGE_SIZE, PageIndex};

use super::{FileShown, Stretch};

const SLICES: u64 = 80;
const ROWS: u64 = 40;

/// A grid over time and pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Raster {
    /// When the first slice begins.
    pub from_ns: u64,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Slices.
    pub slices: u64,
    /// First page of the first row.
    pub first_page: u64,
    /// Pages of a row.
    pub row_pages: u64,
    /// Rows.
    pub rows: u64,
    /// The cells of each policy in which something happened, by slice and row.
    pub by_policy: Vec<Vec<RasterCell>>,
}

/// What happened in a slice of time to a row of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RasterCell {
    /// Which slice.
    pub slice: u64,
    /// Which row.
    pub row: u64,
    /// Pages put into the page cache.
    pub inserted: u64,
    /// Pages that programs asked for; again if asked for again.
    pub asked: u64,
}

/// Pages that are asked for or inserted at one time.
#[derive(Clone, Copy)]
struct Moment {
    time_ns: u64,
    first_page: u64,
    end_page: u64,
    is_asked: bool,
}

impl Raster {
    /// The whole file over the longest run.
    pub(super) fn whole(source: &Source, file: &FileShown, histories: &[History]) -> Self {
        let moments: Vec<_> = histories.iter().map(|h| moments(source, file, h)).collect();
        Self::over(&moments, 0, (0, file.pages))
    }

    /// A stretch of the file, from when its first page is asked for until all of them have been.
    pub(super) fn of_stretch(
        source: &Source,
        file: &FileShown,
        stretch: &Stretch,
        histories: &[History],
    ) -> Self {
        let pages = (stretch.first_page, stretch.end_page().min(file.pages));
        let inside = |moment: &Moment| moment.first_page < pages.1 && moment.end_page > pages.0;
        let mut by_policy = Vec::new();
        for history in histories {
            let mut moments = moments(source, file, history);
            moments.retain(inside);
            by_policy.push(moments);
        }
        let first = by_policy.iter().flatten().map(|moment| moment.time_ns).min();
        // Pages asked for once more, much later, are out of the picture.
        let until = by_policy.iter().filter_map(|moments| first_pass_ends(moments)).max();
        if let Some(until) = until {
            for moments in &mut by_policy {
                moments.retain(|moment| moment.time_ns <= until);
            }
        }
        Self::over(&by_policy, first.unwrap_or(0), pages)
    }

    fn over(moments: &[Vec<Moment>], from_ns: u64, (first_page, end_page): (u64, u64)) -> Self {
        let last = moments.iter().flatten().map(|moment| moment.time_ns).max().unwrap_or(from_ns);
        let pages = end_page.saturating_sub(first_page).max(1);
        let row_pages = pages.div_ceil(ROWS);
        let mut raster = Self {
            from_ns,
            slice_ns: (last + 1 - from_ns).div_ceil(SLICES),
            slices: SLICES,
            first_page,
            row_pages,
            rows: pages.div_ceil(row_pages),
            by_policy: Vec::new(),
        };
        raster.by_policy = moments.iter().map(|moments| raster.cells(moments)).collect();
        raster
    }

    fn cells(&self, moments: &[Moment]) -> Vec<RasterCell> {
        let end_page = self.first_page + self.rows * self.row_pages;
        let mut cells = BTreeMap::new();
        for moment in moments {
            let slice = (moment.time_ns - self.from_ns) / self.slice_ns;
            let mut page = moment.first_page.max(self.first_page);
            let end = moment.end_page.min(end_page);
            while page < end {
                let row = (page - self.first_page) / self.row_pages;
                let next = end.min(self.first_page + (row + 1) * self.row_pages);
                let cell = cells.entry((slice, row)).or_insert(RasterCell {
                    slice,
                    row,
                    ..RasterCell::default()
                });
                let pages = if moment.is_asked { &mut cell.asked } else { &mut cell.inserted };
                *pages += next - page;
                page = next;
            }
        }
        cells.into_values().collect()
    }
}

/// What a policy's run did to the file, insertions first.
fn moments(source: &Source, file: &FileShown, history: &History) -> Vec<Moment> {
    let inserted = history.sent.iter().filter(|sent| sent.run.file == file.index);
    let inserted = inserted.map(|sent| Moment {
        time_ns: sent.time.0,
        first_page: sent.run.index.0,
        end_page: sent.run.index.0 + sent.run.pages,
        is_asked: false,
    });
    let asked = history.accesses.iter().filter_map(|times| {
        let access = &source.accesses[times.access as usize];
        let own = source.opens[access.open as usize].file == file.index;
        let (first, end) = pages_asked(&access.kind).filter(|_| own)?;
        let end_page = end.0.min(file.pages);
        Some(Moment { time_ns: times.began.0, first_page: first.0, end_page, is_asked: true })
    });
    inserted.chain(asked).collect()
}

fn pages_asked(kind: &AccessKind) -> Option<(PageIndex, PageIndex)> {
    match *kind {
        AccessKind::Read { pos, count } => {
            let end = pos.0.saturating_add(count).div_ceil(PAGE_SIZE);
            Some((pos.page(), PageIndex(end)))
        }
        AccessKind::Touch { page } | AccessKind::Fault { page, .. } => Some((page, page + 1)),
        _ => None,
    }
}

/// When the page furthest into the stretch is first asked for.
fn first_pass_ends(moments: &[Moment]) -> Option<u64> {
    let asked = || moments.iter().filter(|moment| moment.is_asked);
    let furthest = asked().map(|moment| moment.end_page).max()?;
    asked().find(|moment| moment.end_page == furthest).map(|moment| moment.time_ns)
}
