//! From events to access streams.
//!
//! One pass over the events of a capture finds every read and fault with its
//! thread and file, the folios that were inserted and the requests the device
//! got. Then accesses are dealt out to open files and settings are recovered.

mod blocks;
mod builder;
mod extents;
mod opens;
mod page_set;
mod settings;
mod syscalls;
mod window;

use crate::access::{Access, Fidelity, RecordedFolio, RecordedRead, Source};
use crate::capture::Capture;
use crate::settings::Settings;
use crate::sidecar::FileFacts;

pub use builder::{Pass, Passed, is_plausible};
pub use window::Taker;

/// A capture no access stream can be built from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// Nothing in it shows what a program read.
    #[error(
        "no access events in {events} events of {name}: record xfs:xfs_file_buffered_read, or the \
         read system calls with filemap:mm_filemap_get_pages (6.12) and filemap:mm_filemap_fault, \
         together with filemap:mm_filemap_add_to_page_cache, readahead:* (6.18), \
         block:block_bio_queue, block:block_rq_issue and block:block_rq_complete; for example \
         `trace-cmd record -e xfs:xfs_file_buffered_read -e filemap -e readahead -e \
         block:block_bio_queue -e block:block_rq_issue -e block:block_rq_complete COMMAND`"
    )]
    NoAccesses {
        /// The capture.
        name: String,
        /// Events in it.
        events: u64,
    },
    /// A list of accesses without a read.
    #[error("no read in {name}, only writes and other accesses that readahead takes no part in")]
    NoReads {
        /// The list.
        name: String,
    },
    /// Only inferred streams are there.
    #[error(
        "{name} shows only what readahead did ({fidelity:?} level), not what the program asked \
         for; --allow-inferred replays it all the same"
    )]
    OnlyInferred {
        /// The capture.
        name: String,
        /// The best level.
        fidelity: Fidelity,
    },
}

/// How to read a capture.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// Settings from the sidecar and from `--set`, over the kernel's defaults.
    pub settings: Settings,
    /// `ra_pages` of the device as the sidecar states it, whatever `--set` says.
    pub ra_pages_stated: Option<u64>,
    /// Whether streams below [`Fidelity::Page`] may be built.
    pub allow_inferred: bool,
    /// What the sidecar says of files.
    pub files: Vec<FileFacts>,
}

/// Builds the access streams of a capture.
pub fn build(
    capture: &Capture,
    name: &str,
    options: &StreamOptions,
) -> Result<Source, StreamError> {
    match &capture.iolog {
        Some(iolog) if iolog.has_reads() => {
            Ok(iolog.to_source(name, &options.settings, &capture.losses))
        }
        Some(_) => Err(StreamError::NoReads { name: name.to_owned() }),
        None => match of_events(capture, name, options, false) {
            Err(StreamError::OnlyInferred { .. }) if options.allow_inferred => {
                of_events(capture, name, options, true)
            }
            result => result,
        },
    }
}

fn of_events(
    capture: &Capture,
    name: &str,
    options: &StreamOptions,
    infer: bool,
) -> Result<Source, StreamError> {
    let mut pass = Pass::whole(options, Collector::default());
    if infer {
        pass = pass.inferring();
    }
    for event in &capture.events {
        pass.event(event);
    }
    Ok(Collector::collected(pass.finish(capture, name)?))
}

/// Keeps all that a pass finds.
#[derive(Default)]
struct Collector {
    accesses: Vec<(u32, Access)>,
    folios: Vec<RecordedFolio>,
    reads: Vec<RecordedRead>,
}

impl Taker for Collector {
    fn access(&mut self, file: u32, _: u64, access: &Access) {
        self.accesses.push((file, *access));
    }

    fn folio(&mut self, folio: &RecordedFolio) {
        self.folios.push(*folio);
    }

    fn read(&mut self, read: &RecordedRead) {
        self.reads.push(*read);
    }
}

impl Collector {
    /// The source with what was found, by the numbers that files and open files have there.
    fn collected(passed: Passed<Self>) -> Source {
        let Passed { mut source, files, opens, taker, .. } = passed;
        let accesses = taker.accesses.into_iter().filter_map(|(file, access)| {
            files[file as usize]?;
            Some(Access { open: opens[access.open as usize]?, ..access })
        });
        source.accesses = accesses.collect();
        let recorded = source.recorded.get_or_insert_default();
        let folios = taker
            .folios
            .into_iter()
            .filter_map(|folio| Some(RecordedFolio { file: files[folio.file as usize]?, ..folio }));
        recorded.folios = folios.collect();
        for read in taker.reads {
            let target = read.target.and_then(|(file, page)| Some((files[file as usize]?, page)));
            recorded.foreign_reads += u64::from(target.is_none());
            recorded.reads.push(RecordedRead { target, ..read });
        }
        source
    }
}
