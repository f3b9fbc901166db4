//! Numbers as people read them.

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
}

impl Unit {
    /// Its name in data files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
        }
    }

    /// A scale that shows figures up to `largest` well.
    pub(crate) fn scale(self, largest: u64) -> Scale {
        const TIMES: [(u64, &str); 4] =
            [(1_000_000_000, " s"), (1_000_000, " ms"), (1000, " us"), (1, " ns")];
        const SIZES: [(u64, &str); 4] =
            [(1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B")];
        let scales = match self {
            Self::Count => return Scale { divisor: 1, suffix: "", decimals: 0 },
            Self::Bytes => SIZES,
            Self::Nanoseconds => TIMES,
        };
        let fits = scales.into_iter().find(|(divisor, _)| largest >= *divisor);
        let (divisor, suffix) = fits.unwrap_or(scales[3]);
        let decimals = match largest / divisor {
            _ if divisor == 1 => 0,
            0..10 => 3,
            10..100 => 2,
            _ => 1,
        };
        Scale { divisor, suffix, decimals }
    }

    /// One figure on its own.
    pub(crate) fn show(self, value: u64) -> String {
        self.scale(value).show(value)
    }
}

/// Unit and decimals that the figures of a row share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    divisor: u64,
    suffix: &'static str,
    decimals: usize,
}

impl Scale {
    pub(crate) fn show(self, value: u64) -> String {
        if self.suffix.is_empty() {
            return count(value);
        }
        format!("{:.*}{}", self.decimals, value as f64 / self.divisor as f64, self.suffix)
    }

    /// A difference, with its sign.
    pub(crate) fn show_difference(self, before: u64, after: u64) -> String {
        match after.cmp(&before) {
            std::cmp::Ordering::Less => format!("-{}", self.show(before - after)),
            std::cmp::Ordering::Equal => "0".to_owned(),
            std::cmp::Ordering::Greater => format!("+{}", self.show(after - before)),
        }
    }
}

/// A count. Five digits and more come in groups of three.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count with the name of what is counted, in the plural where it has to be.
pub fn counted(value: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(value), if value == 1 { singular } else { plural })
}

/// A change as a percentage of what was before; nothing was before: no percentage.
pub(crate) fn percent_change(before: u64, after: u64) -> Option<f64> {
    (before > 0).then(|| (after as f64 - before as f64) / before as f64 * 100.0)
}

/// A power of two of bytes.
pub(crate) fn size_name(bytes: u64) -> String {
    match bytes {
        0..0x400 => format!("{bytes} B"),
        0x400..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// A signed percentage. Only no change is 0.0%.
pub(crate) fn signed_percent(percent: f64) -> String {
    match format!("{percent:+.1}%").as_str() {
        "+0.0%" if percent > 0.0 => "+<0.1%".to_owned(),
        "-0.0%" if percent < 0.0 => "-<0.1%".to_owned(),
        "+0.0%" | "-0.0%" => "0.0%".to_owned(),
        text => text.to_owned(),
    }
}

/// A share, 0 to 1, as a percentage. Only nothing is 0%, only all is 100%.
pub(crate) fn percent(share: f64) -> String {
    match format!("{:.1}%", share * 100.0).as_str() {
        "0.0%" if share > 0.0 => "<0.1%".to_owned(),
        "100.0%" if share < 1.0 => ">99.9%".to_owned(),
        "0.0%" => "0%".to_owned(),
        "100.0%" => "100%".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_from_five_digits() {
        let shown = [0, 999, 9721, 15_867, 131_072, 1_000_000].map(count);
        assert_eq!(shown, ["0", "999", "9721", "15,867", "131,072", "1,000,000"]);
    }

    #[test]
    fn scales_fit_the_largest_figure_of_a_row() {
        let scale = Unit::Nanoseconds.scale(251_300_000);
        assert_eq!([251_300_000, 900].map(|ns| scale.show(ns)), ["251.3 ms", "0.0 ms"]);
        assert_eq!(Unit::Nanoseconds.show(12_345), "12.35 us");
        assert_eq!(Unit::Nanoseconds.show(999), "999 ns");
        assert_eq!(Unit::Bytes.show(536_870_912), "512.0 MiB");
        assert_eq!(Unit::Bytes.show(0), "0 B");
    }

    #[test]
    fn changes_carry_their_sign() {
        let scale = Unit::Count.scale(0);
        assert_eq!(scale.show_difference(516, 4), "-512");
        assert_eq!(scale.show_difference(0, 1021), "+1021");
        assert_eq!(scale.show_difference(5, 5), "0");
        assert_eq!(percent_change(0, 5), None);
        assert_eq!(percent_change(9721, 1039).map(signed_percent).as_deref(), Some("-89.3%"));
        let signed = [0.0, -0.0, 0.01, -0.01, 0.1, -0.06].map(signed_percent);
        assert_eq!(signed, ["0.0%", "0.0%", "+<0.1%", "-<0.1%", "+0.1%", "-0.1%"]);
        let shares = [0.0, 0.000_01, 0.5, 0.998, 0.999_99, 1.0].map(percent);
        assert_eq!(shares, ["0%", "<0.1%", "50.0%", "99.8%", ">99.9%", "100%"]);
    }
}
