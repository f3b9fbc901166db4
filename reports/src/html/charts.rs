//! Charts of the page, each with its figures as a table below.

use std::collections::BTreeSet;

use analysis::result::{PolicyResult, ReplayReport};
use maud::{Markup, PreEscaped, html};

use crate::chart;
use crate::figures::{SizeBucket, SizeBuckets, orders_shown, pages_by_order, size_buckets};
use crate::number::{Unit, count, percent, size_name};

/// Shares of the reads whose wait the table shows.
const WAIT_PERCENTS: [usize; 7] = [25, 50, 75, 90, 95, 99, 100];

/// A chart and its table.
struct Section<'a> {
    id: &'static str,
    title: &'static str,
    charts: Vec<String>,
    caption: Markup,
    table: Table<'a>,
}

/// A table with some columns for each policy.
struct Table<'a> {
    report: &'a ReplayReport,
    caption: &'static str,
    /// What the rows are.
    head: &'static str,
    /// Columns of each policy.
    columns: &'static [&'static str],
    rows: Vec<TableRow>,
}

struct TableRow {
    name: String,
    total: bool,
    /// Columns of the first policy, then those of the next.
    cells: Vec<String>,
}

impl Section<'_> {
    fn markup(&self) -> Markup {
        html! {
            section aria-labelledby=(self.id) {
                h2 id=(self.id) { (self.title) }
                figure {
                    div.charts { @for chart in &self.charts { (PreEscaped(chart)) } }
                    figcaption { (self.caption) }
                }
                div.scroll tabindex="0" role="region" aria-label={ (self.title) ", as a table" } {
                    (self.table.markup())
                }
            }
        }
    }
}

impl Table<'_> {
    fn markup(&self) -> Markup {
        let several = self.columns.len() > 1;
        html! {
            table {
                caption { (self.caption) }
                thead {
                    tr {
                        th scope="col" rowspan=[several.then_some("2")] { (self.head) }
                        @for result in &self.report.results {
                            th.policy scope="colgroup" colspan=(self.columns.len()) { (result.policy) }
                        }
                    }
                    @if several {
                        tr {
                            @for _ in &self.report.results {
                                @for column in self.columns { th scope="col" { (column) } }
                            }
                        }
                    }
                }
                tbody { @for row in &self.rows { (row.markup()) } }
            }
        }
    }
}

impl TableRow {
    fn markup(&self) -> Markup {
        html! {
            tr.total[self.total] {
                th scope="row" { (self.name) }
                @for cell in &self.cells { td { (cell) } }
            }
        }
    }
}

/// Folios by order.
pub(super) fn orders(report: &ReplayReport) -> Markup {
    let cells = |result: &PolicyResult, order: usize| {
        let pages = pages_by_order(&result.folios);
        let of_order = pages.get(order).copied().unwrap_or(0);
        let share = of_order as f64 / pages.iter().sum::<u64>().max(1) as f64;
        [count(result.folios.of(order)), percent(share)]
    };
    let row = |order: usize| TableRow {
        name: order.to_string(),
        total: false,
        cells: report.results.iter().flat_map(|result| cells(result, order)).collect(),
    };
    let mut rows: Vec<TableRow> = (0..orders_shown(report)).map(row).collect();
    let totals = report.results.iter().map(|result| result.folios.total);
    let totals = totals.flat_map(|total| [count(total), "100%".to_owned()]);
    rows.push(TableRow { name: "All".to_owned(), total: true, cells: totals.collect() });
    let caption = "Folios inserted, and share of the pages in them";
    let section = Section {
        id: "orders",
        title: "Folios by order",
        charts: chart::order_panels(report).into(),
        caption: html! {
            "A folio of order n holds 2" sup { "n" } " pages of 4 KiB. First: how many were inserted. "
            "Second: how the pages inserted are spread over the orders."
        },
        table: Table { report, caption, head: "Order", columns: &["folios", "pages"], rows },
    };
    section.markup()
}

/// How long reads wait.
pub(super) fn waits(report: &ReplayReport) -> Markup {
    let wait = |result: &PolicyResult, percent: usize| {
        let ns = result.read_wait_quantiles_ns.get(percent);
        ns.map_or("-".to_owned(), |ns| Unit::Nanoseconds.show(*ns))
    };
    let row = |percent: usize| TableRow {
        name: format!("{percent}%"),
        total: false,
        cells: report.results.iter().map(|result| wait(result, percent)).collect(),
    };
    let section = Section {
        id: "waits",
        title: "Read wait",
        charts: vec![chart::wait_panel(report)],
        caption: html! {
            "For each wait, the share of the reads that waited no longer: a curve further to the left "
            "is better. Reads that found their data begin at the left edge. Time is modelled."
        },
        table: Table {
            report,
            caption: "Longest wait of that share of the reads",
            head: "Reads",
            columns: &["wait"],
            rows: WAIT_PERCENTS.into_iter().map(row).collect(),
        },
    };
    section.markup()
}

/// Device reads by size.
pub(super) fn sizes(report: &ReplayReport) -> Markup {
    let by_policy: Vec<SizeBuckets> =
        report.results.iter().map(|result| size_buckets(&result.request_sizes)).collect();
    let all: BTreeSet<u64> = by_policy.iter().flat_map(|buckets| buckets.keys().copied()).collect();
    let cells = |buckets: &SizeBuckets, size: u64| {
        let bucket = buckets.get(&size).copied().unwrap_or_default();
        let bytes: u64 = buckets.values().map(|bucket: &SizeBucket| bucket.bytes).sum();
        [count(bucket.requests), percent(bucket.bytes as f64 / bytes.max(1) as f64)]
    };
    let row = |size: u64| TableRow {
        name: format!("to {}", size_name(size)),
        total: false,
        cells: by_policy.iter().flat_map(|buckets| cells(buckets, size)).collect(),
    };
    let section = Section {
        id: "sizes",
        title: "Device reads by size",
        charts: chart::size_panels(report).into(),
        caption: html! {
            "Requests as the device gets them, after splits and merges, summed up by powers of two."
        },
        table: Table {
            report,
            caption: "Requests, and share of the bytes they read",
            head: "Size",
            columns: &["requests", "bytes"],
            rows: all.into_iter().map(row).collect(),
        },
    };
    section.markup()
}
