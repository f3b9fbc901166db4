//! Captures as bytes in, events out.
//!
//! [`read_path`] and [`read`] recognise the format of a capture from its content and return its
//! events as a [`Capture`]; [`stream`] hands the same events to a [`Sink`] batch by batch in bounded
//! memory. Compressed input (zstd, gzip, xz) is unpacked on the way, whatever the file is called.
//!
//! | format | what it is read from |
//! |---|---|
//! | ftrace text | `trace` and `trace_pipe` of tracefs with any of its options, the latency format, the `blk` tracer, `trace-cmd report` with any of its switches |
//! | perf script text | `perf script` over tracepoints |
//! | trace.dat | `trace-cmd record`, versions 6 and 7, plain or compressed |
//! | raw ring-buffer pages | a directory with `trace_pipe_raw` and `format` files, laid out like tracefs |
//! | blktrace | versions 7 and 8: a per-CPU file, a merged dump, or a directory of per-CPU files |
//! | blkparse text | its own format, and `-f` formats that are in use |
//! | systrace HTML, compressed atrace | the ftrace text inside |
//! | fio iolog | versions 2 and 3: accesses instead of events, in [`Capture::iolog`] |
//!
//! Byte order and word size are those of the machine traced, whatever this one has.
//!
//! Histograms of folio orders from bpftrace or bcc have no events: [`read_histograms`] reads them.
//!
//! Nothing is dropped silently. What a format says about lost events, and every line or record that
//! could not be understood, ends up in [`Capture::losses`] with a count and its first place; events
//! that are understood but not used are counted by name in [`Capture::unused_events`]. A damaged tail
//! costs only the tail. Input that is not a capture at all is an [`Error`].
//!
//! No input makes a parser panic, and none makes it allocate more than a constant plus what the
//! events it holds need.
//!
//! ```no_run
//! let capture = parser::read_path("run.trace.zst".as_ref())?;
//! println!("{} events\n{}", capture.events.len(), capture.losses);
//! # Ok::<(), parser::Error>(())
//! ```
//!
//! Layout: `input` opens and unpacks, `detect` is the table of formats, each format has its own
//! module, and `events` turns what an event says into the typed model of [`traces::event`], whichever
//! format it came in. `assemble` is where events, names and losses of all formats come together.

mod assemble;
mod blk;
mod bytes;
mod detect;
mod directory;
mod error;
mod events;
mod ftrace;
mod histogram;
mod input;
mod iolog;
mod perf;
mod raw_pages;
mod ring_buffer;
mod source;
mod systrace;
mod text;
mod trace_dat;

use std::io::Read;
use std::path::Path;

use traces::capture::Capture;

pub use assemble::{Collector, Sink};
pub use error::Error;
pub use histogram::{
    OrderBucket, OrderHistogram, OrderHistograms, read_histograms, read_histograms_path,
};
pub use input::Input;
pub use source::Source;

use assemble::Assembler;

/// Reads the capture at `path` into memory, its events in time order.
///
/// A directory is one capture in per-CPU files, such as blktrace writes; `-` is standard input.
pub fn read_path(path: &Path) -> Result<Capture, Error> {
    let mut collector = Collector::default();
    let capture = stream_path(path, &mut collector)?;
    Ok(collector.finish(capture))
}

/// Reads a capture into memory, its events in time order. `name` is what errors call it.
pub fn read(reader: impl Read, name: &str) -> Result<Capture, Error> {
    let mut collector = Collector::default();
    let capture = stream(reader, name, &mut collector)?;
    Ok(collector.finish(capture))
}

/// Reads a capture and hands its events to `sink` in the order of the file, a batch at a time. Where
/// a format keeps each CPU's events apart, they are merged by time.
///
/// The capture returned holds everything but the events.
pub fn stream(reader: impl Read, name: &str, sink: &mut dyn Sink) -> Result<Capture, Error> {
    stream_input(Input::open(reader, name)?, sink)
}

/// Reads a capture from an input that is open, as [`stream`] does. Nothing of it may have been read.
pub fn stream_input(mut input: Input<'_>, sink: &mut dyn Sink) -> Result<Capture, Error> {
    let format = detect::detect(&mut input)?;
    let mut assembler = Assembler::new(format.name, sink);
    (format.read)(&mut input, &mut assembler)?;
    Ok(assembler.finish())
}

/// Whether a directory is one capture in several files, rather than a folder of captures.
pub fn is_capture_directory(path: &Path) -> bool {
    directory::recognise(path)
}

/// Reads the capture at `path`, which may be a directory, as [`stream`] does.
pub fn stream_path(path: &Path, sink: &mut dyn Sink) -> Result<Capture, Error> {
    if path.is_dir() {
        let mut assembler = Assembler::new("", sink);
        directory::read(path, &mut assembler)?;
        return Ok(assembler.finish());
    }
    stream_input(open(path)?, sink)
}

/// Opens the file at `path`.
pub fn open(path: &Path) -> Result<Input<'static>, Error> {
    directory::open(path)
}
