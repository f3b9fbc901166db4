//! From a capture to a table.

use std::io::Write;
use std::path::Path;

use columns::Writer;
use parser::Sink;
use serde::Serialize;
use traces::capture::{Capture, Comms, Losses};
use traces::event::Event;
use traces::sidecar::{self, Sidecar};

use super::names::Names;
use super::notes::{KEY_ACCESSES, KEY_CAPTURE, Notes, Stated};
use super::read::{EVER, Streamed};
use super::row::Row;
use crate::load::{self, LoadError, LoadOptions};

/// A capture that cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// It cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It has accesses instead of events.
    #[error(
        "{name} lists accesses instead of events, and a table is of events; it is a SOURCE as it is"
    )]
    NoEvents {
        /// The list.
        name: String,
    },
    /// The table cannot be written.
    #[error(transparent)]
    Table(#[from] columns::Error),
}

/// What was converted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Converted {
    /// Rows written.
    pub events: u64,
    /// What the capture lost.
    pub losses: Losses,
}

/// Writes the capture at `path` as a table to `sink`, which errors call `name`.
pub fn convert(
    path: &Path,
    options: &LoadOptions,
    sink: impl Write + Send,
    name: &str,
) -> Result<Converted, ConvertError> {
    let mut rows = RowSink::new(sink, name)?;
    let Streamed { capture, stated, .. } = events_of(path, options, &mut rows)?;
    if capture.iolog.is_some() {
        return Err(ConvertError::NoEvents { name: path.display().to_string() });
    }
    let stated = state(path, options, stated)?;
    let losses = capture.losses.clone();
    let events = rows.events;
    rows.finish(capture, stated)?;
    Ok(Converted { events, losses })
}

/// Hands over the events of a capture, or of all files that it is joined from.
fn events_of(
    path: &Path,
    options: &LoadOptions,
    rows: &mut dyn Sink,
) -> Result<Streamed, LoadError> {
    let sidecar = sidecar::path_for(path).map(|beside| Sidecar::read(&beside)).transpose()?;
    let sidecar = sidecar.unwrap_or_default();
    let clock = options.clock.clone().or(sidecar.clock.clone());
    let joined = if options.join.is_empty() { sidecar.joined(path) } else { options.join.clone() };
    if joined.is_empty() {
        let mut streamed = load::stream(path, &EVER, rows)?;
        let header = &mut streamed.capture.header;
        header.clock = header.clock.take().or(clock);
        return Ok(streamed);
    }
    let joined = load::read_joined(path, &joined, clock)?;
    rows.events(&joined.capture.events, &joined.capture.comms);
    Ok(joined)
}

/// Adds what the sidecar and the command line say to what a table to be converted again says.
fn state(path: &Path, options: &LoadOptions, mut stated: Stated) -> Result<Stated, LoadError> {
    let mut accesses = options.accesses.clone();
    if let Some(beside) = sidecar::path_for(path) {
        let sidecar = Sidecar::read(&beside)?;
        let list = sidecar.accesses.as_ref().map(|list| beside.with_file_name(list));
        accesses = accesses.or(list);
        stated.add(sidecar);
    }
    stated.given.extend_from_slice(&options.set);
    // A table that no command would load is not worth having.
    stated.settings(path)?;
    if let Some(list) = accesses {
        stated.accesses = Some(load::read_accesses(&list)?);
    }
    Ok(stated)
}

/// Turns events into rows.
pub(super) struct RowSink<W: Write + Send> {
    writer: Writer<Row, W>,
    names: Names,
    events: u64,
    /// The first error, behind which nothing is written.
    outcome: Result<(), columns::Error>,
}

impl<W: Write + Send> Sink for RowSink<W> {
    fn events(&mut self, events: &[Event], comms: &Comms) {
        for event in events {
            if self.outcome.is_err() {
                return;
            }
            let comm = self.names.text(event.comm, comms);
            self.outcome = self.writer.push(Row::new(event, comm, &mut self.names));
            self.events += 1;
        }
    }
}

impl<W: Write + Send> RowSink<W> {
    pub(super) fn new(sink: W, name: &str) -> Result<Self, columns::Error> {
        let writer = Writer::new(sink, name)?;
        Ok(Self { writer, names: Names::default(), events: 0, outcome: Ok(()) })
    }

    /// Writes the footer.
    pub(super) fn finish(self, capture: Capture, stated: Stated) -> Result<(), columns::Error> {
        self.outcome?;
        let Capture { header, losses, unused_events, joins, .. } = capture;
        let Stated { sidecar, given, accesses } = stated;
        let notes = Notes { header, losses, unused_events, joins, sidecar, given };
        let notes = serde_json::to_string(&notes).expect("plain data");
        let accesses = accesses.map(|text| (KEY_ACCESSES, text));
        let notes: Vec<_> = [(KEY_CAPTURE, notes)].into_iter().chain(accesses).collect();
        self.writer.finish(&notes)?;
        Ok(())
    }
}
