//! How many runs an answer takes.

use super::normal_quantile;

/// How much better the normal test is than the rank test on normal values.
const RANK_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// With so many runs a side, p-values are as small as an `f64` can tell from 0.
const RUNS_MAX: usize = 500;

/// Runs a side that show a shift of `shift` with probability `power`.
///
/// `deviation` is that of a single run, in the unit of `shift`; `alpha` is two-sided.
pub fn runs_needed(deviation: f64, shift: f64, alpha: f64, power: f64) -> u64 {
    let quantiles = normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power);
    let runs = 2.0 * (quantiles * deviation / shift).powi(2) / RANK_EFFICIENCY;
    #[expect(clippy::cast_sign_loss, reason = "a square")]
    let runs = runs.ceil() as u64;
    runs.max(runs_to_reach(alpha))
}

/// Runs a side below which no outcome has a p-value of `alpha` or less.
pub fn runs_to_reach(alpha: f64) -> u64 {
    let is_enough = |runs: &usize| smallest_p(*runs, *runs) <= alpha;
    (1..=RUNS_MAX).find(is_enough).unwrap_or(RUNS_MAX) as u64
}

/// The smallest two-sided p-value that a rank test of so many runs can give.
pub fn smallest_p(n: usize, m: usize) -> f64 {
    (2.0 / splits(n, m)).min(1.0)
}

/// Ways to split `n + m` values into groups of `n` and `m`.
pub(super) fn splits(n: usize, m: usize) -> f64 {
    (1..=n).map(|k| (m + k) as f64 / k as f64).product::<f64>().round()
}
