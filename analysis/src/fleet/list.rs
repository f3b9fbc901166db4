//! Lists of sources with labels.
//!
//! One JSON object per line, or comma- or tab-separated values behind a line of column names:
//!
//! ```text
//! source,host,kernel,workload,time,set
//! web1.trace.zst,web1,6.12.57,nginx,2026-11-30T04:00:00Z,read_ahead_kb=256 memory=4G
//! s3://captures/db7.trace.zst,db7,,postgres,,
//! ```

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// An entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Path or URL, as the list has it.
    pub source: String,
    /// Machine it was recorded on.
    #[serde(default)]
    pub host: Option<String>,
    /// Kernel it was recorded on; what the capture says if missing.
    #[serde(default)]
    pub kernel: Option<String>,
    /// What the machine was doing.
    #[serde(default)]
    pub workload: Option<String>,
    /// When it was recorded, in any notation.
    #[serde(default)]
    pub time: Option<String>,
    /// Settings for this source alone: `KEY=VALUE`, separated by spaces, as for `--set`.
    #[serde(default)]
    pub set: Option<String>,
}

impl Listed {
    /// Its own settings.
    pub fn settings(&self) -> impl Iterator<Item = (String, String)> {
        let pairs = self.set.as_deref().unwrap_or_default().split_ascii_whitespace();
        pairs.filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.into(), value.into()))
    }

    /// Says what is wrong with it.
    fn check(&self) -> Result<(), String> {
        if self.source.is_empty() {
            return Err("an entry without a source".to_owned());
        }
        let pairs = self.set.as_deref().unwrap_or_default().split_ascii_whitespace();
        for pair in pairs {
            let key = pair.split_once('=').map(|(key, _)| key);
            let known = key.is_some_and(|key| traces::settings::KEYS.contains(&key));
            if !known {
                let keys = traces::settings::KEYS.join(", ");
                return Err(format!("`{pair}` is not KEY=VALUE with a KEY of {keys}"));
            }
        }
        Ok(())
    }
}

/// A list that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The list.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no entry.
    #[error("{name}:{line}: {found}")]
    Line {
        /// The list.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        found: String,
    },
    /// It has no entries.
    #[error("{name} lists no source")]
    Empty {
        /// The list.
        name: String,
    },
}

/// Reads a list; `-` is standard input.
pub fn read_list(path: &Path) -> Result<Vec<Listed>, ListError> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|source| ListError::Read { path: path.to_owned(), source })?;
    parse_list(&text, &path.display().to_string())
}

/// Reads the text of a list. `name` is what errors call it.
pub fn parse_list(text: &str, name: &str) -> Result<Vec<Listed>, ListError> {
    let wrong = |line, found| ListError::Line { name: name.to_owned(), line, found };
    let entries = if text.trim_start().starts_with('{') { objects(text) } else { columns(text) };
    let mut listed = Vec::new();
    let mut seen = BTreeSet::new();
    for (line, entry) in entries {
        let entry = entry.and_then(|entry: Listed| entry.check().map(|()| entry));
        let entry = entry.map_err(|found| wrong(line, found))?;
        if !seen.insert(entry.clone()) {
            return Err(wrong(
                line,
                format!("{} is listed before with the same labels", entry.source),
            ));
        }
        listed.push(entry);
    }
    if listed.is_empty() {
        return Err(ListError::Empty { name: name.to_owned() });
    }
    Ok(listed)
}

type Lines = Vec<(u64, Result<Listed, String>)>;

fn objects(text: &str) -> Lines {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let entry = serde_json::from_str(line);
            // Its own line number is that within the line.
            let found = |error: serde_json::Error| {
                let text = error.to_string();
                text.rsplit_once(" at line ").map_or(text.clone(), |(found, _)| found.to_owned())
            };
            (number, entry.map_err(found))
        })
        .collect()
}

fn columns(text: &str) -> Lines {
    let head = text.lines().next().unwrap_or_default();
    let delimiter = if head.contains('\t') { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let found = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        let text = match error.kind() {
            csv::ErrorKind::Deserialize { err, .. } => err.kind().to_string(),
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                format!("{len} values for {expected_len} columns")
            }
            _ => error.to_string(),
        };
        (line, text)
    };
    let headers = match reader.headers() {
        Ok(headers) => headers.clone(),
        Err(error) => {
            let (line, text) = found(&error);
            return vec![(line, Err(text))];
        }
    };
    let entries = reader.records().map(|record| match record {
        Ok(record) => {
            let line = record.position().map_or(0, csv::Position::line);
            (line, record.deserialize(Some(&headers)).map_err(|error| found(&error).1))
        }
        Err(error) => {
            let (line, text) = found(&error);
            (line, Err(text))
        }
    });
    entries.collect()
}
