//! From events to access streams.
//!
//! One pass over the events of a capture finds every read and fault with its
//! thread and file, the folios that were inserted and the requests the device
//! got. Then accesses are dealt out to open files and settings are recovered.

mod blocks;
mod builder;
mod opens;
mod page_set;
mod settings;
mod syscalls;

use crate::access::{Fidelity, Source};
use crate::capture::Capture;
use crate::settings::Settings;
use crate::sidecar::FileFacts;

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
        events: usize,
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
        None => builder::build(capture, name, options),
    }
}
