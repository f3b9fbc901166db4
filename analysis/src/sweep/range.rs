//! The values of a swept setting: `64..4096`, `64..1024:64`, `0,128,512`, `hdd,nvme`.

use traces::settings::{Origin, Settings, parse_bytes};

use super::{Axis, AxisValue, SweepError};
use crate::replay::Model;

/// The key of the modelled device, which is no setting of a source.
pub const DEVICE: &str = "device";

/// Settings whose values have a size.
const SIZED: [&str; 7] = [
    "read_ahead_kb",
    "max_sectors_kb",
    "max_segments",
    "max_segment_size",
    "min_folio_order",
    "max_folio_order",
    "memory",
];

/// Most values of one setting: a step of 1 over a large range is a mistake.
const VALUES_MAX: usize = 256;

/// Whether a `--set` value asks for more than one value.
pub fn is_range(key: &str, value: &str) -> bool {
    key == DEVICE || value.contains("..") || value.contains(',')
}

/// Settings that can be swept.
pub fn sweepable() -> impl Iterator<Item = &'static str> {
    SIZED.into_iter().chain([DEVICE])
}

impl Axis {
    /// The axis that `--set KEY=VALUES` asks for: values and ranges between commas. `A..B` goes from
    /// A to B in powers of two, `A..B:STEP` in equal steps; both ends belong to it.
    pub fn parse(key: &str, values: &str) -> Result<Self, SweepError> {
        if key == DEVICE {
            return Self::devices(values);
        }
        if !SIZED.contains(&key) {
            return Err(SweepError::NotSweepable { key: key.to_owned() });
        }
        let bad = |why: &'static str| SweepError::BadRange {
            key: key.to_owned(),
            values: values.to_owned(),
            why,
        };
        let mut numbers = Vec::new();
        for part in values.split(',') {
            add_range(part.trim(), &mut numbers).map_err(bad)?;
            if numbers.len() > VALUES_MAX {
                return Err(bad("it has more than 256 values"));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        let values: Vec<AxisValue> = numbers.into_iter().map(|n| value(key, n)).collect();
        for AxisValue { text, .. } in &values {
            Settings::default().set(key, text, Origin::Given)?;
        }
        Ok(Self { key: key.to_owned(), values })
    }

    fn devices(names: &str) -> Result<Self, SweepError> {
        let mut values: Vec<AxisValue> = Vec::new();
        for name in names.split(',').map(str::trim) {
            Model::load(name)?;
            if !values.iter().any(|known| known.text == name) {
                values.push(AxisValue { text: name.to_owned(), number: None });
            }
        }
        Ok(Self { key: DEVICE.to_owned(), values })
    }
}

/// A value as `--set` takes it: memory in the largest unit that it is a whole number of.
fn value(key: &str, number: u64) -> AxisValue {
    let text = match key {
        "memory" if number > 0 => {
            let shift = (number.trailing_zeros() / 10).min(3);
            format!("{}{}", number >> (10 * shift), ["", "K", "M", "G"][shift as usize])
        }
        _ => number.to_string(),
    };
    AxisValue { text, number: Some(number) }
}

fn add_range(part: &str, numbers: &mut Vec<u64>) -> Result<(), &'static str> {
    let number = |text| parse_bytes(text).ok_or("a value is not a number");
    let Some((first, rest)) = part.split_once("..") else {
        numbers.push(number(part)?);
        return Ok(());
    };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, Some(number(step)?)),
        None => (rest, None),
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err("it goes from the larger value to the smaller one");
    }
    let next = |n: u64| match step {
        Some(step) => n.checked_add(step),
        None => n.checked_mul(2),
    };
    match step {
        Some(0) => return Err("the step is 0"),
        None if first == 0 => return Err("powers of two do not begin at 0: write 0,4..4096"),
        _ => {}
    }
    let between = std::iter::successors(Some(first), |n| next(*n)).take_while(|n| *n < last);
    numbers.extend(between.take(VALUES_MAX + 1));
    numbers.push(last);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(key: &str, values: &str) -> String {
        match Axis::parse(key, values) {
            Ok(axis) => {
                axis.values.iter().map(|value| value.text.as_str()).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn ranges_lists_and_steps() {
        for (values, expected) in [
            ("64..4096", "64 128 256 512 1024 2048 4096"),
            ("100..1000", "100 200 400 800 1000"),
            ("128..512:128", "128 256 384 512"),
            ("128..500:128", "128 256 384 500"),
            ("512,128,128", "128 512"),
            ("0,64..256", "0 64 128 256"),
            ("64..64", "64"),
        ] {
            assert_eq!(texts("read_ahead_kb", values), expected, "{values}");
        }
        assert_eq!(texts("memory", "32M..1G"), "32M 64M 128M 256M 512M 1G");
        assert_eq!(texts("device", "hdd, nvme,hdd"), "hdd nvme");
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (key, values, expected) in [
            ("read_ahead_kb", "0..4096", "write 0,4..4096"),
            ("read_ahead_kb", "4096..64", "from the larger value"),
            ("read_ahead_kb", "64..x", "not a number"),
            ("read_ahead_kb", "0..4096:0", "the step is 0"),
            ("read_ahead_kb", "0..4096:1", "more than 256 values"),
            ("max_sectors_kb", "0,64", "4 or more"),
            ("max_folio_order", "0..12:4", "from 0 to 11"),
            ("fs", "xfs,ext4", "`fs` cannot be swept"),
            ("device", "nvme,no-such", "no-such"),
        ] {
            let text = texts(key, values);
            assert!(text.contains(expected), "{key}={values}: {text}");
        }
    }
}
