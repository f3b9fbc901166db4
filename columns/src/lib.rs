//! Tables in Parquet files, one Rust struct per row.
//!
//! [`record!`] declares a row once: its fields are the columns of the file. [`Writer`] takes rows and
//! writes them in groups of bounded size; [`Table`] opens a file and gives its rows back, a batch at a
//! time, in bounded memory. A struct that declares only some of a file's columns reads only those, and
//! [`Table::rows_where`] passes over the groups whose statistics say that nothing in them is wanted.
//!
//! | field | column |
//! |---|---|
//! | `i32`, `i64`, `u32`, `u64`, `bool`, `f64`, [`Text`], `String` | of that type, never null |
//! | `Option<T>` of these | null where it is `None`, or where the file has no such column |
//! | `Vec<T>`, `Option<Vec<T>>` of these | a list |
//!
//! The footer names the schema with its version, the version of this program, and whatever else the
//! writer wants to say of the rows. It and every column of a group have a checksum. Pages are
//! compressed with zstd. Equal rows give equal bytes, whatever the number of threads.
//!
//! ```
//! columns::record! {
//!     "example.reads/1";
//!     /// A read.
//!     #[derive(Debug, PartialEq)]
//!     pub struct Read {
//!         /// When.
//!         pub time_ns: i64,
//!         /// Folios it found, by order.
//!         pub folios: Vec<u64>,
//!     }
//! }
//!
//! let mut writer = columns::Writer::new(Vec::new(), "reads.parquet")?;
//! writer.push(Read { time_ns: 1, folios: vec![3, 0, 1] })?;
//! let bytes = writer.finish(&[])?;
//!
//! let table = columns::Table::open(bytes, "reads.parquet")?;
//! let rows: Vec<Read> = table.rows()?.collect::<Result<_, _>>()?;
//! assert_eq!(rows, [Read { time_ns: 1, folios: vec![3, 0, 1] }]);
//! # Ok::<(), columns::Error>(())
//! ```
//!
//! This is the only crate that knows the `parquet` library.

mod checksum;
mod column;
mod error;
mod input;
mod record;
mod table;
mod value;
mod writer;

pub use column::{AnyColumn, Column};
pub use error::Error;
pub use input::ReadAt;
pub use record::{ColumnOf, Field, Record, Shape};
pub use table::{Group, Rows, Table};
pub use value::{Text, Value};
pub use writer::Writer;

/// What the macro needs and nobody else.
#[doc(hidden)]
pub use parquet::schema::types::TypePtr;
#[doc(hidden)]
pub use record::column_type;

/// First bytes of every Parquet file.
pub const MAGIC: &[u8] = b"PAR1";

/// Footer keys of what every table says of itself.
mod key {
    /// Name and version of the schema, such as `rareplay.events/1`.
    pub(crate) const SCHEMA: &str = "rareplay.schema";
    /// Version of the program that wrote the file.
    pub(crate) const VERSION: &str = "rareplay.version";
    /// Checksums of the groups' columns.
    pub(crate) const CRC32: &str = "rareplay.crc32";
}
