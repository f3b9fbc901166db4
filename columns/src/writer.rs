//! Writing a table.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, Type as PhysicalType, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type};
use rayon::prelude::*;

use crate::checksum::Checksums;
use crate::error::{Error, split_io};
use crate::key;
use crate::record::Record;

/// Rows of a group: enough for a query engine to work in, little enough to hold in memory.
const GROUP_ROWS: usize = 1 << 17;
/// Bytes of a group in memory, which long texts and lists reach before the rows do.
const GROUP_BYTES: usize = 64 << 20;
/// How often the bytes are looked at.
const ROWS_PER_LOOK: usize = 1 << 10;
/// Beyond this, files get hardly smaller and writing much slower.
const ZSTD_LEVEL: i32 = 3;

/// Writes the rows of a table.
pub struct Writer<R: Record, W: Write + Send> {
    name: String,
    file: SerializedFileWriter<W>,
    columns: R::Columns,
    rows: usize,
    checksums: Checksums,
}

impl<R: Record, W: Write + Send> Writer<R, W> {
    /// Starts a file. `name` is what errors call it.
    pub fn new(sink: W, name: &str) -> Result<Self, Error> {
        let schema = schema::<R>();
        let properties = properties(&SchemaDescriptor::new(schema.clone()));
        let mut checksums = Checksums::default();
        checksums.schema(&schema);
        let file = SerializedFileWriter::new(sink, schema, properties)
            .map_err(|error| write_error(name, error))?;
        let name = name.to_owned();
        Ok(Self { name, file, columns: R::Columns::default(), rows: 0, checksums })
    }

    /// Adds a row.
    pub fn push(&mut self, row: R) -> Result<(), Error> {
        row.store(&mut self.columns);
        self.rows += 1;
        let is_full = self.rows == GROUP_ROWS
            || self.rows.is_multiple_of(ROWS_PER_LOOK) && self.bytes() >= GROUP_BYTES;
        if is_full { self.write_group() } else { Ok(()) }
    }

    /// Writes what is left and the footer, with `notes` in it, and returns the sink.
    ///
    /// A note is a key and what it says of the rows as a whole.
    pub fn finish(mut self, notes: &[(&str, String)]) -> Result<W, Error> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let own = [
            (key::SCHEMA, R::SCHEMA.to_owned()),
            (key::VERSION, env!("CARGO_PKG_VERSION").to_owned()),
        ];
        for (key, value) in own.iter().chain(notes) {
            self.checksums.note(key, value);
            self.file.append_key_value_metadata(KeyValue::new((*key).to_owned(), value.clone()));
        }
        let checksums = KeyValue::new(key::CRC32.to_owned(), self.checksums.finish());
        self.file.append_key_value_metadata(checksums);
        self.file.into_inner().map_err(|error| write_error(&self.name, error))
    }

    fn bytes(&mut self) -> usize {
        R::each(&mut self.columns).iter().map(|column| column.bytes()).sum()
    }

    /// Packs the columns side by side and writes them one after the other.
    fn write_group(&mut self) -> Result<(), Error> {
        self.rows = 0;
        let properties = self.file.properties().clone();
        let descriptors = self.file.schema_descr().columns().to_vec();
        let chunks = R::each(&mut self.columns)
            .into_par_iter()
            .zip(descriptors)
            .map(|(column, descriptor)| column.pack(descriptor, properties.clone()))
            .collect::<Result<Vec<_>, _>>();
        let checksums = &mut self.checksums;
        let write = || {
            let mut group = self.file.next_row_group()?;
            for chunk in chunks? {
                checksums.column(&chunk.bytes);
                group.append_column(&chunk.bytes, chunk.metadata)?;
            }
            group.close()
        };
        let written = write();
        let group = written.map_err(|error| write_error(&self.name, error))?;
        checksums.group(&group);
        Ok(())
    }
}

/// The type of a whole row.
pub(crate) fn schema<R: Record>() -> Arc<Type> {
    let name = R::SCHEMA.split('/').next().unwrap_or_default();
    let group = Type::group_type_builder(name).with_fields(R::types()).build();
    Arc::new(group.expect("names that Parquet has"))
}

/// Numbers of 64 bits are positions, times and sizes, which differ from the one before by little: they
/// are packed as differences. Everything else has few different values and goes to a dictionary.
fn properties(schema: &SchemaDescriptor) -> WriterPropertiesPtr {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("a level that zstd has");
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(level))
        .set_created_by(concat!("rareplay ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in schema.columns() {
        if column.physical_type() == PhysicalType::INT64 {
            properties = properties
                .set_column_dictionary_enabled(column.path().clone(), false)
                .set_column_encoding(column.path().clone(), Encoding::DELTA_BINARY_PACKED);
        }
    }
    Arc::new(properties.build())
}

fn write_error(name: &str, error: ParquetError) -> Error {
    split_io(name, error).unwrap_or_else(|found| Error::Write { name: name.to_owned(), found })
}
