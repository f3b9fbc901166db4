//! `replay` and `compare`: one column per policy.

use analysis::result::ReplayReport;
use analysis::verify::CaptureVerify;

use super::{BAD, BOLD, CARE, DIM, GOOD, PLAIN, Style, losses, of_trend};
use crate::figures::{Row, Section, orders_shown, pages_by_order, sections};
use crate::grid::{Cell, Grid};
use crate::number::{percent, signed_percent};
use crate::words::{self, Outcome};

/// A source under one or more policies.
pub fn replay(report: &ReplayReport, style: &Style) -> String {
    let style = *style;
    let mut out = style.paint(&report.source, BOLD) + "\n";
    if !report.about.is_empty() {
        out += &style.labelled("about", &report.about);
    }
    out += &style.labelled("streams", &words::streams(report.fidelity, &report.streams));
    out += &style.settings(&report.settings);
    out += &style.labelled("model", &words::device(&report.device));
    out += &losses(&report.losses, style);
    out.push('\n');
    out += &table(report, style);
    out.push('\n');
    out += &notes(report, style);
    out += &checked(report.verify.as_ref(), style);
    out
}

/// What to know of policies that are kernel trees, each thing once.
fn notes(report: &ReplayReport, style: Style) -> String {
    let mut lines: Vec<String> = Vec::new();
    for result in &report.results {
        let notes = result.notes.iter().map(|note| style.labelled("note", note));
        let gaps = result.not_modelled.join("; ");
        let gaps = (!gaps.is_empty()).then(|| style.labelled("left out", &gaps));
        for line in notes.chain(gaps) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    if lines.is_empty() { String::new() } else { lines.concat() + "\n" }
}

/// How far the figures can be trusted.
pub(super) fn checked(verify: Option<&CaptureVerify>, style: Style) -> String {
    match verify {
        Some(verify) => verify_lines(verify, style),
        None => style.paint(words::NOT_VERIFIED, CARE) + "\n",
    }
}

/// The table and the histogram with policy names above their columns, or letters where names do not
/// fit.
fn table(report: &ReplayReport, style: Style) -> String {
    let sections = sections(report);
    let names: Vec<&str> = report.results.iter().map(|result| result.policy.as_str()).collect();
    let stacked: Vec<Vec<String>> = names.iter().map(|name| stack(name)).collect();
    let named = grid(&sections, &stacked);
    let mut out = String::new();
    if named.width() <= style.width {
        out += &named.render(style.colour);
        return out + &histogram(report, &stacked, style);
    }
    let letters: Vec<String> = (0..names.len()).map(letter).collect();
    for (letter, name) in letters.iter().zip(&names) {
        out.extend(["  ", &style.paint(letter, BOLD), "  ", name, "\n"]);
    }
    out.push('\n');
    let heads: Vec<Vec<String>> = letters.into_iter().map(|letter| vec![letter]).collect();
    out += &grid(&sections, &heads).render(style.colour);
    out + &histogram(report, &heads, style)
}

/// How the pages are spread over the orders, as bars side by side; nothing where there is no room.
fn histogram(report: &ReplayReport, heads: &[Vec<String>], style: Style) -> String {
    const BAR_MAX: usize = 30;
    const BAR_MIN: usize = 8;
    // A percentage, the gaps around it and the bar.
    let room = style.width.saturating_sub("  order 10".len()) / heads.len().max(1);
    let width = room.saturating_sub(2 + ">99.9%".len() + 1).min(BAR_MAX);
    if width < BAR_MIN {
        return String::new();
    }
    let mut grid = Grid::new(&format!("l{}", "rl".repeat(heads.len())));
    grid.push_across("");
    grid.push_across(Cell::painted("Pages by order of their folio", BOLD));
    for line in head_lines(heads) {
        let names = line.into_iter().flat_map(|name| [Cell::default(), name]);
        grid.push(std::iter::once(Cell::default()).chain(names).collect());
    }
    let pages: Vec<Vec<u64>> =
        report.results.iter().map(|result| pages_by_order(&result.folios)).collect();
    for order in 0..orders_shown(report) {
        let mut cells = vec![Cell::from(format!("  order {order}"))];
        for of_policy in &pages {
            let all = of_policy.iter().sum::<u64>().max(1);
            let own = of_policy.get(order).copied().unwrap_or(0);
            let ansi = if own == 0 { DIM } else { PLAIN };
            cells.push(Cell::painted(percent(own as f64 / all as f64), ansi));
            let bar = (own * width as u64).div_ceil(all) as usize;
            cells.push("#".repeat(bar).into());
        }
        grid.push(cells);
    }
    grid.render(style.colour)
}

/// A policy name in lines: a change goes below its base.
fn stack(name: &str) -> Vec<String> {
    let mut parts = name.split('+');
    let base = parts.next().unwrap_or_default().to_owned();
    std::iter::once(base).chain(parts.map(|part| format!("+{part}"))).collect()
}

/// A, B, ... Z, A1, B1, ...
fn letter(column: usize) -> String {
    let letter = char::from(b'A' + (column % 26) as u8);
    if column < 26 { letter.to_string() } else { format!("{letter}{}", column / 26) }
}

/// Names of the columns in lines. They stand on the table: short ones begin lower.
fn head_lines(heads: &[Vec<String>]) -> Vec<Vec<Cell>> {
    let depth = heads.iter().map(Vec::len).max().unwrap_or(0);
    let part = |head: &Vec<String>, line: usize| {
        let at = (line + head.len()).checked_sub(depth);
        Cell::painted(at.map_or("", |at| head[at].as_str()), BOLD)
    };
    (0..depth).map(|line| heads.iter().map(|head| part(head, line)).collect()).collect()
}

fn grid(sections: &[Section], heads: &[Vec<String>]) -> Grid {
    let with_change = heads.len() == 2;
    let mut grid =
        Grid::new(&format!("l{}", "r".repeat(heads.len() + 2 * usize::from(with_change))));
    let lines = head_lines(heads);
    let depth = lines.len();
    for (line, names) in lines.into_iter().enumerate() {
        let mut cells = vec![Cell::default()];
        cells.extend(names);
        if with_change {
            let label = if line + 1 == depth { "change" } else { "" };
            cells.extend([Cell::painted(label, BOLD), Cell::default()]);
        }
        grid.push(cells);
    }
    for section in sections {
        grid.push_across(Cell::painted(&section.title, BOLD));
        for row in &section.rows {
            grid.push(cells(row, with_change));
        }
    }
    grid
}

fn cells(row: &Row, with_change: bool) -> Vec<Cell> {
    let scale = row.scale();
    let mut cells = vec![format!("  {}", row.label).into()];
    cells.extend(row.values.iter().map(|value| match value {
        0 => Cell::painted(scale.show(0), DIM),
        value => scale.show(*value).into(),
    }));
    if with_change && let Some(change) = row.change() {
        let ansi = if change.before == change.after { DIM } else { of_trend(row.trend()) };
        let difference = scale.show_difference(change.before, change.after);
        let percent = match change.percent {
            Some(percent) if change.before != change.after => signed_percent(percent),
            _ => String::new(),
        };
        cells.push(Cell::painted(difference, ansi));
        cells.push(Cell::painted(percent, ansi));
    }
    cells
}

/// The verify line, and what stands behind it if it is not clean.
fn verify_lines(verify: &CaptureVerify, style: Style) -> String {
    let ansi = match Outcome::of(verify) {
        Outcome::Exact => GOOD,
        Outcome::OtherOrder => PLAIN,
        Outcome::Differs => BAD,
    };
    let mut out = style.paint(&words::verify(verify), ansi) + "\n";
    let details = [
        verify.first_difference.as_ref().map(words::difference),
        words::unrecorded_reads(verify),
        words::time_errors(verify),
    ];
    for detail in details.into_iter().flatten() {
        let options = textwrap::Options::new(style.width.max(40))
            .initial_indent("  ")
            .subsequent_indent("  ");
        out += &textwrap::fill(&detail, options.break_words(false));
        out.push('\n');
    }
    out
}
