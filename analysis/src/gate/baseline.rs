//! Saved sides: baselines that `--accept` writes, and `rareplay.replay/1` documents.
//!
//! A baseline is a TOML file to be reviewed and kept beside the corpus: sources
//! by name, one line per metric, settings that all sources share said once. A
//! list holds one value per run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use traces::capture::Losses;

use super::{Entry, GateError, Refusal, Side};
use crate::compare::{Figures, Measured, Metric, Nature, SavedReplay, Verdict, read_saved};

/// Name and version of the baseline format.
pub const BASELINE_SCHEMA: &str = "rareplay.baseline/1";

const HEAD: &str = "# Written by `rareplay gate --accept`. Review it like code: what it says is \
                    what the gate defends.\n";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    name: String,
    settings: BTreeMap<String, String>,
    source: BTreeMap<String, SourceDocument>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceDocument {
    nature: Nature,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accesses: Option<u64>,
    folios_by_order: Vec<Vec<u64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
    metrics: BTreeMap<String, Vec<u64>>,
}

/// The part of a document that says whether the rest can be read.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    schema: String,
}

/// Reads a saved side: a baseline, or saved results of one policy.
pub fn read_saved_side(path: &Path) -> Result<Side, GateError> {
    let text = std::fs::read_to_string(path).map_err(|source| GateError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    if text.trim_start().starts_with('{') {
        return from_results(path, read_saved(path)?);
    }
    let wrong = |source| GateError::Baseline { path: path.to_owned(), source: Box::new(source) };
    let version: Version = toml::from_str(&text).map_err(wrong)?;
    if version.schema != BASELINE_SCHEMA {
        return Err(GateError::Schema { path: path.to_owned(), schema: version.schema });
    }
    let document: Document = toml::from_str(&text).map_err(wrong)?;
    let mut entries = BTreeMap::new();
    for (key, source) in document.source {
        let entry = entry(path, &key, source, &document.settings)?;
        entries.insert(key, Ok(entry));
    }
    Ok(Side { name: document.name, entries })
}

fn entry(
    path: &Path,
    key: &str,
    source: SourceDocument,
    shared: &BTreeMap<String, String>,
) -> Result<Entry, GateError> {
    let uneven = || GateError::Runs { path: path.to_owned(), key: key.to_owned() };
    let mut runs: Vec<Figures> = source
        .folios_by_order
        .into_iter()
        .map(|by_order| Figures { by_order, values: BTreeMap::new() })
        .collect();
    for (name, values) in source.metrics {
        let metric = Metric::from_key(&name).ok_or_else(|| GateError::UnknownMetric {
            path: path.to_owned(),
            key: key.to_owned(),
            metric: name.clone(),
        })?;
        if values.len() != runs.len() {
            return Err(uneven());
        }
        for (run, value) in runs.iter_mut().zip(values) {
            run.values.insert(metric, value);
        }
    }
    if runs.is_empty() {
        return Err(uneven());
    }
    let mut settings = shared.clone();
    settings.extend(source.settings);
    Ok(Entry {
        digest: source.digest,
        accesses: source.accesses,
        settings,
        measured: Measured { nature: source.nature, runs },
        stream: None,
        proof: None,
        losses: Losses::default(),
    })
}

fn from_results(path: &Path, replays: Vec<SavedReplay>) -> Result<Side, GateError> {
    let policies: BTreeSet<String> = replays.iter().map(|replay| replay.policy.clone()).collect();
    if policies.len() > 1 {
        let policies = policies.into_iter().collect();
        return Err(GateError::SeveralPolicies { path: path.to_owned(), policies });
    }
    let name = policies.into_iter().next();
    let name = name.ok_or_else(|| GateError::NoSource { given: path.display().to_string() })?;
    let mut entries = BTreeMap::new();
    for replay in replays {
        let outcome = if replay.lost_data {
            let reason = "the capture had lost events when it was replayed".to_owned();
            Err(Refusal::new(Verdict::DataLoss, reason))
        } else {
            Ok(Entry {
                digest: None,
                accesses: Some(replay.accesses),
                settings: without_kernel(replay.settings),
                measured: Measured { nature: Nature::Replayed, runs: vec![replay.figures] },
                stream: None,
                proof: None,
                losses: Losses::default(),
            })
        };
        entries.insert(replay.source, outcome);
    }
    Ok(Side { name, entries })
}

fn without_kernel(mut settings: BTreeMap<String, String>) -> BTreeMap<String, String> {
    settings.remove("kernel");
    settings
}

/// Writes a side as a baseline. Sources that were refused are not in it.
pub fn write_baseline(side: &Side, path: &Path) -> Result<(), GateError> {
    let entries: Vec<(&String, &Entry)> = side
        .entries
        .iter()
        .filter_map(|(key, outcome)| Some((key, outcome.as_ref().ok()?)))
        .collect();
    let shared = shared_settings(entries.iter().map(|(_, entry)| &entry.settings));
    let document = Document {
        schema: BASELINE_SCHEMA.to_owned(),
        name: side.name.clone(),
        source: entries
            .into_iter()
            .map(|(key, entry)| (key.clone(), source_document(entry, &shared)))
            .collect(),
        settings: shared,
    };
    let text = toml::to_string(&document).map_err(|source| GateError::WriteBaseline {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    std::fs::write(path, format!("{HEAD}{text}")).map_err(|source| GateError::Io {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

fn source_document(entry: &Entry, shared: &BTreeMap<String, String>) -> SourceDocument {
    let runs = &entry.measured.runs;
    let has = |metric: &Metric| runs.iter().all(|run| run.values.contains_key(metric));
    let metrics = Metric::ALL.into_iter().filter(has);
    let values = |metric: Metric| runs.iter().map(move |run| run.values[&metric]).collect();
    let own = entry.settings.iter().filter(|(key, value)| shared.get(*key) != Some(*value));
    SourceDocument {
        nature: entry.measured.nature,
        digest: entry.digest.clone(),
        accesses: entry.accesses,
        folios_by_order: runs.iter().map(|run| run.by_order.clone()).collect(),
        settings: own.map(|(key, value)| (key.clone(), value.clone())).collect(),
        metrics: metrics.map(|metric| (metric.key().to_owned(), values(metric))).collect(),
    }
}

/// Settings that every source has with the same value.
fn shared_settings<'a>(
    mut all: impl Iterator<Item = &'a BTreeMap<String, String>>,
) -> BTreeMap<String, String> {
    let mut shared = all.next().cloned().unwrap_or_default();
    for settings in all {
        shared.retain(|key, value| settings.get(key) == Some(value));
    }
    shared
}
