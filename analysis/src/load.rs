//! Sources from files: captures with their sidecars, workload descriptions.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use parser::{Collector, Input, Sink};
use traces::access::Source;
use traces::capture::{Capture, Losses};
use traces::join::{JoinError, Named, join};
use traces::ops::{self, OpsError};
use traces::settings::{Origin, SettingError, Settings};
use traces::sidecar::{self, FileFacts, Sidecar, SidecarError};
use traces::streams::{self, StreamError, StreamOptions};
use traces::units::Time;
use traces::workload::{self, WorkloadError};

use crate::events::{self, EVER, ReadError, Streamed};

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
        let mut settings = settings_of(&options.noted, Origin::Sidecar)?;
        settings.overlay(settings_of(&options.set, Origin::Given)?);
        let source = workload::read(path, &settings)?;
        return Ok(Loaded { source, capture: None });
    }
    let Opened { mut capture, source } = open(path, options)?;
    capture.events = Vec::new();
    let source = source.map_err(|error| error.beside(&capture.losses))?;
    Ok(Loaded { source, capture: Some(capture) })
}

/// Reads a capture, and builds its streams as far as it has any.
pub fn open(path: &Path, options: &LoadOptions) -> Result<Opened, LoadError> {
    let mut stated = Stated::read(path, options)?;
    let read = read_joined(path, &stated.joined, stated.clock.clone())?;
    let mut capture = read.capture;
    stated.add(read.stated)?;
    let stream_options = stated.stream_options();
    let name = path.display().to_string();
    let source = streams::build(&capture, &name, &stream_options).map_err(LoadError::from);
    let source = source.map(|source| Source { about: stated.about, ..source });
    let source = source.and_then(|source| with_accesses(source, stated.accesses));
    if let Ok(source) = &source {
        capture.losses = source.losses.clone();
    }
    Ok(Opened { capture, source })
}

/// What is stated of a capture: by options, by the sidecar beside it, by a table's footer.
#[derive(Debug)]
pub(crate) struct Stated {
    path: PathBuf,
    /// Settings of the recording, over the kernel's defaults.
    recording: Settings,
    /// Settings of `--set`.
    given: Settings,
    /// A list of accesses that stands for the capture's own, and what errors call it.
    pub(crate) accesses: Option<(String, PathBuf)>,
    /// Further files of the run.
    pub(crate) joined: Vec<PathBuf>,
    pub(crate) clock: Option<String>,
    files: Vec<FileFacts>,
    about: String,
    allow_inferred: bool,
}

impl Stated {
    /// By options and a sidecar.
    pub(crate) fn read(path: &Path, options: &LoadOptions) -> Result<Self, LoadError> {
        let mut stated = Self {
            path: path.to_owned(),
            recording: settings_of(&options.noted, Origin::Sidecar)?,
            given: settings_of(&options.set, Origin::Given)?,
            accesses: None,
            joined: options.join.clone(),
            clock: options.clock.clone(),
            files: Vec::new(),
            about: String::new(),
            allow_inferred: options.allow_inferred,
        };
        let mut accesses = options.accesses.clone();
        if let Some(beside) = sidecar::path_for(path) {
            let sidecar = Sidecar::read(&beside)?;
            sidecar.apply(&beside, &mut stated.recording)?;
            if let (None, Some(list)) = (&accesses, &sidecar.accesses) {
                accesses = Some(beside.with_file_name(list));
            }
            if stated.joined.is_empty() {
                stated.joined = sidecar.joined(path);
            }
            stated.clock = stated.clock.or(sidecar.clock);
            stated.files = sidecar.files;
            stated.about = sidecar.made;
        }
        stated.accesses = match accesses {
            Some(list) => Some((read_accesses(&list)?, list)),
            None => None,
        };
        Ok(stated)
    }

    /// Adds what a table says, for which everything else comes first.
    pub(crate) fn add(&mut self, table: events::Stated) -> Result<(), LoadError> {
        let mut settings = table.settings(&self.path)?;
        settings.overlay(std::mem::take(&mut self.recording));
        self.recording = settings;
        if self.about.is_empty() {
            self.about = table.sidecar.made;
        }
        if self.files.is_empty() {
            self.files = table.sidecar.files;
        }
        let path = &self.path;
        self.accesses =
            self.accesses.take().or_else(|| table.accesses.map(|text| (text, path.clone())));
        Ok(())
    }

    /// How streams are built under all of it.
    pub(crate) fn stream_options(&self) -> StreamOptions {
        let ra_pages = &self.recording.ra_pages;
        let is_stated = ra_pages.origin == Origin::Sidecar;
        let ra_pages_stated = is_stated.then_some(ra_pages.value);
        let mut settings = self.recording.clone();
        settings.overlay(self.given.clone());
        StreamOptions {
            settings,
            ra_pages_stated,
            allow_inferred: self.allow_inferred || self.accesses.is_some(),
            files: self.files.clone(),
        }
    }
}

/// Reads a capture and joins further files to it.
pub(crate) fn read_joined(
    path: &Path,
    files: &[PathBuf],
    clock: Option<String>,
) -> Result<Streamed, LoadError> {
    let mut read = read_whole(path)?;
    read.capture.header.clock = read.capture.header.clock.or(clock);
    for file in files {
        let first = Named { name: path.display().to_string(), capture: read.capture };
        let second = Named { name: file.display().to_string(), capture: read_whole(file)?.capture };
        read.capture = join(first, second)?;
    }
    Ok(read)
}

/// Values of one origin over the defaults.
fn settings_of(values: &[(String, String)], origin: Origin) -> Result<Settings, LoadError> {
    let mut settings = Settings::default();
    for (key, value) in values {
        settings.set(key, value, origin)?;
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
    stream_input(parser::open(path)?, times, sink)
}

/// The same of an input that is open.
pub(crate) fn stream_input(
    mut input: Input<'_>,
    times: &RangeInclusive<Time>,
    sink: &mut dyn Sink,
) -> Result<Streamed, LoadError> {
    if events::is_table(&mut input)? {
        return Ok(events::stream(input, times, sink)?);
    }
    Ok(parser::stream_input(input, sink)?.into())
}

/// Reads a capture into memory, its events in time order.
fn read_whole(path: &Path) -> Result<Streamed, LoadError> {
    let mut collector = Collector::default();
    let streamed = stream(path, &EVER, &mut collector)?;
    Ok(Streamed { capture: collector.finish(streamed.capture), ..streamed })
}

/// Reads a list of accesses.
pub(crate) fn read_accesses(path: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(path)
        .map_err(|source| LoadError::Accesses { path: path.to_owned(), source })
}

/// Takes the accesses from a list and its path, if there is one.
pub(crate) fn with_accesses(
    mut source: Source,
    list: Option<(String, PathBuf)>,
) -> Result<Source, LoadError> {
    if let Some((text, path)) = list {
        ops::replace_accesses(&mut source, &text)
            .map_err(|source| LoadError::Ops { path, source })?;
    }
    Ok(source)
}
