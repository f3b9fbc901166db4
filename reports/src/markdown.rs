//! Markdown tables for trackers and merge requests.

use analysis::calibrate::FitReport;
use analysis::explain::Explanation;
use analysis::fleet::FleetReport;
use analysis::inspect::InspectReport;
use analysis::result::ReplayReport;
use analysis::sweep::SweepReport;
use analysis::verify::CaptureVerify;

use crate::causes;
use crate::figures::{Row, sections};
use crate::fleet::{Table, distributions, groups, left_out, overview};
use crate::number::{Unit, count, percent, signed_percent, size_name};
use crate::sweep::{advice_of, columns, remarks};
use crate::text::Style;
use crate::words::{self, Outcome};

/// A source under one or more policies.
pub fn replay(report: &ReplayReport) -> String {
    let mut out = format!("### {}\n\n", escape(words::file_name(&report.source)));
    if let Some(headline) = words::headline(report) {
        out += &paragraph(&headline);
    }
    out += &figures(report);
    out.push('\n');
    let settings = words::settings(&report.settings);
    out += &item("Streams", &words::streams(report.fidelity, &report.streams));
    out += &item("Settings", &settings);
    out += &item("Model", &words::device(&report.device));
    for (kind, loss) in &report.losses.0 {
        let text = format!("{}: {} (first: {})", kind.describe(), loss.count, loss.first);
        out += &item("Loss", &text);
    }
    let verify = report.verify.as_ref();
    out += &item("Check", &verify.map_or(words::NOT_VERIFIED.to_owned(), words::verify));
    if let Some(errors) = verify.and_then(words::time_errors) {
        out += &item("Time", &errors);
    }
    if let Some(difference) = verify.and_then(|verify| verify.first_difference.as_ref()) {
        out += &item("Difference", &words::difference(difference));
    }
    out
}

fn figures(report: &ReplayReport) -> String {
    let with_change = report.results.len() == 2;
    let names = report.results.iter().map(|result| escape(&result.policy));
    let mut heads = vec![String::new()];
    heads.extend(names);
    heads.extend(with_change.then(|| "change".to_owned()));
    let mut out = line(&heads) + &rule(1, heads.len());
    for section in sections(report) {
        let mut title = vec![String::new(); heads.len()];
        title[0] = format!("**{}**", section.title);
        out += &line(&title);
        for row in &section.rows {
            out += &line(&cells(row, with_change));
        }
    }
    out
}

fn cells(row: &Row, with_change: bool) -> Vec<String> {
    let scale = row.scale();
    let mut cells = vec![row.label.clone()];
    cells.extend(row.values.iter().map(|value| scale.show(*value)));
    if let Some(change) = row.change().filter(|_| with_change) {
        let percent = change.percent.map(|percent| format!(" ({})", signed_percent(percent)));
        let percent = percent.filter(|_| change.before != change.after).unwrap_or_default();
        cells.push(scale.show_difference(change.before, change.after) + &percent);
    }
    cells
}

/// A fleet by host, kernel or workload.
pub fn fleet(report: &FleetReport) -> String {
    let mut out = format!("### {}\n\n", escape(&report.results));
    for (label, text) in overview(report) {
        out += &item(label, &text);
    }
    for tally in &report.policies {
        out += &format!("\n#### {}\n\n", escape(&tally.policy));
        out += &of_table(&groups(report, tally));
        if let Some(more) = left_out(report) {
            out += &format!("\n{}\n", escape(&more));
        }
        if let Some(over) = distributions(tally) {
            out.push('\n');
            out += &of_table(&over);
        }
    }
    if !report.failed.is_empty() {
        out.push('\n');
    }
    for failed in &report.failed {
        out += &item(&failed.kind, &format!("{}: {}", failed.source, failed.reason));
    }
    out
}

fn of_table(table: &Table) -> String {
    let cells = |row: &[String]| line(&row.iter().map(|cell| escape(cell)).collect::<Vec<_>>());
    let rows: String = table.rows.iter().map(|row| cells(row)).collect();
    cells(&table.heads) + &rule(1, table.heads.len()) + &rows
}

/// A source over a range of settings.
pub fn sweep(report: &SweepReport) -> String {
    let mut out = format!("### {}\n\n", escape(words::file_name(&report.source)));
    for policy in 0..report.policies.len() {
        out += &paragraph(&format!("Under {}:", report.policies[policy]));
        let columns = columns(report, policy);
        let mut heads: Vec<String> = columns.iter().map(|column| escape(&column.head)).collect();
        heads.push(String::new());
        out += &(line(&heads) + &right_rule(columns.len()));
        for place in 0..report.points.len() {
            let mut cells: Vec<String> =
                columns.iter().map(|column| escape(&column.cells[place])).collect();
            cells.push(remarks(report, policy, place));
            out += &line(&cells);
        }
        out.push('\n');
        for advice in advice_of(report, policy) {
            out += &paragraph(&advice.reason.join(" "));
            out.extend(advice.doubts.iter().map(|doubt| item("Note", &doubt.text)));
        }
    }
    out.extend(report.doubts.iter().map(|doubt| item("Note", &doubt.text)));
    out += &item("Streams", &words::streams(report.fidelity, &report.streams));
    out += &item("Settings", &words::settings(&report.settings));
    if let Some(device) = &report.device {
        out += &item("Model", &words::device(device));
    }
    let verify = report.verify.as_ref();
    out + &item("Check", &verify.map_or(words::NOT_VERIFIED.to_owned(), words::verify))
}

/// Captures held against a replay.
pub fn verify(captures: &[CaptureVerify]) -> String {
    let heads = [
        "capture",
        "policy",
        "stream",
        "result",
        "folios recorded",
        "replayed",
        "matched",
        "reads recorded",
        "replayed",
        "matched",
    ];
    let mut out = line(&heads.map(str::to_owned)) + &rule(4, heads.len());
    for verify in captures {
        let mut cells = vec![
            escape(words::file_name(&verify.source)),
            escape(&verify.policy),
            words::fidelity(verify.stream).to_owned(),
            Outcome::of(verify).words().to_owned(),
        ];
        for matched in [&verify.folios, &verify.device_reads] {
            cells.extend([matched.recorded, matched.replayed, matched.matched].map(count));
        }
        out += &line(&cells);
    }
    out += &times(captures);
    let differing = captures.iter().filter(|verify| verify.first_difference.is_some());
    for (n, verify) in differing.enumerate() {
        if n == 0 {
            out.push('\n');
        }
        let difference = verify.first_difference.as_ref().map(words::difference);
        out += &item(words::file_name(&verify.source), &difference.unwrap_or_default());
    }
    out
}

/// Recorded against predicted time, where captures have any.
fn times(captures: &[CaptureVerify]) -> String {
    let mut out = String::new();
    for verify in captures.iter().filter(|verify| verify.timing.elapsed.is_known()) {
        if out.is_empty() {
            let heads = words::TIME_HEADS.map(str::to_owned);
            out = format!("\n{}{}", line(&heads), rule(1, heads.len()));
        }
        let mut cells = vec![escape(words::file_name(&verify.source))];
        cells.extend(words::time_cells(&verify.timing));
        out += &line(&cells);
    }
    out
}

/// Why two policies differ on a source.
pub fn explain(explanation: &Explanation) -> String {
    let mut out = format!("### {}\n\n", escape(words::file_name(&explanation.source)));
    match &explanation.divergence {
        None => out += &paragraph("The policies decide the same everywhere."),
        Some(divergence) => {
            out += &item("Parts at", &causes::parts_at(divergence));
            out += &item("Before", &divergence.state_before);
            for decided in causes::decisions(explanation, divergence) {
                out += &item("Decides", &decided);
            }
            out.push('\n');
        }
    }
    let [a, b] = explanation.sides.each_ref().map(|side| escape(&side.policy));
    out += &(line(&[causes::title(explanation), a, b]) + &rule(1, 3));
    for row in causes::rows(explanation) {
        let [a, b] = row.pages.map(count);
        out += &line(&[row.label, a, b]);
    }
    out.push('\n');
    out.extend(explanation.sides.iter().map(|side| item("Windows", &causes::windows(side))));
    out
}

/// A capture: the terminal's description, and its files as a table.
pub fn inspect(report: &InspectReport) -> String {
    let style = Style { colour: false, width: 100 };
    let mut out = format!("### {}\n\n", escape(words::file_name(&report.source)));
    out += "```\n";
    out += &crate::text::inspect_head(report, &style);
    out += "```\n\n";
    let heads = ["file", "pattern", "size", "accesses", "asked", "folios", "unused", "reads"];
    out += &(line(&heads.map(str::to_owned)) + &rule(2, heads.len()));
    for file in &report.files {
        let pattern = file.pattern.main();
        let pattern = pattern.map(|(name, share)| format!("{} {}", name.name(), percent(share)));
        out += &line(&[
            file.file.clone(),
            pattern.unwrap_or_default(),
            file.size_bytes.map(|bytes| Unit::Bytes.show(bytes)).unwrap_or_default(),
            count(file.accesses),
            Unit::Bytes.show(file.asked_bytes),
            count(file.folios.total),
            count(file.pages_unused),
            count(file.device_reads.count),
        ]);
    }
    out
}

/// How well a device model fits the captures it was fitted to.
pub fn calibrate(report: &FitReport) -> String {
    let mut out = String::new();
    for text in report.summary() {
        match text.split_once(": ") {
            Some((name, text)) => out += &item(name.trim_start(), text),
            None => out += &format!("- {}\n", escape(text.trim_start())),
        }
    }
    let heads = ["up to", "depth", "requests", "recorded", "predicted", "error"];
    out += &format!("\n{}{}", line(&heads.map(str::to_owned)), rule(0, heads.len()));
    for row in &report.rows {
        out += &line(&[
            size_name(row.bytes_max),
            row.depth_name(),
            count(row.requests),
            Unit::Nanoseconds.show(row.recorded_ns),
            Unit::Nanoseconds.show(row.predicted_ns),
            signed_percent(row.error_percent()),
        ]);
    }
    out.push('\n');
    for fit in report.cpu.iter().filter(|fit| fit.observations > 0) {
        out += &item("cpu", &format!("{} {} ns, from {} gaps", fit.name, fit.ns, fit.observations));
    }
    out.extend(report.unknown.iter().map(|unknown| item("not known", unknown)));
    out
}

/// Rows of words under their heads.
pub fn table<'a, const N: usize>(
    heads: &[&str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) -> String {
    let mut out = line(&heads.map(escape)) + &rule(N, N);
    out.extend(rows.map(|row| line(&row.map(escape))));
    out
}

/// A line of a table.
fn line(cells: &[String]) -> String {
    let mut out = "|".to_owned();
    for cell in cells {
        out.push(' ');
        out += cell;
        if !cell.is_empty() {
            out.push(' ');
        }
        out.push('|');
    }
    out + "\n"
}

/// The line below the heads: so many columns to the left, the others to the right.
fn rule(left: usize, columns: usize) -> String {
    format!("|{}{}\n", " --- |".repeat(left), " ---: |".repeat(columns - left))
}

/// Columns to the right, and a last one to the left.
fn right_rule(right: usize) -> String {
    format!("|{} --- |\n", " ---: |".repeat(right))
}

fn item(name: &str, text: &str) -> String {
    format!("- {}: {}\n", escape(name), escape(text))
}

fn paragraph(text: &str) -> String {
    escape(text) + "\n\n"
}

/// Text that Markdown must not take for markup. An underscore inside a word is none.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let letters: Vec<char> = text.chars().collect();
    let is_word =
        |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric());
    for (at, letter) in letters.iter().enumerate() {
        let inside_word = is_word(at.checked_sub(1)) && is_word(Some(at + 1));
        let special = matches!(letter, '\\' | '`' | '*' | '[' | ']' | '<' | '|');
        if special || (*letter == '_' && !inside_word) {
            out.push('\\');
        }
        out.push(*letter);
    }
    out
}
