//! Histograms of folio orders that bpftrace and bcc print: no events, but a distribution to compare
//! with.
//!
//! ```text
//! @orders[0]: 1280          bpftrace, count() by order; with further keys in front of the order
//! @orders[reader, 2]: 64
//!
//! @orders:                  bpftrace, lhist() and hist()
//! [0, 1)      1280 |@@@@@@@|
//! [2]           64 |@      |
//! [4, 8)        16 |       |
//!
//!      order    : count     distribution        bcc, print_linear_hist() and print_log2_hist()
//!          0    : 1280     |********|
//!     4 -> 7    : 16       |        |
//! ```

use std::io::Read;
use std::path::Path;

use memchr::memmem;
use traces::capture::{LossKind, Losses};
use traces::units::Order;

use crate::detect::{HEAD_BYTES, is_capture};
use crate::input::Input;
use crate::text::excerpt;
use crate::text::scan::{Scan, byte, dec_u64, spaces};
use crate::{Error, directory};

/// Most bytes of output looked at.
const TEXT_BYTES_MAX: usize = 4 << 20;
/// Most histograms read.
const HISTOGRAMS_MAX: usize = 256;
/// Largest order a bucket can end with.
const ORDER_LAST: u64 = Order::COUNT as u64 - 1;

/// Folios of some orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBucket {
    /// Smallest order in the bucket.
    pub first: Order,
    /// Largest order in the bucket, inclusive.
    pub last: Order,
    /// Folios counted.
    pub count: u64,
}

/// One histogram. Its buckets are in the order they were printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderHistogram {
    /// What the tool called it: `@orders`, `@orders[reader]`, `order`.
    pub name: String,
    /// Counts by order.
    pub buckets: Vec<OrderBucket>,
}

/// All histograms that an output holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderHistograms {
    /// The histograms.
    pub histograms: Vec<OrderHistogram>,
    /// Lines that were not understood, and orders that no page cache has.
    pub losses: Losses,
}

/// Reads the output of bpftrace or bcc. `name` is what errors call it.
pub fn read_histograms(reader: impl Read, name: &str) -> Result<OrderHistograms, Error> {
    read(&mut Input::open(reader, name)?)
}

/// Reads the output of bpftrace or bcc at `path`; `None` if the file is something else.
pub fn read_histograms_path(path: &Path) -> Result<Option<OrderHistograms>, Error> {
    if path.is_dir() {
        return Ok(None);
    }
    let mut input = directory::open(path)?;
    let head = input.peek(HEAD_BYTES)?;
    if is_capture(head) || !recognise(head) { Ok(None) } else { read(&mut input).map(Some) }
}

fn read(input: &mut Input<'_>) -> Result<OrderHistograms, Error> {
    let found = parse(input.peek(TEXT_BYTES_MAX)?);
    if found.histograms.is_empty() {
        let first = found.losses.0.values().next();
        return Err(Error::NotACapture {
            name: input.name.clone(),
            expected: "a histogram of orders from bpftrace or bcc".to_owned(),
            found: first.map_or_else(|| "nothing".to_owned(), |loss| loss.first.clone()),
        });
    }
    Ok(found)
}

/// Whether the text holds a histogram.
pub(crate) fn recognise(head: &[u8]) -> bool {
    !parse(head).histograms.is_empty()
}

fn parse(text: &[u8]) -> OrderHistograms {
    let mut found = OrderHistograms::default();
    for (i, line) in text.split(|&b| b == b'\n').enumerate() {
        found.line(i + 1, line.trim_ascii());
        if found.histograms.len() > HISTOGRAMS_MAX {
            found.histograms.pop();
            found.lose(LossKind::Truncated, i + 1, line);
            break;
        }
    }
    // A title alone is no histogram.
    found.histograms.retain(|histogram| !histogram.buckets.is_empty());
    found
}

/// A row of a histogram: the orders of a bucket, both inclusive, and its count.
type Row = (u64, u64, u64);

impl OrderHistograms {
    fn line(&mut self, number: usize, line: &[u8]) {
        if let Some(title) = title(line) {
            self.open(title);
        } else if let Ok((_, (title, order, count))) = entry(line) {
            self.open(&title);
            self.row(number, line, (order, order, count));
        } else if let Ok((_, row)) = bracket_row(line).or_else(|_| colon_row(line)) {
            self.row(number, line, row);
        } else if !is_chatter(line) {
            self.lose(LossKind::Unparsed, number, line);
        }
    }

    /// Makes the histogram called `title` the last one, which rows are added to.
    fn open(&mut self, title: &[u8]) {
        let name = String::from_utf8_lossy(title).into_owned();
        match self.histograms.iter().position(|histogram| histogram.name == name) {
            Some(at) => self.histograms[at..].rotate_left(1),
            None => self.histograms.push(OrderHistogram { name, buckets: Vec::new() }),
        }
    }

    fn row(&mut self, number: usize, line: &[u8], (first, last, count): Row) {
        if count == 0 {
            return;
        }
        match self.histograms.last_mut() {
            Some(histogram) if first <= ORDER_LAST => {
                let (first, last) = (Order(first as u8), Order(last.min(ORDER_LAST) as u8));
                histogram.buckets.push(OrderBucket { first, last, count });
            }
            Some(_) => self.lose(LossKind::BadFields, number, line),
            None => self.lose(LossKind::Unparsed, number, line),
        }
    }

    fn lose(&mut self, kind: LossKind, number: usize, line: &[u8]) {
        self.losses.add(kind, 1, || format!("line {number}: {}", excerpt(line)));
    }
}

/// `@orders:` or `order : count distribution`.
fn title(line: &[u8]) -> Option<&[u8]> {
    if line.starts_with(b"@") {
        return line.strip_suffix(b":");
    }
    let colon = memmem::find(line, b": count")?;
    Some(line[..colon].trim_ascii())
}

/// `@orders[reader, 2]: 64`: the order is the last key.
fn entry(i: &[u8]) -> Scan<'_, (Vec<u8>, u64, u64)> {
    let whole = i;
    byte(i, b'@')?;
    let close = memmem::rfind(i, b"]:").unwrap_or(0);
    let keys = memchr::memchr(b'[', &i[..close]).map_or(close, |open| open + 1);
    let last = memmem::rfind(&i[keys..close], b", ").map_or(keys, |comma| keys + comma + 2);
    let (_, order) = dec_u64(&i[last..close])?;
    let (i, ()) = byte(&i[close + 1..], b':')?;
    let (i, count) = dec_u64(i.trim_ascii_start())?;
    let name = match whole[..last].trim_ascii_end() {
        [name @ .., b','] => [name, b"]"].concat(),
        name => name.strip_suffix(b"[").unwrap_or(name).to_vec(),
    };
    Ok((i, (name, order, count)))
}

/// `[2] 64 |@@|`, `[4, 8) 16 |@|` or `[8, ...) 1 |@|`.
fn bracket_row(i: &[u8]) -> Scan<'_, Row> {
    let (i, ()) = byte(i, b'[')?;
    let (i, first) = dec_u64(i)?;
    let (i, last) = match i {
        [b']', i @ ..] => (i, first),
        [b',', b' ', b'.', b'.', b'.', b')', i @ ..] => (i, ORDER_LAST.max(first)),
        _ => {
            let (i, ()) = byte(i, b',')?;
            let (i, end) = dec_u64(i.trim_ascii_start())?;
            let (i, ()) = byte(i, b')')?;
            (i, end.saturating_sub(1).max(first))
        }
    };
    let (i, count) = dec_u64(i.trim_ascii_start())?;
    Ok((i, (first, last, count)))
}

/// `2 : 64 |**|` or `4 -> 7 : 16 |*|`.
fn colon_row(i: &[u8]) -> Scan<'_, Row> {
    let (i, first) = dec_u64(i)?;
    let (i, _) = spaces(i)?;
    let (i, last) = match i.strip_prefix(b"-> ") {
        Some(i) => dec_u64(i.trim_ascii_start())?,
        None => (i, first),
    };
    let (i, _) = spaces(i)?;
    let (i, ()) = byte(i, b':')?;
    let (i, count) = dec_u64(i.trim_ascii_start())?;
    Ok((i, (first, last.max(first), count)))
}

/// What the tools print around a histogram, and the empty bucket below the first.
fn is_chatter(line: &[u8]) -> bool {
    let is_empty_bucket = line.starts_with(b"(...,") && below_first(line) == Some(0);
    let is_message = line.starts_with(b"Attach") || line.starts_with(b"Tracing");
    line.is_empty() || line == b"^C" || is_message || is_empty_bucket
}

/// The count of `(..., 0)  0 |  |`.
fn below_first(line: &[u8]) -> Option<u64> {
    let close = memchr::memchr(b')', line)?;
    let (_, count) = dec_u64(line[close + 1..].trim_ascii_start()).ok()?;
    Some(count)
}
