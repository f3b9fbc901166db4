//! Recorded time against predicted time.
//!
//! [`predict`] runs a capture's accesses in a closed loop under the recording
//! kernel's policy and compares what a capture shows of time: from the first
//! access to the last, from a read's call to its last batch of folios (the wait
//! and the CPU work around it), and from a request's issue to its completion.
//! [`calibrated_on`] and [`leave_one_out`] make the table of a calibration: what
//! it predicts for captures it has not seen, beside the spread between two
//! recordings of one workload.

use std::fmt;
use std::sync::Arc;

use replay::policy::Policy;
use replay::run::{RunOptions, Timeline};
use serde::Serialize;
use traces::access::{AccessKind, AnchorKind, Source};
use traces::units::Time;

use crate::calibrate::{CalibrateError, calibrate};
use crate::replay::Model;
use crate::result::WaitPercentiles;
use crate::verify::Timing;

/// What a replay made of the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceUse {
    /// Share of the time in which the device was busy.
    pub utilisation: f64,
    /// Mean number of requests at the device while it was busy.
    pub depth_mean: f64,
    /// Most requests at the device.
    pub depth_max: u64,
    /// Mean number of requests at the device in equal parts of the time.
    pub depth_over_time: Vec<f64>,
    /// Mean time of a request from issue to completion.
    pub request_ns: u64,
    /// Requests the model had to extrapolate.
    pub extrapolated: u64,
    /// Waits of the reads of each open file.
    pub streams: Vec<WaitPercentiles>,
}

impl DeviceUse {
    /// From a timeline, with the time in `slices` parts.
    pub fn new(timeline: &Timeline, slices: usize) -> Self {
        let streams = timeline.streams.iter().map(|stream| {
            let waits = stream.sorted();
            WaitPercentiles {
                p50: waits.percentile(50),
                p99: waits.percentile(99),
                max: waits.max(),
            }
        });
        Self {
            utilisation: timeline.utilisation(),
            depth_mean: timeline.depth_mean(),
            depth_max: timeline.queue.depth_max,
            depth_over_time: timeline.queue.depth_by_slice(Time(timeline.elapsed_ns), slices),
            request_ns: timeline.request_ns / timeline.requests_completed.max(1),
            extrapolated: timeline.queue.extrapolated,
            streams: streams.collect(),
        }
    }
}

/// A recorded value and its prediction, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// In the capture.
    pub recorded_ns: u64,
    /// In the replay.
    pub predicted_ns: u64,
}

impl Pair {
    /// Predicted over recorded, less one.
    pub fn error(self) -> f64 {
        if self.recorded_ns == 0 {
            return 0.0;
        }
        self.predicted_ns as f64 / self.recorded_ns as f64 - 1.0
    }
}

/// What a capture and its replay say of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimingCheck {
    /// The capture.
    pub source: String,
    /// From the beginning of the first access to the beginning of the last.
    pub elapsed: Pair,
    /// Median time from the call of a read to its last batch of folios.
    pub read_p50: Pair,
    /// The same, 99th percentile.
    pub read_p99: Pair,
    /// Mean time of a request from issue to completion.
    pub request: Pair,
    /// Share of the replay in which the device was busy.
    pub utilisation: f64,
    /// Requests the model had to extrapolate.
    pub extrapolated: u64,
}

impl TimingCheck {
    /// What goes into a [`CaptureVerify`](crate::verify::CaptureVerify).
    pub fn timing(&self) -> Timing {
        let Pair { recorded_ns, predicted_ns } = self.elapsed;
        Timing { recorded_ns, predicted_ns }
    }
}

/// Predicts the times of a capture under `policy`, which should be the recording kernel's.
pub fn predict(source: &Source, policy: &dyn Policy, model: &Model) -> TimingCheck {
    let options = RunOptions { keep_reads: true, ..model.options() };
    let (_, timeline) = model.run(source, policy, &options);
    let (recorded, predicted) = read_times(source, &timeline);
    TimingCheck {
        source: source.name.clone(),
        elapsed: Pair {
            recorded_ns: recorded_elapsed_ns(source),
            predicted_ns: timeline.last_begins_ns,
        },
        read_p50: percentile_pair(&recorded, &predicted, 50),
        read_p99: percentile_pair(&recorded, &predicted, 99),
        request: Pair {
            recorded_ns: recorded_request_ns(source),
            predicted_ns: timeline.request_ns / timeline.requests_completed.max(1),
        },
        utilisation: timeline.utilisation(),
        extrapolated: timeline.queue.extrapolated,
    }
}

fn recorded_elapsed_ns(source: &Source) -> u64 {
    match (source.accesses.first(), source.accesses.last()) {
        (Some(first), Some(last)) => last.time.0.saturating_sub(first.time.0),
        _ => 0,
    }
}

fn recorded_request_ns(source: &Source) -> u64 {
    let reads = source.recorded.iter().flat_map(|recorded| &recorded.reads);
    let times = reads.filter_map(|read| Some(read.completed?.0.saturating_sub(read.issued.0)));
    let (sum, count) = times.fold((0, 0), |(sum, count), time| (sum + time, count + 1));
    sum / std::cmp::Ord::max(count, 1)
}

/// Times from call to last batch, sorted, of the reads of which the capture tells: recorded and
/// predicted.
fn read_times(source: &Source, timeline: &Timeline) -> (Vec<u64>, Vec<u64>) {
    let recorded_of = recorded_read_times(source);
    let (mut recorded, mut predicted) = (Vec::new(), Vec::new());
    for read in &timeline.reads {
        if let Some(recorded_ns) = recorded_of[read.access as usize] {
            recorded.push(recorded_ns);
            predicted.push(read.ready - read.began);
        }
    }
    recorded.sort_unstable();
    predicted.sort_unstable();
    (recorded, predicted)
}

/// Per access, the time from its call to its last batch, where the capture has the batch.
fn recorded_read_times(source: &Source) -> Vec<Option<u64>> {
    let mut times = vec![None; source.accesses.len()];
    let mut last: Vec<Option<usize>> = vec![None; source.threads.len()];
    let mut has_batch = vec![false; source.threads.len()];
    let mut anchors = source.anchors.iter().peekable();
    for (index, access) in source.accesses.iter().enumerate() {
        while let Some(anchor) = anchors.next_if(|anchor| anchor.seq < access.seq) {
            has_batch[anchor.thread as usize] |= anchor.kind == AnchorKind::Batch;
        }
        let thread = access.thread as usize;
        if let Some(before) = last[thread].filter(|_| has_batch[thread] && access.think_ns > 0) {
            let began = source.accesses[before].time;
            times[before] = access.time.0.checked_sub(access.think_ns + began.0);
        }
        has_batch[thread] = false;
        last[thread] = matches!(access.kind, AccessKind::Read { .. }).then_some(index);
    }
    times
}

fn percentile_pair(recorded: &[u64], predicted: &[u64], percent: usize) -> Pair {
    Pair {
        recorded_ns: percentile(recorded, percent),
        predicted_ns: percentile(predicted, percent),
    }
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// A workload that was recorded twice.
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Both recordings, each with the recording kernel's policy.
    pub runs: [(Source, Arc<dyn Policy>); 2],
}

impl Workload {
    fn predict(&self, model: &Model, calibrated_on: bool) -> HeldOutRow {
        let runs = [0, 1].map(|run| {
            let (source, policy) = &self.runs[run];
            predict(source, &**policy, model)
        });
        HeldOutRow { workload: self.name.clone(), calibrated_on, runs }
    }
}

fn fit<'w>(workloads: impl Iterator<Item = &'w Workload>) -> Result<Model, CalibrateError> {
    let first_runs: Vec<&Source> = workloads.map(|workload| &workload.runs[0].0).collect();
    Ok(Model::new("calibrated", calibrate(&first_runs)?.device))
}

/// Calibrates on the first runs of the named workloads and predicts every run.
pub fn calibrated_on(workloads: &[Workload], names: &[&str]) -> Result<HeldOut, CalibrateError> {
    let is_named = |workload: &Workload| names.contains(&workload.name.as_str());
    let model = fit(workloads.iter().filter(|workload| is_named(workload)))?;
    let rows = workloads.iter().map(|workload| workload.predict(&model, is_named(workload)));
    Ok(HeldOut { rows: rows.collect() })
}

/// Predicts each workload's runs by a calibration on the first runs of all others.
pub fn leave_one_out(workloads: &[Workload]) -> Result<HeldOut, CalibrateError> {
    let rows = workloads.iter().enumerate().map(|(out, workload)| {
        let others = workloads.iter().enumerate().filter(|(at, _)| *at != out);
        Ok(workload.predict(&fit(others.map(|(_, other)| other))?, false))
    });
    Ok(HeldOut { rows: rows.collect::<Result<_, _>>()? })
}

/// One workload that was recorded twice, predicted by a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOutRow {
    /// The workload.
    pub workload: String,
    /// Whether the model was calibrated on its first run.
    pub calibrated_on: bool,
    /// The two runs.
    pub runs: [TimingCheck; 2],
}

impl HeldOutRow {
    /// How far the second run's elapsed time lies from the first's.
    pub fn spread(&self) -> f64 {
        let [first, second] = &self.runs;
        Pair { recorded_ns: first.elapsed.recorded_ns, predicted_ns: second.elapsed.recorded_ns }
            .error()
            .abs()
    }
}

/// The table of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// One row per workload.
    pub rows: Vec<HeldOutRow>,
}

impl HeldOut {
    /// Errors of all runs that the calibration did not see.
    fn unseen(&self, error: impl Fn(&TimingCheck) -> f64) -> Vec<f64> {
        let mut errors = Vec::new();
        for row in &self.rows {
            let unseen = usize::from(row.calibrated_on);
            errors.extend(row.runs[unseen..].iter().map(|run| error(run).abs()));
        }
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// Median error of elapsed time over the unseen runs.
    pub fn elapsed_error(&self) -> f64 {
        median(&self.unseen(|run| run.elapsed.error()))
    }

    /// Median error of the 99th percentile of read times over the unseen runs.
    pub fn read_p99_error(&self) -> f64 {
        median(&self.unseen(|run| run.read_p99.error()))
    }

    /// Median spread between two runs of a workload.
    pub fn spread(&self) -> f64 {
        let mut spreads: Vec<f64> = self.rows.iter().map(HeldOutRow::spread).collect();
        spreads.sort_by(f64::total_cmp);
        median(&spreads)
    }
}

fn median(sorted: &[f64]) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)])
}

impl fmt::Display for HeldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "                elapsed ms                      read p99 us        request us"
        )?;
        writeln!(
            f,
            "workload    run recorded predicted   error   rec.  pred.  error  rec.  pred."
        )?;
        for row in &self.rows {
            let name = format!("{}{}", row.workload, if row.calibrated_on { "*" } else { "" });
            for (at, run) in row.runs.iter().enumerate() {
                writeln!(
                    f,
                    "{:<11} {:>3} {:>8.1} {:>9.1} {:>+6.1} % {:>6.0} {:>6.0} {:>+4.0} % {:>5.0} {:>6.0}",
                    name,
                    at + 1,
                    ms(run.elapsed.recorded_ns),
                    ms(run.elapsed.predicted_ns),
                    run.elapsed.error() * 100.0,
                    us(run.read_p99.recorded_ns),
                    us(run.read_p99.predicted_ns),
                    run.read_p99.error() * 100.0,
                    us(run.request.recorded_ns),
                    us(run.request.predicted_ns),
                )?;
            }
        }
        if self.rows.iter().any(|row| row.calibrated_on) {
            writeln!(f, "* run 1 was calibrated on")?;
        }
        writeln!(
            f,
            "unseen runs: median error of elapsed {:.1} %, of read p99 {:.1} %; median spread \
             between two runs {:.1} %",
            self.elapsed_error() * 100.0,
            self.read_p99_error() * 100.0,
            self.spread() * 100.0
        )
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
