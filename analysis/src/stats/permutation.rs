//! The permutation test of a difference of means.

use super::{below, seeded};

/// Splits up to this number are all tried; beyond, a sample of them is.
const SPLITS_MAX: f64 = 20_000.0;

/// Splits drawn when there are too many to try.
const DRAWS: u32 = 9999;

/// Two-sided p-value of the difference of the means of `a` and `b`.
///
/// Exact where the values can be split in at most 20,000 ways, else from 9999
/// drawn splits. On the [mid-ranks](super::mid_ranks) of the values this is the
/// exact rank-sum test with ties. An empty side gives 1.
pub fn permutation(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let mut pooled = [a, b].concat();
    // With the sizes given, the sum of one side decides the difference of the means.
    let observed: f64 = a.iter().sum();
    let slack = 1e-12 * pooled.iter().map(|value| value.abs()).sum::<f64>();
    let mut tails = Tails { observed, slack, ..Tails::default() };
    if super::runs::splits(a.len(), b.len()) <= SPLITS_MAX {
        each_sum(&pooled, a.len(), 0.0, &mut |sum| tails.count(sum));
        return tails.two_sided();
    }
    let mut rng = seeded();
    tails.count(observed);
    for _ in 0..DRAWS {
        for at in 0..a.len() {
            let other = at + below(&mut rng, pooled.len() - at);
            pooled.swap(at, other);
        }
        tails.count(pooled[..a.len()].iter().sum());
    }
    tails.two_sided()
}

/// Calls `see` with the sum of every choice of `left` of the `values`.
fn each_sum(values: &[f64], left: usize, sum: f64, see: &mut impl FnMut(f64)) {
    if left == 0 {
        return see(sum);
    }
    for at in 0..=values.len() - left {
        each_sum(&values[at + 1..], left - 1, sum + values[at], see);
    }
}

/// Splits as far out as the observed one.
#[derive(Default)]
struct Tails {
    observed: f64,
    /// Sums closer than this are equal: they are added in different orders.
    slack: f64,
    low: u32,
    high: u32,
    all: u32,
}

impl Tails {
    fn count(&mut self, sum: f64) {
        self.low += u32::from(sum <= self.observed + self.slack);
        self.high += u32::from(sum >= self.observed - self.slack);
        self.all += 1;
    }

    fn two_sided(&self) -> f64 {
        (2.0 * f64::from(self.low.min(self.high)) / f64::from(self.all)).min(1.0)
    }
}
