//! What people and scripts read of a result.
//!
//! Every function is pure: a result struct of `analysis` goes in, a text comes
//! out, the same bytes each time. [`text`] is for terminals, [`mail`] and
//! [`markdown`] for lists and trackers, [`json`] and [`csv`] for scripts.

pub mod chart;
pub mod csv;
pub mod gate;
pub mod html;
pub mod json;
pub mod mail;
pub mod markdown;
pub mod text;

mod causes;
mod figures;
mod grid;
mod number;
mod sweep;
mod words;

use std::path::{Path, PathBuf};

use analysis::result::ReplayReport;

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
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let write = |name: String, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).map_err(failed(&path))
    };
    write("index.html".to_owned(), html::replay(report).as_bytes())?;
    write("report.json".to_owned(), json::replay(report).as_bytes())?;
    for figure in chart::of_report(report) {
        let id = figure.id();
        write(format!("{id}.svg"), figure.svg().as_bytes())?;
        write(format!("{id}.csv"), figure.csv().as_bytes())?;
        if png {
            write(format!("{id}.png"), &figure.png())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
