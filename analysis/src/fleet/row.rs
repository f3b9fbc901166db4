//! A row of `rareplay.result/1`: what one policy made of one source.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use traces::access::Fidelity;
use traces::capture::{Loss, LossKind, Losses};

use super::WaitCounts;
use super::key::Framed;
use crate::compare::{Figures, Measured, Metric, Nature, Verdict};
use crate::gate::{Entry, Outcome, Proof, Refusal};

columns::record! {
    super::SCHEMA;
    /// What one policy made of one source, or why it could not. docs/fleet.md describes every column.
    #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    pub struct Row {
        /// Path or URL, as the list has it.
        pub source: String,
        /// Machine it was recorded on.
        pub host: Option<String>,
        /// Kernel it was recorded on.
        pub kernel: Option<String>,
        /// What the machine was doing.
        pub workload: Option<String>,
        /// When it was recorded.
        pub time: Option<String>,
        /// The policy.
        pub policy: String,
        /// The device model, as it was asked for.
        pub device: String,
        /// Settings that were given, `KEY=VALUE`, by key.
        pub settings_given: Vec<String>,
        /// Why there are no figures.
        pub error: Option<String>,
        /// What kind of error that is: `bad-input`, `data-loss` or `bug`.
        pub error_kind: Option<String>,
        /// Hash of all that the result depends on.
        pub key: Option<String>,
        /// Hash of the source's content, sidecar included.
        pub content: Option<String>,
        /// Entity tags of a source that is no file here.
        pub tags: Option<String>,
        /// Digest of the source's bytes, as the gate has it.
        pub digest: Option<String>,
        /// Version of this program.
        pub version: String,
        /// Bytes of the source.
        pub source_bytes: Option<i64>,
        /// Level of the access streams.
        pub fidelity: Option<String>,
        /// Accesses.
        pub accesses: Option<i64>,
        /// Settings and model parameters in effect, `KEY=VALUE`, by key.
        pub settings: Vec<String>,
        /// The recording kernel's policy, which the capture was verified under.
        pub verify_policy: Option<String>,
        /// Folios recorded.
        pub verify_folios_recorded: Option<i64>,
        /// Of these, reproduced.
        pub verify_folios_matched: Option<i64>,
        /// Whether folios and device reads match completely.
        pub verify_exact: Option<bool>,
        /// Kinds of losses.
        pub losses: Vec<String>,
        /// How often each.
        pub loss_counts: Vec<i64>,
        /// Where each was first.
        pub loss_first: Vec<String>,
        /// Folios inserted, by order from 0.
        pub folios_by_order: Vec<i64>,
        /// Folios inserted.
        pub folios: Option<i64>,
        /// Read requests the device got.
        pub device_reads: Option<i64>,
        /// Their bytes.
        pub device_read_bytes: Option<i64>,
        /// Pages inserted.
        pub pages_inserted: Option<i64>,
        /// Pages inserted and never used.
        pub pages_unused: Option<i64>,
        /// Virtual time from the first access to the end of the last.
        pub elapsed_ns: Option<i64>,
        /// Median wait of a read.
        pub read_wait_ns_p50: Option<i64>,
        /// 99th percentile of it.
        pub read_wait_ns_p99: Option<i64>,
        /// Longest wait.
        pub read_wait_ns_max: Option<i64>,
        /// Waits that reads had, shortest first; see [`WaitCounts`].
        pub read_wait_ns: Vec<i64>,
        /// Reads of each.
        pub read_wait_counts: Vec<i64>,
        /// Sizes of device reads, smallest first.
        pub request_bytes: Vec<i64>,
        /// Device reads of each.
        pub request_counts: Vec<i64>,
        /// Times the page cache lock is taken.
        pub lock_acquisitions: Option<i64>,
        /// Of these, under contention.
        pub lock_contended: Option<i64>,
        /// Insertions that found a page already there.
        pub insert_conflicts: Option<i64>,
        /// Pages looked up one by one.
        pub lookups: Option<i64>,
        /// Windows filled.
        pub windows: Option<i64>,
    }
}

/// Kind of error of a source that a bug of this program keeps from being replayed.
pub(super) const BUG: &str = "bug";

type Column = fn(&mut Row) -> &mut Option<i64>;

/// Every metric that has a column.
const METRICS: [(Metric, Column); 14] = [
    (Metric::Folios, |row| &mut row.folios),
    (Metric::DeviceReads, |row| &mut row.device_reads),
    (Metric::DeviceReadBytes, |row| &mut row.device_read_bytes),
    (Metric::PagesInserted, |row| &mut row.pages_inserted),
    (Metric::PagesUnused, |row| &mut row.pages_unused),
    (Metric::Elapsed, |row| &mut row.elapsed_ns),
    (Metric::ReadWaitP50, |row| &mut row.read_wait_ns_p50),
    (Metric::ReadWaitP99, |row| &mut row.read_wait_ns_p99),
    (Metric::ReadWaitMax, |row| &mut row.read_wait_ns_max),
    (Metric::LockAcquisitions, |row| &mut row.lock_acquisitions),
    (Metric::LockContended, |row| &mut row.lock_contended),
    (Metric::InsertConflicts, |row| &mut row.insert_conflicts),
    (Metric::Lookups, |row| &mut row.lookups),
    (Metric::Windows, |row| &mut row.windows),
];

/// What a row answers, whatever the answer: a source with its labels under a policy, a device and
/// given settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(String);

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Row {
    /// What it answers. The kernel is no part of it: where the list does not name it, the answer does.
    pub fn slot(&self) -> Slot {
        let mut hash = Framed::new();
        for text in [&self.source, &self.policy, &self.device] {
            hash.add(text);
        }
        for label in [&self.host, &self.workload, &self.time] {
            hash.add([u8::from(label.is_some())]);
            hash.add(label.as_deref().unwrap_or_default());
        }
        for setting in &self.settings_given {
            hash.add(setting);
        }
        // Half of it is enough to tell any number of slots apart.
        Slot(hash.finish().split_off(32))
    }

    /// What people call it.
    pub fn name(&self) -> String {
        let mut name = self.source.clone();
        for (word, label) in [("on", &self.host), ("at", &self.time), ("running", &self.workload)] {
            if let Some(label) = label {
                name += &format!(" {word} {label}");
            }
        }
        if !self.settings_given.is_empty() {
            name += &format!(" with {}", self.settings_given.join(" "));
        }
        name
    }

    /// Puts the figures of a replay into their columns.
    pub(super) fn set_entry(&mut self, entry: &Entry) {
        let run = entry.measured.runs.first().cloned().unwrap_or_default();
        self.folios_by_order = run.by_order.iter().map(|count| count.cast_signed()).collect();
        for (metric, column) in METRICS {
            *column(self) = run.values.get(&metric).map(|value| value.cast_signed());
        }
        self.digest.clone_from(&entry.digest);
        self.accesses = entry.accesses.map(u64::cast_signed);
        self.fidelity = entry.stream.as_ref().and_then(word);
        self.settings =
            entry.settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        if let Some(proof) = &entry.proof {
            self.verify_policy = Some(proof.policy.clone());
            self.verify_folios_recorded = Some(proof.folios_recorded.cast_signed());
            self.verify_folios_matched = Some(proof.folios_matched.cast_signed());
            self.verify_exact = Some(proof.exact);
        }
        self.set_losses(&entry.losses);
    }

    pub(super) fn set_refusal(&mut self, refusal: &Refusal) {
        self.error = Some(refusal.reason.clone());
        self.error_kind = Some(refusal.verdict.name().to_owned());
        self.set_losses(&refusal.losses);
    }

    fn set_losses(&mut self, losses: &Losses) {
        let known = losses.0.iter().filter_map(|(kind, loss)| Some((word(kind)?, loss)));
        for (kind, loss) in known {
            self.losses.push(kind);
            self.loss_counts.push(loss.count.cast_signed());
            self.loss_first.push(loss.first.clone());
        }
    }

    pub(super) fn set_waits(&mut self, waits: &WaitCounts) {
        let pairs =
            waits.iter().map(|(wait_ns, reads)| (wait_ns.cast_signed(), reads.cast_signed()));
        (self.read_wait_ns, self.read_wait_counts) = pairs.unzip();
    }

    /// The waits of its reads.
    pub fn waits(&self) -> WaitCounts {
        let mut waits = WaitCounts::default();
        for (wait_ns, reads) in self.read_wait_ns.iter().zip(&self.read_wait_counts) {
            waits.add(wait_ns.cast_unsigned(), reads.cast_unsigned());
        }
        waits
    }

    /// What its capture lost.
    pub fn losses(&self) -> Losses {
        let counts = self.losses.iter().zip(&self.loss_counts).zip(&self.loss_first);
        let loss = |((kind, count), first): ((&String, &i64), &String)| {
            let loss = Loss { count: count.cast_unsigned(), first: first.clone() };
            Some((from_word::<LossKind>(kind)?, loss))
        };
        Losses(counts.filter_map(loss).collect())
    }

    /// The metrics it has.
    pub fn values(&mut self) -> BTreeMap<Metric, u64> {
        let value =
            |(metric, column): (Metric, Column)| Some((metric, (*column(self))?.cast_unsigned()));
        METRICS.into_iter().filter_map(value).collect()
    }

    /// Settings and model parameters in effect, by name.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let pairs = self.settings.iter().filter_map(|setting| setting.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// How well the replay of its capture reproduces it.
    pub fn proof(&self) -> Option<Proof> {
        Some(Proof {
            policy: self.verify_policy.clone()?,
            folios_recorded: self.verify_folios_recorded?.cast_unsigned(),
            folios_matched: self.verify_folios_matched?.cast_unsigned(),
            exact: self.verify_exact?,
        })
    }

    /// Level of its streams.
    pub fn stream(&self) -> Option<Fidelity> {
        self.fidelity.as_ref().and_then(|name| from_word(name))
    }

    /// What it contributes to its policy's side of a gate.
    pub(super) fn outcome(&mut self) -> Outcome {
        if let Some(reason) = self.error.clone() {
            let lost = self.error_kind.as_deref() == Some(Verdict::DataLoss.name());
            let verdict = if lost { Verdict::DataLoss } else { Verdict::BadInput };
            return Err(Refusal { verdict, reason, losses: self.losses() });
        }
        let by_order = self.folios_by_order.iter().map(|count| count.cast_unsigned()).collect();
        let run = Figures { by_order, values: self.values() };
        Ok(Entry {
            digest: self.digest.clone(),
            accesses: self.accesses.map(i64::cast_unsigned),
            settings: self.settings(),
            measured: Measured { nature: Nature::Replayed, runs: vec![run] },
            stream: self.stream(),
            proof: self.proof(),
            losses: self.losses(),
        })
    }
}

/// The word that stands for it in JSON.
fn word(value: &impl Serialize) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.as_str()?.to_owned())
}

fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}
