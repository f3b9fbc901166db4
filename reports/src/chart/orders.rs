//! Folios by order: how many on a logarithmic axis, and their share of the pages.

use analysis::result::{PolicyResult, ReplayReport};
use traces::units::PAGE_SIZE;

use super::axis::{Scale, short_count, whole_percent};
use super::bars::{Bar, Bars, Row};
use super::frame::{figure, single};
use crate::figures::{orders_shown, pages_by_order};
use crate::number::{count, percent, size_name};

/// One document with both panels side by side, and a caption.
pub fn orders(report: &ReplayReport) -> String {
    figure(report, "orders", &description(report), &[&counts(report), &shares(report)])
}

/// The panels as documents of their own, for pages that set them side by side or below each other.
pub(crate) fn panels(report: &ReplayReport) -> [String; 2] {
    let description = description(report);
    [
        single(report, "orders-count", &description, &counts(report)),
        single(report, "orders-share", &description, &shares(report)),
    ]
}

fn counts(report: &ReplayReport) -> Bars {
    let all = report.results.iter().flat_map(|result| &result.folios.by_order);
    let bar = |result: &PolicyResult, order| {
        let folios = result.folios.of(order);
        Bar { value: folios as f64, label: count(folios) }
    };
    Bars {
        title: "Folios by order",
        axis_title: "folios inserted, logarithmic",
        scale: Scale::counts(all.copied().max().unwrap_or(0)),
        tick: short_count,
        rows: rows(report, bar),
    }
}

fn shares(report: &ReplayReport) -> Bars {
    let bar = |result: &PolicyResult, order: usize| {
        let pages = pages_by_order(&result.folios);
        let all_pages = pages.iter().sum::<u64>().max(1);
        let value = pages.get(order).copied().unwrap_or(0) as f64 / all_pages as f64;
        Bar { value, label: percent(value) }
    };
    Bars {
        title: "Pages by folio order",
        axis_title: "share of the pages inserted",
        scale: Scale::Share,
        tick: whole_percent,
        rows: rows(report, bar),
    }
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
