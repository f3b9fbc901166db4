//! How long reads wait in the course of a run.

use replay::run::History;
use serde::Serialize;

/// Slices a run is divided into.
const SLICES_MAX: usize = 60;
/// Where bands of waits begin, from a microsecond on: four to a decade.
const BAND_STEPS: [u64; 4] = [1000, 1800, 3200, 5600];

/// Reads and faults by when they came and how long they waited.
///
/// A slice holds the same accesses under every policy: they are counted, not timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WaitMap {
    /// Reads and faults.
    pub accesses: u64,
    /// Slices of equally many of them.
    pub slices: usize,
    /// Where the bands begin. The first one, at 0, holds those that did not wait.
    pub bands_ns: Vec<u64>,
    /// Accesses of each policy, by slice and band.
    pub by_policy: Vec<Vec<Vec<u64>>>,
}

impl WaitMap {
    pub(super) fn new(histories: &[History]) -> Self {
        let waits: Vec<Vec<u64>> = histories.iter().map(waits_in_order).collect();
        let accesses = waits.first().map_or(0, Vec::len);
        let slices = accesses.clamp(1, SLICES_MAX);
        let bands_ns = bands(waits.iter().flatten().copied().filter(|wait| *wait > 0));
        let count = |waits: &Vec<u64>| {
            let mut counts = vec![vec![0; bands_ns.len()]; slices];
            for (n, wait) in waits.iter().enumerate() {
                let band = bands_ns.iter().rposition(|begins| wait >= begins).unwrap_or(0);
                // What waits less than the first band holds still waits.
                let band = if *wait > 0 { band.max(1) } else { 0 };
                counts[n * slices / waits.len()][band] += 1;
            }
            counts
        };
        let by_policy = waits.iter().map(count).collect();
        Self { accesses: accesses as u64, slices, bands_ns, by_policy }
    }
}

fn waits_in_order(history: &History) -> Vec<u64> {
    let mut waits: Vec<_> =
        history.accesses.iter().map(|times| (times.access, times.waited_ns)).collect();
    waits.sort_unstable();
    waits.into_iter().map(|(_, wait)| wait).collect()
}

/// 0, and the bands that hold these waits.
fn bands(waits: impl Iterator<Item = u64> + Clone) -> Vec<u64> {
    let Some(longest) = waits.clone().max() else { return vec![0] };
    let shortest = waits.min().unwrap_or(longest);
    let decades = (0..10).map(|power| 10_u64.pow(power));
    let all = decades.flat_map(|decade| BAND_STEPS.map(|step| step * decade));
    let begin: Vec<u64> = all.take_while(|begins| *begins <= longest.max(BAND_STEPS[0])).collect();
    let first = begin.iter().rposition(|begins| *begins <= shortest).unwrap_or(0);
    std::iter::once(0).chain(begin[first..].iter().copied()).collect()
}
