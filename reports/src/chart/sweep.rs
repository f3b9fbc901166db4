//! What a sweep gave, with the value to take: curves over one setting, or a map over two.
//!
//! A device or a size of memory that is swept beside a setting has panels of its own, since nobody
//! chooses it by the readahead it takes. Two other settings are a map: which pair to take is the
//! question.

mod curves;
mod map;

use analysis::result::SettingView;
use analysis::sweep::{Advice, Goal, SweepFigures, SweepReport};

use super::axis::{Scale, short_bytes, short_count, short_percent, short_time};
use super::figure::Figure;
use crate::number::{Unit, count, percent};
use crate::words;

/// The chart of a sweep.
pub fn of_sweep(report: &SweepReport) -> Figure {
    let is_given = report.advice.iter().any(|advice| advice.given.is_some());
    if report.axes.len() > 1 && !is_given { map::figure(report) } else { curves::figure(report) }
}

/// A figure of a sweep.
#[derive(Clone, Copy)]
struct Metric {
    /// Its name for people.
    title: &'static str,
    /// Its name in data files.
    key: &'static str,
    counts: Counts,
    of: fn(&SweepFigures) -> f64,
}

/// What a figure is counted in.
#[derive(Clone, Copy)]
enum Counts {
    Nanoseconds,
    Bytes,
    Things,
    Share,
}

const ELAPSED: Metric = Metric {
    title: "Elapsed",
    key: "elapsed",
    counts: Counts::Nanoseconds,
    of: |figures| figures.elapsed_ns as f64,
};
const WAIT: Metric = Metric {
    title: "Read wait, 99th percentile",
    key: "wait p99",
    counts: Counts::Nanoseconds,
    of: |figures| figures.read_wait_ns.p99 as f64,
};
const READS: Metric = Metric {
    title: "Device reads",
    key: "reads",
    counts: Counts::Things,
    of: |figures| figures.device_reads.count as f64,
};
const BYTES: Metric = Metric {
    title: "Bytes read",
    key: "bytes",
    counts: Counts::Bytes,
    of: |figures| figures.device_reads.bytes as f64,
};
const WASTE: Metric = Metric {
    title: "Readahead in vain",
    key: "unused",
    counts: Counts::Share,
    of: SweepFigures::waste,
};

/// What a value was chosen by.
fn metric_of(goal: Goal) -> Metric {
    match goal {
        Goal::Elapsed => ELAPSED,
        Goal::Wait => WAIT,
        Goal::Reads => READS,
    }
}

impl Metric {
    fn show(self, value: f64) -> String {
        match self.counts {
            Counts::Nanoseconds => Unit::Nanoseconds.show(value.round() as u64),
            Counts::Bytes => Unit::Bytes.show(value.round() as u64),
            Counts::Things => count(value.round() as u64),
            Counts::Share => percent(value),
        }
    }

    fn unit(self) -> &'static str {
        match self.counts {
            Counts::Nanoseconds => "ns",
            Counts::Bytes => "bytes",
            Counts::Things => "count",
            Counts::Share => "share",
        }
    }

    /// An axis from nothing, so that heights compare.
    fn scale(self, largest: f64) -> Scale {
        match self.counts {
            Counts::Bytes => Scale::binary(0, largest.ceil() as u64, 4),
            Counts::Share if largest > 0.5 => Scale::Share,
            _ if largest <= 0.0 => Scale::linear(0.0, 1.0, 2.0),
            _ => Scale::linear(0.0, largest * 1.02, 4.0),
        }
    }

    fn tick(self) -> fn(f64) -> String {
        match self.counts {
            Counts::Nanoseconds => short_time,
            Counts::Bytes => short_bytes,
            Counts::Things => short_count,
            Counts::Share => short_percent,
        }
    }
}

/// Source, fidelity and the settings that every point shares.
fn caption(report: &SweepReport) -> String {
    let is_swept = |key: &str| report.axes.iter().any(|axis| axis.key == key);
    let shared = report.settings.iter().filter(|setting| !is_swept(setting.key));
    let shared: Vec<SettingView> = shared.cloned().collect();
    let verify = report.verify.as_ref();
    let origin = super::figure::origin(&report.source, report.fidelity, &shared, verify);
    let device = report.device.as_ref().map(|device| format!(": {}", device.model));
    format!("{origin}; time is modelled{}", device.unwrap_or_default())
}

/// The values of a point: `read_ahead_kb 128, max_sectors_kb 512`.
fn name_of(report: &SweepReport, place: usize) -> String {
    let values = report.axes.iter().zip(&report.points[place].values);
    values.map(|(axis, value)| format!("{} {value}", axis.key)).collect::<Vec<_>>().join(", ")
}

/// What there is to say of a point, for data files.
fn mark(advice: Option<&Advice>, place: usize) -> &'static str {
    let is = |point: fn(&Advice) -> Option<usize>| advice.and_then(point) == Some(place);
    match (is(|advice| advice.point), is(|advice| advice.knee)) {
        (true, true) => "chosen, knee",
        (true, false) => "chosen",
        (false, true) => "knee",
        (false, false) => "",
    }
}

/// The reasons of all answers, one after the other.
fn answers<'a>(advice: impl Iterator<Item = &'a Advice>) -> String {
    let answer = |advice: &Advice| format!("{}: {}", advice.policy, advice.reason.join(" "));
    advice.map(answer).collect::<Vec<_>>().join(" ")
}

/// A chart is named after the file that was swept.
fn source(report: &SweepReport) -> &str {
    words::file_name(&report.source)
}
