//! The gate's test of itself: a planted regression that it must fail.

use super::{Budgets, Entry, GateReport, Side, judge};
use crate::compare::{Better, Figures, Measured, Metric, Unit, Verdict};
use crate::stats::mean_order;

/// Added to planted values, so that a planted zero is not a zero.
const PLANTED_NS: u64 = 10_000_000;

/// Judges `baseline` against itself with a regression planted in every metric.
///
/// Folios are split in two, everything else that should be small is doubled. The
/// report is [`Verdict::Regressed`] if every planted metric was caught, and
/// [`Verdict::BadInput`] with a note for each that the budgets let pass.
pub fn self_test(baseline: &Side, budgets: &Budgets) -> GateReport {
    let plant = |entry: &Entry| Entry { measured: planted(&entry.measured), ..entry.clone() };
    let planted = Side {
        name: format!("{} with a planted regression", baseline.name),
        entries: baseline
            .entries
            .iter()
            .map(|(name, entry)| (name.clone(), entry.as_ref().map(plant).map_err(Clone::clone)))
            .collect(),
    };
    let mut report = judge(baseline, &planted, budgets);
    report.self_test = true;
    let missed: Vec<String> = report
        .checks
        .iter()
        .filter(|check| check.verdict != Verdict::Regressed)
        .filter(|check| check.metric.better() != Better::Neither)
        .filter(|check| check.change.is_some_and(|change| change.absolute != 0.0))
        .map(|check| format!("a planted regression of {} passed in {}", check.metric, check.source))
        .collect();
    if !missed.is_empty() {
        report.verdict = Verdict::BadInput;
        report.notes.extend(missed);
    }
    report
}

fn planted(measured: &Measured) -> Measured {
    Measured { nature: measured.nature, runs: measured.runs.iter().map(plant_run).collect() }
}

fn plant_run(run: &Figures) -> Figures {
    let by_order = split(&run.by_order);
    let is_split = mean_order(&by_order) != mean_order(&run.by_order);
    let plant = |(metric, value): (&Metric, &u64)| {
        let planted = match (metric, metric.better()) {
            (Metric::Folios, _) if is_split => by_order.iter().sum(),
            (Metric::Folios, _) | (_, Better::More | Better::Neither) => *value,
            _ if metric.unit() == Unit::Nanoseconds => {
                value.saturating_mul(2).saturating_add(PLANTED_NS)
            }
            _ => value.saturating_mul(2).saturating_add(1),
        };
        (*metric, planted)
    };
    let values = run.values.iter().map(plant).collect();
    Figures { by_order, values }
}

/// Every folio as two of the order below; order 0 cannot be split.
fn split(by_order: &[u64]) -> Vec<u64> {
    let mut halves = vec![0; by_order.len()];
    for (order, count) in by_order.iter().enumerate() {
        if order == 0 {
            halves[0] += count;
        } else {
            halves[order - 1] += 2 * count;
        }
    }
    halves
}
