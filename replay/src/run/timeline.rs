//! What a run on virtual time gives.

use traces::units::Time;

use super::history::History;
use crate::device::queue::QueueUse;

/// How a run went.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// From the first access to the end of the last one.
    pub elapsed_ns: u64,
    /// From the first access to the beginning of the last one, as captures show it.
    pub last_begins_ns: u64,
    /// How long reads and faults waited for data, per open file.
    pub streams: Vec<StreamWaits>,
    /// When each read began and had its data, if asked for.
    pub reads: Vec<ReadTimes>,
    /// What happened when, if asked for.
    pub history: Option<History>,
    /// Requests that completed, which is all of them.
    pub requests_completed: u64,
    /// The device's queue.
    pub queue: QueueUse,
}

impl Timeline {
    /// Share of the run in which the device had something to do, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        share(self.queue.busy_ns, self.elapsed_ns.max(self.queue.busy_ns))
    }

    /// Mean number of requests at the device while it had any.
    pub fn depth_mean(&self) -> f64 {
        share(self.queue.in_flight_ns, self.queue.busy_ns)
    }

    /// Mean time of a request from its tag to its completion.
    pub fn request_ns_mean(&self) -> u64 {
        self.queue.in_flight_ns / self.queue.requests.max(1)
    }

    /// The waits of all streams, sorted; reads that did not wait count as 0.
    pub fn waits_sorted(&self) -> Waits {
        let mut waits_ns: Vec<u64> = Vec::new();
        for stream in &self.streams {
            waits_ns.extend(&stream.waits_ns);
        }
        let reads = self.streams.iter().map(|stream| stream.reads).sum();
        Waits::new(reads, waits_ns)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Waits of the reads of one open file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamWaits {
    /// Reads and faults.
    pub reads: u64,
    /// Waits of those that waited, in the order they ended.
    pub waits_ns: Vec<u64>,
}

impl StreamWaits {
    pub(super) fn add(&mut self, waited_ns: u64) {
        self.reads += 1;
        if waited_ns > 0 {
            self.waits_ns.push(waited_ns);
        }
    }

    /// Its waits, sorted.
    pub fn sorted(&self) -> Waits {
        Waits::new(self.reads, self.waits_ns.clone())
    }
}

/// Sorted waits, of which those of 0 are only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    reads: u64,
    waits_ns: Vec<u64>,
}

impl Waits {
    fn new(reads: u64, mut waits_ns: Vec<u64>) -> Self {
        waits_ns.sort_unstable();
        Self { reads, waits_ns }
    }

    /// The smallest wait that at least `percent` of the reads do not exceed.
    pub fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.reads * percent).div_ceil(100).max(1);
        let without = self.reads - self.waits_ns.len() as u64;
        let at = rank.checked_sub(without + 1);
        at.and_then(|at| self.waits_ns.get(at as usize)).copied().unwrap_or(0)
    }

    /// Reads, of which those that waited are in [`Waits::waits_ns`].
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// The waits above 0, shortest first.
    pub fn waits_ns(&self) -> &[u64] {
        &self.waits_ns
    }

    /// The longest wait.
    pub fn max(&self) -> u64 {
        self.waits_ns.last().copied().unwrap_or(0)
    }
}

/// Times of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTimes {
    /// Index into the source's accesses.
    pub access: u32,
    /// When it began.
    pub began: Time,
    /// When its last batch of folios was ready to copy.
    pub ready: Time,
}
