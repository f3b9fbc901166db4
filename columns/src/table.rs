//! Reading a table.

use std::ops::RangeInclusive;
use std::sync::Arc;

use parquet::basic::LogicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::statistics::Statistics;
use parquet::schema::types::{ColumnDescPtr, TypePtr};
use rayon::prelude::*;

use crate::checksum::{self, Checksums};
use crate::error::{Error, reason, split_io};
use crate::input::{Pages, ReadAt, Whole};
use crate::key;
use crate::record::Record;

/// Rows held in memory at a time when reading.
const BATCH_ROWS: usize = 1 << 13;
/// Most bytes of a column of a group. Groups are written with at most as many before they are packed.
const CHUNK_BYTES_MAX: u64 = 256 << 20;

/// A file of columns that is open.
pub struct Table {
    name: String,
    file: Whole,
    metadata: ParquetMetaData,
}

impl Table {
    /// Opens a file and reads its footer. `name` is what errors call it.
    pub fn open(input: impl ReadAt + 'static, name: &str) -> Result<Self, Error> {
        let name = name.to_owned();
        let bytes = match input.bytes() {
            Ok(bytes) => bytes,
            Err(source) => return Err(Error::Io { name, source }),
        };
        let file = Whole { input: Arc::new(input), bytes };
        match ParquetMetaDataReader::new().parse_and_finish(&file) {
            Ok(metadata) => Ok(Self { name, file, metadata }),
            Err(error) => Err(split_io(&name, error)
                .unwrap_or_else(|found| Error::Footer { name: name.clone(), found })),
        }
    }

    /// Name and version of the table's schema; empty if another program wrote it.
    pub fn schema(&self) -> &str {
        self.note(key::SCHEMA).unwrap_or_default()
    }

    /// What the footer says under `key`.
    pub fn note(&self, key: &str) -> Option<&str> {
        let notes = self.metadata.file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.metadata.file_metadata().num_rows().try_into().unwrap_or(0)
    }

    /// All rows.
    pub fn rows<R: Record>(&self) -> Result<Rows<'_, R>, Error> {
        self.rows_where(|_| true)
    }

    /// The rows of the groups that `keep` wants, going by what their statistics say.
    pub fn rows_where<R: Record>(
        &self,
        keep: impl Fn(&Group<'_>) -> bool,
    ) -> Result<Rows<'_, R>, Error> {
        self.check_schema::<R>()?;
        self.check_footer()?;
        let leaves = self.leaves::<R>()?;
        let groups = self.metadata.row_groups().iter().enumerate();
        let groups = groups.filter(|(_, metadata)| keep(&Group { metadata }));
        let groups = groups.map(|(group, _)| group).collect::<Vec<_>>().into_iter();
        let columns = R::Columns::default();
        Ok(Rows {
            table: self,
            leaves,
            groups,
            columns,
            group: 0,
            is_open: false,
            group_left: 0,
            batch_left: 0,
        })
    }

    fn check_schema<R: Record>(&self) -> Result<(), Error> {
        let found = self.schema();
        if found == R::SCHEMA {
            return Ok(());
        }
        let kind = |schema: &str| schema.rsplit_once('/').map(|(kind, _)| kind.to_owned());
        let (name, expected) = (self.name.clone(), R::SCHEMA);
        if kind(found).is_some() && kind(found) == kind(expected) {
            return Err(Error::OtherVersion { name, expected, found: found.to_owned() });
        }
        let found = match found {
            "" => "none that this program wrote".to_owned(),
            other => format!("`{other}`"),
        };
        Err(Error::OtherSchema { name, expected, found })
    }

    fn check_footer(&self) -> Result<(), Error> {
        let file = self.metadata.file_metadata();
        let mut checksums = Checksums::default();
        checksums.schema(file.schema());
        self.metadata.row_groups().iter().for_each(|group| checksums.group(group));
        let notes = file.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
        for note in notes.iter().filter(|note| note.key != key::CRC32) {
            checksums.note(&note.key, note.value.as_deref().unwrap_or_default());
        }
        let expected = self.note(key::CRC32).and_then(checksum::of_footer);
        if expected == Some(&*checksums.finish()) {
            return Ok(());
        }
        let found = "one whose checksum is wrong: the file is damaged".to_owned();
        Err(Error::Footer { name: self.name.clone(), found })
    }

    /// Where the file has the columns of `R`.
    fn leaves<R: Record>(&self) -> Result<Vec<Leaf>, Error> {
        let schema = self.metadata.file_metadata().schema_descr();
        let find = |wanted: TypePtr| {
            let mut columns = schema.columns().iter().enumerate();
            let found = columns.find(|(i, _)| schema.get_column_root(*i).name() == wanted.name());
            let root = found.map(|(i, _)| schema.get_column_root(i));
            let is_same = root.map_or(wanted.is_optional(), |root| *root == *wanted);
            if is_same {
                let at = found.map(|(i, descriptor)| (i, descriptor.clone()));
                return Ok(Leaf { name: wanted.name().to_owned(), at });
            }
            Err(Error::Column {
                name: self.name.clone(),
                column: wanted.name().to_owned(),
                expected: describe(&wanted),
                found: root.map_or_else(|| "no such column".to_owned(), describe),
            })
        };
        R::types().into_iter().map(find).collect()
    }

    /// The pages of a column of a group.
    fn pages(
        &self,
        group: usize,
        column: usize,
    ) -> Result<SerializedPageReader<Pages>, ParquetError> {
        let general = |text: String| ParquetError::General(text);
        let rows = self.metadata.row_group(group);
        let metadata = rows.column(column);
        let (start, length) = byte_range(metadata)?;
        if length > CHUNK_BYTES_MAX {
            return Err(general(format!(
                "{length} bytes, where at most {CHUNK_BYTES_MAX} are read"
            )));
        }
        let bytes = self.file.get_bytes(start, length as usize)?;
        let checksums = self.note(key::CRC32).unwrap_or_default();
        let expected = checksum::of_column(checksums, group * rows.num_columns() + column);
        if expected != Some(crc32fast::hash(&bytes)) {
            return Err(general("its checksum is wrong: the file is damaged".to_owned()));
        }
        let pages = Arc::new(Pages::new(start, bytes));
        let row_count = rows.num_rows().try_into().unwrap_or(0);
        SerializedPageReader::new(pages, metadata, row_count, None)
    }
}

/// Start and length of a column of a group. The library's own function panics where one is negative.
fn byte_range(metadata: &ColumnChunkMetaData) -> Result<(u64, u64), ParquetError> {
    let start = metadata.dictionary_page_offset().unwrap_or(metadata.data_page_offset());
    let length = metadata.compressed_size();
    let unsigned = |what: &str, bytes: i64| {
        let found = || ParquetError::General(format!("{what} {bytes}, which is negative"));
        bytes.try_into().map_err(|_| found())
    };
    Ok((unsigned("it starts at byte", start)?, unsigned("its length in bytes is", length)?))
}

/// A column that a record wants.
struct Leaf {
    name: String,
    /// Its number in the file, if it is there.
    at: Option<(usize, ColumnDescPtr)>,
}

/// A column's declaration, for people.
fn describe(column: &parquet::schema::types::Type) -> String {
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, column);
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the footer says of a row group.
pub struct Group<'t> {
    metadata: &'t RowGroupMetaData,
}

impl Group<'_> {
    /// Smallest and largest value of a column of numbers, if the file says so. Unsigned numbers beyond
    /// the range of the signed ones make it unknown.
    pub fn range(&self, column: &str) -> Option<RangeInclusive<i64>> {
        let columns = self.metadata.columns().iter();
        let found = columns.into_iter().find(|found| found.column_path().string() == column)?;
        let is_unsigned = found.column_descr().logical_type_ref().is_some_and(
            |logical| matches!(logical, LogicalType::Integer(integer) if !integer.is_signed),
        );
        let (min, max) = match found.statistics()? {
            Statistics::Int32(range) => {
                (i64::from(*range.min_opt()?), i64::from(*range.max_opt()?))
            }
            Statistics::Int64(range) => (*range.min_opt()?, *range.max_opt()?),
            _ => return None,
        };
        (!is_unsigned || min >= 0 && max >= 0).then_some(min..=max)
    }
}

/// The rows of a table, read batch by batch.
pub struct Rows<'t, R: Record> {
    table: &'t Table,
    leaves: Vec<Leaf>,
    /// Groups still to be read.
    groups: std::vec::IntoIter<usize>,
    columns: R::Columns,
    /// The group that is being read, if any is.
    group: usize,
    is_open: bool,
    /// Rows of it that are not in memory yet.
    group_left: u64,
    /// Rows in memory.
    batch_left: usize,
}

impl<R: Record> Rows<'_, R> {
    /// Gets the next batch into memory, if there is one.
    fn next_batch(&mut self) -> Result<(), Error> {
        while self.group_left == 0 {
            self.expect_end()?;
            let Some(group) = self.groups.next() else { return Ok(()) };
            self.open_group(group)?;
        }
        let wanted = self.group_left.min(BATCH_ROWS as u64) as usize;
        self.fill(wanted, wanted)?;
        self.group_left -= wanted as u64;
        self.batch_left = wanted;
        Ok(())
    }

    /// Fails if a column has rows that the group does not count.
    fn expect_end(&mut self) -> Result<(), Error> {
        if self.is_open { self.fill(1, 0) } else { Ok(()) }
    }

    /// Gets the next `wanted` rows of every column, of which there must be `expected`.
    fn fill(&mut self, wanted: usize, expected: usize) -> Result<(), Error> {
        let filled: Vec<_> =
            R::each(&mut self.columns).into_par_iter().map(|column| column.fill(wanted)).collect();
        for (filled, leaf) in filled.into_iter().zip(&self.leaves) {
            let rows = filled.map_err(|error| self.damaged(&leaf.name, &reason(&error)))?;
            if rows != expected && leaf.at.is_some() {
                let found = format!("{rows} rows where {expected} are left");
                return Err(self.damaged(&leaf.name, &found));
            }
        }
        Ok(())
    }

    fn open_group(&mut self, group: usize) -> Result<(), Error> {
        (self.group, self.is_open) = (group, true);
        for (i, column) in R::each(&mut self.columns).into_iter().enumerate() {
            let leaf = &self.leaves[i];
            let Some((at, descriptor)) = &leaf.at else { continue };
            let pages = self.table.pages(group, *at).map_err(|error| {
                let name = &self.table.name;
                split_io(name, error)
                    .unwrap_or_else(|found| damaged(name, group, &leaf.name, found))
            })?;
            column.open(descriptor.clone(), Box::new(pages));
        }
        let rows = self.table.metadata.row_group(group).num_rows();
        self.group_left = rows.try_into().unwrap_or(0);
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<R>, Error> {
        if self.batch_left == 0 {
            self.next_batch()?;
        }
        if self.batch_left == 0 {
            return Ok(None);
        }
        self.batch_left -= 1;
        let row = R::load(&mut self.columns);
        row.map(Some).map_err(|(column, found)| self.damaged(column, found))
    }

    fn damaged(&self, column: &str, found: &str) -> Error {
        damaged(&self.table.name, self.group, column, found.to_owned())
    }
}

fn damaged(name: &str, group: usize, column: &str, found: String) -> Error {
    Error::Damaged { name: name.to_owned(), group, column: column.to_owned(), found }
}

impl<R: Record> Iterator for Rows<'_, R> {
    type Item = Result<R, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_row() {
            Ok(row) => row.map(Ok),
            Err(error) => {
                // Nothing that follows can be trusted to be the next row.
                self.groups = Vec::new().into_iter();
                (self.is_open, self.group_left, self.batch_left) = (false, 0, 0);
                Some(Err(error))
            }
        }
    }
}
