//! Figures measured in several runs.
//!
//! A regression must pass three bars: the rank test after Holm's correction over
//! the metrics of the source, the estimate of the shift beyond the budget, and
//! in the bad direction. A pass needs an interval that does not reach beyond the
//! budget. What is neither is inconclusive.

use serde::Serialize;

use super::exact::direction;
use super::{Better, Budget, Change, Check, Metric, Verdict};
use crate::stats::{
    Interval, Sample, hodges_lehmann, holm, mann_whitney, mid_ranks, permutation, runs_needed,
    runs_to_reach, shift_interval, smallest_p,
};

/// How sure an answer has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TestOptions {
    /// Chance of calling any metric of a source regressed when nothing changed.
    pub alpha: f64,
    /// Chance of seeing a regression that is there, for the number of runs advised.
    pub power: f64,
}

impl Default for TestOptions {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8 }
    }
}

/// The statistics behind a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sampled {
    /// Runs of the baseline.
    pub baseline_runs: usize,
    /// Runs of the candidate.
    pub candidate_runs: usize,
    /// Standard deviation of a run, in percent of the baseline: the larger of the two sides.
    #[serde(serialize_with = "super::number")]
    pub deviation_percent: f64,
    /// Confidence interval of the change, in the unit of the metric.
    pub interval: Interval,
    /// Name of the test.
    pub test: &'static str,
    /// Its p-value.
    pub p: f64,
    /// The p-value after Holm's correction over the metrics of the source.
    pub p_adjusted: f64,
    /// Runs a side that would settle it, where it is inconclusive.
    pub runs_needed: Option<u64>,
}

/// Measures a metric; [`decide`] gives the verdict once all metrics of the source are measured.
pub(super) fn check(
    source: &str,
    metric: Metric,
    budget: Budget,
    from: &Sample,
    to: &Sample,
) -> Check {
    let baseline = from.median();
    let (test, p) = test(from, to);
    let scale = if baseline == 0.0 { 1.0 } else { baseline.abs() };
    let sampled = Sampled {
        baseline_runs: from.runs(),
        candidate_runs: to.runs(),
        deviation_percent: from.deviation().max(to.deviation()) / scale * 100.0,
        interval: shift_interval(from, to, 0.95),
        test,
        p,
        p_adjusted: p,
        runs_needed: None,
    };
    Check {
        source: source.to_owned(),
        metric,
        baseline: Some(baseline),
        candidate: Some(to.median()),
        change: Some(Change::new(baseline, hodges_lehmann(from, to))),
        budget,
        verdict: Verdict::Inconclusive,
        sampled: Some(sampled),
        cause: None,
    }
}

/// Ties take the exact Mann-Whitney distribution away, so few runs with ties go to a permutation
/// test of the ranks, which is that distribution with ties.
fn test(from: &Sample, to: &Sample) -> (&'static str, f64) {
    let rank = mann_whitney(from, to);
    if rank.method == crate::stats::RankMethod::Normal && from.runs() * to.runs() <= 64 {
        let (a, b) = mid_ranks(from, to);
        return ("permutation", permutation(&a, &b));
    }
    ("mann-whitney", rank.p)
}

/// Gives the sampled checks of a source their verdicts.
pub(super) fn decide(checks: &mut [Check], options: &TestOptions) {
    let p_values: Vec<f64> =
        checks.iter().filter_map(|check| Some(check.sampled.as_ref()?.p)).collect();
    // The smallest adjusted p-value of a metric is that of its test times the number of metrics.
    let alpha_first = options.alpha / p_values.len().max(1) as f64;
    let mut adjusted = holm(&p_values).into_iter();
    for check in checks {
        let better = check.metric.better();
        let (Some(sampled), Some(change), Some(candidate), Some(baseline)) =
            (&mut check.sampled, check.change, check.candidate, check.baseline)
        else {
            continue;
        };
        sampled.p_adjusted = adjusted.next().unwrap_or(sampled.p);
        check.verdict = if check.budget.is_hard_crossed(candidate, better) {
            Verdict::Regressed
        } else {
            verdict(sampled, change, check.budget.allowed(baseline), better, options, alpha_first)
        };
        if check.verdict == Verdict::Inconclusive {
            let scale = if baseline == 0.0 { 1.0 } else { baseline.abs() };
            let deviation = sampled.deviation_percent / 100.0 * scale;
            let shift = check.budget.allowed(baseline).max(change.absolute.abs());
            sampled.runs_needed = Some(needed(sampled, deviation, shift, alpha_first, options));
        }
    }
}

fn verdict(
    sampled: &Sampled,
    change: Change,
    allowed: f64,
    better: Better,
    options: &TestOptions,
    alpha_first: f64,
) -> Verdict {
    let is_significant = sampled.p_adjusted <= options.alpha;
    if is_significant && change.absolute.abs() > allowed {
        return direction(better, change.absolute);
    }
    // So few runs that no outcome could have been significant prove nothing.
    if smallest_p(sampled.baseline_runs, sampled.candidate_runs) > alpha_first {
        return Verdict::Inconclusive;
    }
    let may_be_worse = match better {
        Better::Less => sampled.interval.high > allowed,
        Better::More => sampled.interval.low < -allowed,
        Better::Neither => false,
    };
    // A shift that is surely there and surely small is a pass; one that may be large is not.
    if may_be_worse { Verdict::Inconclusive } else { Verdict::Pass }
}

fn needed(sampled: &Sampled, deviation: f64, shift: f64, alpha: f64, options: &TestOptions) -> u64 {
    let runs = sampled.baseline_runs.max(sampled.candidate_runs) as u64 + 1;
    let runs = runs.max(runs_to_reach(alpha));
    if shift > 0.0 && deviation > 0.0 {
        runs.max(runs_needed(deviation, shift, alpha, options.power))
    } else {
        runs
    }
}
