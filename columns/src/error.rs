//! What can be wrong with a file of columns.

use std::io;

use parquet::errors::ParquetError;

/// Why a table could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not deliver or take the bytes.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// It has no footer that can be read.
    #[error("{name}: expected a Parquet footer at the end, found {found}")]
    Footer {
        /// The file.
        name: String,
        /// What is wrong with it.
        found: String,
    },
    /// It is another program's table, or one of another kind.
    #[error("{name}: expected a table `{expected}`, found {found}")]
    OtherSchema {
        /// The file.
        name: String,
        /// The schema asked for.
        expected: &'static str,
        /// The one in the footer.
        found: String,
    },
    /// It was written by a newer version of this program.
    #[error(
        "{name}: table `{found}` is of another version than `{expected}`, which this one reads"
    )]
    OtherVersion {
        /// The file.
        name: String,
        /// The schema asked for.
        expected: &'static str,
        /// The one in the footer.
        found: String,
    },
    /// A column is not there, or of another type.
    #[error("{name}: column `{column}`: expected {expected}, found {found}")]
    Column {
        /// The file.
        name: String,
        /// The column.
        column: String,
        /// Its declaration.
        expected: String,
        /// What the file has.
        found: String,
    },
    /// The rows of a group cannot be read.
    #[error("{name}: row group {group}, column `{column}`: {found}")]
    Damaged {
        /// The file.
        name: String,
        /// Number of the group, from 0.
        group: usize,
        /// The column.
        column: String,
        /// What is wrong.
        found: String,
    },
    /// The library refused to write.
    #[error("{name}: {found}")]
    Write {
        /// The file.
        name: String,
        /// What it said.
        found: String,
    },
}

/// What the library says, without its own prefix.
pub(crate) fn reason(error: &ParquetError) -> String {
    match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// The error of the system in what the library says, if it is one.
pub(crate) fn split_io(name: &str, error: ParquetError) -> Result<Error, String> {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => Ok(Error::Io { name: name.to_owned(), source: *source }),
            Err(other) => Err(other.to_string()),
        },
        other => Err(reason(&other)),
    }
}
