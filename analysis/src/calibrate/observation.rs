//! Requests with an issue and a completion, as a fit sees them.

use std::num::NonZeroU64;

use replay::device::calibrated::Stalls;
use traces::access::Source;
use traces::units::{SECTOR_SHIFT, Sector, Time};

use super::regression::Law;

/// A request that takes this many times the median of its size is a stall of the machine, not the
/// device's time.
const STALL_FACTOR: u64 = 20;
/// Size classes: powers of two of bytes.
const CLASSES: usize = 64;
/// Depths that are told apart; the last one stands for more as well.
pub(super) const DEPTHS: usize = 3;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation {
    /// Which capture.
    pub(super) capture: usize,
    pub(super) sector: Sector,
    pub(super) bytes: u64,
    pub(super) issued: Time,
    pub(super) completed: Time,
    /// Whether it begins where the request issued before it ended.
    pub(super) continues: bool,
    /// Requests in flight when it was issued, itself included.
    pub(super) depth: u64,
    /// Whether no other request was in flight at any moment of its own flight.
    pub(super) alone: bool,
    /// Whether it is left out of the fit.
    pub(super) stalled: bool,
}

impl Observation {
    pub(super) fn latency_ns(&self) -> u64 {
        self.completed - self.issued
    }

    /// Size class: log2 of the bytes, rounded up.
    pub(super) fn class(&self) -> usize {
        (self.bytes.next_power_of_two().trailing_zeros() as usize).min(CLASSES - 1)
    }

    /// Requests of one size class and depth make a cell.
    fn cell(&self) -> usize {
        self.class() * DEPTHS + (self.depth as usize).min(DEPTHS) - 1
    }
}

/// What sizes and depths the observations cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) bytes_min: u64,
    pub(super) bytes_max: u64,
    pub(super) depth_max: u64,
    pub(super) continuing: usize,
    pub(super) apart: usize,
}

/// Observations of all captures, per capture in order of issue.
pub(super) struct Observations {
    all: Vec<Observation>,
    cells: Vec<Cell>,
}

/// Requests of one size class and depth, stalls left out.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    requests: f64,
    sum_ns: f64,
}

impl Cell {
    fn mean_ns(self) -> f64 {
        if self.requests > 0.0 { (self.sum_ns / self.requests).max(1.0) } else { 1.0 }
    }

    /// How much the cell counts in a fit. Its requests share the error that the form of a law makes
    /// there, so it counts as the square root of them.
    fn weight(self) -> f64 {
        self.requests.sqrt()
    }
}

impl Observations {
    pub(super) fn new(sources: &[&Source]) -> Self {
        let mut all = Vec::new();
        for (capture, source) in sources.iter().enumerate() {
            let first = all.len();
            collect(capture, source, &mut all);
            mark_depths(&mut all[first..]);
        }
        mark_stalls(&mut all);
        let cells = cells(&all, all.iter().map(Observation::latency_ns));
        Self { all, cells }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn all(&self) -> &[Observation] {
        &self.all
    }

    /// Those a fit uses.
    pub(super) fn used(&self) -> impl Iterator<Item = &Observation> {
        self.all.iter().filter(|observation| !observation.stalled)
    }

    /// Mean latency of requests of its size and depth.
    pub(super) fn scale_ns(&self, observation: &Observation) -> f64 {
        self.cells[observation.cell()].mean_ns()
    }

    /// How much an observation counts.
    pub(super) fn weight(&self, observation: &Observation) -> f64 {
        let cell = self.cells[observation.cell()];
        cell.weight() / cell.requests.max(1.0)
    }

    pub(super) fn seen(&self) -> Seen {
        let bytes = || self.used().map(|observation| observation.bytes);
        let continuing = self.used().filter(|observation| observation.continues).count();
        Seen {
            bytes_min: bytes().min().unwrap_or(0),
            bytes_max: bytes().max().unwrap_or(0),
            depth_max: self.used().map(|observation| observation.depth).max().unwrap_or(1),
            continuing,
            apart: self.used().count() - continuing,
        }
    }

    /// How often the machine stalled, and how much longer than its like a request then took.
    /// Requests that stalled at the same time met one stall.
    pub(super) fn stalls(&self) -> Option<Stalls> {
        let mut longer_ns: Vec<f64> = Vec::new();
        let mut last: Option<&Observation> = None;
        for observation in self.all.iter().filter(|observation| observation.stalled) {
            let usual_ns = self.cells[observation.cell()].mean_ns();
            let this_ns = observation.latency_ns() as f64 - usual_ns;
            let same = last.is_some_and(|last| {
                last.capture == observation.capture && observation.issued < last.completed
            });
            match longer_ns.last_mut().filter(|_| same) {
                Some(stall_ns) => *stall_ns = stall_ns.max(this_ns),
                None => longer_ns.push(this_ns),
            }
            last = Some(observation);
        }
        let every_ns = self.recorded_ns().checked_div(longer_ns.len() as u64)?;
        let stall_ns = whole(mean(longer_ns.into_iter()));
        NonZeroU64::new(every_ns).map(|every_ns| Stalls { every_ns, stall_ns })
    }

    /// From the first issue to the last completion, over all captures.
    fn recorded_ns(&self) -> u64 {
        let of_captures = self.all.chunk_by(|a, b| a.capture == b.capture);
        let spans = of_captures.map(|requests| {
            let ends = requests.iter().map(|request| request.completed).max();
            ends.map_or(0, |end| end - requests[0].issued)
        });
        spans.sum()
    }

    /// Per observation, when a server took it up if `parallel` serve: when fewer than that many
    /// earlier ones were in flight.
    pub(super) fn taken_up(&self, parallel: u64) -> Vec<Time> {
        let mut taken = Vec::with_capacity(self.all.len());
        let mut capture = usize::MAX;
        // The latest completions of earlier requests, the earliest of them first.
        let mut latest: Vec<Time> = Vec::new();
        for observation in &self.all {
            if observation.capture != capture {
                capture = observation.capture;
                latest.clear();
            }
            let full = latest.len() as u64 >= parallel;
            let free = if full { latest[0] } else { Time(0) };
            taken.push(observation.issued.max(free).min(observation.completed));
            let at = latest.partition_point(|time| *time <= observation.completed);
            latest.insert(at, observation.completed);
            if latest.len() as u64 > parallel {
                latest.remove(0);
            }
        }
        taken
    }

    /// Requests that the device served without a pause: each was issued before all earlier ones of
    /// its capture had completed.
    pub(super) fn periods(&self) -> Vec<&[Observation]> {
        let mut periods = Vec::new();
        let (mut first, mut end) = (0, Time(0));
        for (at, observation) in self.all.iter().enumerate() {
            let before = &self.all[first];
            if at > first && (observation.capture != before.capture || observation.issued >= end) {
                periods.push(&self.all[first..at]);
                (first, end) = (at, Time(0));
            }
            end = end.max(observation.completed);
        }
        periods.push(&self.all[first..]);
        periods.retain(|period: &&[Observation]| !period.is_empty());
        periods
    }

    /// Latencies under a law that reports the completions of a period together.
    fn predicted_together(&self, law: &Law) -> Vec<u64> {
        let mut predicted = Vec::with_capacity(self.all.len());
        for period in self.periods() {
            let mut end = period[0].issued;
            for observation in period {
                end = end.max(observation.issued) + whole(law.service_ns(observation));
            }
            predicted.extend(period.iter().map(|observation| end - observation.issued));
        }
        predicted
    }

    /// Latencies that a law predicts, in nanoseconds: of each request, given what was recorded of
    /// those before it. A run from the issues alone would add up its errors wherever the device
    /// was always busy.
    pub(super) fn predicted(&self, law: &Law) -> Vec<u64> {
        if law.together {
            return self.predicted_together(law);
        }
        let taken = self.taken_up(law.parallel);
        let pairs = self.all.iter().zip(taken).enumerate();
        pairs
            .map(|(at, (observation, taken))| {
                let (server_ns, link_ns) = law.parts_ns(observation);
                let served = taken + whole(server_ns);
                let free = if link_ns > 0.0 { self.link_free(at) } else { Time(0) };
                served.max(free) + whole(link_ns) - observation.issued
            })
            .collect()
    }

    /// When the link had carried all that it carried before the request at `at`.
    fn link_free(&self, at: usize) -> Time {
        let this = &self.all[at];
        let in_flight = self.all[..at].iter().rev().take(this.depth as usize * 4);
        let before = in_flight
            .filter(|other| other.capture == this.capture && other.completed < this.completed);
        before.map(|other| other.completed).max().unwrap_or(Time(0))
    }

    /// Mean difference between predicted and recorded time of a request, relative to the mean of
    /// its size and depth.
    pub(super) fn error(&self, predicted: &[u64]) -> f64 {
        let used = self.all.iter().zip(predicted).filter(|(o, _)| !o.stalled);
        mean(used.map(|(observation, predicted)| {
            predicted.abs_diff(observation.latency_ns()) as f64 / self.scale_ns(observation)
        }))
    }

    /// The same, sizes and depths counting as in a fit.
    pub(super) fn bias(&self, law: &Law) -> f64 {
        let predicted = self.predicted(law);
        let (mut sum, mut weights) = (0.0, 0.0);
        for (observation, predicted) in self.all.iter().zip(predicted).filter(|(o, _)| !o.stalled) {
            let error = predicted.abs_diff(observation.latency_ns()) as f64;
            sum += error / self.scale_ns(observation) * self.weight(observation);
            weights += self.weight(observation);
        }
        sum / f64::max(weights, f64::MIN_POSITIVE)
    }

    /// The law, scaled until its predictions have the recorded mean.
    pub(super) fn unbiased(&self, mut law: Law) -> Law {
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            let predicted = self.predicted(&law);
            let pairs = self.all.iter().zip(predicted).filter(|(o, _)| !o.stalled);
            let (mut recorded, mut sum) = (0.0, 0.0);
            for (observation, predicted) in pairs {
                let share = self.weight(observation) / self.scale_ns(observation);
                recorded += observation.latency_ns() as f64 * share;
                sum += predicted as f64 * share;
            }
            if sum > 0.0 {
                law = law.scaled(recorded / sum);
            }
        }
        law
    }

    /// Recorded service times over those of the law.
    pub(super) fn service_ratios(&self, law: &Law) -> Vec<f64> {
        if law.together {
            let predicted = self.predicted_together(law);
            let used = self.all.iter().zip(predicted).filter(|(o, _)| o.depth == 1 && !o.stalled);
            let ratio = |(observation, predicted): (&Observation, u64)| {
                observation.latency_ns() as f64 / predicted.max(1) as f64
            };
            return used.map(ratio).collect();
        }
        let taken = self.taken_up(law.parallel);
        let used = self.all.iter().zip(taken).filter(|(observation, _)| !observation.stalled);
        used.map(|(observation, taken)| {
            let service_ns = (observation.completed - taken) as f64;
            service_ns / law.service_ns(observation).max(1.0)
        })
        .collect()
    }
}

/// The nearest whole number; 0 for what is negative.
#[expect(clippy::cast_sign_loss, reason = "negative values become 0 first")]
pub(super) fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

pub(super) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

fn collect(capture: usize, source: &Source, all: &mut Vec<Observation>) {
    let first = all.len();
    for read in source.recorded.iter().flat_map(|recorded| &recorded.reads) {
        let Some(completed) = read.completed.filter(|completed| *completed > read.issued) else {
            continue;
        };
        all.push(Observation {
            capture,
            sector: read.sector,
            bytes: read.sectors << SECTOR_SHIFT,
            issued: read.issued,
            completed,
            continues: false,
            depth: 1,
            alone: true,
            stalled: false,
        });
    }
    all[first..].sort_by_key(|observation| observation.issued);
}

/// Fills in what depends on the requests before.
fn mark_depths(observations: &mut [Observation]) {
    let mut in_flight: Vec<usize> = Vec::new();
    for at in 0..observations.len() {
        let issued = observations[at].issued;
        in_flight.retain(|&other| observations[other].completed > issued);
        for &other in &in_flight {
            observations[other].alone = false;
        }
        observations[at].depth = in_flight.len() as u64 + 1;
        observations[at].alone = in_flight.is_empty();
        in_flight.push(at);
        if let Some(before) = at.checked_sub(1).map(|before| observations[before]) {
            let end = before.sector + (before.bytes >> SECTOR_SHIFT);
            observations[at].continues = end == observations[at].sector;
        }
    }
}

fn mark_stalls(observations: &mut [Observation]) {
    let mut by_class: Vec<Vec<u64>> = vec![Vec::new(); CLASSES];
    for observation in observations.iter() {
        by_class[observation.class()].push(observation.latency_ns());
    }
    let medians: Vec<u64> = by_class
        .into_iter()
        .map(|mut latencies| {
            latencies.sort_unstable();
            latencies.get(latencies.len() / 2).copied().unwrap_or(0)
        })
        .collect();
    for observation in observations {
        let median = medians[observation.class()];
        observation.stalled = observation.latency_ns() > median.saturating_mul(STALL_FACTOR);
    }
}

fn cells(observations: &[Observation], times_ns: impl Iterator<Item = u64>) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); CLASSES * DEPTHS];
    for (observation, time_ns) in observations.iter().zip(times_ns) {
        if !observation.stalled {
            let cell = &mut cells[observation.cell()];
            cell.requests += 1.0;
            cell.sum_ns += time_ns as f64;
        }
    }
    cells
}
