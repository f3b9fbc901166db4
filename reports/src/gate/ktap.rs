//! KTAP, version 1, as `Documentation/dev-tools/ktap.rst` of the kernel describes it.

use std::fmt::Write as _;

use analysis::compare::Check;
use analysis::gate::{GateReport, SourceOutcome};

use super::{allowed, change, change_points, counts, details, side, sides};

/// A gate: a test per source with a subtest per metric.
pub fn ktap(report: &GateReport) -> String {
    let mut out = "KTAP version 1\n".to_owned();
    let _ = writeln!(out, "# gate {}: {}", report.verdict.name(), line(&sides(report)));
    let _ = writeln!(out, "# {}", counts(report));
    for note in report.notes.iter().chain(&change_points(report)) {
        let _ = writeln!(out, "# {}", line(note));
    }
    // A gate that could not be run has no source, but a plan of no test would be a pass.
    if report.sources.is_empty() {
        return out + &format!("1..1\nnot ok 1 gate is {}\n", report.verdict.name());
    }
    let _ = writeln!(out, "1..{}", report.sources.len());
    for (at, source) in report.sources.iter().enumerate() {
        one_source(report, source, at + 1, &mut out);
    }
    out
}

fn one_source(report: &GateReport, source: &SourceOutcome, number: usize, out: &mut String) {
    let checks: Vec<&Check> = report.checks_of(&source.source).collect();
    if !checks.is_empty() {
        let _ = writeln!(out, "  KTAP version 1\n  1..{}", checks.len());
    }
    for (at, check) in checks.into_iter().enumerate() {
        if !check.verdict.is_good() {
            let _ = writeln!(out, "  # {}", sentence(check));
        }
        for detail in details(check).iter().filter(|_| !check.verdict.is_good()) {
            let _ = writeln!(out, "  # {}", line(detail));
        }
        let _ = writeln!(out, "  {} {} {}", status(check.verdict.is_good()), at + 1, check.metric);
    }
    if let Some(reason) = &source.reason {
        let _ = writeln!(out, "# {}: {}", source.verdict.name(), line(reason));
    }
    for reason in &source.why {
        let _ = writeln!(out, "# {}", line(reason));
    }
    let name = line(&source.source).replace('#', "_");
    let _ = writeln!(out, "{} {number} {name}", status(source.verdict.is_good()));
}

fn status(good: bool) -> &'static str {
    if good { "ok" } else { "not ok" }
}

/// `regressed: 1029 to 3327, +223.3 % (allowed 0.1 %)`
pub(super) fn sentence(check: &Check) -> String {
    let (from, to) = (side(check.metric, check.baseline), side(check.metric, check.candidate));
    let change = match change(check) {
        change if change.is_empty() => change,
        change => format!(", {change}"),
    };
    format!("{}: {from} to {to}{change} (allowed {})", check.verdict.name(), allowed(check))
}

/// Text that stays on its line.
fn line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
