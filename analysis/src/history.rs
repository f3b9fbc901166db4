//! Figures over many runs of the gate, and where they changed.
//!
//! The file is text that only grows, so that it lives well in a repository. A
//! run writes its label and then only what differs from the run before:
//!
//! ```text
//! # rareplay.history/1
//! run v7.2
//! inter2.ftrace.zst  device_reads.count  3327
//! run v7.3
//! inter2.ftrace.zst  device_reads.count  1029
//! ```
//!
//! The three fields are separated by tabs; `-` says that a run no longer had a
//! figure. Change points are found by the energy statistic of E-divisive with
//! means (Matteson and James, 2014): the series is split where the values before
//! and after differ most, as long as random permutations rarely give as large a
//! difference. A change below a minimum magnitude is not reported.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Serialize;

use crate::compare::{Check, Metric};
use crate::stats::change_points;

const HEAD: &str = "# rareplay.history/1";

/// Runs that change points are looked for in: the work grows with the square of it.
const RUNS_MAX: usize = 200;

/// A history that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// It cannot be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The first line is not that of a history this version reads.
    #[error("{path} begins with `{found}`; `{HEAD}` is expected")]
    Head {
        /// The file.
        path: PathBuf,
        /// Its first line.
        found: String,
    },
    /// A line is neither a run nor a figure.
    #[error("{path}:{line}: `{text}` is neither `run LABEL` nor source, metric and value")]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// A label that would break the file.
    #[error("`{label}` is no label: it is empty or has a line feed or tab")]
    Label {
        /// The label.
        label: String,
    },
}

type Key = (String, String);

/// One run: its label and its figures by source and metric, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Run {
    label: String,
    figures: BTreeMap<Key, String>,
}

/// The figures of the runs of a gate, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    runs: Vec<Run>,
}

/// A place where a metric changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// The source.
    pub source: String,
    /// The metric.
    pub metric: String,
    /// The first run with the new values.
    pub label: String,
    /// Mean of the runs before, back to the change before.
    #[serde(serialize_with = "crate::compare::number")]
    pub before: f64,
    /// Mean of the runs from there to the next change.
    #[serde(serialize_with = "crate::compare::number")]
    pub after: f64,
    /// Change in percent; `None` if it was 0 before.
    #[serde(serialize_with = "crate::compare::optional_number")]
    pub percent: Option<f64>,
}

impl History {
    /// Reads a history; a file that is not there is an empty one.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(HistoryError::Io { action: "read", path: path.to_owned(), source }),
        }
    }

    fn parse(text: &str, path: &Path) -> Result<Self, HistoryError> {
        let mut lines = text.lines().enumerate();
        let found = lines.next().map_or("", |(_, line)| line);
        if found != HEAD {
            return Err(HistoryError::Head { path: path.to_owned(), found: found.to_owned() });
        }
        let mut history = Self::default();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            history.add_line(line).ok_or_else(|| HistoryError::Line {
                path: path.to_owned(),
                line: at + 1,
                text: line.to_owned(),
            })?;
        }
        Ok(history)
    }

    fn add_line(&mut self, line: &str) -> Option<()> {
        if let Some(label) = line.strip_prefix("run ") {
            let figures = self.runs.last().map(|run| run.figures.clone()).unwrap_or_default();
            self.runs.push(Run { label: label.to_owned(), figures });
            return Some(());
        }
        let mut fields = line.split('\t');
        let (source, metric, value) = (fields.next()?, fields.next()?, fields.next()?);
        let key = (source.to_owned(), metric.to_owned());
        let figures = &mut self.runs.last_mut()?.figures;
        match value {
            "-" => figures.remove(&key),
            value if value.parse::<f64>().is_ok_and(f64::is_finite) => {
                figures.insert(key, value.to_owned())
            }
            _ => return None,
        };
        fields.next().is_none().then_some(())
    }

    /// Adds the candidate's figures of a gate. A run with the label of the last one replaces it.
    pub fn add(&mut self, label: &str, checks: &[Check]) -> Result<(), HistoryError> {
        if label.trim().is_empty() || label.contains(['\n', '\r', '\t']) {
            return Err(HistoryError::Label { label: label.to_owned() });
        }
        self.runs.pop_if(|run| run.label == label);
        let figure = |check: &Check| {
            let key = (check.source.clone(), check.metric.key().to_owned());
            Some((key, written(check.metric, check.candidate?)))
        };
        let figures = checks.iter().filter_map(figure).collect();
        self.runs.push(Run { label: label.to_owned(), figures });
        Ok(())
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let mut before = &BTreeMap::new();
        for run in &self.runs {
            let _ = writeln!(text, "run {}", run.label);
            for (key, value) in &run.figures {
                if before.get(key) != Some(value) {
                    let _ = writeln!(text, "{}\t{}\t{value}", key.0, key.1);
                }
            }
            for (source, metric) in before.keys().filter(|key| !run.figures.contains_key(*key)) {
                let _ = writeln!(text, "{source}\t{metric}\t-");
            }
            before = &run.figures;
        }
        text
    }

    /// Writes the file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), HistoryError> {
        let fail = |source| HistoryError::Io { action: "write", path: path.to_owned(), source };
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        std::fs::write(&beside, self.text()).map_err(fail)?;
        std::fs::rename(&beside, path).map_err(fail)
    }

    /// Changes of at least `magnitude_percent` in the last 200 runs, by source, metric and time.
    pub fn change_points(&self, magnitude_percent: f64) -> Vec<ChangePoint> {
        let last = self.runs.len().saturating_sub(RUNS_MAX);
        let runs = &self.runs[last..];
        let mut series: BTreeMap<&Key, Vec<(&str, f64)>> = BTreeMap::new();
        for run in runs {
            for (key, value) in &run.figures {
                let value = value.parse().unwrap_or(0.0);
                series.entry(key).or_default().push((&run.label, value));
            }
        }
        let series: Vec<_> = series.into_iter().collect();
        let found =
            series.par_iter().map(|(key, points)| of_series(key, points, magnitude_percent));
        found.collect::<Vec<_>>().concat()
    }
}

/// Whole numbers as such; orders with four decimals.
fn written(metric: Metric, value: f64) -> String {
    let whole = metric != Metric::MeanOrder && value.fract() == 0.0;
    if whole { format!("{value:.0}") } else { format!("{value:.4}") }
}

fn of_series(key: &Key, points: &[(&str, f64)], magnitude_percent: f64) -> Vec<ChangePoint> {
    let values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    let changes = change_points(&values, magnitude_percent);
    let point = |(at, before, after): &(usize, f64, f64)| ChangePoint {
        source: key.0.clone(),
        metric: key.1.clone(),
        label: points[*at].0.to_owned(),
        before: *before,
        after: *after,
        percent: (*before != 0.0).then(|| (after - before) / before.abs() * 100.0),
    };
    changes.iter().map(point).collect()
}
