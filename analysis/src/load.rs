//! Sources from files: captures with their sidecars, workload descriptions.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use parser::{Collector, Sink};
use traces::access::Source;
use traces::capture::{Capture, Losses};
use traces::join::{JoinError, Named, join};
use traces::ops::{self, OpsError};
use traces::settings::{Origin, SettingError, Settings};
use traces::sidecar::{self, Sidecar, SidecarError};
use traces::streams::{self, StreamError, StreamOptions};
use traces::units::Time;
use traces::workload::{self, WorkloadError};

use crate::events::{self, EVER, ReadError, Streamed};
use crate::inspect::{Filter, FilterView};

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
    /// Another file of the run cannot be joined to it.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// It has accesses instead of events.
    #[error("{name} lists accesses instead of events: there is nothing to filter by")]
    NothingToFilter {
        /// The list.
        name: String,
    },
    /// Its sidecar is wrong.
    #[error(transparent)]
    Sidecar(#[from] SidecarError),
    /// It has no usable access stream.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// It has no usable access stream, which what it lost may be the reason of.
    #[error("{reason}\n{losses}")]
    Damaged {
        /// Why not.
        reason: StreamError,
        /// What it lost.
        losses: Losses,
    },
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

impl LoadError {
    /// The same error, with what the capture lost beside a lack of streams.
    fn beside(self, losses: &Losses) -> Self {
        match self {
            Self::Stream(reason) if !losses.0.is_empty() => {
                Self::Damaged { reason, losses: losses.clone() }
            }
            other => other,
        }
    }
}

/// How to load sources.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// `--set` values.
    pub set: Vec<(String, String)>,
    /// Settings of the recording, known as a sidecar's are: what the capture itself states comes first.
    pub noted: Vec<(String, String)>,
    /// Whether streams that only show what readahead did may be used.
    pub allow_inferred: bool,
    /// A list of accesses that stands for the capture's own.
    pub accesses: Option<PathBuf>,
    /// Further files of the same run; those of the sidecar if there are none.
    pub join: Vec<PathBuf>,
    /// Clock of the capture's time stamps, where it does not say.
    pub clock: Option<String>,
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
    let source = source.map_err(|error| error.beside(&capture.losses))?;
    Ok(Loaded { source, capture: Some(capture) })
}

/// Reads a capture, and builds its streams as far as it has any.
pub fn open(path: &Path, options: &LoadOptions) -> Result<Opened, LoadError> {
    Ok(open_part(path, options, &Filter::default())?.0)
}

/// The same of a part of a capture, with what the filter left.
pub fn open_part(
    path: &Path,
    options: &LoadOptions,
    filter: &Filter,
) -> Result<(Opened, Option<FilterView>), LoadError> {
    let mut settings = given(options)?;
    let mut accesses = options.accesses.clone();
    let mut joined = options.join.clone();
    let mut clock = options.clock.clone();
    let mut files = Vec::new();
    let mut about = String::new();
    if let Some(beside) = sidecar::path_for(path) {
        let sidecar = Sidecar::read(&beside)?;
        sidecar.apply(&beside, &mut settings)?;
        if let (None, Some(list)) = (&accesses, &sidecar.accesses) {
            accesses = Some(beside.with_file_name(list));
        }
        if joined.is_empty() {
            joined = sidecar.joined(path);
        }
        clock = clock.or(sidecar.clock);
        files = sidecar.files;
        about = sidecar.made;
    }
    // The clocks of several files are not known to be one before they are read.
    let times = if joined.is_empty() { filter.times_alone() } else { EVER };
    let Streamed { mut capture, stated, passed_over } = read_joined(path, &joined, clock, &times)?;
    let settings = {
        let mut stated = stated.settings(path)?;
        stated.overlay(settings);
        stated
    };
    if about.is_empty() {
        about.clone_from(&stated.sidecar.made);
    }
    let files = if files.is_empty() { stated.sidecar.files } else { files };
    let accesses = match accesses {
        Some(list) => Some((read_accesses(&list)?, list)),
        None => stated.accesses.map(|text| (text, path.to_owned())),
    };
    let allow_inferred = options.allow_inferred || accesses.is_some();
    let stream_options = StreamOptions { settings, allow_inferred, files };
    let name = path.display().to_string();
    let build = |capture: &Capture| streams::build(capture, &name, &stream_options);
    let mut built = build(&capture);
    let mut view = None;
    if !filter.is_empty() {
        if capture.iolog.is_some() {
            return Err(LoadError::NothingToFilter { name });
        }
        let mut kept = filter.apply(&mut capture, built.as_ref().ok());
        kept.events_total += passed_over;
        view = Some(kept);
        built = build(&capture);
    }
    let source = built.map_err(LoadError::from).map(|source| Source { about, ..source });
    let source = source.and_then(|source| with_accesses(source, accesses));
    if let Ok(source) = &source {
        capture.losses = source.losses.clone();
    }
    Ok((Opened { capture, source }, view))
}

/// Reads a capture and joins further files to it.
pub(crate) fn read_joined(
    path: &Path,
    files: &[PathBuf],
    clock: Option<String>,
    times: &RangeInclusive<Time>,
) -> Result<Streamed, LoadError> {
    let mut read = read_part(path, times)?;
    read.capture.header.clock = read.capture.header.clock.or(clock);
    for file in files {
        let first = Named { name: path.display().to_string(), capture: read.capture };
        let capture = read_part(file, &EVER)?.capture;
        let second = Named { name: file.display().to_string(), capture };
        read.capture = join(first, second)?;
    }
    Ok(read)
}

/// The `--set` values over what is noted of the recording, over the defaults.
fn given(options: &LoadOptions) -> Result<Settings, LoadError> {
    let mut settings = Settings::default();
    for (key, value) in &options.noted {
        settings.set(key, value, Origin::Sidecar)?;
    }
    for (key, value) in &options.set {
        settings.set(key, value, Origin::Given)?;
    }
    Ok(settings)
}

/// Hands the events of a capture to `sink`. Those that have none of `times` are passed over where that
/// can be known before they are read, which is in tables.
pub(crate) fn stream(
    path: &Path,
    times: &RangeInclusive<Time>,
    sink: &mut dyn Sink,
) -> Result<Streamed, LoadError> {
    if path.is_dir() {
        return Ok(parser::stream_path(path, sink)?.into());
    }
    let mut input = parser::open(path)?;
    if events::is_table(&mut input)? {
        return Ok(events::stream(input, times, sink)?);
    }
    Ok(parser::stream_input(input, sink)?.into())
}

/// Reads a capture into memory, its events in time order.
fn read_part(path: &Path, times: &RangeInclusive<Time>) -> Result<Streamed, LoadError> {
    let mut collector = Collector::default();
    let streamed = stream(path, times, &mut collector)?;
    Ok(Streamed { capture: collector.finish(streamed.capture), ..streamed })
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
