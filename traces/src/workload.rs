//! Workload descriptions: `*.workload.toml`.
//!
//! ```toml
//! what = "one 4 KiB read, then 1 MiB reads to the end"
//!
//! [file]
//! size = "512M"
//!
//! [settings]            # keys of --set
//! read_ahead_kb = 128
//! max_sectors_kb = 512
//!
//! [[stream]]            # one thread; streams take turns, one access each
//! steps = [
//!   { read = "sequential", size = "4K", count = 1 },
//!   { read = "sequential", size = "1M" },
//! ]
//! ```
//!
//! Steps: `read` is `sequential`, `backward`, `strided` or `random`; `touch` (a mapping) is
//! `sequential` or `random`; `advise` is `normal`, `sequential` or `random`; `willneed` and
//! `dontneed` take a range. A stream with `open = N` shares the open file `N` with every other
//! stream that says so; `thread = N` likewise.

use std::path::{Path, PathBuf};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;

use crate::access::{Access, AccessKind, File, Mapping, Open, Source};
use crate::event::FileId;
use crate::settings::{Origin, SettingError, Settings, parse_bytes};
use crate::units::{ByteOffset, PAGE_SIZE, Time};

/// A description that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or has unknown fields.
    #[error("{name} is not a workload description: {source}")]
    Parse {
        /// The file.
        name: String,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// A setting is wrong.
    #[error("{name}: {source}")]
    Setting {
        /// The file.
        name: String,
        /// Why.
        source: SettingError,
    },
    /// A value is out of range or does not parse.
    #[error("{name}: stream {stream}, step {step}: {what}")]
    Step {
        /// The file.
        name: String,
        /// Stream, from 1.
        stream: usize,
        /// Step of the stream, from 1.
        step: usize,
        /// What is wrong.
        what: String,
    },
    /// The file size is missing or wrong.
    #[error("{name}: file size `{size}` is not a size such as \"512M\"")]
    FileSize {
        /// The file.
        name: String,
        /// What stands there.
        size: String,
    },
    /// Nothing to do.
    #[error("{name} describes no access")]
    Empty {
        /// The file.
        name: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default)]
    what: String,
    file: FileDescription,
    #[serde(default)]
    settings: toml::Table,
    #[serde(default)]
    stream: Vec<StreamDescription>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDescription {
    size: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamDescription {
    open: Option<u32>,
    thread: Option<u32>,
    #[serde(default)]
    mapping: Mapping,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Pattern {
    Sequential,
    Backward,
    Strided,
    Random,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Advice {
    Normal,
    Sequential,
    Random,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Step {
    read: Option<Pattern>,
    touch: Option<Pattern>,
    advise: Option<Advice>,
    willneed: bool,
    dontneed: bool,
    /// Bytes per access; for random reads the smallest.
    size: Option<String>,
    /// Largest random read.
    size_max: Option<String>,
    /// Where the step begins; where the step before ended if missing.
    offset: Option<String>,
    /// Where it ends; the end of the file if missing.
    end: Option<String>,
    /// From one strided access to the next.
    stride: Option<String>,
    /// Random positions are multiples of this.
    align: Option<String>,
    /// Accesses; to the end if missing.
    count: Option<u64>,
    seed: u64,
    think_ns: u64,
}

/// Whether a file name says that it is a workload description.
pub fn is_workload(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".workload.toml"))
}

/// Reads a description. `settings` are the `--set` values, which win.
pub fn read(path: &Path, settings: &Settings) -> Result<Source, WorkloadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| WorkloadError::Read { path: path.to_owned(), source })?;
    parse(&text, &path.display().to_string(), settings)
}

/// Parses a description.
pub fn parse(text: &str, name: &str, settings: &Settings) -> Result<Source, WorkloadError> {
    let description: Description = toml::from_str(text).map_err(|source| WorkloadError::Parse {
        name: name.to_owned(),
        source: Box::new(source),
    })?;
    let mut settings = settings.clone();
    for (key, value) in &description.settings {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        settings
            .set(key, &value, Origin::Sidecar)
            .map_err(|source| WorkloadError::Setting { name: name.to_owned(), source })?;
    }
    let size = &description.file.size;
    let size_bytes = parse_bytes(size)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| WorkloadError::FileSize { name: name.to_owned(), size: size.clone() })?;
    let streams = generate_all(&description, name, size_bytes)?;
    let mut source = Source::generated(name, settings);
    source.about.clone_from(&description.what);
    source.files.push(File::contiguous(FileId::default(), size_bytes, File::FIRST_SECTOR));
    take_turns(&mut source, &description.stream, streams);
    if source.accesses.is_empty() {
        return Err(WorkloadError::Empty { name: name.to_owned() });
    }
    Ok(source)
}

type Generated = Vec<(AccessKind, u64)>;

fn generate_all(
    description: &Description,
    name: &str,
    size_bytes: u64,
) -> Result<Vec<Generated>, WorkloadError> {
    let mut streams = Vec::new();
    for (stream_index, stream) in description.stream.iter().enumerate() {
        let mut accesses = Vec::new();
        let mut pos = 0;
        for (step_index, step) in stream.steps.iter().enumerate() {
            let bad = |what| WorkloadError::Step {
                name: name.to_owned(),
                stream: stream_index + 1,
                step: step_index + 1,
                what,
            };
            pos = step.generate(pos, size_bytes, &mut accesses).map_err(bad)?;
        }
        streams.push(accesses);
    }
    Ok(streams)
}

/// Orders the accesses of all streams: each stream one access, in turn.
fn take_turns(source: &mut Source, descriptions: &[StreamDescription], streams: Vec<Generated>) {
    let mut places = Vec::new();
    for (index, stream) in descriptions.iter().enumerate() {
        let open = stream.open.unwrap_or(index as u32);
        let thread = stream.thread.unwrap_or(open);
        while source.opens.len() <= open as usize {
            source.opens.push(Open { mapping: stream.mapping, ..Open::new(0) });
        }
        while source.threads.len() <= thread as usize {
            source.threads.push(format!("stream {}", source.threads.len()));
        }
        places.push((open, thread));
    }
    let mut streams: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
    loop {
        let before = source.accesses.len();
        for (stream, &(open, thread)) in streams.iter_mut().zip(&places) {
            if let Some((kind, think_ns)) = stream.next() {
                let seq = source.accesses.len() as u64;
                source.accesses.push(Access { time: Time(0), seq, thread, open, think_ns, kind });
            }
        }
        if source.accesses.len() == before {
            return;
        }
    }
}

impl Step {
    fn bytes(
        &self,
        key: &str,
        field: impl Fn(&Self) -> &Option<String>,
        default: u64,
    ) -> Result<u64, String> {
        match field(self) {
            None => Ok(default),
            Some(text) => parse_bytes(text)
                .ok_or_else(|| format!("{key} `{text}` is not a size such as \"64K\"")),
        }
    }

    /// Appends the accesses of this step; returns where it ended.
    fn generate(&self, pos: u64, file_bytes: u64, out: &mut Generated) -> Result<u64, String> {
        let offset = self.bytes("offset", |step| &step.offset, pos)?;
        let end = self.bytes("end", |step| &step.end, file_bytes)?.min(file_bytes);
        let mut push = |kind| out.push((kind, self.think_ns));
        match (self.read, self.touch, self.advise, self.willneed, self.dontneed) {
            (Some(pattern), None, None, false, false) => {
                let size = self.bytes("size", |step| &step.size, 0)?;
                let range = Range { offset, end, size, file_bytes };
                self.reads(pattern, range, |pos, count| {
                    push(AccessKind::Read { pos: ByteOffset(pos), count });
                })
            }
            (None, Some(pattern), None, false, false) => {
                let range = Range { offset, end, size: PAGE_SIZE, file_bytes };
                self.reads(pattern, range, |pos, _| {
                    push(AccessKind::Touch { page: ByteOffset(pos).page() });
                })
            }
            (None, None, Some(advice), false, false) => {
                push(match advice {
                    Advice::Normal => AccessKind::AdviseNormal,
                    Advice::Sequential => AccessKind::AdviseSequential,
                    Advice::Random => AccessKind::AdviseRandom,
                });
                Ok(pos)
            }
            (None, None, None, true, false) => {
                let size = self.bytes("size", |step| &step.size, end.saturating_sub(offset))?;
                let (page, last) = (ByteOffset(offset).page(), ByteOffset(offset + size).page_up());
                push(AccessKind::WillNeed { page, pages: last - page });
                Ok(pos)
            }
            (None, None, None, false, true) => {
                let count = self.bytes("size", |step| &step.size, 0)?;
                push(AccessKind::DontNeed { pos: ByteOffset(offset), count });
                Ok(pos)
            }
            _ => Err("a step is one of read, touch, advise, willneed and dontneed".to_owned()),
        }
    }

    fn reads(
        &self,
        pattern: Pattern,
        range: Range,
        mut push: impl FnMut(u64, u64),
    ) -> Result<u64, String> {
        const ACCESSES_MAX: u64 = 1 << 28;
        let Range { offset, end, size, file_bytes } = range;
        if size == 0 {
            return Err("size is missing or 0".to_owned());
        }
        if offset >= file_bytes {
            return Err(format!("offset {offset} is not inside the file of {file_bytes} bytes"));
        }
        let stride = self.bytes("stride", |step| &step.stride, size)?;
        let fitting = end.saturating_sub(offset).div_ceil(stride.max(1));
        let count = self.count.unwrap_or(fitting);
        if count > ACCESSES_MAX || stride == 0 {
            return Err(format!("{count} accesses {stride} bytes apart are too many"));
        }
        match pattern {
            Pattern::Sequential | Pattern::Strided => {
                let positions = (0..count).map(|n| offset + n * stride);
                let inside = positions.take_while(|pos| *pos < end);
                let last = inside.inspect(|pos| push(*pos, size)).last();
                Ok(last.map_or(offset, |pos| pos + size))
            }
            Pattern::Backward => {
                let span = end - offset;
                for n in 0..count.min(span / size) {
                    push(end - (n + 1) * size, size);
                }
                Ok(offset)
            }
            Pattern::Random => {
                let size_max = self.bytes("size_max", |step| &step.size_max, size)?;
                let align = self.bytes("align", |step| &step.align, size)?.max(1);
                if size_max < size || end < offset + size_max {
                    return Err("size_max is below size or beyond the range".to_owned());
                }
                let mut rng = Pcg64::seed_from_u64(self.seed);
                let granules = (size_max - size) / align + 1;
                for _ in 0..count {
                    let count = size + below(&mut rng, granules) * align;
                    let places = (end - offset - count) / align + 1;
                    push(offset + below(&mut rng, places) * align, count);
                }
                Ok(offset)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Range {
    offset: u64,
    end: u64,
    size: u64,
    file_bytes: u64,
}

/// A number below `n`: the high half of a 128-bit product, the same on every platform.
fn below(rng: &mut Pcg64, n: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}
