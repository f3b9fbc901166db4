//! `inspect` over results of a list.

use analysis::fleet::FleetReport;

use super::{BAD, BOLD, Style};
use crate::fleet::{Table, distributions, groups, left_out, overview};
use crate::grid::{Cell, Grid};

/// A fleet by host, kernel or workload.
pub fn fleet(report: &FleetReport, style: &Style) -> String {
    let style = *style;
    let mut out = style.paint(&report.results, BOLD) + "\n";
    for (label, text) in overview(report) {
        out += &style.labelled(label, &text);
    }
    for tally in &report.policies {
        out.push('\n');
        out += &style.paint(&tally.policy, BOLD);
        out.push('\n');
        out += &grid(&groups(report, tally), style);
        if let Some(more) = left_out(report) {
            out += &format!("  {more}\n");
        }
        if let Some(table) = distributions(tally) {
            out.push('\n');
            out += &grid(&table, style);
        }
    }
    if !report.failed.is_empty() {
        out.push('\n');
    }
    for failed in &report.failed {
        let line = style.labelled(&failed.kind, &format!("{}: {}", failed.source, failed.reason));
        out += &style.paint(line.trim_end_matches('\n'), BAD);
        out.push('\n');
    }
    out
}

fn grid(table: &Table, style: Style) -> String {
    let mut grid = Grid::new(&format!("l{}", "r".repeat(table.heads.len() - 1)));
    let indented = |(at, text): (usize, &String)| match at {
        0 => format!("  {text}"),
        _ => text.clone(),
    };
    let heads = table.heads.iter().enumerate();
    grid.push(heads.map(|head| Cell::painted(indented(head), BOLD)).collect());
    for row in &table.rows {
        grid.push(row.iter().enumerate().map(|cell| Cell::from(indented(cell))).collect());
    }
    grid.render(style.colour)
}
