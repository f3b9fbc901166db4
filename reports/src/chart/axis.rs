//! Axes. A logarithmic one is a linear axis over logarithms, so that its ticks are ours to choose.

/// A mark of an axis: where, as a share of its length, and its label.
pub(super) type Tick = (f64, String);

/// What an axis maps to its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Shares from nothing to all.
    Share,
    /// Powers of ten, from `first` to `last`.
    Log { first: f64, last: f64 },
}

impl Scale {
    /// Counts up to `largest`. It begins at a half, so that one has a bar.
    pub(super) fn counts(largest: u64) -> Self {
        Self::Log { first: 0.5, last: power_above(largest.max(10)) }
    }

    /// Positive values between these, in whole decades.
    pub(super) fn between(smallest: u64, largest: u64) -> Self {
        let first = 10_f64.powf((smallest.max(1) as f64).log10().floor());
        Self::Log { first, last: power_above(largest).max(first * 10.0) }
    }

    /// Where a value lies, 0 to 1; what is below a logarithmic axis lies at its beginning.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Self::Share => value,
            Self::Log { first, .. } if value <= first => 0.0,
            Self::Log { first, last } => (value / first).log10() / (last / first).log10(),
        }
    }

    /// Its marks, labelled by `label`.
    pub(super) fn ticks(self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        match self {
            Self::Share => [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, label(share))).into(),
            Self::Log { first, last } => {
                // Two decades or less need marks between the powers.
                let within: &[f64] = if last / first > 100.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let powers = (0..20).map(|power| 10_f64.powi(power));
                let marks = powers.flat_map(|power| within.iter().map(move |digit| digit * power));
                let shown = marks.filter(|value| (first..=last * 1.001).contains(value));
                shown.map(|value| (self.place(value), label(value))).collect()
            }
        }
    }
}

fn power_above(value: u64) -> f64 {
    10_f64.powf((value.max(1) as f64).log10().ceil())
}

/// 1, 10, 100, 1k, 10k, ...
pub(super) fn short_count(value: f64) -> String {
    match value {
        _ if value < 1e3 => format!("{value:.0}"),
        _ if value < 1e6 => format!("{:.0}k", value / 1e3),
        _ if value < 1e9 => format!("{:.0}M", value / 1e6),
        _ => format!("{:.0}G", value / 1e9),
    }
}

/// 1 ns, 10 us, 100 ms, ...
pub(super) fn short_time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        _ if ns < 1e9 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.0} s", ns / 1e9),
    }
}

/// 25%.
pub(super) fn whole_percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A line of pixels that a scale is laid along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: i32,
    pub(super) to: i32,
}

impl Span {
    /// Where a share of its length lies.
    pub(super) fn at(self, share: f64) -> i32 {
        self.from + (f64::from(self.to - self.from) * share).round() as i32
    }

    pub(super) fn middle(self) -> i32 {
        i32::midpoint(self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_every_power_of_ten() {
        let labels = |scale: Scale, label: fn(f64) -> String| {
            scale.ticks(label).into_iter().map(|(_, label)| label).collect::<Vec<_>>()
        };
        assert_eq!(labels(Scale::counts(3067), short_count), ["1", "10", "100", "1k", "10k"]);
        assert_eq!(labels(Scale::counts(0), short_count), ["1", "2", "5", "10"]);
        let times = Scale::between(4_000, 1_200_000);
        assert_eq!(labels(times, short_time), ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        let one_decade = Scale::between(120_000, 480_000);
        assert_eq!(labels(one_decade, short_time), ["100 us", "200 us", "500 us", "1 ms"]);
        assert_eq!(labels(Scale::between(0, 0), short_time), ["1 ns", "2 ns", "5 ns", "10 ns"]);
    }

    #[test]
    fn places_are_inside_the_axis() {
        let scale = Scale::counts(1000);
        assert_eq!(scale.place(0.0).to_bits(), 0.0_f64.to_bits());
        assert!(scale.place(1.0) > 0.0);
        assert!((scale.place(1000.0) - 1.0).abs() < 1e-9);
    }
}
