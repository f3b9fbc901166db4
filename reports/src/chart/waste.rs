//! What readahead put into the page cache in vain.

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, short_bytes, short_percent};
use super::bars::{Bar, Bars, Row};
use super::figure::{Figure, caption, policies};
use super::legend::{Legend, Mark};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{Unit, count, percent};
use traces::units::PAGE_SIZE;

/// The chart.
pub(super) fn figure(report: &ReplayReport) -> Figure {
    Figure {
        id: "waste",
        title: "Readahead in vain",
        reading: "Left: pages that were put into the page cache and that the program used, or \
                  never did. Right: the share of the pages that was never used; shorter is better.",
        description: description(report),
        caption: caption(report),
        legend: Legend::Series(Mark::Bar, policies(report)),
        panels: vec![Box::new(sizes(report)), Box::new(shares(report))],
        table: table(report),
        csv: csv(report),
    }
}

fn used(result: &PolicyResult) -> u64 {
    result.pages.inserted.saturating_sub(result.pages.unused)
}

fn unused_share(result: &PolicyResult) -> f64 {
    result.pages.unused as f64 / result.pages.inserted.max(1) as f64
}

fn sizes(report: &ReplayReport) -> Bars {
    let largest = report.results.iter().map(|result| result.pages.inserted).max().unwrap_or(0);
    let row = |name: &str, pages: fn(&PolicyResult) -> u64| {
        let bar = |result| {
            let bytes = pages(result) * PAGE_SIZE;
            Bar { value: bytes as f64, label: Unit::Bytes.show(bytes) }
        };
        let bars = report.results.iter().map(bar).collect();
        Row { name: name.to_owned(), detail: String::new(), bars }
    };
    Bars {
        title: "Pages by use",
        axis_title: "bytes put into the page cache",
        scale: Scale::binary(0, largest.max(1) * PAGE_SIZE, 4),
        tick: short_bytes,
        rows: vec![row("used", used), row("never used", |result| result.pages.unused)],
    }
}

fn shares(report: &ReplayReport) -> Bars {
    let bar = |result| {
        let value = unused_share(result);
        Bar { value, label: percent(value) }
    };
    let row = Row {
        name: "never used".to_owned(),
        detail: String::new(),
        bars: report.results.iter().map(bar).collect(),
    };
    Bars {
        title: "Share in vain",
        axis_title: "share of the pages inserted",
        scale: Scale::Share,
        tick: short_percent,
        rows: vec![row],
    }
}

fn description(report: &ReplayReport) -> String {
    let describe = |result: &PolicyResult| {
        format!(
            "{}: {} of {} pages inserted were never used ({}).",
            result.policy,
            count(result.pages.unused),
            count(result.pages.inserted),
            percent(unused_share(result))
        )
    };
    report.results.iter().map(describe).collect::<Vec<_>>().join(" ")
}

fn table(report: &ReplayReport) -> Table {
    let row = |name: &str, pages: fn(&PolicyResult) -> u64| {
        let cells = report.results.iter().map(|result| count(pages(result))).collect();
        TableRow::new(name, cells)
    };
    let mut rows = vec![row("used", used), row("never used", |result| result.pages.unused)];
    let totals = report.results.iter().map(|result| count(result.pages.inserted)).collect();
    rows.push(TableRow { name: "All".to_owned(), total: true, cells: totals });
    Table {
        caption: "Pages inserted, by what became of them".to_owned(),
        head: "Pages",
        groups: policies(report),
        columns: vec!["pages"],
        rows,
    }
}

fn csv(report: &ReplayReport) -> String {
    let mut lines = Lines::new(["policy", "pages_inserted", "pages_read", "pages_unused"]);
    for result in &report.results {
        let pages = &result.pages;
        let [inserted, read, unused] =
            [pages.inserted, pages.read, pages.unused].map(|pages| pages.to_string());
        lines.push([&result.policy, &inserted, &read, &unused]);
    }
    lines.finish()
}
