//! Opening an input: looking ahead, and unpacking by content.

use std::fs::File;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::Error;
use crate::source::Source;

/// How deep compressed data may be nested before it is taken as it is.
const NESTING_MAX: usize = 3;

/// Bytes read ahead at a time.
const AHEAD_BYTES: usize = 64 << 10;

/// Most bytes that are unpacked into memory for formats that are read here and there.
const IN_MEMORY_BYTES_MAX: u64 = 1 << 30;
/// Bytes they are read in.
const IN_MEMORY_STEP: usize = 1 << 20;

/// Most memory an xz stream may ask for; its strongest preset takes 65 MB.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;

/// Any reader.
type BoxRead<'r> = Box<dyn Read + 'r>;

/// A compression recognised by its first bytes.
struct Compression {
    name: &'static str,
    magic: &'static [u8],
    open: for<'r> fn(BoxRead<'r>) -> io::Result<BoxRead<'r>>,
}

/// Every compression that is read as it is.
const COMPRESSIONS: &[Compression] = &[
    Compression {
        name: "zstd",
        magic: &[0x28, 0xb5, 0x2f, 0xfd],
        open: |reader| Ok(Box::new(zstd::stream::read::Decoder::new(reader)?)),
    },
    Compression {
        name: "gzip",
        magic: &[0x1f, 0x8b, 8],
        open: |reader| Ok(Box::new(MultiGzDecoder::new(reader))),
    },
    Compression {
        name: "xz",
        magic: &[0xfd, b'7', b'z', b'X', b'Z', 0],
        open: |reader| {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_BYTES_MAX, CONCATENATED)?;
            Ok(Box::new(XzDecoder::new_stream(reader, stream)))
        },
    },
];

/// What stopped a read before the end of the input.
#[derive(Clone, Debug)]
pub(crate) struct Damage {
    /// Name of the compression whose decoder gave up.
    pub(crate) compression: &'static str,
    /// What it said.
    pub(crate) reason: String,
}

/// The bytes of a capture, unpacked, with a view of what comes next.
///
/// Damaged compressed data ends the input early; it is counted as a loss.
pub struct Input<'r> {
    /// What errors call the input.
    pub(crate) name: String,
    reader: BoxRead<'r>,
    /// Bytes read ahead, from `ahead_pos` on.
    ahead: Vec<u8>,
    ahead_pos: usize,
    /// Bytes handed out so far.
    offset: u64,
    compression: &'static str,
    damage: Option<Damage>,
    /// The input itself, where it is a plain file.
    file: Option<File>,
}

impl<'r> Input<'r> {
    /// Takes `reader` and unpacks it as long as it starts with a known compression.
    pub fn open(reader: impl Read + 'r, name: &str) -> Result<Self, Error> {
        let mut input = Self::unpacked(Box::new(reader), name, "");
        for _ in 0..NESTING_MAX {
            let head = input.peek(8)?;
            let Some(found) = COMPRESSIONS.iter().find(|c| head.starts_with(c.magic)) else {
                break;
            };
            let opened = (found.open)(Box::new(input));
            let reader = opened.map_err(|source| Error::Io { name: name.to_owned(), source })?;
            input = Self::unpacked(reader, name, found.name);
        }
        Ok(input)
    }

    /// Opens a file, as [`Input::open`] does.
    pub(crate) fn open_file(file: File, name: &str) -> Result<Self, Error> {
        let handle = file.try_clone().ok();
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut input = Self::open(file, name)?;
        if is_file && input.compression.is_empty() {
            input.file = handle;
        }
        Ok(input)
    }

    /// The whole input, for formats that are read here and there. Nothing may have been consumed.
    pub fn random_access(&mut self) -> Result<Source, Error> {
        if let Some(file) = self.file.take() {
            return Source::file(file, &self.name);
        }
        let mut bytes = Vec::new();
        loop {
            let more = self.take(IN_MEMORY_STEP)?;
            if more.is_empty() {
                return Ok(Source::memory(bytes, &self.name));
            }
            bytes.extend_from_slice(more);
            if bytes.len() as u64 > IN_MEMORY_BYTES_MAX {
                let name = self.name.clone();
                return Err(Error::TooLarge { name, bytes_max: IN_MEMORY_BYTES_MAX });
            }
        }
    }

    /// The output of a decoder, whose errors are damage. An empty name says there is none.
    pub(crate) fn unpacked(reader: BoxRead<'r>, name: &str, compression: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            reader,
            ahead: Vec::new(),
            ahead_pos: 0,
            offset: 0,
            compression,
            damage: None,
            file: None,
        }
    }

    /// What errors call the input.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it begins with these bytes.
    pub fn starts_with(&mut self, magic: &[u8]) -> Result<bool, Error> {
        Ok(self.peek(magic.len())? == magic)
    }

    /// Bytes handed out so far: the position in the unpacked data.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Why the input ended early, if it did.
    pub(crate) fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The next bytes, without consuming them: `wanted`, or fewer at the end of the input.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], Error> {
        self.look_ahead(wanted)?;
        let end = self.ahead.len().min(self.ahead_pos + wanted);
        Ok(&self.ahead[self.ahead_pos..end])
    }

    /// Consumes the next bytes: `wanted`, or fewer at the end of the input.
    pub(crate) fn take(&mut self, wanted: usize) -> Result<&[u8], Error> {
        self.look_ahead(wanted)?;
        let start = self.ahead_pos;
        self.ahead_pos = self.ahead.len().min(start + wanted);
        self.offset += (self.ahead_pos - start) as u64;
        Ok(&self.ahead[start..self.ahead_pos])
    }

    /// Reads ahead until `wanted` bytes are there or the input ends.
    fn look_ahead(&mut self, wanted: usize) -> Result<(), Error> {
        if self.ahead.len() - self.ahead_pos >= wanted {
            return Ok(());
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.drain(..self.ahead_pos);
        self.ahead_pos = 0;
        let mut filled = ahead.len();
        ahead.resize(wanted.max(AHEAD_BYTES), 0);
        let outcome = self.fill(&mut ahead, &mut filled);
        ahead.truncate(filled);
        self.ahead = ahead;
        outcome
    }

    /// Reads until `buffer` is full or the input ends; returns the number of bytes read.
    pub(crate) fn read_full(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let ahead = &self.ahead[self.ahead_pos..];
        let mut filled = ahead.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&ahead[..filled]);
        self.ahead_pos += filled;
        self.fill(buffer, &mut filled)?;
        self.offset += filled as u64;
        Ok(filled)
    }

    fn fill(&mut self, buffer: &mut [u8], filled: &mut usize) -> Result<(), Error> {
        while *filled < buffer.len() && self.damage.is_none() {
            match self.reader.read(&mut buffer[*filled..]) {
                Ok(0) => break,
                Ok(n) => *filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.damage = Some(self.judge(error)?),
            }
        }
        Ok(())
    }

    /// Tells an error of the decoder, which is damage, from one of the system, which is fatal.
    fn judge(&self, source: io::Error) -> Result<Damage, Error> {
        if self.compression.is_empty() || source.raw_os_error().is_some() {
            return Err(Error::Io { name: self.name.clone(), source });
        }
        let reason = match source.kind() {
            io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
            _ => source.to_string(),
        };
        Ok(Damage { compression: self.compression, reason })
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_full(buffer).map_err(|error| match error {
            Error::Io { source, .. } => source,
            other => io::Error::other(other),
        })
    }
}
