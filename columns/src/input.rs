//! Where tables are read from.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes that can be read at any position.
pub trait ReadAt: Send + Sync {
    /// How many there are.
    fn bytes(&self) -> io::Result<u64>;
    /// Those from `offset` on: `wanted`, or fewer at the end.
    fn read_at(&self, offset: u64, wanted: usize) -> io::Result<Vec<u8>>;
}

impl ReadAt for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, wanted: usize) -> io::Result<Vec<u8>> {
        // What a footer claims is no reason to allocate more than the file has.
        let left = self.metadata()?.len().saturating_sub(offset);
        let mut bytes = vec![0; left.min(wanted as u64) as usize];
        self.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

impl ReadAt for Vec<u8> {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, wanted: usize) -> io::Result<Vec<u8>> {
        let start = usize::try_from(offset).map_or(self.len(), |start| start.min(self.len()));
        let end = start.saturating_add(wanted).min(self.len());
        Ok(self[start..end].to_vec())
    }
}

/// A whole file, as the library reads its footer.
#[derive(Clone)]
pub(crate) struct Whole {
    pub(crate) input: Arc<dyn ReadAt>,
    pub(crate) bytes: u64,
}

impl Length for Whole {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Whole {
    type T = BufReader<Onward>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(Onward { input: self.input.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.input.read_at(start, length)?;
        if bytes.len() < length {
            let found = format!("{length} bytes at {start} of a file of {}", self.bytes);
            return Err(ParquetError::EOF(found));
        }
        Ok(bytes.into())
    }
}

/// A file from one position on.
pub(crate) struct Onward {
    input: Arc<dyn ReadAt>,
    at: u64,
}

impl Read for Onward {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read_at(self.at, buffer.len())?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Most bytes a page may unpack to. Pages are cut at a megabyte; only a single value can exceed it.
const PAGE_BYTES_MAX: u64 = 64 << 20;

/// Kind of a page without rows, which the library would pass over unseen.
const INDEX_PAGE: u64 = 1;

/// The pages of one column of one group, at their place in the file.
///
/// The library believes what the header of a page says of its size, so headers are looked at before
/// it gets them.
pub(crate) struct Pages {
    start: u64,
    bytes: Bytes,
    /// Where the next header is: behind the last page that was taken.
    header_at: AtomicU64,
}

impl Pages {
    pub(crate) fn new(start: u64, bytes: Bytes) -> Self {
        Self { start, bytes, header_at: AtomicU64::new(start) }
    }

    fn slice(&self, start: u64, length: Option<usize>) -> Result<Bytes> {
        let outside = || ParquetError::EOF("a page outside its column".to_owned());
        let start = start.checked_sub(self.start).ok_or_else(outside)? as usize;
        let end = length.map_or(Some(self.bytes.len()), |length| start.checked_add(length));
        match end {
            Some(end) if start <= end && end <= self.bytes.len() => {
                Ok(self.bytes.slice(start..end))
            }
            _ => Err(outside()),
        }
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Pages {
    type T = bytes::buf::Reader<Bytes>;

    /// The header of the next page, or what follows it where the library has seen the header before.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        let bytes = self.slice(start, None)?;
        if start == self.header_at.load(Ordering::Relaxed) && !is_plausible(&bytes) {
            return Err(ParquetError::General("a page header that no page has".to_owned()));
        }
        Ok(bytes::Buf::reader(bytes))
    }

    /// The page behind its header.
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.slice(start, Some(length))?;
        self.header_at.store(start + length as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// Whether the header of a page is one of a page that this program writes: a Thrift struct in compact
/// form that starts with the kind of the page and the bytes it unpacks to.
fn is_plausible(header: &[u8]) -> bool {
    let kind_and_size = || {
        let (kind, rest) = next_i32(header)?;
        Some((kind, next_i32(rest)?.0))
    };
    kind_and_size().is_some_and(|(kind, bytes)| kind != INDEX_PAGE && bytes <= PAGE_BYTES_MAX)
}

/// The next field of a struct, if it is a 32-bit number that is not negative, and what follows it.
fn next_i32(bytes: &[u8]) -> Option<(u64, &[u8])> {
    /// One more than the field before, a 32-bit number.
    const NEXT_I32: u8 = 0x15;
    let [NEXT_I32, rest @ ..] = bytes else { return None };
    let (number, rest) = varint(rest)?;
    // Zigzag: an odd one is negative.
    number.is_multiple_of(2).then_some((number / 2, rest))
}

/// A number in groups of seven bits, the lowest first, and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (i, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[i + 1..]));
        }
    }
    None
}
