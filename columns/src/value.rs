//! Types of single cells.

use std::fmt;

use bytes::Bytes;
use parquet::basic::LogicalType;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};

/// How the library holds a value.
pub(crate) type Stored<V> = <<V as Value>::Physical as DataType>::T;

/// A type that a cell can have.
pub trait Value: Sized + Send {
    /// How Parquet stores it.
    type Physical: DataType;
    /// What it means beyond how it is stored.
    fn logical() -> Option<LogicalType>;
    /// The value as it is stored.
    fn store(self) -> Stored<Self>;
    /// The value behind what is stored, or what is wrong with that.
    fn load(stored: &Stored<Self>) -> Result<Self, &'static str>;
    /// Bytes it takes in memory beyond its own size.
    fn heap_bytes(_: &Stored<Self>) -> usize {
        0
    }
}

/// Numbers, which Parquet knows in 32 and 64 bits. Unsigned ones keep their bits.
macro_rules! number {
    ($type:ty, $physical:ty, $logical:expr) => {
        impl Value for $type {
            type Physical = $physical;
            fn logical() -> Option<LogicalType> {
                $logical
            }
            fn store(self) -> Stored<Self> {
                self as Stored<Self>
            }
            fn load(stored: &Stored<Self>) -> Result<Self, &'static str> {
                Ok(*stored as Self)
            }
        }
    };
}

#[expect(clippy::cast_possible_wrap, clippy::cast_sign_loss, reason = "bits are kept")]
mod numbers {
    use super::{DoubleType, Int32Type, Int64Type, LogicalType, Stored, Value};

    number!(i32, Int32Type, None);
    number!(u32, Int32Type, Some(LogicalType::integer(32, false)));
    number!(i64, Int64Type, None);
    number!(u64, Int64Type, Some(LogicalType::integer(64, false)));
    number!(f64, DoubleType, None);
}

impl Value for bool {
    type Physical = BoolType;
    fn logical() -> Option<LogicalType> {
        None
    }
    fn store(self) -> bool {
        self
    }
    fn load(stored: &bool) -> Result<Self, &'static str> {
        Ok(*stored)
    }
}

/// Text that many rows share, at the cost of a counter each.
#[derive(Clone, PartialEq)]
pub struct Text(ByteArray);

impl Text {
    /// Text that is part of the program.
    pub fn fixed(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Checked when the value was made.
        self.0.as_utf8().unwrap_or_default()
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::fixed("")
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()).into())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// What a cell that holds no UTF-8 is told.
const NOT_UTF8: &str = "bytes that are not UTF-8";

impl Value for Text {
    type Physical = ByteArrayType;
    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn store(self) -> ByteArray {
        self.0
    }
    fn load(stored: &ByteArray) -> Result<Self, &'static str> {
        stored.as_utf8().map_err(|_| NOT_UTF8)?;
        Ok(Self(stored.clone()))
    }
    fn heap_bytes(stored: &ByteArray) -> usize {
        stored.len()
    }
}

impl Value for String {
    type Physical = ByteArrayType;
    fn logical() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn store(self) -> ByteArray {
        self.into_bytes().into()
    }
    fn load(stored: &ByteArray) -> Result<Self, &'static str> {
        Ok(stored.as_utf8().map_err(|_| NOT_UTF8)?.to_owned())
    }
    fn heap_bytes(stored: &ByteArray) -> usize {
        stored.len()
    }
}
