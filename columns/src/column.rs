//! Columns in memory, and their way to and from the pages of a file.

use bytes::Bytes;
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::record::Shape;
use crate::value::{Stored, Value};

/// Some cells of one column: those of the rows to be written next, or those read last.
///
/// Nulls and lists are in the levels, as Parquet has them: a cell without a value has a definition
/// level and nothing among the values, the second value of a list has repetition level 1.
pub struct Column<V: Value> {
    values: Vec<Stored<V>>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// Bytes that values own.
    heap_bytes: usize,
    /// Position of the next cell when reading.
    value_at: usize,
    level_at: usize,
    /// Where cells are read from. A column that the file does not have has none.
    pages: Option<ColumnReaderImpl<V::Physical>>,
}

impl<V: Value> Default for Column<V> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
            heap_bytes: 0,
            value_at: 0,
            level_at: 0,
            pages: None,
        }
    }
}

/// A cell that the levels promise and the values do not have.
const NO_VALUE: &str = "fewer values than rows";

impl<V: Value> Column<V> {
    /// Adds a cell of a column without nulls.
    pub(crate) fn push(&mut self, value: V) {
        let stored = value.store();
        self.heap_bytes += V::heap_bytes(&stored);
        self.values.push(stored);
    }

    pub(crate) fn push_option(&mut self, value: Option<V>) {
        self.definitions.push(i16::from(value.is_some()));
        if let Some(value) = value {
            self.push(value);
        }
    }

    pub(crate) fn push_list(&mut self, shape: Shape, list: Option<Vec<V>>) {
        let full = shape.definition_max();
        let is_null = list.is_none();
        let list = list.unwrap_or_default();
        if list.is_empty() {
            self.definitions.push(if is_null { 0 } else { full - 1 });
            self.repetitions.push(0);
        }
        for (i, value) in list.into_iter().enumerate() {
            self.definitions.push(full);
            self.repetitions.push(i16::from(i > 0));
            self.push(value);
        }
    }

    /// Takes the next value.
    pub(crate) fn next_value(&mut self) -> Result<V, &'static str> {
        let stored = self.values.get(self.value_at).ok_or(NO_VALUE)?;
        self.value_at += 1;
        V::load(stored)
    }

    pub(crate) fn next_option(&mut self) -> Result<Option<V>, &'static str> {
        if self.pages.is_none() {
            return Ok(None);
        }
        let definition = *self.definitions.get(self.level_at).ok_or(NO_VALUE)?;
        self.level_at += 1;
        (definition == 1).then(|| self.next_value()).transpose()
    }

    pub(crate) fn next_list(&mut self, shape: Shape) -> Result<Option<Vec<V>>, &'static str> {
        if self.pages.is_none() {
            return Ok(None);
        }
        let full = shape.definition_max();
        let definition = *self.definitions.get(self.level_at).ok_or(NO_VALUE)?;
        self.level_at += 1;
        if definition < full {
            return Ok((definition == full - 1).then(Vec::new));
        }
        let mut list = vec![self.next_value()?];
        while self.repetitions.get(self.level_at) == Some(&1) {
            self.level_at += 1;
            list.push(self.next_value()?);
        }
        Ok(Some(list))
    }

    fn clear(&mut self) {
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
        self.heap_bytes = 0;
        self.value_at = 0;
        self.level_at = 0;
    }
}

/// A [`Column`], whatever its type. Only this crate can have one do something.
pub trait AnyColumn: Send + sealed::Column {}

impl<V: Value> AnyColumn for Column<V> {}

/// A column's cells as they go into a file.
pub struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) metadata: ColumnCloseResult,
}

pub(crate) mod sealed {
    use super::{Chunk, ColumnDescPtr, PageReader, ParquetError, WriterPropertiesPtr};

    pub trait Column {
        /// Bytes of memory the cells take.
        fn bytes(&self) -> usize;
        /// Packs all cells and forgets them.
        fn pack(
            &mut self,
            descriptor: ColumnDescPtr,
            properties: WriterPropertiesPtr,
        ) -> Result<Chunk, ParquetError>;
        /// Reads from these pages from now on.
        fn open(&mut self, descriptor: ColumnDescPtr, pages: Box<dyn PageReader>);
        /// Replaces the cells by those of the next rows, at most `rows`; returns how many there were.
        /// A column without pages has all there could be.
        fn fill(&mut self, rows: usize) -> Result<usize, ParquetError>;
    }
}

impl<V: Value> sealed::Column for Column<V> {
    fn bytes(&self) -> usize {
        let levels = self.definitions.len() + self.repetitions.len();
        size_of::<Stored<V>>() * self.values.len() + size_of::<i16>() * levels + self.heap_bytes
    }

    fn pack(
        &mut self,
        descriptor: ColumnDescPtr,
        properties: WriterPropertiesPtr,
    ) -> Result<Chunk, ParquetError> {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = ColumnWriterImpl::<V::Physical>::new(descriptor, properties, pages);
        let (definitions, repetitions) = (levels(&self.definitions), levels(&self.repetitions));
        writer.write_batch(&self.values, definitions, repetitions)?;
        let metadata = writer.close()?;
        self.clear();
        Ok(Chunk { bytes: sink.into_inner()?.into(), metadata })
    }

    fn open(&mut self, descriptor: ColumnDescPtr, pages: Box<dyn PageReader>) {
        self.clear();
        self.pages = Some(ColumnReaderImpl::new(descriptor, pages));
    }

    fn fill(&mut self, rows: usize) -> Result<usize, ParquetError> {
        self.clear();
        let Some(pages) = &mut self.pages else { return Ok(rows) };
        let (definitions, repetitions) = (&mut self.definitions, &mut self.repetitions);
        let (records, _, _) =
            pages.read_records(rows, Some(definitions), Some(repetitions), &mut self.values)?;
        Ok(records)
    }
}

/// Levels, which only columns with nulls or lists have.
fn levels(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}
