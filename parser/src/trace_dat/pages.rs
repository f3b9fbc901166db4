//! The pages of one CPU in a file.

use traces::capture::LossKind;

use super::CpuData;
use super::compression::Compression;
use crate::Error;
use crate::assemble::Assembler;
use crate::bytes::Endian;
use crate::ring_buffer::Pages;
use crate::source::{Cursor, Source};

/// Most bytes of pages read at a time where they are not compressed; a chunk at a time where they are.
const GROUP_BYTES_MAX: u64 = 256 << 10;
/// The same for all CPUs together.
const GROUPS_BYTES_MAX: u64 = 16 << 20;

/// Reads the pages of one CPU.
pub(crate) struct CpuPages<'s> {
    source: &'s Source,
    compression: Compression,
    data: CpuData,
    page_bytes: usize,
    endian: Endian,
    group_bytes: u64,
    /// Position in the file of what is read next.
    at: u64,
    /// Position of what was read last.
    group_at: u64,
    /// Chunks left to read; none read yet where `None`.
    chunks: Option<u32>,
}

impl<'s> CpuPages<'s> {
    /// Reads `data`, one of the data of `cpus` CPUs.
    pub(crate) fn new(
        source: &'s Source,
        compression: Compression,
        data: CpuData,
        page_bytes: u32,
        endian: Endian,
        cpus: usize,
    ) -> Self {
        Self {
            source,
            compression,
            data,
            page_bytes: page_bytes as usize,
            endian,
            group_bytes: (GROUPS_BYTES_MAX / cpus.max(1) as u64).min(GROUP_BYTES_MAX),
            at: data.offset,
            group_at: data.offset,
            chunks: None,
        }
    }

    fn end(&self) -> u64 {
        self.data.offset.saturating_add(self.data.bytes)
    }

    fn plain_group(
        &mut self,
        group: &mut Vec<u8>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), Error> {
        let page_bytes = self.page_bytes.max(1) as u64;
        let whole_pages = self.group_bytes.div_ceil(page_bytes) * page_bytes;
        let wanted = self.end().saturating_sub(self.at).min(whole_pages);
        self.source.read_into(group, self.at, wanted)?;
        self.at += wanted;
        if (group.len() as u64) < wanted {
            self.truncated("the data ends with the file", assembler);
            self.at = self.end();
        }
        Ok(())
    }

    fn packed_group(&mut self, group: &mut Vec<u8>) -> Result<(), Error> {
        let mut cursor = Cursor::new(self.source, self.at, self.endian);
        let chunks = match self.chunks {
            Some(chunks) => chunks,
            None => cursor.u32("the number of chunks")?,
        };
        self.chunks = Some(chunks.saturating_sub(1));
        group.clear();
        if chunks > 0 {
            *group = self.compression.chunk(&mut cursor)?;
        }
        self.at = cursor.at;
        Ok(())
    }

    fn truncated(&self, what: &str, assembler: &mut Assembler<'_>) {
        assembler.capture.losses.add(LossKind::Truncated, 1, || {
            format!("{}: CPU {}: {what}", self.source.name, self.data.cpu)
        });
    }
}

impl Pages for CpuPages<'_> {
    fn cpu(&self) -> u32 {
        self.data.cpu
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn next_group(
        &mut self,
        group: &mut Vec<u8>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), Error> {
        self.group_at = self.at;
        if self.data.bytes == 0 || self.at >= self.end() {
            group.clear();
            return Ok(());
        }
        if self.compression == Compression::None {
            return self.plain_group(group, assembler);
        }
        match self.packed_group(group) {
            // The rest of this CPU is lost, the other CPUs are not.
            Err(error @ Error::Malformed { .. }) => {
                self.truncated(&error.to_string(), assembler);
                self.at = self.end();
                group.clear();
                Ok(())
            }
            other => other,
        }
    }

    fn place(&self, index: usize) -> String {
        let Self { source, group_at, data, .. } = self;
        format!("{}: CPU {}: page {index} from byte {group_at}", source.name, data.cpu)
    }
}
