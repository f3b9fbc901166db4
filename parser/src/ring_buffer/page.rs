//! Pages of the trace ring buffer.
//!
//! A page starts with a time stamp and the number of bytes in use; then records follow, each with a
//! 32-bit head of 5 bits type and 27 bits time since the one before.

use traces::units::Time;

use super::format::fields;
use crate::bytes::Endian;

/// Bits of the commit field that count bytes; above them stand marks.
const COMMIT_BYTES: u64 = (1 << 27) - 1;
/// Events were lost before this page.
const COMMIT_MISSED: u64 = 1 << 31;
/// How many follows the data.
const COMMIT_MISSED_STORED: u64 = 1 << 30;

/// Types of a record; those below are a length in words.
const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
/// Bits of time in a head.
const DELTA_BITS: u32 = 27;
/// Bits of an absolute time stamp; the ones above come from the page.
const ABSOLUTE_BITS: u32 = 59;

/// Where in a page its parts stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) endian: Endian,
    time_at: usize,
    commit_at: usize,
    /// Bytes of the kernel's `long`, which is not always that of the program that wrote the file.
    commit_bytes: usize,
    data_at: usize,
    data_bytes: usize,
}

impl Layout {
    /// Takes the layout from a `header_page` file.
    pub(crate) fn parse(header_page: &[u8], endian: Endian) -> Option<Self> {
        let fields = fields(header_page);
        let find = |name: &[u8]| fields.iter().find(|field| field.name() == name);
        let (time, commit, data) = (find(b"timestamp")?, find(b"commit")?, find(b"data")?);
        Some(Self {
            endian,
            time_at: time.offset(),
            commit_at: commit.offset(),
            commit_bytes: commit.size(),
            data_at: data.offset(),
            data_bytes: data.size(),
        })
    }

    /// The layout of pages that no `header_page` describes.
    pub(crate) fn usual(endian: Endian, long_bytes: usize, page_bytes: usize) -> Self {
        let data_at = 8 + long_bytes;
        Self {
            endian,
            time_at: 0,
            commit_at: 8,
            commit_bytes: long_bytes,
            data_at,
            data_bytes: page_bytes.saturating_sub(data_at),
        }
    }

    /// Bytes in a page.
    pub(crate) fn page_bytes(&self) -> usize {
        self.data_at + self.data_bytes
    }

    /// Whether `page` can be one: its records fit.
    pub(crate) fn fits(&self, page: &[u8]) -> bool {
        let commit = self.endian.uint(page, self.commit_at, self.commit_bytes);
        let used = commit.map(|commit| commit & !(COMMIT_MISSED | COMMIT_MISSED_STORED));
        used.is_some_and(|used| used <= self.data_bytes as u64)
    }

    /// Opens a page; None where it has no room for its own head.
    pub(crate) fn open<'p>(&self, page: &'p [u8]) -> Option<Page<'p>> {
        let endian = self.endian;
        let time = endian.u64(page, self.time_at)?;
        let commit = endian.uint(page, self.commit_at, self.commit_bytes)?;
        let data = page.get(self.data_at..)?;
        let used = (commit & COMMIT_BYTES) as usize;
        let lost = match commit {
            commit if commit & COMMIT_MISSED == 0 => 0,
            commit if commit & COMMIT_MISSED_STORED == 0 => 1,
            _ => endian.uint(data, used, self.commit_bytes).unwrap_or(1).max(1),
        };
        let is_cut = used > data.len();
        let data = &data[..used.min(data.len())];
        Some(Page { endian, data, time, lost, is_cut })
    }
}

/// What a record holds.
enum Step<'p> {
    /// An event.
    Event(&'p [u8]),
    /// Time or nothing.
    Other,
}

/// An open page: an iterator over its records.
pub(crate) struct Page<'p> {
    endian: Endian,
    data: &'p [u8],
    time: u64,
    /// Events lost before the first record; at least that many.
    pub(crate) lost: u64,
    /// Whether the page ends before its records do.
    pub(crate) is_cut: bool,
}

impl<'p> Page<'p> {
    /// The next record that holds an event, with its time.
    pub(crate) fn next_record(&mut self) -> Option<(Time, &'p [u8])> {
        while !self.data.is_empty() {
            let Some((head, rest)) = self.head() else {
                self.is_cut = true;
                break;
            };
            match self.step(head, rest) {
                Some(Step::Event(record)) => return Some((Time(self.time), record)),
                Some(Step::Other) => {}
                None => break,
            }
        }
        self.data = &[];
        None
    }

    /// Type and time of the next record, and the bytes after its head.
    fn head(&self) -> Option<((u32, u64), &'p [u8])> {
        let head = self.endian.u32(self.data, 0)?;
        let (kind, delta) = match self.endian {
            Endian::Little => (head & 31, head >> 5),
            Endian::Big => (head >> DELTA_BITS, head & ((1 << DELTA_BITS) - 1)),
        };
        Some(((kind, delta.into()), &self.data[4..]))
    }

    /// Steps over one record; None at the end of the page.
    fn step(&mut self, (kind, delta): (u32, u64), rest: &'p [u8]) -> Option<Step<'p>> {
        let word = self.endian.u32(rest, 0);
        match kind {
            TYPE_PADDING if delta == 0 => None,
            TYPE_PADDING => {
                self.time = self.time.wrapping_add(delta);
                self.skip(rest, word? as usize)?;
                Some(Step::Other)
            }
            TYPE_TIME_EXTEND => {
                let more = u64::from(word?) << DELTA_BITS;
                self.time = self.time.wrapping_add(more | delta);
                self.skip(rest, 4)?;
                Some(Step::Other)
            }
            TYPE_TIME_STAMP => {
                self.time = absolute(u64::from(word?) << DELTA_BITS | delta, self.time);
                self.skip(rest, 4)?;
                Some(Step::Other)
            }
            0 => {
                self.time = self.time.wrapping_add(delta);
                // The length counts itself.
                let length = (word? as usize).checked_sub(4)?.checked_next_multiple_of(4)?;
                self.skip(&rest[4..], length).map(Step::Event)
            }
            words => {
                self.time = self.time.wrapping_add(delta);
                self.skip(rest, words as usize * 4).map(Step::Event)
            }
        }
    }

    /// Takes `length` bytes of `rest` and goes on behind them.
    fn skip(&mut self, rest: &'p [u8], length: usize) -> Option<&'p [u8]> {
        let Some((record, rest)) = rest.split_at_checked(length) else {
            self.is_cut = true;
            return None;
        };
        self.data = rest;
        Some(record)
    }
}

/// Completes an absolute time stamp with the upper bits of the one before it.
fn absolute(stamp: u64, before: u64) -> u64 {
    let upper = before >> ABSOLUTE_BITS << ABSOLUTE_BITS;
    let time = upper | stamp;
    // The lower bits wrapped around in between.
    if upper != 0 && time < before { time.wrapping_add(1 << ABSOLUTE_BITS) } else { time }
}
