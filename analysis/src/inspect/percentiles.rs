//! Percentiles of any number of values, in memory that has a bound.

use std::collections::BTreeMap;

use serde::Serialize;

/// Values that are counted one by one.
const DISTINCT_MAX: usize = 1 << 18;
/// Leading bits that are left of a value where there are more. No 64-bit numbers have more different
/// ones than are counted.
const BITS_LEFT: u32 = 12;

/// Percentiles by nearest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Values they are taken from.
    pub count: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
    /// How much of a percentile may be missing from it, in millionths, where there are too many
    /// different values to keep them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ppm: Option<u32>,
}

/// How often every value came.
#[derive(Debug, Default)]
pub(super) struct Values {
    counts: BTreeMap<u64, u64>,
    count: u64,
    max: u64,
    is_rounded: bool,
}

impl Values {
    pub(super) fn add(&mut self, value: u64) {
        let kept = if self.is_rounded { rounded(value) } else { value };
        *self.counts.entry(kept).or_default() += 1;
        self.count += 1;
        self.max = self.max.max(value);
        if self.counts.len() > DISTINCT_MAX {
            self.is_rounded = true;
            for (value, count) in std::mem::take(&mut self.counts) {
                *self.counts.entry(rounded(value)).or_default() += count;
            }
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// `None` if there are no values.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        (self.count > 0).then(|| Percentiles {
            count: self.count,
            p50: self.at(50),
            p90: self.at(90),
            p99: self.at(99),
            max: self.max,
            within_ppm: self.is_rounded.then_some(1_000_000 >> (BITS_LEFT - 1)),
        })
    }

    /// The least value that this many percent of all values do not exceed.
    fn at(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        reached.map_or(self.max, |(value, _)| *value)
    }
}

/// A value with its leading bits alone.
fn rounded(value: u64) -> u64 {
    let dropped = (u64::BITS - value.leading_zeros()).saturating_sub(BITS_LEFT);
    value >> dropped << dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Option<Percentiles> {
        let mut all = Values::default();
        for value in values {
            all.add(value);
        }
        all.percentiles()
    }

    #[test]
    fn they_are_values_that_came() {
        assert_eq!(of([]), None);
        let one = Percentiles { count: 1, p50: 7, p90: 7, p99: 7, max: 7, within_ppm: None };
        assert_eq!(of([7]), Some(one));
        let hundred = Percentiles { count: 100, p50: 50, p90: 90, p99: 99, max: 100, ..one };
        assert_eq!(of((1..=100).rev()), Some(hundred));
        let many_of_one = of([5, 5, 5, 5, 9]).unwrap();
        assert_eq!((many_of_one.p50, many_of_one.p90), (5, 9));
    }

    /// The same values by sorting all of them.
    #[test]
    fn too_many_different_values_keep_their_leading_bits() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 20) % (1 << (state >> 58))
        };
        let mut values: Vec<u64> = (0..2 * DISTINCT_MAX).map(|_| next()).collect();
        let found = of(values.iter().copied()).unwrap();
        values.sort_unstable();
        let exact = |percent: usize| values[(values.len() * percent).div_ceil(100) - 1];
        let within = u64::from(found.within_ppm.expect("most are different"));
        for (found, exact) in
            [(found.p50, exact(50)), (found.p90, exact(90)), (found.p99, exact(99))]
        {
            assert!(
                found <= exact && (exact - found) * 1_000_000 <= exact * within,
                "{found} {exact}"
            );
        }
        assert_eq!(found.max, exact(100));
    }

    #[test]
    fn memory_is_bounded_whatever_the_values() {
        let mut values = Values::default();
        for n in 0..4 * DISTINCT_MAX as u64 {
            values.add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 64));
        }
        assert!(values.counts.len() <= DISTINCT_MAX);
        assert_eq!(values.count(), 4 * DISTINCT_MAX as u64);
    }
}
