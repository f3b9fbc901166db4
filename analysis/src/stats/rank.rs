//! The Mann-Whitney U test.

use serde::Serialize;

use super::location::Sample;
use super::normal_two_sided;

/// Pairs up to this number are counted exactly: their splits fit an `f64` without rounding.
const EXACT_PAIRS_MAX: usize = 400;

/// How a p-value was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankMethod {
    /// From the distribution of U itself.
    Exact,
    /// From a normal distribution, corrected for ties and continuity.
    Normal,
}

/// Result of a Mann-Whitney test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankTest {
    /// Pairs in which the value of the first sample is the larger one; ties count half.
    pub u: f64,
    /// Two-sided p-value.
    pub p: f64,
    /// How it was found.
    pub method: RankMethod,
}

/// Ranks of the values of both samples, from 1, ties sharing their mean.
pub fn mid_ranks(a: &Sample, b: &Sample) -> (Vec<f64>, Vec<f64>) {
    let mut pooled = [a.values(), b.values()].concat();
    pooled.sort_by(f64::total_cmp);
    let rank = |value: &f64| {
        let below = pooled.partition_point(|other| other < value);
        let up_to = pooled.partition_point(|other| other <= value);
        f64::midpoint(below as f64 + 1.0, up_to as f64)
    };
    (a.values().iter().map(rank).collect(), b.values().iter().map(rank).collect())
}

/// Two-sided Mann-Whitney U test of two samples.
///
/// Exact for up to 400 pairs (20 runs a side) without ties.
pub fn mann_whitney(a: &Sample, b: &Sample) -> RankTest {
    let (n, pairs) = (a.runs(), a.runs() * b.runs());
    let (ranks, others) = mid_ranks(a, b);
    let u = ranks.iter().sum::<f64>() - (n * (n + 1)) as f64 / 2.0;
    let farther = u.max(pairs as f64 - u);
    let tied: f64 = tie_term(&[ranks, others].concat());
    if tied == 0.0 && pairs <= EXACT_PAIRS_MAX {
        return RankTest { u, p: exact_p(a, b, farther), method: RankMethod::Exact };
    }
    RankTest { u, p: normal_p(a, b, farther, tied), method: RankMethod::Normal }
}

/// The sum of `t^3 - t` over groups of `t` tied values.
fn tie_term(ranks: &[f64]) -> f64 {
    let mut sorted = ranks.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Tied ranks are copies of one number, so that they compare equal.
    let groups = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq());
    groups.map(|group| group.len() as f64).map(|size| size.powi(3) - size).sum()
}

/// Chance that U is `u` or more, or as far to the other side.
fn exact_p(a: &Sample, b: &Sample, u: f64) -> f64 {
    let counts = distribution(a.runs(), b.runs());
    let below_u = |(value, _): &(usize, &f64)| (*value as f64) < u;
    let tail: f64 = counts.iter().enumerate().skip_while(below_u).map(|(_, count)| count).sum();
    (2.0 * tail / counts.iter().sum::<f64>()).min(1.0)
}

/// In how many splits U takes each value: the coefficients of a Gaussian binomial.
fn distribution(n: usize, m: usize) -> Vec<f64> {
    let mut counts = vec![0.0; n * m + 1];
    counts[0] = 1.0;
    for factor in 1..=n {
        // Times 1 - q^(m + factor), then divided by 1 - q^factor.
        for at in (m + factor..counts.len()).rev() {
            counts[at] -= counts[at - m - factor];
        }
        for at in factor..counts.len() {
            counts[at] += counts[at - factor];
        }
    }
    counts
}

fn normal_p(a: &Sample, b: &Sample, u: f64, tied: f64) -> f64 {
    let pairs = (a.runs() * b.runs()) as f64;
    let all = (a.runs() + b.runs()) as f64;
    let variance = pairs / 12.0 * ((all + 1.0) - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    normal_two_sided((u - pairs / 2.0 - 0.5) / variance.sqrt())
}
