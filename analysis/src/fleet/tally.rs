//! Rows added up.

use std::collections::BTreeMap;

use traces::access::Fidelity;
use traces::capture::LossKind;

use super::{Row, WaitCounts};
use crate::compare::{Figures, Metric};

/// Metrics of several sources that are not their sum.
const NOT_SUMS: [Metric; 3] = [Metric::ReadWaitP50, Metric::ReadWaitP99, Metric::ReadWaitMax];

/// What some rows come to. Tallies add up to that of all their rows, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows with figures.
    pub sources: u64,
    /// Rows without.
    pub failed: u64,
    /// Bytes of the sources.
    pub source_bytes: u64,
    /// Accesses.
    pub accesses: u64,
    /// Folios inserted, by order.
    pub by_order: Vec<u64>,
    /// Metrics that add up.
    pub sums: BTreeMap<Metric, u64>,
    /// Waits of all reads.
    pub waits: WaitCounts,
    /// The longest of them, to the nanosecond.
    pub wait_ns_max: u64,
    /// Sources by the level of their streams.
    pub fidelity: BTreeMap<Fidelity, u64>,
    /// Captures that were verified.
    pub verified: u64,
    /// Of these, matching completely.
    pub exact: u64,
    /// Folios recorded in them.
    pub folios_recorded: u64,
    /// Of these, reproduced.
    pub folios_matched: u64,
    /// What the captures lost.
    pub losses: BTreeMap<LossKind, u64>,
}

impl Tally {
    /// Of one row.
    pub fn of(mut row: Row) -> Self {
        let losses = row.losses().0.into_iter().map(|(kind, loss)| (kind, loss.count)).collect();
        if row.error.is_some() {
            return Self { failed: 1, losses, ..Self::default() };
        }
        let count = |number: Option<i64>| number.map_or(0, i64::cast_unsigned);
        let proof = row.proof();
        let mut sums = row.values();
        sums.retain(|metric, _| !NOT_SUMS.contains(metric));
        Self {
            sources: 1,
            failed: 0,
            source_bytes: count(row.source_bytes),
            accesses: count(row.accesses),
            by_order: row.folios_by_order.iter().map(|count| count.cast_unsigned()).collect(),
            sums,
            waits: row.waits(),
            wait_ns_max: count(row.read_wait_ns_max),
            fidelity: row.stream().into_iter().map(|level| (level, 1)).collect(),
            verified: u64::from(proof.is_some()),
            exact: u64::from(proof.as_ref().is_some_and(|proof| proof.exact)),
            folios_recorded: proof.as_ref().map_or(0, |proof| proof.folios_recorded),
            folios_matched: proof.as_ref().map_or(0, |proof| proof.folios_matched),
            losses,
        }
    }

    /// Adds another one.
    pub fn merge(&mut self, other: Self) {
        let Self {
            sources,
            failed,
            source_bytes,
            accesses,
            by_order,
            sums,
            waits,
            wait_ns_max,
            fidelity,
            verified,
            exact,
            folios_recorded,
            folios_matched,
            losses,
        } = other;
        for (sum, more) in [
            (&mut self.sources, sources),
            (&mut self.failed, failed),
            (&mut self.source_bytes, source_bytes),
            (&mut self.accesses, accesses),
            (&mut self.verified, verified),
            (&mut self.exact, exact),
            (&mut self.folios_recorded, folios_recorded),
            (&mut self.folios_matched, folios_matched),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.by_order.resize(self.by_order.len().max(by_order.len()), 0);
        for (sum, more) in self.by_order.iter_mut().zip(by_order) {
            *sum = sum.saturating_add(more);
        }
        add_each(&mut self.sums, sums);
        add_each(&mut self.fidelity, fidelity);
        add_each(&mut self.losses, losses);
        self.waits.merge(&waits);
        self.wait_ns_max = self.wait_ns_max.max(wait_ns_max);
    }

    /// The figures of all its rows together, as if they were one source; times of waits are those of
    /// [`WaitCounts`], but for the longest.
    pub fn figures(&self) -> Figures {
        let mut values = self.sums.clone();
        if self.sources > 0 {
            values.extend([
                (Metric::ReadWaitP50, self.waits.percentile(50)),
                (Metric::ReadWaitP99, self.waits.percentile(99)),
                (Metric::ReadWaitMax, self.wait_ns_max),
            ]);
        }
        Figures { by_order: self.by_order.clone(), values }
    }
}

fn add_each<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, more) in more {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(more);
    }
}
