//! What people and scripts read of a result.
//!
//! Every function is pure: a result struct of `analysis` goes in, a text comes
//! out, the same bytes each time. [`text`] is for terminals, [`mail`] and
//! [`markdown`] for lists and trackers, [`json`] and [`csv`] for scripts,
//! [`perfetto`] for a viewer of timelines.

pub mod chart;
pub mod csv;
pub mod gate;
pub mod html;
pub mod json;
pub mod mail;
pub mod markdown;
pub mod perfetto;
pub mod text;

mod causes;
mod figures;
mod fleet;
mod grid;
mod number;
mod sweep;
mod words;

use std::path::{Path, PathBuf};

use analysis::fleet::FleetReport;
use analysis::gate::GateReport;
use analysis::report::CorpusReport;
use analysis::result::ReplayReport;
use analysis::sweep::SweepReport;
use chart::Figure;

pub use number::counted;

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes a report as files into a folder, which is made if it is not there: `index.html`, which
/// needs none of the others, each chart as SVG with its data as CSV (and as PNG if asked for), and
/// `report.json`.
pub fn write_dir(report: &ReplayReport, directory: &Path, png: bool) -> Result<(), Error> {
    write(directory, "index.html", html::replay(report).as_bytes())?;
    write_data(report, directory, png)
}

/// Writes a report over many sources: `index.html`, `figures.csv` with the figures of all of them,
/// `gate.json` with the judgement, and a folder of charts and data for each source.
pub fn write_corpus(report: &CorpusReport, directory: &Path, png: bool) -> Result<(), Error> {
    write(directory, "index.html", html::corpus(report).as_bytes())?;
    write(directory, "figures.csv", csv::corpus(report).as_bytes())?;
    if let Some(gate) = &report.gate {
        write(directory, "gate.json", gate::json(gate).as_bytes())?;
    }
    for source in &report.sources {
        if let Ok(replay) = &source.replay {
            write_data(replay, &directory.join(folder_of(&source.key)), png)?;
        }
    }
    Ok(())
}

/// Writes a report over a fleet's results: `index.html`, `figures.csv`, `fleet.json`, and `gate.json`
/// with the judgement.
pub fn write_fleet(
    report: &FleetReport,
    gate: Option<&GateReport>,
    directory: &Path,
) -> Result<(), Error> {
    write(directory, "index.html", html::fleet(report, gate).as_bytes())?;
    write(directory, "figures.csv", csv::fleet(report).as_bytes())?;
    write(directory, "fleet.json", json::fleet(report).as_bytes())?;
    match gate {
        Some(judged) => write(directory, "gate.json", crate::gate::json(judged).as_bytes()),
        None => Ok(()),
    }
}

/// What stands beside the page of a fleet.
fn fleet_files(gate: Option<&GateReport>) -> Vec<String> {
    let gate = gate.map(|_| "gate.json");
    ["figures.csv", "fleet.json"].into_iter().chain(gate).map(str::to_owned).collect()
}

/// What stands beside the page of many sources.
fn corpus_files(report: &CorpusReport) -> Vec<String> {
    let folders = report.sources.iter().filter(|source| source.replay.is_ok());
    let folders = folders.map(|source| format!("{}/report.json", folder_of(&source.key)));
    let gate = report.gate.as_ref().map(|_| "gate.json".to_owned());
    ["figures.csv".to_owned()].into_iter().chain(gate).chain(folders).collect()
}

/// The folder of a source: its name, which may have folders in it itself.
fn folder_of(key: &str) -> String {
    let parts = key.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    parts.collect::<Vec<_>>().join("/")
}

/// Writes a sweep: `index.html`, its chart as SVG with its data as CSV (and as PNG if asked for),
/// `sweep.json`, and `figures.csv` with the figures of every point.
pub fn write_sweep(report: &SweepReport, directory: &Path, png: bool) -> Result<(), Error> {
    write(directory, "index.html", html::sweep(report).as_bytes())?;
    write(directory, "sweep.json", json::sweep(report).as_bytes())?;
    write(directory, "figures.csv", csv::sweep(report).as_bytes())?;
    write_figure(&chart::of_sweep(report), directory, png)
}

fn write_data(report: &ReplayReport, directory: &Path, png: bool) -> Result<(), Error> {
    write(directory, "report.json", json::replay(report).as_bytes())?;
    chart::of_report(report).iter().try_for_each(|figure| write_figure(figure, directory, png))
}

fn write_figure(figure: &Figure, directory: &Path, png: bool) -> Result<(), Error> {
    let id = figure.id();
    write(directory, &format!("{id}.svg"), figure.svg().as_bytes())?;
    write(directory, &format!("{id}.csv"), figure.csv().as_bytes())?;
    if png {
        write(directory, &format!("{id}.png"), &figure.png())?;
    }
    Ok(())
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let path = directory.join(name);
    let written = std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, bytes));
    written.map_err(|source| Error::Write { path, source })
}

#[cfg(test)]
mod tests;
