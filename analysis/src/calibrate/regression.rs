//! The law a fitted device follows, and its least-squares fit.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use replay::device::calibrated::CurvePoint;
use replay::device::{CalibratedParameters, SeenRange};

use super::observation::{Observation, Observations, whole};

/// Fewest requests of a kind that can tell it from the others.
const KIND_MIN: usize = 30;
/// A term smaller than this share of the fixed cost is noise.
const TERM_MIN: f64 = 0.1;
/// Completions as close as this are reported together.
const TOGETHER_NS: u64 = 15_000;
/// Share of the requests in flight with others that complete together, if completions are reported
/// together.
const TOGETHER_MIN: f64 = 0.8;
/// A fixed cost below 0 comes from a term that stands for it.
const FIXED_LAST: [usize; 3] = [IDLE, APART, 0];
/// A term that keeps no more than this share of itself beside the terms before it says nothing new.
const DEPENDENT_MAX: f64 = 1e-9;
/// A curve that stays closer than this to the line is noise.
const BEND_MIN: f64 = 0.1;

/// Fixed cost, cost per byte, servers side by side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) fixed_ns: f64,
    /// Added to a request that does not continue the one before.
    pub(super) apart_ns: f64,
    /// Added to a request that finds the device idle.
    pub(super) idle_ns: f64,
    pub(super) byte_ps: f64,
    pub(super) parallel: u64,
    /// Share of the cost per byte that is spent on a link all servers share.
    pub(super) link_share: f64,
    /// Bends the line: (bytes, factor), by size.
    pub(super) curve: Vec<(u64, f64)>,
    /// Completions are reported when the device has nothing left to do.
    pub(super) together: bool,
}

impl Law {
    /// Time in a server, and on an idle link.
    pub(super) fn service_ns(&self, observation: &Observation) -> f64 {
        let apart_ns = if observation.continues { 0.0 } else { self.apart_ns };
        let idle_ns = if observation.depth == 1 { self.idle_ns } else { 0.0 };
        let straight_ns =
            self.fixed_ns + apart_ns + idle_ns + observation.bytes as f64 * self.byte_ps / 1000.0;
        straight_ns * self.factor(observation.bytes)
    }

    /// Time in a server and time on the link.
    pub(super) fn parts_ns(&self, observation: &Observation) -> (f64, f64) {
        let link_ns = observation.bytes as f64 * self.byte_ps * self.link_share / 1000.0;
        let straight_ns = self.service_ns(observation) / self.factor(observation.bytes);
        ((straight_ns - link_ns) * self.factor(observation.bytes), link_ns)
    }

    fn factor(&self, bytes: u64) -> f64 {
        let after = self.curve.partition_point(|(size, _)| *size <= bytes);
        match (after.checked_sub(1).map(|at| self.curve[at]), self.curve.get(after)) {
            (Some((from, low)), Some(&(to, high))) => {
                low + (high - low) * (bytes - from) as f64 / (to - from) as f64
            }
            (Some((_, factor)), None) | (None, Some(&(_, factor))) => factor,
            (None, None) => 1.0,
        }
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self {
            fixed_ns: self.fixed_ns * factor,
            apart_ns: self.apart_ns * factor,
            idle_ns: self.idle_ns * factor,
            byte_ps: self.byte_ps * factor,
            ..self
        }
    }

    pub(super) fn parameters(&self, seen: SeenRange) -> CalibratedParameters {
        let link_ps = self.byte_ps * self.link_share;
        let bytes_per_s = (link_ps > 0.0).then(|| whole(1e12 / link_ps));
        CalibratedParameters {
            fixed_ns: whole(self.fixed_ns),
            discontiguous_ns: whole(self.apart_ns),
            idle_ns: whole(self.idle_ns),
            byte_ps: whole(self.byte_ps - link_ps),
            parallel: NonZeroU64::new(self.parallel).unwrap_or(NonZeroU64::MIN),
            link_bytes_per_s: bytes_per_s.and_then(NonZeroU64::new),
            together: self.together,
            curve: self.curve.iter().map(curve_point).collect(),
            stalls: None,
            seen,
        }
    }
}

fn curve_point(&(bytes, factor): &(u64, f64)) -> CurvePoint {
    CurvePoint { bytes, permille: whole(factor * 1000.0) }
}

/// Fits the time in one of `parallel` servers.
pub(super) fn fit(observations: &Observations, parallel: u64) -> Law {
    let taken = observations.taken_up(parallel);
    let used = observations.all().iter().zip(taken).filter(|(observation, _)| !observation.stalled);
    let rows: Vec<Row> = used
        .map(|(observation, taken)| {
            Row::new(observations, observation, (observation.completed - taken) as f64)
        })
        .collect();
    Law { parallel, ..solve(&rows, told(&rows), FIXED_LAST) }
}

/// Fits requests that had the device for themselves, if there are enough.
pub(super) fn fit_alone(observations: &Observations) -> Option<Law> {
    let alone = observations.used().filter(|observation| observation.alone);
    let rows: Vec<Row> = alone
        .map(|observation| Row::new(observations, observation, observation.latency_ns() as f64))
        .collect();
    (rows.len() >= KIND_MIN).then(|| solve(&rows, told(&rows), FIXED_LAST))
}

/// Fits the time in which the device works without a pause, if most requests that were in flight
/// with others completed when it had nothing left to do.
pub(super) fn fit_together(observations: &Observations) -> Option<Law> {
    let periods = observations.periods();
    let (mut requests, mut together) = (0, 0);
    for period in periods.iter().filter(|period| period.len() > 1) {
        let end = period.iter().map(|observation| observation.completed).max();
        let is_late = |observation: &&Observation| {
            end.is_some_and(|end| end - observation.completed <= TOGETHER_NS)
        };
        // One of them is the last in any case.
        requests += period.len() - 1;
        together += period.iter().filter(is_late).count() - 1;
    }
    let used = periods.iter().filter(|period| period.iter().all(|one| !one.stalled));
    let rows: Vec<Row> = used.map(|period| Row::of_period(observations, period)).collect();
    let shown = requests >= KIND_MIN && together as f64 >= requests as f64 * TOGETHER_MIN;
    shown.then(|| {
        let mut told = told(&rows);
        // The device is idle once per row: that differs from the fixed cost where rows differ in
        // their number of requests.
        told[IDLE] = is_told(&rows, 0);
        Law { together: true, ..solve(&rows, told, [0, IDLE, APART]) }
    })
}

/// The law, bent so that it meets the mean time of the requests of each size: of those that had
/// the device for themselves, or of all where these are too few.
pub(super) fn curve(observations: &Observations, law: &Law) -> Law {
    let law = Law { curve: Vec::new(), ..law.clone() };
    let taken = observations.taken_up(law.parallel);
    let mut classes: BTreeMap<usize, [ClassTimes; 2]> = BTreeMap::new();
    for (observation, taken) in observations.all().iter().zip(taken) {
        if observation.stalled {
            continue;
        }
        let [alone, all] = classes.entry(observation.class()).or_default();
        let recorded_ns = (observation.completed - taken) as f64;
        let straight_ns = law.service_ns(observation);
        all.add(observation.bytes, recorded_ns, straight_ns);
        if observation.alone {
            alone.add(observation.bytes, recorded_ns, straight_ns);
        }
    }
    let told =
        classes.into_values().filter_map(|kinds| kinds.into_iter().find(ClassTimes::is_told));
    let curve: Vec<(u64, f64)> = told.map(ClassTimes::point).collect();
    let bends = curve.iter().any(|(_, factor)| (factor - 1.0).abs() > BEND_MIN);
    Law { curve: if bends { curve } else { Vec::new() }, ..law }
}

/// Sums over the requests of a size class.
#[derive(Clone, Copy, Debug, Default)]
struct ClassTimes {
    requests: usize,
    bytes: u64,
    recorded_ns: f64,
    straight_ns: f64,
}

impl ClassTimes {
    fn add(&mut self, bytes: u64, recorded_ns: f64, straight_ns: f64) {
        self.requests += 1;
        self.bytes += bytes;
        self.recorded_ns += recorded_ns;
        self.straight_ns += straight_ns;
    }

    fn is_told(&self) -> bool {
        self.requests >= KIND_MIN
    }

    fn point(self) -> (u64, f64) {
        (self.bytes / self.requests as u64, self.recorded_ns / self.straight_ns.max(1.0))
    }
}

/// Terms of the law: fixed, per KiB, not contiguous, device idle.
const TERMS: usize = 4;
const APART: usize = 2;
const IDLE: usize = 3;

/// One equation. Its weight makes errors relative to what requests of its size take.
struct Row {
    terms: [f64; TERMS],
    time_ns: f64,
    weight: f64,
}

impl Row {
    fn new(observations: &Observations, observation: &Observation, time_ns: f64) -> Self {
        let flag = |set: bool| f64::from(u8::from(set));
        let kilobytes = observation.bytes as f64 / 1024.0;
        let idle = flag(observation.depth == 1);
        Self {
            terms: [1.0, kilobytes, flag(!observation.continues), idle],
            time_ns,
            weight: observations.weight(observation) * observations.scale_ns(observation).powi(-2),
        }
    }

    /// The sum over requests that a device served without a pause.
    fn of_period(observations: &Observations, period: &[Observation]) -> Self {
        let mut sum = Self { terms: [0.0; TERMS], time_ns: 0.0, weight: 0.0 };
        for observation in period {
            let row = Self::new(observations, observation, 0.0);
            for (sum, term) in sum.terms.iter_mut().zip(row.terms) {
                *sum += term;
            }
            sum.weight += row.weight / period.len() as f64;
        }
        let end = period.iter().map(|observation| observation.completed).max();
        sum.time_ns = end.map_or(0, |end| end - period[0].issued) as f64;
        sum
    }
}

/// The terms that the rows can tell.
fn told(rows: &[Row]) -> [bool; TERMS] {
    let mut told = [true; TERMS];
    for (term, told) in told.iter_mut().enumerate().skip(1) {
        *told = is_told(rows, term);
    }
    told
}

/// The least-squares law of the rows, of the terms in `used`. One that comes out negative or
/// negligible is left out; where the fixed cost comes out negative, the first of `instead` is.
fn solve(rows: &[Row], mut used: [bool; TERMS], instead: [usize; 3]) -> Law {
    let [fixed_ns, kilobyte_ns, apart_ns, idle_ns] = loop {
        let solution = least_squares(rows, used);
        // Besides the size, only what matters beside the fixed cost.
        let least = |term: usize| if term == 1 { 0.0 } else { solution[0] * TERM_MIN };
        let dropped = (1..TERMS).rev().find(|term| used[*term] && solution[*term] < least(*term));
        let instead = || instead.into_iter().find(|term| used[*term]);
        match dropped {
            Some(term) => used[term] = false,
            None if solution[0] < 0.0 => match instead() {
                Some(term) => used[term] = false,
                None => break solution,
            },
            None => break solution,
        }
    };
    let byte_ps = kilobyte_ns * 1000.0 / 1024.0;
    Law {
        fixed_ns,
        apart_ns,
        idle_ns,
        byte_ps,
        parallel: 1,
        link_share: 0.0,
        curve: Vec::new(),
        together: false,
    }
}

/// Whether a term takes different values often enough.
fn is_told(rows: &[Row], term: usize) -> bool {
    let Some(first) = rows.first().map(|row| row.terms[term]) else { return false };
    let same = rows.iter().filter(|row| (row.terms[term] - first).abs() < f64::EPSILON).count();
    let kinds_min = KIND_MIN.min(rows.len() / 2);
    same >= 1 && rows.len() - same >= kinds_min.max(1) && (same >= kinds_min || term == 1)
}

/// Solves the normal equations.
fn least_squares(rows: &[Row], used: [bool; TERMS]) -> [f64; TERMS] {
    let mut matrix = [[0.0; TERMS + 1]; TERMS];
    for row in rows {
        for at in (0..TERMS).filter(|at| used[*at]) {
            for other in (0..TERMS).filter(|other| used[*other]) {
                matrix[at][other] += row.weight * row.terms[at] * row.terms[other];
            }
            matrix[at][TERMS] += row.weight * row.terms[at] * row.time_ns;
        }
    }
    for at in (0..TERMS).filter(|at| !used[*at]) {
        matrix[at][at] = 1.0;
    }
    eliminate(matrix)
}

/// Gauss-Jordan elimination. The matrix of normal equations needs no pivoting. A term that those
/// before it make up leaves (almost) nothing of its diagonal; it comes out as 0.
fn eliminate(mut matrix: [[f64; TERMS + 1]; TERMS]) -> [f64; TERMS] {
    let diagonal: [f64; TERMS] = std::array::from_fn(|at| matrix[at][at]);
    for column in 0..TERMS {
        let divisor = matrix[column][column];
        if divisor <= diagonal[column] * DEPENDENT_MAX {
            matrix[column] = [0.0; TERMS + 1];
            continue;
        }
        let scaled = matrix[column].map(|value| value / divisor);
        matrix[column] = scaled;
        for row in (0..TERMS).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for (value, other) in matrix[row].iter_mut().zip(scaled) {
                *value -= factor * other;
            }
        }
    }
    matrix.map(|row| row[TERMS])
}
