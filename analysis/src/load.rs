//! Sources from files: captures with their sidecars, workload descriptions.

use std::path::{Path, PathBuf};

use traces::access::Source;
use traces::capture::{Capture, LossKind};
use traces::ops::{self, OpsError};
use traces::settings::{Origin, SettingError, Settings};
use traces::sidecar::{self, Sidecar, SidecarError};
use traces::streams::{self, StreamError, StreamOptions};
use traces::workload::{self, WorkloadError};

/// A source that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It is not a capture this program reads.
    #[error(transparent)]
    Capture(#[from] parser::Error),
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
    let mut capture = parser::read_path(path)?;
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

/// Takes the accesses from a list, if there is one.
fn with_accesses(mut source: Source, list: Option<PathBuf>) -> Result<Source, LoadError> {
    if let Some(path) = list {
        let text = std::fs::read_to_string(&path)
            .map_err(|source| LoadError::Accesses { path: path.clone(), source })?;
        ops::replace_accesses(&mut source, &text)
            .map_err(|source| LoadError::Ops { path, source })?;
    }
    Ok(source)
}
