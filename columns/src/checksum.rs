//! Checksums, which Parquet has none of that every writer and reader knows.
//!
//! One note in the footer holds that of the rest of the footer, and behind it one for every column of
//! every group, each as eight hexadecimal digits.

use std::fmt::Write as _;

use crc32fast::Hasher;
use parquet::file::metadata::RowGroupMetaData;
use parquet::schema::printer::print_schema;
use parquet::schema::types::Type;

/// Digits of one checksum.
const DIGITS: usize = 8;

/// The checksums of a file.
#[derive(Default)]
pub(crate) struct Checksums {
    footer: Hasher,
    /// Of the columns.
    digits: String,
}

impl Checksums {
    /// Adds the type of the rows.
    pub(crate) fn schema(&mut self, schema: &Type) {
        let mut text = Vec::new();
        print_schema(&mut text, schema);
        self.footer.update(&text);
    }

    /// Adds a packed column.
    pub(crate) fn column(&mut self, bytes: &[u8]) {
        let _ = write!(self.digits, "{:08x}", crc32fast::hash(bytes));
    }

    /// Adds what the footer says of a group.
    pub(crate) fn group(&mut self, group: &RowGroupMetaData) {
        self.footer.update(&group.num_rows().to_le_bytes());
        for column in group.columns() {
            let statistics = column.statistics();
            let bounds = statistics.map(|range| [range.min_bytes_opt(), range.max_bytes_opt()]);
            for bound in bounds.into_iter().flatten() {
                self.text(bound.unwrap_or_default());
            }
        }
    }

    /// Adds a note.
    pub(crate) fn note(&mut self, key: &str, value: &str) {
        self.text(key.as_bytes());
        self.text(value.as_bytes());
    }

    fn text(&mut self, bytes: &[u8]) {
        self.footer.update(&bytes.len().to_le_bytes());
        self.footer.update(bytes);
    }

    /// The note that holds them.
    pub(crate) fn finish(self) -> String {
        format!("{:08x}{}", self.footer.finalize(), self.digits)
    }
}

/// The checksum of the footer in a note.
pub(crate) fn of_footer(note: &str) -> Option<&str> {
    note.get(..DIGITS)
}

/// The checksum of a column, counted over all groups, in a note.
pub(crate) fn of_column(note: &str, index: usize) -> Option<u32> {
    let start = (1 + index) * DIGITS;
    u32::from_str_radix(note.get(start..start + DIGITS)?, 16).ok()
}
