//! Sources from files: captures with their sidecars, workload descriptions.

use std::path::{Path, PathBuf};

use parser::{Collector, Sink};
use traces::access::Source;
use traces::capture::{Capture, LossKind};
use traces::ops::{self, OpsError};
use traces::settings::{Origin, SettingError, Settings};
use traces::sidecar::{self, Sidecar, SidecarError};
use traces::streams::{self, StreamError, StreamOptions};
use traces::workload::{self, WorkloadError};

use crate::events::{self, Filter, ReadError, Stated};

/// A source that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is not a capture this program reads.
    #[error(transparent)]
    Capture(#[from] parser::Error),
    /// It is a table, but not one of a capture.
    #[error(transparent)]
    Table(#[from] ReadError),
    /// It is not a workload description.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Its sidecar is wrong.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// It has no usable access stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A `--set` value is wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The list of accesses cannot be read.
    #[error("cannot read {path}: {source}")]
    Accesses {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The list of accesses is wrong.
    #[error("{path}: {source}")]
    Ops {
        /// The file.
        path: PathBuf,
        /// Why.
        source: OpsError,
    },
}

/// How to load sources.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// `--set` values.
    pub set: Vec<(String, String)>,
    /// Whether streams that only show what readahead did may be used.
    pub allow_inferred: bool,
    /// A list of accesses that stands for the capture's own.
    pub accesses: Option<PathBuf>,
}

/// A loaded source; the capture it came from, if it is one.
#[derive(Debug)]
pub struct Loaded {
    /// The access streams.
    pub source: Source,
    /// The capture, without its events.
    pub capture: Option<Capture>,
}

/// A capture with its events, and the streams built from it if there are any.
#[derive(Debug)]
pub struct Opened {
    /// The capture.
    pub capture: Capture,
    /// The access streams.
    pub source: Result<Source, LoadError>,
}

/// Loads a capture or a workload description.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, LoadError> {
    if workload::is_workload(path) {
        let source = workload::read(path, &given(options)?)?;
        return Ok(Loaded { source, capture: None });
    }
    let Opened { mut capture, source } = open(path, options)?;
    capture.events = Vec::new();
    Ok(Loaded { source: source?, capture: Some(capture) })
}

/// Reads a capture, and builds its streams as far as it has any.
pub fn open(path: &Path, options: &LoadOptions) -> Result<Opened, LoadError> {
    let mut settings = given(options)?;
    let mut accesses = options.accesses.clone();
    let mut files = Vec::new();
    if let Some(path) = sidecar::path_for(path) {
        let sidecar = Sidecar::read(&path)?;
        sidecar.apply(&path, &mut settings)?;
        if let (None, Some(list)) = (&accesses, &sidecar.accesses) {
            accesses = Some(path.with_file_name(list));
        }
        files = sidecar.files;
    }
    let (mut capture, stated) = read(path)?;
    let settings = {
        let mut stated = stated.settings(path)?;
        stated.overlay(settings);
        stated
    };
    let files = if files.is_empty() { stated.sidecar.files } else { files };
    let accesses = match accesses {
        Some(list) => Some((read_accesses(&list)?, list)),
        None => stated.accesses.map(|text| (text, path.to_owned())),
    };
    let allow_inferred = options.allow_inferred || accesses.is_some();
    let stream_options = StreamOptions { settings, allow_inferred, files };
    let name = path.display().to_string();
    let source = streams::build(&capture, &name, &stream_options)
        .map_err(LoadError::from)
        .and_then(|source| with_accesses(source, accesses));
    if let Ok(Source { implausible_events: count @ 1.., .. }) = source {
        let what = || "an event that names a place no file has".to_owned();
        capture.losses.add(LossKind::BadFields, count, what);
    }
    Ok(Opened { capture, source })
}

/// The `--set` values over the defaults.
fn given(options: &LoadOptions) -> Result<Settings, LoadError> {
    let mut settings = Settings::default();
    for (key, value) in &options.set {
        settings.set(key, value, Origin::Given)?;
    }
    Ok(settings)
}

/// Hands the events of a capture to `sink`. Returns everything else, and what it brings along if it is
/// one that was converted. Groups of events that `filter` does not want are left out where they can.
pub(crate) fn stream(
    path: &Path,
    filter: &Filter,
    sink: &mut dyn Sink,
) -> Result<(Capture, Stated), LoadError> {
    if path.is_dir() {
        return Ok((parser::stream_path(path, sink)?, Stated::default()));
    }
    let mut input = parser::open(path)?;
    if events::is_table(&mut input)? {
        return Ok(events::stream(input, filter, sink)?);
    }
    Ok((parser::stream_input(input, sink)?, Stated::default()))
}

/// Reads a whole capture, its events in time order.
fn read(path: &Path) -> Result<(Capture, Stated), LoadError> {
    let mut collector = Collector::default();
    let (capture, stated) = stream(path, &Filter::default(), &mut collector)?;
    Ok((collector.finish(capture), stated))
}

/// Reads a list of accesses.
pub(crate) fn read_accesses(path: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(path)
        .map_err(|source| LoadError::Accesses { path: path.to_owned(), source })
}

/// Takes the accesses from a list and its path, if there is one.
fn with_accesses(mut source: Source, list: Option<(String, PathBuf)>) -> Result<Source, LoadError> {
    if let Some((text, path)) = list {
        ops::replace_accesses(&mut source, &text)
            .map_err(|source| LoadError::Ops { path, source })?;
    }
    Ok(source)
}
