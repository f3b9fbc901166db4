//! Plain text of 72 columns, for what two sides recorded.

use analysis::compare::{Check, Metric, Unit};
use analysis::gate::{GateReport, SourceOutcome};

use super::{change, counts, details, side, value};
use crate::grid::Grid;
use crate::mail::fill;
use crate::number::signed_percent;

/// Both sides: a table for each source, and what is to be known of its figures.
pub fn mail(report: &GateReport) -> String {
    let text = format!("Before is {}, after is {}.", report.baseline, report.candidate);
    let mut out = fill(&text, "", "");
    if report.sources.len() > 1 {
        out += &fill(&format!("{}.", counts(report)), "", "");
    }
    out.extend(report.notes.iter().map(|note| fill(note, "Note: ", "  ")));
    for source in &report.sources {
        out.push('\n');
        out += &one_source(report, source);
    }
    out
}

fn one_source(report: &GateReport, source: &SourceOutcome) -> String {
    let mut out = fill(&format!("{}:", source.source), "", "");
    if let Some(reason) = &source.reason {
        out += &fill(&format!("{}: {reason}", source.verdict.name()), "  ", "  ");
    }
    let checks: Vec<&Check> = report.checks_of(&source.source).collect();
    if !checks.is_empty() {
        out += &table(source, &checks);
    }
    for check in checks {
        for detail in details(check) {
            out += &fill(&format!("{}: {detail}", check.metric.label()), "  ", "    ");
        }
    }
    // A refusal for them has said so.
    let sides = [("before", &source.losses.baseline), ("after", &source.losses.candidate)];
    for (side, lost) in sides.into_iter().filter(|_| source.reason.is_none()) {
        for (kind, loss) in &lost.0 {
            let (what, count, first) = (kind.describe(), loss.count, &loss.first);
            out += &fill(&format!("loss {side}: {what}: {count} (first: {first})"), "  ", "    ");
        }
    }
    out
}

fn table(source: &SourceOutcome, checks: &[&Check]) -> String {
    let mut grid = Grid::new("lrrr");
    grid.push(["", "before", "after", "change"].map(Into::into).into());
    let mut row = |cells: [String; 4]| grid.push(cells.map(Into::into).into());
    for order in &source.orders.by_order {
        let percent = (order.candidate - order.baseline) / order.baseline * 100.0;
        let shown = [order.baseline, order.candidate].map(|n| value(Metric::Folios, n));
        let [before, after] = shown.map(|shown| plain(&shown));
        let is_known = percent.is_finite() && percent != 0.0;
        let change = if is_known { signed_percent(percent) } else { String::new() };
        row([format!("  folios of order {}", order.order), before, after, change]);
    }
    for check in checks {
        let counted = check.metric.unit() == Unit::Count;
        let cell = |figure| {
            let shown = side(check.metric, figure);
            if counted { plain(&shown) } else { shown }
        };
        let change = match change(check) {
            same if same == "0" => String::new(),
            change => change.replace(" %", "%"),
        };
        let name = format!("  {}", check.metric.label());
        row([name, cell(check.baseline), cell(check.candidate), change]);
    }
    grid.render(false)
}

/// Counts stay plain digits: changelogs are searched for them.
fn plain(shown: &str) -> String {
    shown.replace(',', "")
}
