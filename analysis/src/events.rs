//! Captures as tables: `rareplay.events/1`.
//!
//! [`convert`] writes any capture as a Parquet file with one row per event, in the order of the capture.
//! What the capture says of itself, what it lost, and what its sidecar says go into the footer, so
//! that [`stream`] gives the same capture back. Both hold a group of rows in memory, never all.
//!
//! docs/parquet.md is the schema's documentation.

mod convert;
mod names;
mod notes;
mod read;
mod rebuild;
mod row;

#[cfg(test)]
mod tests;

pub use convert::{ConvertError, Converted, convert};
pub use notes::Stated;
pub(crate) use read::stated;
pub use read::{EVER, ReadError, Streamed, is_table, stream};
