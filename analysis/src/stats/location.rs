//! Where samples lie and how far apart two of them are.

/// Finite values of one or more runs, sorted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    sorted: Vec<f64>,
}

impl Sample {
    /// `None` without values, or with one that is not finite.
    pub fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self { sorted: values })
    }

    /// The values, smallest first.
    pub fn values(&self) -> &[f64] {
        &self.sorted
    }

    /// The number of values, at least 1.
    pub fn runs(&self) -> usize {
        self.sorted.len()
    }

    /// The middle value, or the mean of the two middle ones.
    pub fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        if self.sorted.len() % 2 == 1 {
            self.sorted[middle]
        } else {
            f64::midpoint(self.sorted[middle - 1], self.sorted[middle])
        }
    }

    /// Whether all values are the same.
    pub fn is_constant(&self) -> bool {
        self.sorted.first() == self.sorted.last()
    }

    /// Standard deviation, with `n - 1`; 0 for a single value.
    pub fn deviation(&self) -> f64 {
        let n = self.sorted.len() as f64;
        if self.sorted.len() < 2 {
            return 0.0;
        }
        let mean = self.sorted.iter().sum::<f64>() / n;
        let squares = self.sorted.iter().map(|value| (value - mean).powi(2));
        (squares.sum::<f64>() / (n - 1.0)).sqrt()
    }
}

/// Hodges-Lehmann estimate of the shift from `a` to `b`: the median of all differences `b - a`.
pub fn hodges_lehmann(a: &Sample, b: &Sample) -> f64 {
    shift(a.values(), b.values(), &mut Vec::new())
}

/// The same on plain values, with a buffer that a bootstrap reuses.
pub(super) fn shift(a: &[f64], b: &[f64], differences: &mut Vec<f64>) -> f64 {
    differences.clear();
    differences.extend(a.iter().flat_map(|a| b.iter().map(move |b| b - a)));
    let middle = differences.len() / 2;
    let is_odd = differences.len() % 2 == 1;
    let (below, &mut upper, _) = differences.select_nth_unstable_by(middle, f64::total_cmp);
    if is_odd {
        return upper;
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(lower, upper)
}
