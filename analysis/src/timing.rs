//! Recorded time against predicted time.
//!
//! [`predict`] runs a capture's accesses in a closed loop under the recording
//! kernel's policy and compares what a capture shows of time: from the first
//! access to the last, from a read's call to its last batch of folios (the wait
//! and the CPU work around it), and from a request's issue to its completion.

use replay::policy::Policy;
use replay::run::{RunOptions, Timeline};
use serde::Serialize;
use traces::access::{Access, AccessKind, AnchorKind, Source};
use traces::units::Time;

use crate::replay::Model;
use crate::result::WaitPercentiles;
use crate::verify::{CaptureVerify, Pair, Timing, VerifyError, verify};

/// Parts of the time in [`DeviceUse::depth_over_time`].
const SLICES: usize = 100;

/// What a replay made of the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceUse {
    /// Time in which the device had something to do.
    pub busy_ns: u64,
    /// The same as a share of the elapsed time.
    pub utilisation: f64,
    /// Mean number of requests at the device while it was busy.
    pub depth_mean: f64,
    /// Most requests at the device.
    pub depth_max: u64,
    /// Mean number of requests at the device in equal parts of the time.
    pub depth_over_time: Vec<f64>,
    /// Mean time of a request from issue to completion.
    pub request_ns: u64,
    /// Requests that the scheduler merged into others.
    pub merged: u64,
    /// Requests the model had to extrapolate.
    pub extrapolated: u64,
    /// Waits of the reads of each open file.
    pub streams: Vec<StreamUse>,
}

/// How long the reads of an open file waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamUse {
    /// The file, as `DEVICE/0xINODE`.
    pub file: String,
    /// Reads and faults.
    pub reads: u64,
    /// Wait per read.
    pub read_wait_ns: WaitPercentiles,
}

impl DeviceUse {
    /// From the timeline of a source.
    pub fn new(source: &Source, timeline: &Timeline) -> Self {
        let queue = &timeline.queue;
        let end = Time(timeline.elapsed_ns);
        let streams = source.opens.iter().zip(&timeline.streams).map(|(open, stream)| StreamUse {
            file: source.files[open.file as usize].id.to_string(),
            reads: stream.reads,
            read_wait_ns: WaitPercentiles::of(&stream.sorted()),
        });
        Self {
            busy_ns: queue.busy_ns,
            utilisation: thousandths(timeline.utilisation()),
            depth_mean: thousandths(timeline.depth_mean()),
            depth_max: queue.depth_max,
            depth_over_time: queue
                .depth_by_slice(end, SLICES)
                .into_iter()
                .map(thousandths)
                .collect(),
            request_ns: timeline.request_ns_mean(),
            merged: queue.merged,
            extrapolated: queue.extrapolated,
            streams: streams.collect(),
        }
    }
}

/// As many digits as anybody reads.
fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Predicts the times of a capture under `policy`, which should be the recording kernel's.
pub fn predict(source: &Source, policy: &dyn Policy, model: &Model) -> Timing {
    let options = RunOptions { keep_reads: true, ..model.options() };
    let (_, timeline) = model.run(source, policy, &options);
    let (recorded, predicted) = read_times(source, &timeline);
    Timing {
        elapsed: Pair {
            recorded_ns: recorded_elapsed_ns(source),
            predicted_ns: timeline.last_begins_ns,
        },
        read_p50: percentile_pair(&recorded, &predicted, 50),
        read_p99: percentile_pair(&recorded, &predicted, 99),
        device_read: Pair {
            recorded_ns: recorded_request_ns(source),
            predicted_ns: timeline.request_ns_mean(),
        },
        extrapolated: timeline.queue.extrapolated,
    }
}

/// Holds a capture against a replay under `policy`, the recording kernel's: folios, device reads and,
/// under `model`, time.
pub fn verify_timed(
    source: &Source,
    policy: &dyn Policy,
    model: &Model,
) -> Result<CaptureVerify, VerifyError> {
    let verified = verify(source, policy)?;
    Ok(CaptureVerify { timing: predict(source, policy, model), ..verified })
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
    let mut reading: Vec<Option<usize>> = vec![None; source.threads.len()];
    // What a reader reclaims on its way ends no read.
    let is_eviction = |access: &Access| matches!(access.kind, AccessKind::Evict { .. });
    let accesses = source.accesses.iter().enumerate();
    let mut accesses = accesses.filter(|(_, access)| !is_eviction(access)).peekable();
    for batch in source.anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Batch) {
        while let Some((index, access)) = accesses.next_if(|(_, access)| access.seq <= batch.seq) {
            let is_read = matches!(access.kind, AccessKind::Read { .. });
            reading[access.thread as usize] = is_read.then_some(index);
        }
        if let Some(read) = reading[batch.thread as usize] {
            times[read] = batch.time.0.checked_sub(source.accesses[read].time.0);
        }
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
