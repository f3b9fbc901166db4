//! Axes. A logarithmic one is a linear axis over logarithms, so that its ticks are ours to choose.

/// A mark of an axis: where, as a share of its length, and its label.
pub(super) type Tick = (f64, String);

/// What an axis maps to its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    /// Shares from nothing to all.
    Share,
    /// From `first` to `last`, marked at multiples of `step`.
    Linear { first: f64, last: f64, step: f64 },
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

    /// Values between these, marked at about `marks` round numbers.
    pub(super) fn linear(first: f64, last: f64, marks: f64) -> Self {
        let rough = ((last - first) / marks).max(f64::MIN_POSITIVE);
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(10.0 * power);
        Self::Linear { first, last, step }
    }

    /// Values between these, marked at about `marks` multiples of a power of two.
    pub(super) fn binary(first: u64, last: u64, marks: u64) -> Self {
        let step = (last.saturating_sub(first) / marks).max(1).next_power_of_two();
        Self::Linear { first: first as f64, last: last.max(first + 1) as f64, step: step as f64 }
    }

    /// Where a value lies, 0 to 1; what is below a logarithmic axis lies at its beginning.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Self::Share => value,
            Self::Linear { first, last, .. } => (value - first) / (last - first),
            Self::Log { first, .. } if value <= first => 0.0,
            Self::Log { first, last } => (value / first).log10() / (last / first).log10(),
        }
    }

    /// Its marks, labelled by `label`.
    pub(super) fn ticks(self, label: impl Fn(f64) -> String) -> Vec<Tick> {
        match self {
            Self::Share => [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, label(share))).into(),
            Self::Linear { first, last, step } => {
                let mark = |n: i32| (first / step).ceil() * step + f64::from(n) * step;
                let marks = (0..100).map(mark).take_while(|value| *value <= last + step * 1e-6);
                marks.map(|value| (self.place(value), label(value))).collect()
            }
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
        _ if value < 1e6 => format!("{}k", brief(value / 1e3)),
        _ if value < 1e9 => format!("{}M", brief(value / 1e6)),
        _ => format!("{}G", brief(value / 1e9)),
    }
}

/// 0, 1 ns, 10 us, 2.5 ms, ...
pub(super) fn short_time(ns: f64) -> String {
    let (size, sign) = (ns.abs(), if ns < 0.0 { "\u{2212}" } else { "" });
    match size {
        _ if size < 0.5 => "0".to_owned(),
        _ if size < 1e3 => format!("{sign}{size:.0} ns"),
        _ if size < 1e6 => format!("{sign}{} us", brief(size / 1e3)),
        _ if size < 1e9 => format!("{sign}{} ms", brief(size / 1e6)),
        _ => format!("{sign}{} s", brief(size / 1e9)),
    }
}

/// 0, 4 KiB, 1.5 MiB, ...
pub(super) fn short_bytes(bytes: f64) -> String {
    const UNITS: [(f64, &str); 5] = [
        (1_099_511_627_776.0, "TiB"),
        (1_073_741_824.0, "GiB"),
        (1_048_576.0, "MiB"),
        (1024.0, "KiB"),
        (1.0, "B"),
    ];
    let unit = UNITS.into_iter().find(|(size, _)| bytes >= *size);
    unit.map_or("0".to_owned(), |(size, name)| format!("{} {name}", brief(bytes / size)))
}

/// Up to three decimals, without zeros at the end.
fn brief(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// 25%, 0.5%.
pub(super) fn short_percent(share: f64) -> String {
    format!("{}%", brief(share * 100.0))
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

    /// Where the `n`th of `of` equal parts begins.
    pub(super) fn part(self, n: usize, of: usize) -> i32 {
        self.at(n as f64 / of.max(1) as f64)
    }

    pub(super) fn middle(self) -> i32 {
        i32::midpoint(self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, label: fn(f64) -> String) -> Vec<String> {
        scale.ticks(label).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn a_logarithmic_axis_has_every_power_of_ten() {
        assert_eq!(labels(Scale::counts(3067), short_count), ["1", "10", "100", "1k", "10k"]);
        assert_eq!(labels(Scale::counts(0), short_count), ["1", "2", "5", "10"]);
        let times = Scale::between(4_000, 1_200_000);
        assert_eq!(labels(times, short_time), ["1 us", "10 us", "100 us", "1 ms", "10 ms"]);
        let one_decade = Scale::between(120_000, 480_000);
        assert_eq!(labels(one_decade, short_time), ["100 us", "200 us", "500 us", "1 ms"]);
        assert_eq!(labels(Scale::between(0, 0), short_time), ["1 ns", "2 ns", "5 ns", "10 ns"]);
    }

    #[test]
    fn a_linear_axis_is_marked_at_round_numbers() {
        let times = Scale::linear(0.0, 251_318_400.0, 5.0);
        let marks = ["0", "100 ms", "200 ms"];
        assert_eq!(labels(times, short_time), marks);
        let around_nothing = Scale::linear(-1.2e6, 0.6e6, 4.0);
        assert_eq!(
            labels(around_nothing, short_time),
            ["\u{2212}1 ms", "\u{2212}0.5 ms", "0", "0.5 ms"]
                .map(|label| label.replace("0.5 ms", "500 us"))
        );
        let bytes = Scale::binary(0, 512 << 20, 4);
        assert_eq!(labels(bytes, short_bytes), ["0", "128 MiB", "256 MiB", "384 MiB", "512 MiB"]);
    }

    #[test]
    fn places_are_inside_the_axis() {
        let scale = Scale::counts(1000);
        assert_eq!(scale.place(0.0).to_bits(), 0.0_f64.to_bits());
        assert!(scale.place(1.0) > 0.0);
        assert!((scale.place(1000.0) - 1.0).abs() < 1e-9);
    }
}
