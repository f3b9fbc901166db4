//! The chunks of compressed sections.

use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::Error;
use crate::source::Cursor;

/// Most bytes a chunk may unpack to.
const CHUNK_BYTES_MAX: u64 = 64 << 20;
/// First bytes of a zstd frame, which the writer may leave out.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// How the compressed parts of a file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Compression {
    #[default]
    None,
    Zstd,
    Zlib,
}

impl Compression {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" | "" => Some(Self::None),
            "zstd" => Some(Self::Zstd),
            "zlib" => Some(Self::Zlib),
            _ => None,
        }
    }

    /// Reads and unpacks a chunk: two lengths, packed and not, then the data.
    pub(super) fn chunk(self, cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Error> {
        let packed_bytes = cursor.u32("the packed size of a chunk")?;
        let bytes = u64::from(cursor.u32("the size of a chunk")?);
        if bytes > CHUNK_BYTES_MAX {
            return Err(cursor.malformed("a chunk of at most 64 MiB", &format!("{bytes} bytes")));
        }
        let packed = cursor.take(packed_bytes.into(), "the content of a chunk")?;
        let unpacked = self.unpack(&packed, bytes);
        unpacked.map_err(|error| cursor.malformed("a compressed chunk", &error.to_string()))
    }

    /// Unpacks at most `bytes` bytes.
    fn unpack(self, packed: &[u8], bytes: u64) -> std::io::Result<Vec<u8>> {
        let mut content = Vec::new();
        match self {
            Self::None => return Ok(packed.to_vec()),
            Self::Zlib => ZlibDecoder::new(packed).take(bytes).read_to_end(&mut content)?,
            Self::Zstd => {
                let packed = packed.strip_prefix(&ZSTD_MAGIC[..]).unwrap_or(packed);
                let frame = ZSTD_MAGIC.as_slice().chain(packed);
                zstd::stream::read::Decoder::new(frame)?.take(bytes).read_to_end(&mut content)?
            }
        };
        Ok(content)
    }
}
