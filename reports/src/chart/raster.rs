//! Where in a file programs read, and where readahead does, over time.

use analysis::picture::{Pictures, Raster, RasterCell};
use analysis::result::ReplayReport;

use super::axis::{Scale, short_time};
use super::canvas::{Canvas, Cell};
use super::figure::{Figure, Panel, policies, timed_caption};
use super::legend::Legend;
use super::map::place_ticks;
use super::plot::{Axes, Plot, Plotted};
use super::style::{DIFFERENCES, Ink};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{Unit, count};

const PLOT_HEIGHT: i32 = 200;
const ROWS_IN_TABLE: u64 = 8;

const READ: Ink = Ink::Level(2);
const BOTH: Ink = Ink::Level(5);
const ASKED: Ink = Ink::SecondMore(DIFFERENCES - 1);

/// The chart.
pub(super) fn figure(report: &ReplayReport, pictures: &Pictures) -> Figure {
    let names = policies(report);
    let panel = |raster: &Raster, about: &str, n: usize| {
        Box::new(Grid::new(raster, n, &format!("{}, {about}", names[n]))) as Box<dyn Panel>
    };
    let whole = (0..names.len()).map(|n| panel(&pictures.raster, "whole run", n));
    let stretch = (0..names.len()).map(|n| panel(&pictures.raster_stretch, "stretch", n));
    Figure {
        id: "raster",
        title: "Reads and readahead over time",
        reading: "To the right is time, upwards the place in the file. Pale: pages put into the \
                  page cache; orange: pages a program asks for that were there before; dark: both \
                  in one moment. Pale above orange is readahead ahead of the reader. The second \
                  row shows the stretch of the folio map while it is read.",
        description: description(report, pictures),
        caption: format!("file {}; {}", pictures.file.file, timed_caption(report)),
        legend: Legend::Keys(
            "",
            vec![
                (READ, "put into the page cache".to_owned()),
                (ASKED, "asked for".to_owned()),
                (BOTH, "both in one moment".to_owned()),
            ],
        ),
        panels: whole.chain(stretch).collect(),
        table: table(pictures, names),
        csv: csv(report, pictures),
    }
}

struct Grid {
    axes: Axes,
    cells: Vec<RasterCell>,
    slices: u64,
    rows: u64,
}

impl Grid {
    fn new(raster: &Raster, policy: usize, title: &str) -> Self {
        let until_ns = raster.from_ns + raster.slices * raster.slice_ns;
        let time = Scale::linear(raster.from_ns as f64, until_ns as f64, 4.0);
        let axes = Axes {
            title: title.to_owned(),
            up: "place in the file".to_owned(),
            across: "time".to_owned(),
            x: time.ticks(short_time),
            y: place_ticks(raster.first_page, raster.first_page + raster.rows * raster.row_pages),
            plot_height: PLOT_HEIGHT,
        };
        let cells = raster.by_policy[policy].clone();
        Self { axes, cells, slices: raster.slices, rows: raster.rows }
    }
}

impl Plotted for Grid {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        let (slices, rows) = (self.slices as usize, self.rows as usize);
        let cell = |cell: &RasterCell| {
            let (slice, row) = (cell.slice as usize, cell.row as usize);
            let ink = match (cell.inserted > 0, cell.asked > 0) {
                (true, false) => READ,
                (true, true) => BOTH,
                _ => ASKED,
            };
            let from = (plot.x.part(slice, slices), plot.y.part(row + 1, rows));
            let to = (plot.x.part(slice + 1, slices), plot.y.part(row, rows));
            (from, to, ink)
        };
        canvas.cells(joined(self.cells.iter().map(cell).collect()));
    }
}

/// Joins cells of one colour that lie on top of each other in a slice.
fn joined(cells: Vec<Cell>) -> Vec<Cell> {
    let mut joined: Vec<Cell> = Vec::new();
    for (from, to, ink) in cells {
        match joined.last_mut() {
            Some((top, bottom, last)) if *last == ink && top.0 == from.0 && top.1 == to.1 => {
                *top = from;
                *bottom = (to.0, bottom.1);
            }
            _ => joined.push((from, to, ink)),
        }
    }
    joined
}

fn description(report: &ReplayReport, pictures: &Pictures) -> String {
    let raster = &pictures.raster;
    let describe = |n: usize| {
        let (inserted, asked) = sums(&raster.by_policy[n], |_| true);
        format!(
            "{}: {} pages put into the page cache, {} asked for, in {}.",
            report.results[n].policy,
            count(inserted),
            count(asked),
            Unit::Nanoseconds.show(report.results[n].elapsed_ns)
        )
    };
    let of_policies: Vec<String> = (0..report.results.len()).map(describe).collect();
    format!("Reads and readahead of file {}. {}", pictures.file.file, of_policies.join(" "))
}

fn sums(cells: &[RasterCell], counts: impl Fn(&RasterCell) -> bool) -> (u64, u64) {
    let counted = cells.iter().filter(|cell| counts(cell));
    counted.fold((0, 0), |(inserted, asked), cell| (inserted + cell.inserted, asked + cell.asked))
}

fn table(pictures: &Pictures, groups: Vec<String>) -> Table {
    let raster = &pictures.raster;
    let slices = raster.slices / ROWS_IN_TABLE;
    let row = |n: u64| {
        let own = n * slices..(n + 1) * slices;
        let cells = raster.by_policy.iter().flat_map(|cells| {
            let (inserted, asked) = sums(cells, |cell| own.contains(&cell.slice));
            [count(inserted), count(asked)]
        });
        let from = raster.from_ns + own.start * raster.slice_ns;
        TableRow::new(format!("from {}", Unit::Nanoseconds.show(from)), cells.collect())
    };
    Table {
        caption: format!(
            "Pages of the file put into the page cache and asked for, in parts of {}",
            Unit::Nanoseconds.show(slices * raster.slice_ns)
        ),
        head: "Time",
        groups,
        columns: vec!["read", "asked"],
        rows: (0..ROWS_IN_TABLE).map(row).collect(),
    }
}

fn csv(report: &ReplayReport, pictures: &Pictures) -> String {
    let mut lines = Lines::new([
        "policy",
        "shown_as",
        "from_ns",
        "slice_ns",
        "first_page",
        "pages",
        "pages_inserted",
        "pages_asked",
    ]);
    for (name, raster) in [("whole", &pictures.raster), ("stretch", &pictures.raster_stretch)] {
        for (result, cells) in report.results.iter().zip(&raster.by_policy) {
            for cell in cells {
                lines.push([
                    &result.policy,
                    name,
                    &(raster.from_ns + cell.slice * raster.slice_ns).to_string(),
                    &raster.slice_ns.to_string(),
                    &(raster.first_page + cell.row * raster.row_pages).to_string(),
                    &raster.row_pages.to_string(),
                    &cell.inserted.to_string(),
                    &cell.asked.to_string(),
                ]);
            }
        }
    }
    lines.finish()
}
