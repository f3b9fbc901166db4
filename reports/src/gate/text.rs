//! For a terminal or the log of a CI job.

use std::fmt::Write as _;

use analysis::compare::{Check, Metric, Verdict};
use analysis::gate::{GateReport, SourceOutcome};
use anstyle::{AnsiColor, Style as Ansi};

use super::{
    allowed, change, change_points, counts, details, notable, order_changes, side, sides, value,
    worst, worst_first,
};
use crate::grid::{Cell, Grid, paint};
use crate::number::percent;
use crate::text::Style;

/// A gate: the verdict first, then every source, what is wrong before what is not.
pub fn text(report: &GateReport, style: &Style) -> String {
    let verdict = paint(report.verdict.name(), colour(report.verdict), style.colour);
    let mut out = format!("gate: {verdict}: {}\n  {}\n", sides(report), counts(report));
    if report.self_test {
        out += "  self-test: the candidate is the baseline with a regression planted\n";
    }
    if report.accepted {
        out += "  accepted: the candidate is the baseline from now on\n";
    }
    if let Some(found) = &report.worst {
        let _ = writeln!(out, "  worst: {}", worst(found));
    }
    for note in &report.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for point in change_points(report) {
        let _ = writeln!(out, "  history: {point}");
    }
    for source in worst_first(report) {
        out += &one_source(report, source, *style);
    }
    out
}

fn colour(verdict: Verdict) -> Ansi {
    match verdict {
        Verdict::Pass => Ansi::new(),
        Verdict::Improved => AnsiColor::Green.on_default(),
        Verdict::Changed | Verdict::Inconclusive => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Red.on_default(),
    }
}

fn one_source(report: &GateReport, source: &SourceOutcome, style: Style) -> String {
    let verdict = format!("{:18}", source.verdict.name());
    let verdict = paint(&verdict, colour(source.verdict), style.colour);
    let mut out = format!("{verdict}{}\n", source.source);
    if let Some(reason) = &source.reason {
        let _ = writeln!(out, "  {reason}");
    }
    out += &checks(notable(report, &source.source), style);
    if source.verdict != Verdict::Pass
        && let Some(orders) = order_changes(source)
    {
        let _ = writeln!(out, "    {orders}");
    }
    for reason in &source.why {
        let _ = writeln!(out, "    {reason}");
    }
    out
}

/// Folios by order of every source on both sides, with their shares of the bytes.
pub fn orders(report: &GateReport, style: &Style) -> String {
    let mut out = String::new();
    for source in report.sources.iter().filter(|source| !source.orders.by_order.is_empty()) {
        let mut grid = Grid::new("lrrrr");
        let head = ["  order", "baseline", "candidate", "of bytes", "of bytes"];
        grid.push(head.map(Cell::from).into());
        for row in &source.orders.by_order {
            let folios = [row.baseline, row.candidate].map(|folios| value(Metric::Folios, folios));
            let shares = [row.baseline_share, row.candidate_share].map(percent);
            let cells = [format!("  {}", row.order)].into_iter().chain(folios).chain(shares);
            grid.push(cells.map(Cell::from).collect());
        }
        let _ = writeln!(out, "\nFolios of {} by order", source.source);
        out += &grid.render(style.colour);
    }
    out
}

fn checks<'a>(checks: impl Iterator<Item = &'a Check>, style: Style) -> String {
    let mut grid = Grid::new("lrrrll");
    let head = ["  metric", "baseline", "candidate", "change", "allowed", "verdict"];
    grid.push(head.map(Cell::from).into());
    let mut is_empty = true;
    for check in checks {
        is_empty = false;
        grid.push(vec![
            format!("  {}", check.metric).into(),
            side(check.metric, check.baseline).into(),
            side(check.metric, check.candidate).into(),
            change(check).into(),
            allowed(check).into(),
            Cell::painted(check.verdict.name(), colour(check.verdict)),
        ]);
        for detail in details(check) {
            grid.push_across(format!("    {detail}"));
        }
    }
    if is_empty { String::new() } else { grid.render(style.colour) }
}
