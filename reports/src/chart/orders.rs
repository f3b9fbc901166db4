//! Folios by order: how many on a logarithmic axis, and their share of the pages.

use analysis::result::{PolicyResult, ReplayReport};
use traces::units::PAGE_SIZE;

use super::axis::{Scale, short_count, short_percent};
use super::bars::{Bar, Bars, Row};
use super::figure::{Figure, caption, policies};
use super::legend::{Legend, Mark};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::figures::{orders_shown, pages_by_order};
use crate::number::{count, percent, size_name};

/// The chart.
pub(super) fn figure(report: &ReplayReport) -> Figure {
    Figure {
        id: "orders",
        title: "Folios by order",
        reading: "A folio of order n holds 2\u{207f} pages of 4 KiB. Left: how many were inserted. \
                  Right: how the pages inserted are spread over the orders; longer bars further \
                  down are better.",
        description: description(report),
        caption: caption(report),
        legend: Legend::Series(Mark::Bar, policies(report)),
        panels: vec![Box::new(counts(report)), Box::new(shares(report))],
        table: table(report),
        csv: csv(report),
    }
}

fn counts(report: &ReplayReport) -> Bars {
    let all = report.results.iter().flat_map(|result| &result.folios.by_order);
    let bar = |result: &PolicyResult, order| {
        let folios = result.folios.of(order);
        Bar { value: folios as f64, label: count(folios) }
    };
    Bars {
        title: "Number of folios",
        axis_title: "folios inserted, logarithmic",
        scale: Scale::counts(all.copied().max().unwrap_or(0)),
        tick: short_count,
        rows: rows(report, bar),
    }
}

fn shares(report: &ReplayReport) -> Bars {
    let bar = |result: &PolicyResult, order: usize| {
        let value = share_of_pages(result, order);
        Bar { value, label: percent(value) }
    };
    Bars {
        title: "Share of the pages",
        axis_title: "share of the pages inserted",
        scale: Scale::Share,
        tick: short_percent,
        rows: rows(report, bar),
    }
}

fn share_of_pages(result: &PolicyResult, order: usize) -> f64 {
    let pages = pages_by_order(&result.folios);
    let all_pages = pages.iter().sum::<u64>().max(1);
    pages.get(order).copied().unwrap_or(0) as f64 / all_pages as f64
}

fn rows(report: &ReplayReport, bar: impl Fn(&PolicyResult, usize) -> Bar) -> Vec<Row> {
    let row = |order| Row {
        name: format!("order {order}"),
        detail: size_name(PAGE_SIZE << order),
        bars: report.results.iter().map(|result| bar(result, order)).collect(),
    };
    (0..orders_shown(report)).map(row).collect()
}

/// The figures in words.
fn description(report: &ReplayReport) -> String {
    let describe = |result: &PolicyResult| {
        let orders = result.folios.by_order.iter().enumerate().filter(|(_, n)| **n > 0);
        let orders: Vec<_> = orders.map(|(order, n)| format!("order {order}: {n}")).collect();
        format!("{}: {} folios ({}).", result.policy, result.folios.total, orders.join(", "))
    };
    report.results.iter().map(describe).collect::<Vec<_>>().join(" ")
}

fn table(report: &ReplayReport) -> Table {
    let cells = |result: &PolicyResult, order: usize| {
        [count(result.folios.of(order)), percent(share_of_pages(result, order))]
    };
    let row = |order: usize| {
        let cells = report.results.iter().flat_map(|result| cells(result, order)).collect();
        TableRow::new(order.to_string(), cells)
    };
    let mut rows: Vec<TableRow> = (0..orders_shown(report)).map(row).collect();
    let totals = report.results.iter().map(|result| result.folios.total);
    let totals = totals.flat_map(|total| [count(total), "100%".to_owned()]);
    rows.push(TableRow { name: "All".to_owned(), total: true, cells: totals.collect() });
    Table {
        caption: "Folios inserted, and share of the pages in them".to_owned(),
        head: "Order",
        groups: policies(report),
        columns: vec!["folios", "pages"],
        rows,
    }
}

/// `policy,order,folios,pages,share_of_pages`.
fn csv(report: &ReplayReport) -> String {
    let mut lines = Lines::new(["policy", "order", "folios", "pages", "share_of_pages"]);
    for result in &report.results {
        for (order, pages) in pages_by_order(&result.folios).into_iter().enumerate() {
            lines.push([
                &result.policy,
                &order.to_string(),
                &result.folios.of(order).to_string(),
                &pages.to_string(),
                &format!("{:.6}", share_of_pages(result, order)),
            ]);
        }
    }
    lines.finish()
}
