//! Sweeps: one source replayed over a range of one or two settings.
//!
//! Every point is a whole replay under one value of each swept setting and under
//! each policy. [`Advice`] names a value and says why in words: the smallest one
//! that is about as good as the best, what smaller ones cost and what larger ones
//! waste, and what keeps the capture from telling.

mod advice;
mod doubts;
mod range;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use replay::device::DeviceError;
use replay::policy::Policy;
use serde::Serialize;
use traces::access::{Fidelity, Source};
use traces::capture::Losses;
use traces::settings::{Origin, SettingError};

pub use advice::{Advice, Given, Goal, Shape};
pub use range::{DEVICE, is_range, sweepable};

use crate::replay::{Model, summarize};
use crate::result::{
    DeviceReads, DeviceView, FolioCounts, PageCounts, SettingView, StreamCounts, WaitPercentiles,
    view_settings,
};
use crate::verify::CaptureVerify;

/// Name of the JSON schema.
pub const SCHEMA: &str = "rareplay.sweep/1";

/// Most replays of one source.
const RUNS_MAX: usize = 4096;

/// A sweep that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A setting that decides how the source is read, or that is no quantity.
    #[error("`{key}` cannot be swept; what can is {}", sweepable().collect::<Vec<_>>().join(", "))]
    NotSweepable {
        /// Its key.
        key: String,
    },
    /// The values are no range.
    #[error("{key}={values}: {why}")]
    BadRange {
        /// The setting.
        key: String,
        /// Its values as given.
        values: String,
        /// Why not.
        why: &'static str,
    },
    /// A value that the setting cannot have.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A device that is not known.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No setting has more than one value, more than two have, or one has twice.
    #[error(
        "a sweep is over one or two settings with several values, such as `--set read_ahead_kb=64..4096`; given are {given}"
    )]
    Axes {
        /// How many were given, or which one twice.
        given: String,
    },
    /// Too many replays.
    #[error("{runs} replays are more than {RUNS_MAX}: give fewer values")]
    TooMany {
        /// How many it would be.
        runs: usize,
    },
    /// A policy's own code failed.
    #[error("{source_name}: {failure}")]
    PolicyFailed {
        /// The source.
        source_name: String,
        /// How.
        failure: String,
    },
}

/// A swept setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// Its `--set` key, or `device`.
    pub key: String,
    /// Its values, smallest first; devices in the order given.
    pub values: Vec<AxisValue>,
}

impl Axis {
    /// Whether its values have a size, so that one can be smaller than another.
    pub fn is_sized(&self) -> bool {
        self.values.iter().all(|value| value.number.is_some())
    }
}

/// One value of a swept setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AxisValue {
    /// As `--set` takes it.
    pub text: String,
    /// Its size in the unit of the setting: KiB for `*_kb`, bytes for memory; `None` for a device.
    pub number: Option<u64>,
}

/// What a policy gave at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepFigures {
    /// Name of the policy.
    pub policy: String,
    /// Folios inserted.
    pub folios: FolioCounts,
    /// Device reads.
    pub device_reads: DeviceReads,
    /// Pages.
    pub pages: PageCounts,
    /// Virtual time from the first access to the end of the last one.
    pub elapsed_ns: u64,
    /// Wait per read.
    pub read_wait_ns: WaitPercentiles,
    /// Sum of the waits of all reads.
    pub read_wait_ns_total: u64,
    /// Share of the time in which the device had a request, 0 to 1.
    #[serde(serialize_with = "crate::compare::number")]
    pub device_busy: f64,
    /// Mean number of requests at the device while it had any.
    #[serde(serialize_with = "crate::compare::number")]
    pub queue_depth_mean: f64,
}

impl SweepFigures {
    /// Share of the inserted pages that the program never used, 0 to 1.
    pub fn waste(&self) -> f64 {
        self.pages.unused as f64 / self.pages.inserted.max(1) as f64
    }
}

/// One value of every swept setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepPoint {
    /// Per axis, the place of the value on it.
    pub at: Vec<usize>,
    /// Per axis, the value as `--set` takes it.
    pub values: Vec<String>,
    /// Whether the source came with these values.
    pub is_current: bool,
    /// One per policy, in their order.
    pub results: Vec<SweepFigures>,
}

/// Something that limits what a sweep can tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// Its kind, for scripts.
    pub kind: DoubtKind,
    /// In words.
    pub text: String,
}

/// The kinds of [`Doubt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DoubtKind {
    /// The streams show what readahead did, not what the program asked for.
    StreamInferred,
    /// The replay does not reproduce the capture.
    NotExact,
    /// The capture lost events.
    Losses,
    /// The device model was not fitted to the machine of the capture.
    Uncalibrated,
    /// The model is far off on the capture's own time.
    TimingError,
    /// Unused pages cost no memory in the replay.
    MemoryNotModelled,
    /// A limit that bounds the swept setting was assumed.
    SettingAssumed,
    /// The device is busy all the time and nothing makes a difference.
    DeviceBound,
    /// Reads hardly wait, so there is little to gain.
    ProgramBound,
    /// Nothing is read from the device.
    NoReads,
}

/// A source swept over one or two settings: `rareplay.sweep/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepReport {
    /// `rareplay.sweep/1`.
    pub schema: &'static str,
    /// The source's name.
    pub source: String,
    /// How much of the capture the streams reproduce.
    pub fidelity: Fidelity,
    /// Files, opens, threads and accesses of the source.
    pub streams: StreamCounts,
    /// Settings and their origins, before the swept ones are changed.
    pub settings: Vec<SettingView>,
    /// The device model, unless devices are swept.
    pub device: Option<DeviceView>,
    /// One or two swept settings.
    pub axes: Vec<Axis>,
    /// Policies, in the order asked for.
    pub policies: Vec<String>,
    /// What a value is chosen by.
    pub goal: Goal,
    /// How much worse than the best a value may be and still count as as good, in percent.
    #[serde(serialize_with = "crate::compare::number")]
    pub tolerance_percent: f64,
    /// Every combination of values; those of the last axis follow each other.
    pub points: Vec<SweepPoint>,
    /// A value for each policy, and for each device or size of memory swept beside a setting.
    pub advice: Vec<Advice>,
    /// What limits the answers.
    pub doubts: Vec<Doubt>,
    /// The recording kernel's policy held against the capture, with times under the model that
    /// `device` names; `None` for a workload description.
    pub verify: Option<CaptureVerify>,
    /// What the capture lost.
    pub losses: Losses,
}

/// How to sweep.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The modelled machine, where devices are not swept.
    pub model: Model,
    /// What a value is chosen by.
    pub goal: Goal,
    /// How much worse than the best a value may be, in percent.
    pub tolerance_percent: f64,
}

/// The settings that a sweep goes over, one or two of them.
#[derive(Clone, Debug)]
pub struct Axes {
    axes: Vec<Axis>,
    /// Models by the name of a swept device.
    models: BTreeMap<String, Model>,
}

impl Axes {
    /// From `--set KEY=VALUES` entries with more than one value.
    pub fn parse(given: &[(String, String)]) -> Result<Self, SweepError> {
        if !(1..=2).contains(&given.len()) {
            return Err(SweepError::Axes { given: given.len().to_string() });
        }
        let axes: Result<Vec<Axis>, _> =
            given.iter().map(|(key, values)| Axis::parse(key, values)).collect();
        let axes = axes?;
        if let [first, second] = &axes[..]
            && first.key == second.key
        {
            return Err(SweepError::Axes { given: format!("{} twice", first.key) });
        }
        let mut models = BTreeMap::new();
        for value in axes.iter().filter(|axis| axis.key == DEVICE).flat_map(|axis| &axis.values) {
            models.insert(value.text.clone(), Model::load(&value.text)?);
        }
        Ok(Self { axes, models })
    }

    /// How many points there are.
    #[expect(clippy::len_without_is_empty, reason = "a sweep has at least one point")]
    pub fn len(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// Points, as the places of their values.
    fn points(&self) -> Vec<Vec<usize>> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |point: &Vec<usize>| {
                let point = point.clone();
                (0..axis.values.len()).map(move |at| [&point[..], &[at]].concat())
            };
            points = points.iter().flat_map(longer).collect();
        }
        points
    }

    fn values<'a>(&'a self, at: &'a [usize]) -> impl Iterator<Item = (&'a str, &'a str)> {
        let values = self.axes.iter().zip(at);
        values.map(|(axis, at)| (axis.key.as_str(), axis.values[*at].text.as_str()))
    }
}

/// Replays a source at every point under every policy. The report also carries what is known of the
/// source; `done` is called after each replay, from any thread.
pub fn sweep(
    source: &Source,
    axes: &Axes,
    policies: &[Arc<dyn Policy>],
    options: &SweepOptions,
    (verify, losses): (Option<CaptureVerify>, Losses),
    done: &(dyn Fn() + Sync),
) -> Result<SweepReport, SweepError> {
    let points = axes.points();
    let runs = axes.len() * policies.len();
    if runs > RUNS_MAX {
        return Err(SweepError::TooMany { runs });
    }
    // What was recorded is not replayed, and each replay takes a copy of the rest.
    let bare = Source { recorded: None, anchors: Vec::new(), ..source.clone() };
    let results: Result<Vec<SweepFigures>, SweepError> = (0..runs)
        .into_par_iter()
        .map(|run| {
            let (point, policy) = (&points[run / policies.len()], &policies[run % policies.len()]);
            let figures = run_point(&bare, axes, point, &**policy, options);
            done();
            figures
        })
        .collect();
    let mut results = results?.into_iter();
    let current = view_settings(&source.settings);
    let mut point = |at: Vec<usize>| {
        let is = |(key, value)| is_current(key, value, &current, options);
        let is_current = axes.values(&at).all(is);
        SweepPoint {
            is_current,
            values: axes.values(&at).map(|(_, value)| value.to_owned()).collect(),
            results: results.by_ref().take(policies.len()).collect(),
            at,
        }
    };
    let points: Vec<SweepPoint> = points.into_iter().map(&mut point).collect();
    let sweeps_devices = !axes.models.is_empty();
    let mut report = SweepReport {
        schema: SCHEMA,
        source: source.name.clone(),
        fidelity: source.fidelity,
        streams: StreamCounts::of(source),
        settings: current,
        device: (!sweeps_devices).then(|| options.model.view()),
        axes: axes.axes.clone(),
        policies: policies.iter().map(|policy| policy.name().to_owned()).collect(),
        goal: options.goal,
        tolerance_percent: options.tolerance_percent,
        points,
        advice: Vec::new(),
        doubts: Vec::new(),
        verify,
        losses,
    };
    report.advice = advice::advise(&report);
    report.doubts = doubts::of(&report, source);
    Ok(report)
}

fn is_current(key: &str, value: &str, current: &[SettingView], options: &SweepOptions) -> bool {
    if key == DEVICE {
        return value == options.model.name;
    }
    let view = current.iter().find(|view| view.key == key);
    let bytes = traces::settings::parse_bytes;
    view.is_some_and(|view| bytes(&view.value).is_some() && bytes(&view.value) == bytes(value))
}

fn run_point(
    source: &Source,
    axes: &Axes,
    point: &[usize],
    policy: &dyn Policy,
    options: &SweepOptions,
) -> Result<SweepFigures, SweepError> {
    let mut source = source.clone();
    let mut model = &options.model;
    for (key, value) in axes.values(point) {
        match axes.models.get(value).filter(|_| key == DEVICE) {
            Some(of_device) => model = of_device,
            None => source.set(key, value, Origin::Given)?,
        }
    }
    let (machine, timeline) = model.run(&source, policy, &model.options());
    let result = summarize(&source, policy.name(), &machine, &timeline);
    if let Some(failure) = result.failure {
        return Err(SweepError::PolicyFailed { source_name: source.name, failure });
    }
    Ok(SweepFigures {
        policy: result.policy,
        folios: result.folios,
        device_reads: result.device_reads,
        pages: result.pages,
        elapsed_ns: result.elapsed_ns,
        read_wait_ns: result.read_wait_ns,
        read_wait_ns_total: timeline.streams.iter().flat_map(|stream| &stream.waits_ns).sum(),
        device_busy: result.device_use.utilisation,
        queue_depth_mean: result.device_use.depth_mean,
    })
}
