//! Confidence intervals by resampling.

use serde::Serialize;

use super::location::{Sample, shift};
use super::{below, seeded};

/// Resamples per interval: the ends of a 95 % interval then move by about a hundredth of its width.
const RESAMPLES: usize = 2000;

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Percentile bootstrap interval of the Hodges-Lehmann shift from `a` to `b`.
pub fn shift_interval(a: &Sample, b: &Sample, confidence: f64) -> Interval {
    let mut rng = seeded();
    let mut draw = |sample: &Sample, into: &mut Vec<f64>| {
        let values = sample.values();
        into.clear();
        into.extend((0..values.len()).map(|_| values[below(&mut rng, values.len())]));
    };
    let (mut from, mut to, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    let mut shifts: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            draw(a, &mut from);
            draw(b, &mut to);
            shift(&from, &to, &mut differences)
        })
        .collect();
    shifts.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    Interval { low: quantile(&shifts, tail), high: quantile(&shifts, 1.0 - tail) }
}

/// Quantile of sorted values, interpolated between neighbours.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let position = p * last as f64;
    #[expect(clippy::cast_sign_loss, reason = "a share of a length")]
    let at = position as usize;
    let (lower, upper) = (sorted[at], sorted[last.min(at + 1)]);
    lower + (upper - lower) * position.fract()
}
