//! `sweep`: a table per policy, the value to take, and why.

use analysis::sweep::{Doubt, SweepReport};

use super::{BOLD, CARE, DIM, GOOD, Style, losses};
use crate::grid::{Cell, Grid};
use crate::sweep::{Column, advice_of, columns, remarks};
use crate::words;

/// A source over a range of settings.
pub fn sweep(report: &SweepReport, style: &Style) -> String {
    let style = *style;
    let mut out = style.paint(&report.source, BOLD) + "\n";
    out += &style.labelled("streams", &words::streams(report.fidelity, &report.streams));
    out += &style.settings(&report.settings);
    if let Some(device) = &report.device {
        out += &style.labelled("model", &words::device(device));
    }
    out += &losses(&report.losses, style);
    for policy in 0..report.policies.len() {
        out.push('\n');
        out += &style.paint(&report.policies[policy], BOLD);
        out.push('\n');
        out += &table(report, policy, style);
        out += &answers(report, policy, style);
    }
    if !report.doubts.is_empty() {
        out.push('\n');
        out += &doubts(&report.doubts, style);
    }
    out.push('\n');
    out += &super::checked(report.verify.as_ref(), style);
    out
}

/// The table, without the columns that a mail leaves out where the terminal is narrow.
fn table(report: &SweepReport, policy: usize, style: Style) -> String {
    let columns = columns(report, policy);
    let all: Vec<&Column> = columns.iter().collect();
    let wide = grid(report, policy, &all);
    if wide.width() <= style.width {
        return wide.render(style.colour);
    }
    let fewer: Vec<&Column> = columns.iter().filter(|column| column.in_mail).collect();
    grid(report, policy, &fewer).render(style.colour)
}

fn grid(report: &SweepReport, policy: usize, columns: &[&Column]) -> Grid {
    let mut grid = Grid::new(&format!("l{}l", "r".repeat(columns.len())));
    let heads = columns.iter().map(|column| Cell::painted(&column.head, BOLD));
    grid.push(std::iter::once("".into()).chain(heads).chain(["".into()]).collect());
    for place in 0..report.points.len() {
        let remark = remarks(report, policy, place);
        let ansi = if remark.contains("recommended") { GOOD } else { super::PLAIN };
        let mut cells = vec![Cell::default()];
        cells.extend(columns.iter().map(|column| Cell::painted(&column.cells[place], ansi)));
        cells.push(Cell::painted(remark, if ansi == GOOD { GOOD } else { DIM }));
        grid.push(cells);
    }
    grid
}

fn answers(report: &SweepReport, policy: usize, style: Style) -> String {
    let mut out = String::new();
    for advice in advice_of(report, policy) {
        let label = if advice.point.is_some() { "take" } else { "finds" };
        out += &style.labelled(label, &advice.reason.join(" "));
        out += &doubts(&advice.doubts, style);
    }
    out
}

fn doubts(doubts: &[Doubt], style: Style) -> String {
    let mut out = String::new();
    for doubt in doubts {
        let line = style.labelled("note", &doubt.text);
        out += &style.paint(line.trim_end_matches('\n'), CARE);
        out.push('\n');
    }
    out
}
