//! The result of a gate: for a terminal, for scripts, for CI systems.
//!
//! [`junit`] is what CI systems collect, [`ktap`] what kernel test robots read,
//! [`markdown`] goes into a pull request, [`mail`] into a mail, [`csv`] into a
//! table, [`json`] is `rareplay.gate/1`. None of them holds a time or a host name,
//! so that equal results are equal bytes.

mod csv;
mod junit;
mod ktap;
mod mail;
mod markdown;
mod text;

use std::fmt::Write as _;

use analysis::compare::{Check, Metric, Sampled, Unit, Verdict};
use analysis::gate::{GateReport, SourceOutcome, Worst};

use crate::number;

pub use csv::csv;
pub use junit::junit;
pub use ktap::ktap;
pub use mail::mail;
pub use markdown::markdown;
pub use text::{orders, text};

/// `rareplay.gate/1`.
pub fn json(report: &GateReport) -> String {
    let text = serde_json::to_string_pretty(report);
    text.expect("result structs have text keys and no writer that fails") + "\n"
}

/// What `--verdict-file` holds: lines that a shell and `$GITHUB_OUTPUT` both read.
pub fn verdict_file(report: &GateReport, exit_code: u8) -> String {
    let mut text = format!("verdict={}\nexit_code={exit_code}\n", report.verdict.name());
    if let Some(worst) = &report.worst {
        let _ = writeln!(text, "worst_source={}\nworst_metric={}", worst.source, worst.metric);
    }
    text
}

/// `linux-6.18 against linux-7.3`
pub(crate) fn sides(report: &GateReport) -> String {
    format!("{} against {}", report.candidate, report.baseline)
}

/// `14 sources: 1 regressed, 13 pass`, the worst first.
pub(crate) fn counts(report: &GateReport) -> String {
    let counts = report.counts.iter().rev();
    let counts: Vec<String> =
        counts.map(|(verdict, count)| format!("{count} {}", verdict.name())).collect();
    let sources = number::counted(report.sources.len() as u64, "source", "sources");
    if counts.is_empty() { sources } else { format!("{sources}: {}", counts.join(", ")) }
}

pub(crate) fn worst(worst: &Worst) -> String {
    let percent = worst.worse_percent.map(|percent| format!(", {percent:.1} % worse"));
    let percent = percent.unwrap_or_else(|| ", from 0".to_owned());
    format!("{} of {}{percent}", worst.metric, worst.source)
}

/// A figure in its unit.
#[expect(clippy::cast_sign_loss, reason = "counts and times are not negative")]
fn value(metric: Metric, value: f64) -> String {
    let whole = value.round() as u64;
    match metric.unit() {
        Unit::Orders => format!("{value:.3}"),
        Unit::Count if value.fract() != 0.0 => format!("{value:.1}"),
        Unit::Count => number::count(whole),
        Unit::Bytes => number::Unit::Bytes.show(whole),
        Unit::Nanoseconds => number::Unit::Nanoseconds.show(whole),
    }
}

pub(crate) fn side(metric: Metric, figure: Option<f64>) -> String {
    figure.map_or("none".to_owned(), |figure| value(metric, figure))
}

/// `-2.559` for orders, else the percentage; the difference where there is none.
pub(crate) fn change(check: &Check) -> String {
    let Some(change) = check.change else { return String::new() };
    match (check.metric.unit(), change.percent) {
        _ if change.absolute == 0.0 => "0".to_owned(),
        (Unit::Orders, _) => format!("{:+.3}", change.absolute),
        (_, Some(percent)) => percent_text(percent),
        (_, None) => format!("+{}", value(check.metric, change.absolute.abs())),
    }
}

/// Two decimals where one would hide a change, such as one of 0.05 %.
fn percent_text(percent: f64) -> String {
    if percent.abs() < 1.0 { format!("{percent:+.2} %") } else { format!("{percent:+.1} %") }
}

/// `1 %`, `0.010`, `5 % or 16, at most 4000`
pub(crate) fn allowed(check: &Check) -> String {
    let budget = &check.budget;
    let mut parts = Vec::new();
    if budget.soft_percent > 0.0 {
        parts.push(format!("{} %", budget.soft_percent));
    }
    if budget.floor > 0.0 {
        parts.push(value(check.metric, budget.floor));
    }
    let soft = if parts.is_empty() { "nothing".to_owned() } else { parts.join(" or ") };
    match budget.hard {
        Some(hard) => format!("{soft}, limit {}", value(check.metric, hard)),
        None => soft,
    }
}

/// The statistics of a sampled check in one sentence.
fn sampled(check: &Check, sampled: &Sampled) -> String {
    let unit = check.baseline.filter(|baseline| *baseline != 0.0).map_or(1.0, f64::abs) / 100.0;
    let (low, high) = (sampled.interval.low / unit, sampled.interval.high / unit);
    let mut text = format!(
        "{} and {} runs, deviation {:.1} %, change {low:+.1} to {high:+.1} % (95 %), p = {:.4} \
         ({}, adjusted)",
        sampled.baseline_runs,
        sampled.candidate_runs,
        sampled.deviation_percent,
        sampled.p_adjusted,
        sampled.test,
    );
    if let Some(runs) = sampled.runs_needed {
        let _ = write!(text, "; {runs} runs a side would settle it");
    }
    text
}

/// What stands below a check: its statistics, its cause, and why its budget is what it is.
pub(crate) fn details(check: &Check) -> Vec<String> {
    let statistics = check.sampled.as_ref().map(|statistics| sampled(check, statistics));
    let reason = check.budget.reason.as_ref().map(|reason| format!("budget: {reason}"));
    statistics.into_iter().chain(check.cause.clone()).chain(reason).collect()
}

/// Sources, the worst first and then by name.
fn worst_first(report: &GateReport) -> Vec<&SourceOutcome> {
    let mut sources: Vec<&SourceOutcome> = report.sources.iter().collect();
    sources.sort_by_key(|source| std::cmp::Reverse(source.verdict));
    sources
}

/// Checks of a source that are worth a line: those that are no plain pass.
fn notable<'a>(report: &'a GateReport, source: &'a str) -> impl Iterator<Item = &'a Check> {
    report.checks_of(source).filter(|check| check.verdict != Verdict::Pass)
}

/// `order 5: 98300 to 0 folios` for every order that changed.
pub(crate) fn order_changes(source: &SourceOutcome) -> Option<String> {
    let rows = source
        .orders
        .by_order
        .iter()
        .filter(|row| row.baseline.to_bits() != row.candidate.to_bits());
    let rows: Vec<String> = rows
        .map(|row| {
            let show = |folios| value(Metric::Folios, folios);
            format!("{}: {} to {}", row.order, show(row.baseline), show(row.candidate))
        })
        .collect();
    (!rows.is_empty()).then(|| format!("folios by order: {}", rows.join(", ")))
}

/// `device_reads.count of inter2 changed at v7.3: 3327 to 1029 (-69.1 %)`
fn change_points(report: &GateReport) -> Vec<String> {
    let sentence = |point: &analysis::history::ChangePoint| {
        let metric = Metric::from_key(&point.metric);
        let show = |figure: f64| match metric {
            Some(metric) => value(metric, figure),
            None => figure.to_string(),
        };
        let percent = point.percent.map(|percent| format!(" ({})", percent_text(percent)));
        format!(
            "{} of {} changed at {}: {} to {}{}",
            point.metric,
            point.source,
            point.label,
            show(point.before),
            show(point.after),
            percent.unwrap_or_default(),
        )
    };
    report.change_points.iter().map(sentence).collect()
}
