//! `replay` and `compare`: one column per policy.

use analysis::result::ReplayReport;
use analysis::verify::CaptureVerify;
use traces::settings::Origin;

use super::{BAD, BOLD, CARE, DIM, GOOD, PLAIN, Style, losses, of_trend};
use crate::figures::{Row, Section, sections};
use crate::grid::{Cell, Grid};
use crate::number::signed_percent;
use crate::words::{self, Outcome};

/// A source under one or more policies.
pub fn replay(report: &ReplayReport, style: &Style) -> String {
    let style = *style;
    let mut out = style.paint(&report.source, BOLD) + "\n";
    out += &style.labelled("streams", &words::streams(report.fidelity, &report.streams));
    out += &settings(report, style);
    out += &style.labelled("model", &words::device(&report.device));
    out += &losses(&report.losses, style);
    out.push('\n');
    out += &table(report, style);
    out.push('\n');
    out += &notes(report, style);
    match &report.verify {
        Some(verify) => out += &verify_lines(verify, style),
        None => out += &(style.paint(words::NOT_VERIFIED, CARE) + "\n"),
    }
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

/// Settings by origin, so that what was assumed stands out.
fn settings(report: &ReplayReport, style: Style) -> String {
    let all = report.settings.iter().map(words::setting).collect::<Vec<_>>().join(", ");
    let text = style.labelled("settings", &all);
    if style.colour {
        let assumed = format!("({})", Origin::Assumed);
        return text.replace(&assumed, &style.paint(&assumed, CARE));
    }
    text
}

/// The table with policy names above its columns, or letters where names do not fit.
fn table(report: &ReplayReport, style: Style) -> String {
    let sections = sections(report);
    let names: Vec<&str> = report.results.iter().map(|result| result.policy.as_str()).collect();
    let stacked: Vec<Vec<String>> = names.iter().map(|name| stack(name)).collect();
    let named = grid(&sections, &stacked);
    if named.width() <= style.width {
        return named.render(style.colour);
    }
    let letters: Vec<String> = (0..names.len()).map(letter).collect();
    let mut out = String::new();
    for (letter, name) in letters.iter().zip(&names) {
        out.extend(["  ", &style.paint(letter, BOLD), "  ", name, "\n"]);
    }
    out.push('\n');
    let heads: Vec<Vec<String>> = letters.into_iter().map(|letter| vec![letter]).collect();
    out + &grid(&sections, &heads).render(style.colour)
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

fn grid(sections: &[Section], heads: &[Vec<String>]) -> Grid {
    let with_change = heads.len() == 2;
    let mut grid =
        Grid::new(&format!("l{}", "r".repeat(heads.len() + 2 * usize::from(with_change))));
    let depth = heads.iter().map(Vec::len).max().unwrap_or(0);
    for line in 0..depth {
        let mut cells = vec![Cell::default()];
        for head in heads {
            // Names stand on the table: short ones begin lower.
            let part = (line + head.len()).checked_sub(depth).map_or("", |at| &head[at]);
            cells.push(Cell::painted(part, BOLD));
        }
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
pub(super) fn verify_lines(verify: &CaptureVerify, style: Style) -> String {
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
