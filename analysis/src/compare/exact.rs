//! Counted figures: every difference is real.

use super::{Better, Budget, Change, Check, Metric, OrderChange, Verdict};

/// Checks a pair of counted values.
pub(super) fn check(
    source: &str,
    metric: Metric,
    budget: Budget,
    (baseline, candidate): (f64, f64),
    orders: &OrderChange,
) -> Check {
    let verdict = match verdict(metric.better(), &budget, baseline, candidate) {
        // Bytes that move both ways leave the mean where it is.
        Verdict::Pass if metric == Metric::MeanOrder && is_spread(orders, &budget) => {
            Verdict::Changed
        }
        verdict => verdict,
    };
    Check {
        source: source.to_owned(),
        metric,
        baseline: Some(baseline),
        candidate: Some(candidate),
        change: Some(Change::new(baseline, candidate - baseline)),
        budget,
        verdict,
        sampled: None,
        cause: None,
    }
}

fn verdict(better: Better, budget: &Budget, baseline: f64, candidate: f64) -> Verdict {
    if budget.is_hard_crossed(candidate, better) {
        return Verdict::Regressed;
    }
    let more = candidate - baseline;
    if more.abs() <= budget.allowed(baseline) {
        return Verdict::Pass;
    }
    direction(better, more)
}

/// What a difference over budget is called.
pub(super) fn direction(better: Better, more: f64) -> Verdict {
    match better {
        Better::Neither => Verdict::Changed,
        Better::Less if more < 0.0 => Verdict::Improved,
        Better::More if more > 0.0 => Verdict::Improved,
        Better::Less | Better::More => Verdict::Regressed,
    }
}

fn is_spread(orders: &OrderChange, budget: &Budget) -> bool {
    orders.distance.is_some_and(|distance| {
        distance.toward_smaller > budget.floor && distance.toward_larger > budget.floor
    })
}
