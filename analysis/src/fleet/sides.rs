//! Results as sides of a gate.

use std::collections::{BTreeMap, BTreeSet};

use traces::capture::Losses;

use super::key::Framed;
use super::{Results, Row, Tally};
use crate::compare::{Measured, Nature, Verdict};
use crate::gate::{Entry, Outcome, Refusal, Side};

/// What rows are put together by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Machine.
    Host,
    /// Kernel.
    Kernel,
    /// What the machine was doing.
    Workload,
}

impl Group {
    /// Its name, which is that of the column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Kernel => "kernel",
            Self::Workload => "workload",
        }
    }

    /// Its label on a row.
    pub fn label(self, row: &Row) -> &str {
        let label = match self {
            Self::Host => &row.host,
            Self::Kernel => &row.kernel,
            Self::Workload => &row.workload,
        };
        label.as_deref().unwrap_or("(none)")
    }
}

/// One side per policy, by name: a source of the gate is a row, or all rows of a group together.
pub fn sides(results: &Results, by: Option<Group>) -> Vec<Side> {
    let mut policies: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in results.rows() {
        policies.entry(&row.policy).or_default().push(row);
    }
    let side = |(policy, rows): (&str, Vec<&Row>)| Side {
        name: policy.to_owned(),
        entries: match by {
            None => rows.into_iter().map(|row| (row.name(), row.clone().outcome())).collect(),
            Some(by) => grouped(rows, by),
        },
    };
    policies.into_iter().map(side).collect()
}

fn grouped(rows: Vec<&Row>, by: Group) -> BTreeMap<String, Outcome> {
    let mut groups: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry(by.label(row).to_owned()).or_default().push(row);
    }
    groups.into_iter().map(|(label, rows)| (label, together(&rows))).collect()
}

/// Rows as one source. One without figures spoils it: leaving it out would be a choice of sources.
fn together(rows: &[&Row]) -> Outcome {
    let mut tally = Tally::default();
    let mut settings: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut members = BTreeSet::new();
    let mut losses = Losses::default();
    let mut failed = rows.iter().filter(|row| row.error.is_some());
    if let Some(first) = failed.next() {
        let lost = first.error_kind.as_deref() == Some(Verdict::DataLoss.name());
        let verdict = if lost { Verdict::DataLoss } else { Verdict::BadInput };
        let count = failed.count() + 1;
        let reason = format!(
            "{count} of {} sources gave no figures, {} for one: {}",
            rows.len(),
            first.name(),
            first.error.as_deref().unwrap_or_default()
        );
        return Err(Refusal::new(verdict, reason));
    }
    for row in rows {
        members.insert((row.name(), row.digest.clone()));
        losses.merge(row.losses(), &format!("{}: ", row.name()));
        for (key, value) in row.settings() {
            settings.entry(key).or_default().insert(value);
        }
        tally.merge(Tally::of((*row).clone()));
    }
    let all = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
    Ok(Entry {
        digest: Some(digest(&members)),
        accesses: Some(tally.accesses),
        settings: settings.into_iter().map(|(key, values)| (key, all(values))).collect(),
        stream: tally.fidelity.keys().next_back().copied(),
        measured: Measured { nature: Nature::Replayed, runs: vec![tally.figures()] },
        proof: None,
        losses,
    })
}

/// Two groups of the same sources have the same.
fn digest(members: &BTreeSet<(String, Option<String>)>) -> String {
    let mut hash = Framed::new();
    for (name, digest) in members {
        hash.add(name);
        hash.add(digest.as_deref().unwrap_or_default());
    }
    hash.finish()
}
