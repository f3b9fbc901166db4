//! Comparison of two sides of one source: two policies, two captures, or several runs of each.
//!
//! What was counted is compared exactly: any difference is real, and the only
//! question is whether it is over budget. What was measured in several runs is
//! noisy, and a difference must be both significant and larger than the budget
//! to be called a regression; where the runs cannot tell, the verdict says so
//! and says how many would.
//!
//! A figure of recorded runs is taken as counted while every run of a side gives
//! the same value: folios and device reads of one program on one kernel usually
//! do. As soon as runs of a side disagree, it is a sample like the times.

mod exact;
mod figures;
mod metric;
mod sampled;
mod saved;

use serde::{Serialize, Serializer};

pub use figures::{Figures, Measured, Nature};
pub use metric::{Better, Metric, Unit};
pub use sampled::{Sampled, TestOptions};
pub use saved::{SavedError, SavedReplay, read_saved};

use crate::stats::{OrderDistance, Sample, byte_shares, order_distance};

/// What a check, a source or a whole gate came to; worse ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Equal, or different by no more than the budget.
    Pass,
    /// Different by more than the budget, in a figure that is neither good nor bad.
    Changed,
    /// Better by more than the budget.
    Improved,
    /// The runs do not tell.
    Inconclusive,
    /// Nothing to compare with.
    BaselineMissing,
    /// The sides differ in more than what is being compared.
    NotComparable,
    /// The input lost events.
    DataLoss,
    /// The input cannot be used.
    BadInput,
    /// Worse by more than the budget.
    Regressed,
}

impl Verdict {
    /// Whether nothing is wrong.
    pub fn is_good(self) -> bool {
        self <= Self::Improved
    }

    /// Its name in JSON, verdict files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Improved => "improved",
            Self::Changed => "changed",
            Self::Inconclusive => "inconclusive",
            Self::BaselineMissing => "baseline-missing",
            Self::NotComparable => "not-comparable",
            Self::DataLoss => "data-loss",
            Self::BadInput => "bad-input",
            Self::Regressed => "regressed",
        }
    }
}

/// How much worse a figure may be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// Percent of the baseline that is still a pass, in either direction.
    #[serde(serialize_with = "number")]
    pub soft_percent: f64,
    /// Difference that is still a pass whatever its percentage, in the unit of the metric.
    #[serde(serialize_with = "number")]
    pub floor: f64,
    /// Value that the candidate must never be worse than, in the unit of the metric.
    #[serde(serialize_with = "optional_number")]
    pub hard: Option<f64>,
    /// Why the budget is what it is, where someone said so.
    pub reason: Option<String>,
}

impl Budget {
    /// The budget of a figure that no one gave one to.
    ///
    /// Counts may differ by 0.1 %, times that a model computed by 1 %, and what was measured by 5 %.
    pub fn usual(metric: Metric, sampled: bool) -> Self {
        let (soft_percent, floor) = match metric.unit() {
            Unit::Orders => (0.0, if sampled { 0.05 } else { 0.01 }),
            _ if sampled => (5.0, 0.0),
            Unit::Nanoseconds => (1.0, 1000.0),
            Unit::Count | Unit::Bytes => (0.1, 0.0),
        };
        Self { soft_percent, floor, hard: None, reason: None }
    }

    /// The largest difference from `baseline` that is still a pass.
    pub fn allowed(&self, baseline: f64) -> f64 {
        self.floor.max(self.soft_percent / 100.0 * baseline.abs())
    }

    fn is_hard_crossed(&self, candidate: f64, better: Better) -> bool {
        self.hard.is_some_and(|hard| match better {
            Better::More => candidate < hard,
            Better::Less | Better::Neither => candidate > hard,
        })
    }
}

/// A difference between two figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Candidate minus baseline; for several runs the Hodges-Lehmann estimate of it.
    #[serde(serialize_with = "number")]
    pub absolute: f64,
    /// The same in percent of the baseline; `None` where that is 0.
    #[serde(serialize_with = "optional_number")]
    pub percent: Option<f64>,
}

impl Change {
    fn new(baseline: f64, absolute: f64) -> Self {
        let percent = (baseline != 0.0).then(|| absolute / baseline.abs() * 100.0);
        Self { absolute, percent }
    }
}

/// One metric of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The source.
    pub source: String,
    /// The metric.
    pub metric: Metric,
    /// Its value, or the median of the runs; `None` if the side does not have it.
    #[serde(serialize_with = "optional_number")]
    pub baseline: Option<f64>,
    /// Likewise.
    #[serde(serialize_with = "optional_number")]
    pub candidate: Option<f64>,
    /// The difference; `None` if a side is missing.
    pub change: Option<Change>,
    /// What was allowed.
    pub budget: Budget,
    /// What it comes to.
    pub verdict: Verdict,
    /// The statistics, for a sampled metric.
    pub sampled: Option<Sampled>,
    /// What the figures say about the reason.
    pub cause: Option<String>,
}

/// Folios of one order on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderRow {
    /// The order.
    pub order: usize,
    /// Folios of the baseline, per run.
    #[serde(serialize_with = "number")]
    pub baseline: f64,
    /// Folios of the candidate, per run.
    #[serde(serialize_with = "number")]
    pub candidate: f64,
    /// Share of the baseline's bytes, 0 to 1.
    #[serde(serialize_with = "number")]
    pub baseline_share: f64,
    /// Share of the candidate's bytes, 0 to 1.
    #[serde(serialize_with = "number")]
    pub candidate_share: f64,
}

/// How the distribution of folio orders changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct OrderChange {
    /// Earth mover's distance, `None` if a side has no folios.
    pub distance: Option<OrderDistance>,
    /// Every order up to the largest one used.
    pub by_order: Vec<OrderRow>,
}

/// Two sides of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Every metric that either side has.
    pub checks: Vec<Check>,
    /// Folios by order.
    pub orders: OrderChange,
}

/// Compares two sides of `source`. `budget` gives a metric's budget (second argument: whether it is
/// sampled), or `None` to leave the metric out.
pub fn compare(
    source: &str,
    baseline: &Measured,
    candidate: &Measured,
    budget: impl Fn(Metric, bool) -> Option<Budget>,
    options: &TestOptions,
) -> Comparison {
    let orders = order_change(baseline, candidate);
    let mut checks = Vec::new();
    for metric in Metric::ALL {
        let (from, to) = (baseline.sample(metric), candidate.sample(metric));
        let sampled = from.iter().chain(&to).any(|side| is_sampled(baseline, metric, side));
        let Some(budget) = budget(metric, sampled) else { continue };
        let check = match (from, to) {
            (None, None) => continue,
            // What a histogram does not count is not missing from it.
            (None, _) if baseline.nature == Nature::Histogram => continue,
            (_, None) if candidate.nature == Nature::Histogram => continue,
            (Some(from), Some(to)) if sampled => sampled::check(source, metric, budget, &from, &to),
            (Some(from), Some(to)) => {
                exact::check(source, metric, budget, (from.median(), to.median()), &orders)
            }
            (from, to) => one_sided(source, metric, budget, from.as_ref(), to.as_ref()),
        };
        checks.push(check);
    }
    sampled::decide(&mut checks, options);
    for check in &mut checks {
        if !matches!(check.verdict, Verdict::Pass | Verdict::Inconclusive) {
            check.cause = figures::evidence(check.metric, &orders, baseline, candidate);
        }
    }
    Comparison { checks, orders }
}

/// Times are noisy even if a single run cannot show it; counts are once runs disagree.
fn is_sampled(side: &Measured, metric: Metric, sample: &Sample) -> bool {
    side.nature == Nature::Recorded && (metric.unit() == Unit::Nanoseconds || !sample.is_constant())
}

/// A metric that one side does not have is never a pass.
fn one_sided(
    source: &str,
    metric: Metric,
    budget: Budget,
    from: Option<&Sample>,
    to: Option<&Sample>,
) -> Check {
    Check {
        source: source.to_owned(),
        metric,
        baseline: from.map(Sample::median),
        candidate: to.map(Sample::median),
        change: None,
        budget,
        verdict: if to.is_some() { Verdict::BaselineMissing } else { Verdict::NotComparable },
        sampled: None,
        cause: None,
    }
}

fn order_change(baseline: &Measured, candidate: &Measured) -> OrderChange {
    let (from, to) = (baseline.total_by_order(), candidate.total_by_order());
    let share = |totals: &[u64]| byte_shares(totals).unwrap_or_default();
    let (from_shares, to_shares) = (share(&from), share(&to));
    let at = |shares: &[f64], order: usize| shares.get(order).copied().unwrap_or(0.0);
    let per_run = |totals: &[u64], order: usize, side: &Measured| {
        totals.get(order).copied().unwrap_or(0) as f64 / side.runs.len().max(1) as f64
    };
    let row = |order| OrderRow {
        order,
        baseline: per_run(&from, order, baseline),
        candidate: per_run(&to, order, candidate),
        baseline_share: at(&from_shares, order),
        candidate_share: at(&to_shares, order),
    };
    OrderChange {
        distance: order_distance(&from, &to),
        by_order: (0..from.len().max(to.len())).map(row).collect(),
    }
}

/// Writes whole numbers without a fraction and rounds the others to six decimals.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
pub(crate) fn number<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        to.serialize_i64(*value as i64)
    } else {
        to.serialize_f64((value * 1e6).round() / 1e6)
    }
}

#[expect(clippy::ref_option, reason = "the signature serde asks for")]
pub(crate) fn optional_number<S: Serializer>(
    value: &Option<f64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, to),
        None => to.serialize_none(),
    }
}
