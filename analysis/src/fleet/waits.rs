//! Waits of reads as counts that add up.

use std::collections::BTreeMap;

use replay::run::Waits;

/// Leading binary digits of a wait that are kept.
const DIGITS: u32 = 11;

/// How many reads waited how long.
///
/// Of each wait the first 11 binary digits are kept and the others are 0, so that a value stands for
/// waits of itself to less than 0.1 % more; below 2048 ns, waits are as they were. Counts of any number
/// of sources add up, in any order, to the counts of all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitCounts(BTreeMap<u64, u64>);

impl WaitCounts {
    /// Of the reads of a replay.
    pub fn of(waits: &Waits) -> Self {
        let mut counts = Self::default();
        counts.add(0, waits.reads() - waits.waits_ns().len() as u64);
        for wait_ns in waits.waits_ns() {
            counts.add(*wait_ns, 1);
        }
        counts
    }

    /// Counts `reads` more reads that waited so long.
    pub fn add(&mut self, wait_ns: u64, reads: u64) {
        if reads > 0 {
            let count = self.0.entry(rounded(wait_ns)).or_default();
            *count = count.saturating_add(reads);
        }
    }

    /// Adds the reads of another source.
    pub fn merge(&mut self, other: &Self) {
        for (&wait_ns, &reads) in &other.0 {
            self.add(wait_ns, reads);
        }
    }

    /// Reads.
    pub fn reads(&self) -> u64 {
        self.0.values().fold(0, |sum, reads| sum.saturating_add(*reads))
    }

    /// The smallest wait that at least `percent` of the reads do not exceed.
    pub fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.reads()) * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0;
        let reached = |(_, reads): &(&u64, &u64)| {
            below += u128::from(**reads);
            below >= rank
        };
        self.0.iter().find(reached).map_or(0, |(wait_ns, _)| *wait_ns)
    }

    /// Waits and their reads, shortest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(&wait_ns, &reads)| (wait_ns, reads))
    }
}

/// A wait with its first digits only.
fn rounded(wait_ns: u64) -> u64 {
    let dropped = (u64::BITS - wait_ns.leading_zeros()).saturating_sub(DIGITS);
    wait_ns >> dropped << dropped
}
