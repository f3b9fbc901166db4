//! The gate: a corpus of sources, two sides, budgets, one verdict.
//!
//! A [`Side`] is a policy that the corpus is replayed under, a file of saved
//! figures, or captures of several runs. [`judge`] compares two sides source by
//! source and rolls the verdicts up.
//!
//! A pass is a statement about every source and metric of both sides, so
//! everything that would weaken it is an outcome of its own and never a pass: a
//! source that is missing or new, another setting, another corpus, a capture
//! that lost events, a metric that one side does not have, no source at all.

mod baseline;
mod budget;
mod corpus;
mod judge;
mod measure;
mod plant;
mod reference;
mod why;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use traces::access::Fidelity;
use traces::capture::Losses;

pub use baseline::{BASELINE_SCHEMA, read_saved_side, write_baseline};
pub use budget::{BudgetError, Budgets, Date};
pub use corpus::{SourceFile, expand, files};
pub(crate) use corpus::{digest_of, parts};
pub use judge::judge;
pub use measure::{MeasureOptions, measure, recorded_side};
pub(crate) use measure::{Outcome, Prepared, bad_input};
pub use plant::self_test;
pub use why::explain_regressions;

use crate::compare::{Check, Measured, Metric, OrderChange, SavedError, Verdict};
use crate::history::ChangePoint;

/// Name of the JSON schema.
pub const SCHEMA: &str = "rareplay.gate/1";

/// A gate that cannot be run at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No source to judge.
    #[error("no capture and no workload description in {given}")]
    NoSource {
        /// What was given.
        given: String,
    },
    /// Two sources would go by one name.
    #[error("{first} and {second} are both called `{key}`: name the folder above them instead")]
    SameName {
        /// The name.
        key: String,
        /// One.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// A saved baseline is of another version.
    #[error("{path} holds `{schema}`, not `{}`: accept it anew", BASELINE_SCHEMA)]
    Schema {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        schema: String,
    },
    /// A saved baseline has a metric that this version does not know.
    #[error("{path}: source `{key}` has the metric `{metric}`, which this version does not know")]
    UnknownMetric {
        /// The file.
        path: PathBuf,
        /// The source.
        key: String,
        /// The metric.
        metric: String,
    },
    /// A saved baseline is not TOML, or a field is wrong.
    #[error("{path} is not a saved baseline: {source}")]
    Baseline {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// The runs of a source in a saved baseline do not fit together.
    #[error("{path}: source `{key}` has no runs, or metrics with different numbers of them")]
    Runs {
        /// The file.
        path: PathBuf,
        /// The source.
        key: String,
    },
    /// A figure does not fit a TOML integer.
    #[error("cannot write {path}: {source}")]
    WriteBaseline {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<toml::ser::Error>,
    },
    /// A file of saved results is wrong.
    #[error(transparent)]
    Saved(#[from] SavedError),
    /// A file of saved results has results of several policies.
    #[error("{path} has results of {}: save the one to compare on its own", .policies.join(" and "))]
    SeveralPolicies {
        /// The file.
        path: PathBuf,
        /// The policies.
        policies: Vec<String>,
    },
}

impl GateError {
    /// What a gate that met this error comes to.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Schema { .. }
            | Self::UnknownMetric { .. }
            | Self::Saved(SavedError::Schema { .. }) => Verdict::NotComparable,
            _ => Verdict::BadInput,
        }
    }
}

/// How well the replay of a capture under its own kernel's policy reproduces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The policy.
    pub policy: String,
    /// Folios recorded.
    pub folios_recorded: u64,
    /// Of these, reproduced.
    pub folios_matched: u64,
    /// Whether folios and device reads match completely.
    pub exact: bool,
}

/// One source on one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Digest of the files of the source, where it was measured from them.
    pub digest: Option<String>,
    /// Accesses, where they are known.
    pub accesses: Option<u64>,
    /// Settings and model parameters by name.
    pub settings: BTreeMap<String, String>,
    /// The figures.
    pub measured: Measured,
    /// Level of the streams, where it was measured here.
    pub stream: Option<Fidelity>,
    /// How far its replays can be trusted, for a capture.
    pub proof: Option<Proof>,
    /// What its captures lost.
    pub losses: Losses,
}

/// Why a source gives no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the source comes to.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// What its capture lost.
    pub losses: Losses,
}

impl Refusal {
    /// A refusal that has nothing to do with losses.
    pub fn new(verdict: Verdict, reason: String) -> Self {
        Self { verdict, reason, losses: Losses::default() }
    }
}

/// One side of a gate: every source by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// Its name: the policy, the name saved with a baseline, or a folder.
    pub name: String,
    /// Its sources.
    pub entries: BTreeMap<String, Result<Entry, Refusal>>,
}

impl Side {
    /// Calls saved sources as the corpus does: results keep the paths that sources had when they
    /// were saved, of which a name is the end.
    pub fn rename_to(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| !name.is_empty()) {
            let end = format!("/{name}");
            let mut saved = self.entries.keys().filter(|key| key.ends_with(&end));
            if let (Some(only), None) = (saved.next().cloned(), saved.next())
                && !self.entries.contains_key(name)
                && let Some(entry) = self.entries.remove(&only)
            {
                self.entries.insert(name.clone(), entry);
            }
        }
    }
}

/// One source of a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceOutcome {
    /// Its name.
    pub source: String,
    /// The worst verdict of its checks, or the refusal.
    pub verdict: Verdict,
    /// Why there are no checks.
    pub reason: Option<String>,
    /// Level of its streams.
    pub stream: Option<Fidelity>,
    /// How far its replays can be trusted.
    pub proof: Option<Proof>,
    /// Folios by order.
    pub orders: OrderChange,
    /// For a regression between two policies: where they part, and what keeps folios small.
    pub why: Vec<String>,
    /// What the captures of the baseline and of the candidate lost.
    pub losses: SideLosses,
}

/// What the captures of each side lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SideLosses {
    /// Of the baseline.
    pub baseline: Losses,
    /// Of the candidate.
    pub candidate: Losses,
}

/// The check that is farthest over, or nearest to, its budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    /// The source.
    pub source: String,
    /// The metric.
    pub metric: Metric,
    /// How much worse, in percent of the baseline; `None` if that is 0.
    #[serde(serialize_with = "crate::compare::optional_number")]
    pub worse_percent: Option<f64>,
}

/// What a gate found: `rareplay.gate/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateReport {
    /// `rareplay.gate/1`.
    pub schema: &'static str,
    /// `pass`, or what is wrong.
    pub verdict: Verdict,
    /// Whether the candidate is a planted regression.
    pub self_test: bool,
    /// Whether the candidate became the baseline.
    pub accepted: bool,
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Sources by verdict.
    pub counts: BTreeMap<Verdict, usize>,
    /// The worst check.
    pub worst: Option<Worst>,
    /// What a reader should know besides.
    pub notes: Vec<String>,
    /// Every source, by name.
    pub sources: Vec<SourceOutcome>,
    /// Every metric of every source.
    pub checks: Vec<Check>,
    /// Changes over the history, where one is kept.
    pub change_points: Vec<ChangePoint>,
}

impl GateReport {
    /// A report without sources: the gate could not be run.
    pub fn refused(baseline: &str, candidate: &str, verdict: Verdict, reason: String) -> Self {
        Self {
            schema: SCHEMA,
            verdict,
            self_test: false,
            accepted: false,
            baseline: baseline.to_owned(),
            candidate: candidate.to_owned(),
            counts: BTreeMap::new(),
            worst: None,
            notes: vec![reason],
            sources: Vec::new(),
            checks: Vec::new(),
            change_points: Vec::new(),
        }
    }

    /// The checks of a source.
    pub fn checks_of<'a>(&'a self, source: &'a str) -> impl Iterator<Item = &'a Check> {
        self.checks.iter().filter(move |check| check.source == source)
    }
}
