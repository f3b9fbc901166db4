//! Which folios hold a file: orders along all of it, and a stretch folio by folio.

use analysis::picture::{FolioMap, Pictures, PolicyMap, Stretch};
use analysis::result::ReplayReport;
use traces::units::{Order, PAGE_SHIFT, PAGE_SIZE};

use super::axis::{Scale, Span, Tick, short_bytes, short_percent};
use super::canvas::{Canvas, Cell, Font};
use super::figure::{Figure, LINE_HEIGHT, MARGIN, PANEL_WIDTH, Panel, caption, policies};
use super::legend::Legend;
use super::plot::{Axes, Plot, Plotted};
use super::style::{Ink, ORDERS, SMALL_PX, TITLE_PX, shorten, text_width};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{count, percent, size_name};

const PLOT_HEIGHT: i32 = 110;
const STRIP_HEIGHT: i32 = 15;
const STRIP_GAP: i32 = 4;
/// Rows of the table, equal parts of the file.
const PARTS_IN_TABLE: usize = 8;

/// The chart.
pub(super) fn figure(report: &ReplayReport, pictures: &Pictures) -> Figure {
    let map = &pictures.map;
    let names = policies(report);
    let along = |(policy, name): (&PolicyMap, &String)| {
        Box::new(Along::new(map, policy, name, pictures.file.pages)) as Box<dyn Panel>
    };
    let strips = |(policy, name): (&PolicyMap, &String)| {
        let folios = policy.folios.clone();
        Box::new(Strips { name: name.clone(), stretch: map.stretch, folios }) as Box<dyn Panel>
    };
    let both = || map.by_policy.iter().zip(&names);
    Figure {
        id: "map",
        title: "Folio map",
        reading: "Above, the whole file from left to right: the colours show which orders hold \
                  each part of it. Below, a stretch folio by folio, from where the policies begin \
                  to differ: each block is a folio, each line continues the one above it.",
        description: description(report, pictures),
        caption: format!("file {}; {}", pictures.file.file, caption(report)),
        legend: Legend::Keys("order", keys(map)),
        panels: both().map(along).chain(both().map(strips)).collect(),
        table: table(map, names),
        csv: csv(report, map),
    }
}

/// Orders that occur, with their colours.
fn keys(map: &FolioMap) -> Vec<(Ink, String)> {
    let orders = (0..Order::COUNT).filter(|order| pages_of(map, *order) > 0);
    let mut keys: Vec<(Ink, String)> = Vec::new();
    for order in orders {
        let ink = Ink::of_order(order as u8);
        match keys.last_mut() {
            Some((last, name)) if *last == ink => *name = format!("{}+", ORDERS - 1),
            _ => keys.push((ink, order.to_string())),
        }
    }
    keys
}

fn pages_of(map: &FolioMap, order: usize) -> u64 {
    let parts = map.by_policy.iter().flat_map(|policy| &policy.parts);
    parts.filter_map(|part| part.get(order)).sum()
}

/// The whole file from left to right.
struct Along {
    axes: Axes,
    part_pages: u64,
    file_pages: u64,
    parts: Vec<Vec<u64>>,
}

impl Along {
    fn new(map: &FolioMap, policy: &PolicyMap, name: &str, file_pages: u64) -> Self {
        let axes = Axes {
            title: name.to_owned(),
            up: "share of the pages".to_owned(),
            across: "place in the file".to_owned(),
            x: place_ticks(0, file_pages),
            y: [0.0, 0.5, 1.0].map(|share| (share, short_percent(share))).into(),
            plot_height: PLOT_HEIGHT,
        };
        Self { axes, part_pages: map.part_pages, file_pages, parts: policy.parts.clone() }
    }

    /// One part: its orders on top of each other, the largest at the bottom.
    fn column(&self, n: usize, orders: &[u64], plot: Plot, cells: &mut Vec<Cell>) {
        let pages = self.part_pages.min(self.file_pages - n as u64 * self.part_pages);
        let across = |part: usize| {
            let page = (part as u64 * self.part_pages).min(self.file_pages);
            plot.x.at(page as f64 / self.file_pages as f64)
        };
        let mut below = 0;
        for (order, own) in orders.iter().enumerate().rev().filter(|(_, own)| **own > 0) {
            let bottom = plot.y.at(below as f64 / pages as f64);
            below += own;
            let top = plot.y.at(below as f64 / pages as f64);
            cells.push(((across(n), top), (across(n + 1), bottom), Ink::of_order(order as u8)));
        }
    }
}

impl Plotted for Along {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        let mut cells = Vec::new();
        for (n, orders) in self.parts.iter().enumerate() {
            self.column(n, orders, plot, &mut cells);
        }
        cells.retain(|(from, to, _)| from.0 < to.0 && from.1 < to.1);
        canvas.cells(cells);
    }
}

/// Marks of an axis along the pages of a file, labelled in bytes.
pub(super) fn place_ticks(first_page: u64, end_page: u64) -> Vec<Tick> {
    let scale = Scale::binary(first_page * PAGE_SIZE, end_page * PAGE_SIZE, 6);
    scale.ticks(short_bytes)
}

/// A stretch of the file, folio by folio.
struct Strips {
    name: String,
    stretch: Stretch,
    folios: Vec<(u64, u8)>,
}

impl Panel for Strips {
    fn title(&self) -> &str {
        &self.name
    }

    fn height(&self) -> i32 {
        let rows = self.stretch.rows as i32;
        2 * LINE_HEIGHT + 8 + rows * (STRIP_HEIGHT + STRIP_GAP) + LINE_HEIGHT
    }

    fn draw(&self, canvas: &Canvas<'_>, (left, top): (i32, i32)) {
        let title = shorten(&self.name, PANEL_WIDTH - 2 * MARGIN, TITLE_PX);
        let bold = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(&title, (left + MARGIN, top + LINE_HEIGHT / 2), bold);
        let muted = Font::new(SMALL_PX, Ink::Muted);
        let row_bytes = short_bytes((self.stretch.row_pages * PAGE_SIZE) as f64);
        let about = format!("folio by folio, {row_bytes} to a line, each line from its place on");
        canvas.text(&about, (left + MARGIN, top + LINE_HEIGHT + LINE_HEIGHT / 2), muted);
        let row_of = |row: u64| top + 2 * LINE_HEIGHT + 8 + row as i32 * (STRIP_HEIGHT + STRIP_GAP);
        let labels: Vec<String> = (0..self.stretch.rows).map(|row| self.label(row)).collect();
        let names = labels.iter().map(|label| text_width(label, SMALL_PX)).max().unwrap_or(0);
        let x = Span { from: left + MARGIN + names + 6, to: left + PANEL_WIDTH - MARGIN };
        let mut cells = Vec::new();
        for (row, label) in (0..).zip(&labels) {
            canvas.text(label, (x.from - 6, row_of(row) + STRIP_HEIGHT / 2), muted.right());
            // What no folio covers stays visible as a hole.
            let middle = row_of(row) + STRIP_HEIGHT / 2;
            canvas.line((x.from, middle), (x.to, middle), Ink::Grid);
        }
        for folio in &self.folios {
            self.folio(*folio, x, row_of, &mut cells);
        }
        canvas.cells(cells);
    }
}

impl Strips {
    fn label(&self, row: u64) -> String {
        short_bytes(((self.stretch.first_page + row * self.stretch.row_pages) * PAGE_SIZE) as f64)
    }

    /// A folio, on as many rows as it takes.
    fn folio(
        &self,
        (first, order): (u64, u8),
        x: Span,
        row_of: impl Fn(u64) -> i32,
        cells: &mut Vec<Cell>,
    ) {
        let Stretch { first_page, row_pages, .. } = self.stretch;
        let end = (first + Order(order).pages()).min(self.stretch.end_page());
        let mut page = first.max(first_page);
        while page < end {
            let row = (page - first_page) / row_pages;
            let row_begins = first_page + row * row_pages;
            let next = end.min(row_begins + row_pages);
            let at = |page: u64| x.at((page - row_begins) as f64 / row_pages as f64);
            let (from, to) = (at(page), at(next));
            // A gap tells a folio from the next one, where there is room for it.
            let to = if next == end && to - from >= 3 { to - 1 } else { to };
            let (above, below) = (row_of(row), row_of(row) + STRIP_HEIGHT);
            cells.push(((from, above), (to, below), Ink::of_order(order)));
            page = next;
        }
    }
}

fn description(report: &ReplayReport, pictures: &Pictures) -> String {
    let Pictures { file, map, .. } = pictures;
    let size = short_bytes((file.pages << PAGE_SHIFT) as f64);
    let orders = |policy: &PolicyMap| {
        let all: u64 = policy.parts.iter().flatten().sum();
        let of = |order| policy.parts.iter().filter_map(move |part| part.get(order)).sum::<u64>();
        let used = (0..Order::COUNT).filter(|order| of(*order) > 0);
        let shares =
            used.map(|order| format!("order {order}: {}", percent(of(order) as f64 / all as f64)));
        shares.collect::<Vec<_>>().join(", ")
    };
    let policies = report.results.iter().zip(&map.by_policy);
    let policies = policies.map(|(result, map)| format!("{}: {}.", result.policy, orders(map)));
    format!(
        "Orders of the folios of a file of {size}, by share of its cached pages. {}",
        policies.collect::<Vec<_>>().join(" ")
    )
}

/// Mean order of the pages in equal parts of the file.
fn table(map: &FolioMap, groups: Vec<String>) -> Table {
    let parts = map.by_policy.first().map_or(0, |policy| policy.parts.len());
    let shown = parts.min(PARTS_IN_TABLE);
    let range = |n: usize| n * parts / shown..(n + 1) * parts / shown;
    let cells = |policy: &PolicyMap, n: usize| {
        let orders = policy.parts[range(n)].iter().flat_map(|part| part.iter().enumerate());
        let (pages, weighted) = orders.fold((0, 0), |(pages, weighted), (order, own)| {
            (pages + own, weighted + order as u64 * own)
        });
        let mean = weighted as f64 / pages.max(1) as f64;
        [count(pages), if pages > 0 { format!("{mean:.2}") } else { "-".to_owned() }]
    };
    let row = |n: usize| {
        let from = range(n).start as u64 * map.part_pages * PAGE_SIZE;
        let cells = map.by_policy.iter().flat_map(|policy| cells(policy, n)).collect();
        TableRow::new(format!("from {}", short_bytes(from as f64)), cells)
    };
    Table {
        caption: "Pages cached in each part of the file, and mean order of the folio a page is in"
            .to_owned(),
        head: "Part",
        groups,
        columns: vec!["pages", "order"],
        rows: (0..shown).map(row).collect(),
    }
}

/// The parts by order, then each folio of the stretch.
fn csv(report: &ReplayReport, map: &FolioMap) -> String {
    let mut lines =
        Lines::new(["policy", "shown_as", "first_page", "order", "folio_size", "pages"]);
    for (result, policy) in report.results.iter().zip(&map.by_policy) {
        for (n, part) in policy.parts.iter().enumerate() {
            for (order, pages) in part.iter().enumerate().filter(|(_, pages)| **pages > 0) {
                lines.push([
                    &result.policy,
                    "part",
                    &(n as u64 * map.part_pages).to_string(),
                    &order.to_string(),
                    &size_name(PAGE_SIZE << order),
                    &pages.to_string(),
                ]);
            }
        }
        for (first, order) in &policy.folios {
            lines.push([
                &result.policy,
                "folio",
                &first.to_string(),
                &order.to_string(),
                &size_name(PAGE_SIZE << order),
                &Order(*order).pages().to_string(),
            ]);
        }
    }
    lines.finish()
}
