//! Markdown for a comment on a pull request: the verdict in sight, the rest folded.

use std::fmt::Write as _;

use analysis::compare::{Check, Verdict};
use analysis::gate::{GateReport, SourceOutcome};

use super::{
    allowed, change, change_points, counts, details, notable, order_changes, side, sides, worst,
    worst_first,
};
use crate::markdown::escape;

/// Trackers cut comments off at 64 KiB; the rest is for the line that says what was left out.
const BYTES_MAX: usize = 63 * 1024;

/// A gate, in less than 64 KiB. Sources that do not fit are counted; the worst come first.
pub fn markdown(report: &GateReport) -> String {
    let mut out = head(report);
    let (plain, notable): (Vec<_>, Vec<_>) =
        worst_first(report).into_iter().partition(|source| source.verdict == Verdict::Pass);
    let mut left_out = 0;
    for source in notable {
        let text = one_source(report, source);
        if left_out == 0 && out.len() + text.len() <= BYTES_MAX {
            out += &text;
        } else {
            left_out += 1;
        }
    }
    let passed: Vec<String> =
        plain.iter().map(|source| format!("- {}\n", escape(&source.source))).collect();
    let folded = fold(&format!("{} that did not change", plain.len()), &passed.concat());
    if !plain.is_empty() && out.len() + folded.len() <= BYTES_MAX {
        out += &folded;
    } else {
        left_out += plain.len();
    }
    if left_out > 0 {
        let _ =
            writeln!(out, "\n{left_out} sources left out of this comment; they are in the report.");
    }
    out
}

fn head(report: &GateReport) -> String {
    let mut out = format!("### rareplay gate: {}\n\n", report.verdict.name());
    let _ = writeln!(out, "{}. {}.", escape(&sides(report)), counts(report));
    if report.self_test {
        out += "Self-test: the candidate is the baseline with a regression planted.\n";
    }
    if report.accepted {
        out += "Accepted: the candidate is the baseline from now on.\n";
    }
    if let Some(found) = &report.worst {
        let _ = writeln!(out, "Worst: {}.", escape(&worst(found)));
    }
    let lines: Vec<String> = report.notes.iter().cloned().chain(change_points(report)).collect();
    let mut left = lines.len();
    for line in &lines {
        let item = format!("- {}\n", escape(line));
        if out.len() + item.len() > BYTES_MAX / 4 {
            let _ = writeln!(out, "- and {left} more notes");
            break;
        }
        out += if left == lines.len() { "\n" } else { "" };
        out += &item;
        left -= 1;
    }
    out + "\n"
}

fn one_source(report: &GateReport, source: &SourceOutcome) -> String {
    let mut body = String::new();
    if let Some(reason) = &source.reason {
        let _ = writeln!(body, "{}", escape(reason));
    }
    let checks: Vec<&Check> = notable(report, &source.source).collect();
    if !checks.is_empty() {
        body += "| metric | baseline | candidate | change | allowed | verdict |\n";
        body += "| --- | ---: | ---: | ---: | --- | --- |\n";
    }
    for check in &checks {
        let _ = writeln!(
            body,
            "| {} | {} | {} | {} | {} | {} |",
            escape(check.metric.key()),
            side(check.metric, check.baseline),
            side(check.metric, check.candidate),
            change(check),
            allowed(check),
            check.verdict.name(),
        );
    }
    let with_details = checks.iter().flat_map(|check| {
        details(check).into_iter().map(|detail| format!("{}: {detail}", check.metric))
    });
    let items: Vec<String> =
        with_details.chain(order_changes(source)).chain(source.why.clone()).collect();
    if !items.is_empty() {
        body.push('\n');
    }
    for item in items {
        let _ = writeln!(body, "- {}", escape(&item));
    }
    fold(&format!("{}: {}", source.verdict.name(), source.source), &body)
}

/// What stands in HTML is not read as Markdown.
fn fold(summary: &str, body: &str) -> String {
    let summary = summary.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<details><summary>{summary}</summary>\n\n{body}\n</details>\n")
}
