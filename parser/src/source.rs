//! Files that are read here and there rather than from front to back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::Error;
use crate::bytes::Endian;

/// Longest text or section taken at once. The largest real ones, symbol tables, have some 15 MB.
const TAKE_BYTES_MAX: u64 = 64 << 20;

/// Bytes that can be read at any position.
pub struct Source {
    /// What errors call it.
    pub(crate) name: String,
    store: Store,
}

enum Store {
    File { file: File, bytes: u64 },
    Memory(Vec<u8>),
}

impl Source {
    pub(crate) fn file(file: File, name: &str) -> Result<Self, Error> {
        let name = name.to_owned();
        match file.metadata() {
            Ok(metadata) => Ok(Self { name, store: Store::File { file, bytes: metadata.len() } }),
            Err(source) => Err(Error::Io { name, source }),
        }
    }

    pub(crate) fn memory(bytes: Vec<u8>, name: &str) -> Self {
        Self { name: name.to_owned(), store: Store::Memory(bytes) }
    }

    /// How many bytes there are.
    #[expect(clippy::len_without_is_empty, reason = "an input that is empty is no source")]
    pub fn len(&self) -> u64 {
        match &self.store {
            Store::File { bytes, .. } => *bytes,
            Store::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes from `offset` on: `wanted`, or fewer at the end.
    pub fn read(&self, offset: u64, wanted: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.read_into(&mut bytes, offset, wanted)?;
        Ok(bytes)
    }

    /// Puts the bytes from `offset` on into `bytes`: `wanted`, or fewer at the end.
    pub(crate) fn read_into(
        &self,
        bytes: &mut Vec<u8>,
        offset: u64,
        wanted: u64,
    ) -> Result<(), Error> {
        let wanted = self.len().saturating_sub(offset).min(wanted) as usize;
        match &self.store {
            Store::Memory(all) => {
                let start = all.len().min(offset as usize);
                bytes.clear();
                bytes.extend_from_slice(&all[start..start + wanted]);
            }
            Store::File { file, .. } => {
                bytes.resize(wanted, 0);
                let filled = read_at(file, bytes, offset);
                let fail = |source| Error::Io { name: self.name.clone(), source };
                bytes.truncate(filled.map_err(fail)?);
            }
        }
        Ok(())
    }
}

/// Reads until `bytes` is full or the file ends; returns the number of bytes read.
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads a [`Source`] piece by piece; what is missing or impossible is an error with its offset.
pub(crate) struct Cursor<'s> {
    source: &'s Source,
    pub(crate) at: u64,
    pub(crate) endian: Endian,
}

impl<'s> Cursor<'s> {
    pub(crate) fn new(source: &'s Source, at: u64, endian: Endian) -> Self {
        Self { source, at, endian }
    }

    /// The next `count` bytes, which are `what`.
    pub(crate) fn take(&mut self, count: u64, what: &str) -> Result<Vec<u8>, Error> {
        let left = self.source.len().saturating_sub(self.at);
        if count > left || count > TAKE_BYTES_MAX {
            return Err(
                self.malformed(what, &format!("a length of {count} with {left} bytes left"))
            );
        }
        let bytes = self.source.read(self.at, count)?;
        self.at += count;
        Ok(bytes)
    }

    /// Passes over `count` bytes.
    pub(crate) fn skip(&mut self, count: u64) {
        self.at = self.at.saturating_add(count);
    }

    pub(crate) fn uint(&mut self, size: u64, what: &str) -> Result<u64, Error> {
        let bytes = self.take(size, what)?;
        Ok(self.endian.uint(&bytes, 0, size as usize).unwrap_or(0))
    }

    pub(crate) fn u16(&mut self, what: &str) -> Result<u16, Error> {
        Ok(self.uint(2, what)? as u16)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32, Error> {
        Ok(self.uint(4, what)? as u32)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64, Error> {
        self.uint(8, what)
    }

    /// A text behind its length, which has `size` bytes.
    pub(crate) fn text(&mut self, size: u64, what: &str) -> Result<Vec<u8>, Error> {
        let length = self.uint(size, what)?;
        self.take(length, what)
    }

    /// A text that ends in NUL.
    pub(crate) fn string(&mut self, what: &str) -> Result<String, Error> {
        const LONGEST: u64 = 4096;
        let bytes = self.source.read(self.at, LONGEST)?;
        let Some(end) = memchr::memchr(0, &bytes) else {
            return Err(self.malformed(what, "no end of the text"));
        };
        self.at += end as u64 + 1;
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Fails unless the next bytes are `expected`.
    pub(crate) fn expect(&mut self, expected: &[u8], what: &str) -> Result<(), Error> {
        let found = self.take(expected.len() as u64, what)?;
        if found == expected {
            return Ok(());
        }
        self.at -= expected.len() as u64;
        Err(self.malformed(what, &format!("{:?}", String::from_utf8_lossy(&found))))
    }

    /// The error that `what` was expected here.
    pub(crate) fn malformed(&self, what: &str, found: &str) -> Error {
        Error::Malformed {
            name: self.source.name.clone(),
            offset: self.at,
            expected: what.to_owned(),
            found: found.to_owned(),
        }
    }
}
