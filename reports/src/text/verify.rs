//! `verify`: one line per capture, differences below.

use analysis::verify::{CaptureVerify, Matched};

use super::{BAD, BOLD, GOOD, PLAIN, Style};
use crate::grid::{Cell, Grid};
use crate::number::{count, counted};
use crate::words::{self, Outcome};

/// Captures held against a replay.
pub fn verify(captures: &[CaptureVerify], style: &Style) -> String {
    let style = *style;
    let wide = full_table(captures);
    let table = if wide.width() <= style.width { wide } else { compact_table(captures) };
    let mut out = table.render(style.colour);
    out.push('\n');
    out += &times(captures, style);
    out += &differences(captures, style);
    out += &summary(captures, style);
    out
}

fn outcome_cell(verify: &CaptureVerify) -> Cell {
    let outcome = Outcome::of(verify);
    let ansi = match outcome {
        Outcome::Exact => GOOD,
        Outcome::OtherOrder => PLAIN,
        Outcome::Differs => BAD,
    };
    Cell::painted(outcome.words(), ansi)
}

fn names(verify: &CaptureVerify) -> [Cell; 3] {
    let capture = words::file_name(&verify.source);
    [capture.into(), verify.policy.as_str().into(), words::fidelity(verify.stream).into()]
}

fn bold(text: &str) -> Cell {
    Cell::painted(text, BOLD)
}

fn full_table(captures: &[CaptureVerify]) -> Grid {
    let mut grid = Grid::new("lllrrrrrrl");
    let none = Cell::default;
    let over = [none(), none(), none(), bold("folios"), none(), none(), bold("reads")];
    grid.push(over.into_iter().chain([none(), none(), none()]).collect());
    let heads = ["capture", "policy", "stream", "recorded", "replayed", "matched"];
    let heads = heads.into_iter().chain(["recorded", "replayed", "matched", "result"]);
    grid.push(heads.map(bold).collect());
    for verify in captures {
        let mut cells = Vec::from(names(verify));
        for matched in [&verify.folios, &verify.device_reads] {
            let counts = [matched.recorded, matched.replayed, matched.matched];
            let none = matched.recorded == 0;
            cells.extend(counts.map(|n| if none { "-".into() } else { Cell::from(count(n)) }));
        }
        cells.push(outcome_cell(verify));
        grid.push(cells);
    }
    grid
}

/// Matched of recorded, and the replayed count only where it is another one.
fn compact(matched: &Matched) -> String {
    if matched.recorded == 0 {
        return "none recorded".to_owned();
    }
    let share = format!("{}/{}", count(matched.matched), count(matched.recorded));
    if matched.replayed == matched.recorded {
        share
    } else {
        format!("{share} ({} replayed)", count(matched.replayed))
    }
}

fn compact_table(captures: &[CaptureVerify]) -> Grid {
    let mut grid = Grid::new("lllrrl");
    let heads = ["capture", "policy", "stream", "folios matched", "reads matched", "result"];
    grid.push(heads.map(bold).into());
    for verify in captures {
        let mut cells = Vec::from(names(verify));
        cells.push(compact(&verify.folios).into());
        cells.push(compact(&verify.device_reads).into());
        cells.push(outcome_cell(verify));
        grid.push(cells);
    }
    grid
}

/// Recorded against predicted time, or only the errors where the table would be too wide.
fn times(captures: &[CaptureVerify], style: Style) -> String {
    let timed = || captures.iter().filter(|verify| verify.timing.elapsed.is_known());
    if timed().next().is_none() {
        return String::new();
    }
    let grid = |shown: &dyn Fn(usize) -> bool| {
        let heads = words::TIME_HEADS.iter().enumerate().filter(|(at, _)| shown(*at));
        let heads: Vec<Cell> = heads.map(|(_, head)| bold(head)).collect();
        let mut grid = Grid::new(&format!("l{}", "r".repeat(heads.len() - 1)));
        grid.push(heads);
        for verify in timed() {
            let name = words::file_name(&verify.source).to_owned();
            let cells = std::iter::once(name).chain(words::time_cells(&verify.timing));
            let cells = cells.enumerate().filter(|(at, _)| shown(*at));
            grid.push(cells.map(|(_, cell)| cell.into()).collect());
        }
        grid
    };
    let wide = grid(&|_| true);
    // Without the predicted times, which follow from the others.
    let narrow = || grid(&|at| at == 0 || (at - 1) % 3 != 1);
    let table = if wide.width() <= style.width { wide } else { narrow() };
    let mut out = table.render(style.colour);
    for verify in timed().filter(|verify| verify.timing.extrapolated > 0) {
        let reads = counted(verify.timing.extrapolated, "device read", "device reads");
        let name = words::file_name(&verify.source);
        out += &format!("{name}: {reads} beyond what the model was fitted to\n");
    }
    out.push('\n');
    out
}

fn differences(captures: &[CaptureVerify], style: Style) -> String {
    let mut out = String::new();
    for verify in captures {
        let difference = verify.first_difference.as_ref().map(words::difference);
        for detail in [difference, words::unrecorded_reads(verify)].into_iter().flatten() {
            let text = format!("{}: {detail}", words::file_name(&verify.source));
            let options = textwrap::Options::new(style.width.max(40))
                .subsequent_indent("  ")
                .break_words(false)
                .word_splitter(textwrap::WordSplitter::NoHyphenation);
            out += &textwrap::fill(&text, options);
            out.push('\n');
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

fn summary(captures: &[CaptureVerify], style: Style) -> String {
    let of = |outcome| captures.iter().filter(|verify| Outcome::of(verify) == outcome).count();
    let total = counted(captures.len() as u64, "capture", "captures");
    let mut parts = vec![format!("{total}: {} exact", of(Outcome::Exact))];
    for outcome in [Outcome::OtherOrder, Outcome::Differs] {
        let captures = of(outcome);
        if captures > 0 {
            let verb = if outcome == Outcome::Differs && captures > 1 {
                "differ"
            } else {
                outcome.words()
            };
            parts.push(format!("{captures} {verb}"));
        }
    }
    let ansi = if of(Outcome::Differs) > 0 { BAD } else { GOOD };
    style.paint(&parts.join(", "), ansi) + "\n"
}
