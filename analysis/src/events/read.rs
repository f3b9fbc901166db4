//! From a table to a capture.

use std::io;
use std::ops::RangeInclusive;

use columns::{Group, ReadAt, Table};
use parser::{Input, Sink, Source};
use traces::capture::Capture;
use traces::event::Event;
use traces::units::Time;

use super::names::Names;
use super::notes::{KEY_ACCESSES, KEY_CAPTURE, Notes, Stated};
use super::row::Row;

/// Events handed on at a time.
const BATCH_EVENTS: usize = 4096;

/// A table that is no capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It cannot be read, or is another table.
    #[error(transparent)]
    Table(#[from] columns::Error),
    /// Its bytes cannot be had.
    #[error(transparent)]
    Input(#[from] parser::Error),
    /// A row is no event.
    #[error("{name}: row {row}: column `{column}`: expected a value that a `{event}` can have")]
    Row {
        /// The file.
        name: String,
        /// Number of the row among those read, from 0.
        row: u64,
        /// The column.
        column: &'static str,
        /// The event of the row.
        event: String,
    },
    /// The footer does not say what the capture was.
    #[error("{name}: footer key `{KEY_CAPTURE}`: {found}")]
    Notes {
        /// The file.
        name: String,
        /// What is wrong with it.
        found: String,
    },
}

/// All times.
pub const EVER: RangeInclusive<Time> = Time(0)..=Time(u64::MAX);

/// Whether a row group may have events of these times. Those beyond the range of signed numbers are
/// stored as negative ones, which tell nothing of their order.
fn overlaps(group: &Group<'_>, times: &RangeInclusive<Time>) -> bool {
    let clamp = |time: &Time| i64::try_from(time.0).unwrap_or(i64::MAX);
    group.range("time_ns").is_none_or(|range| {
        *range.start() < 0
            || *range.start() <= clamp(times.end()) && clamp(times.start()) <= *range.end()
    })
}

/// What was read of a capture or a table.
#[derive(Clone, Debug)]
pub struct Streamed {
    /// Everything but the events.
    pub capture: Capture,
    /// What was stated of it when it was converted.
    pub stated: Stated,
    /// Events in groups that were passed over.
    pub passed_over: u64,
}

impl From<Capture> for Streamed {
    fn from(capture: Capture) -> Self {
        Self { capture, stated: Stated::default(), passed_over: 0 }
    }
}

/// Whether an input is a table.
pub fn is_table(input: &mut Input<'_>) -> Result<bool, parser::Error> {
    input.starts_with(columns::MAGIC)
}

/// What a table says of its capture.
pub(crate) fn stated(mut input: Input<'_>) -> Result<Stated, ReadError> {
    let name = input.name().to_owned();
    let table = Table::open(Bytes(input.random_access()?), &name)?;
    Ok(notes(&table, &name)?.1)
}

/// Hands the events of a table to `sink` in the order they were written in. Row groups that have none
/// of `times` are not read; the others come whole.
pub fn stream(
    mut input: Input<'_>,
    times: &RangeInclusive<Time>,
    sink: &mut dyn Sink,
) -> Result<Streamed, ReadError> {
    let name = input.name().to_owned();
    let table = Table::open(Bytes(input.random_access()?), &name)?;
    let rows = table.rows_where::<Row>(|group| overlaps(group, times))?;
    let (mut capture, stated) = notes(&table, &name)?;
    let mut names = Names::default();
    let mut batch: Vec<Event> = Vec::with_capacity(BATCH_EVENTS);
    let mut passed_over = table.row_count();
    for (number, row) in (0..).zip(rows) {
        passed_over -= 1;
        let row = row?;
        batch.push(row.event(&mut names).map_err(|column| ReadError::Row {
            name: name.clone(),
            row: number,
            column,
            event: row.event.as_str().to_owned(),
        })?);
        if batch.len() == BATCH_EVENTS {
            sink.events(&batch, &names.comms);
            batch.clear();
        }
    }
    if !batch.is_empty() {
        sink.events(&batch, &names.comms);
    }
    capture.comms = names.comms;
    Ok(Streamed { capture, stated, passed_over })
}

/// What the footer says.
fn notes(table: &Table, name: &str) -> Result<(Capture, Stated), ReadError> {
    let error = |found: String| ReadError::Notes { name: name.to_owned(), found };
    let text = table.note(KEY_CAPTURE).ok_or_else(|| error("not there".to_owned()))?;
    let notes: Notes = serde_json::from_str(text).map_err(|source| error(source.to_string()))?;
    let Notes { header, losses, unused_events, joins, sidecar, given } = notes;
    let accesses = table.note(KEY_ACCESSES).map(str::to_owned);
    let capture = Capture { header, losses, unused_events, joins, ..Capture::default() };
    Ok((capture, Stated { sidecar, given, accesses }))
}

/// The bytes of a table.
struct Bytes(Source);

impl ReadAt for Bytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len())
    }

    fn read_at(&self, offset: u64, wanted: usize) -> io::Result<Vec<u8>> {
        self.0.read(offset, wanted as u64).map_err(|error| match error {
            parser::Error::Io { source, .. } => source,
            other => io::Error::other(other),
        })
    }
}
