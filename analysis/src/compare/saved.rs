//! Saved results: the `rareplay.replay/1` documents that `replay --format json` writes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use traces::capture::LossKind;

use super::figures::trimmed;
use super::{Figures, Metric};

/// A file of saved results that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not JSON.
    #[error("{path} is not JSON: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// It is another document, or another version of it.
    #[error("{path} holds `{schema}`; `{}` is expected", crate::replay::SCHEMA)]
    Schema {
        /// The file.
        path: PathBuf,
        /// What it says it is.
        schema: String,
    },
    /// A field is missing or has another type.
    #[error("{path}: document {document} has no usable `{field}`")]
    Field {
        /// The file.
        path: PathBuf,
        /// Which document of the file, from 1.
        document: usize,
        /// The field.
        field: &'static str,
    },
}

/// One policy's saved replay of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedReplay {
    /// The source, as it was named then.
    pub source: String,
    /// The policy.
    pub policy: String,
    /// Settings and model parameters by name.
    pub settings: BTreeMap<String, String>,
    /// Accesses of the source.
    pub accesses: u64,
    /// Whether the capture had lost events.
    pub lost_data: bool,
    /// The figures.
    pub figures: Figures,
}

/// Reads every replay of a file of one or more `rareplay.replay/1` documents.
pub fn read_saved(path: &Path) -> Result<Vec<SavedReplay>, SavedError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SavedError::Read { path: path.to_owned(), source })?;
    let mut replays = Vec::new();
    for (at, document) in serde_json::Deserializer::from_str(&text).into_iter().enumerate() {
        let document: Value =
            document.map_err(|source| SavedError::Json { path: path.to_owned(), source })?;
        let schema = document["schema"].as_str().unwrap_or("no schema");
        if schema != crate::replay::SCHEMA {
            let schema = schema.to_owned();
            return Err(SavedError::Schema { path: path.to_owned(), schema });
        }
        read_document(&document, &mut replays).map_err(|field| SavedError::Field {
            path: path.to_owned(),
            document: at + 1,
            field,
        })?;
    }
    Ok(replays)
}

fn read_document(document: &Value, into: &mut Vec<SavedReplay>) -> Result<(), &'static str> {
    let source = document["source"].as_str().ok_or("source")?;
    let accesses = document["streams"]["accesses"].as_u64().ok_or("streams.accesses")?;
    let settings = settings(document)?;
    let lost_data = lost_data(document);
    for result in document["results"].as_array().ok_or("results")? {
        into.push(SavedReplay {
            source: source.to_owned(),
            policy: result["policy"].as_str().ok_or("results.policy")?.to_owned(),
            settings: settings.clone(),
            accesses,
            lost_data,
            figures: figures(result)?,
        });
    }
    Ok(())
}

fn settings(document: &Value) -> Result<BTreeMap<String, String>, &'static str> {
    let mut settings = BTreeMap::new();
    for setting in document["settings"].as_array().ok_or("settings")? {
        let text = |field: &str| setting[field].as_str().map(str::to_owned);
        let (key, value) = text("key").zip(text("value")).ok_or("settings.key")?;
        settings.insert(key, value);
    }
    let model = document["device"]["model"].as_str().ok_or("device.model")?;
    settings.insert("device.model".to_owned(), model.to_owned());
    for parameter in document["device"]["parameters"].as_array().ok_or("device.parameters")? {
        let name = parameter[0].as_str().ok_or("device.parameters")?;
        settings.insert(format!("device.{name}"), shown(&parameter[1]));
    }
    Ok(settings)
}

/// A number or a text, without quotes.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Whether a counter of the document is one of lost events.
fn lost_data(document: &Value) -> bool {
    let fatal =
        [LossKind::LostEvents, LossKind::Overwritten, LossKind::Truncated, LossKind::MissingCpu];
    let fatal: BTreeSet<String> = fatal
        .iter()
        .filter_map(|kind| Some(serde_json::to_value(kind).ok()?.as_str()?.to_owned()))
        .collect();
    document["losses"]
        .as_object()
        .is_some_and(|losses| losses.keys().any(|kind| fatal.contains(kind)))
}

/// A metric's key is its path in the document.
fn figures(result: &Value) -> Result<Figures, &'static str> {
    let orders = result["folios"]["by_order"].as_array().ok_or("results.folios.by_order")?;
    let by_order: Option<Vec<u64>> = orders.iter().map(Value::as_u64).collect();
    let value = |metric: Metric| {
        let found = metric.key().split('.').try_fold(result, |at, part| at.get(part))?;
        Some((metric, found.as_u64()?))
    };
    Ok(Figures {
        by_order: trimmed(by_order.ok_or("results.folios.by_order")?),
        values: Metric::ALL.into_iter().filter_map(value).collect(),
    })
}
