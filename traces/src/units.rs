//! Newtypes for the quantities a readahead replay must not mix up.
//!
//! Each wraps one integer and converts to another unit only through a named
//! method, so adding a sector to a page index does not compile.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;
/// Bytes in a page. Captures from kernels with other page sizes are refused.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// log2 of the 512-byte sector all block events count in.
pub const SECTOR_SHIFT: u32 = 9;
/// Sectors in a page.
pub const SECTORS_PER_PAGE: u64 = 1 << (PAGE_SHIFT - SECTOR_SHIFT);

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub u64);

        impl Add<u64> for $name {
            type Output = Self;
            fn add(self, n: u64) -> Self {
                Self(self.0 + n)
            }
        }

        impl AddAssign<u64> for $name {
            fn add_assign(&mut self, n: u64) {
                self.0 += n;
            }
        }

        /// The distance between two positions, in this type's unit; 0 if the other one is later.
        impl Sub for $name {
            type Output = u64;
            fn sub(self, other: Self) -> u64 {
                self.0.saturating_sub(other.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

quantity! {
    /// Index of a page within a file (`pgoff_t`).
    PageIndex
}
quantity! {
    /// Byte position within a file (`loff_t`, never negative).
    ByteOffset
}
quantity! {
    /// 512-byte sector on a block device.
    Sector
}
quantity! {
    /// Nanoseconds on the clock of the capture, or of the replay.
    Time
}

impl Time {
    /// In seconds with nine digits behind the point, as traces print time stamps.
    pub fn seconds(self) -> String {
        format!("{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl PageIndex {
    /// First byte of the page.
    pub fn offset(self) -> ByteOffset {
        ByteOffset(self.0 << PAGE_SHIFT)
    }
}

impl ByteOffset {
    /// The page that holds this byte.
    pub fn page(self) -> PageIndex {
        PageIndex(self.0 >> PAGE_SHIFT)
    }

    /// The first page that starts at or after this byte.
    pub fn page_up(self) -> PageIndex {
        PageIndex(self.0.div_ceil(PAGE_SIZE))
    }
}

/// log2 of the number of pages in a folio.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Order(pub u8);

impl Order {
    /// Orders a capture or a replay can hold: 0 to `COUNT - 1`.
    pub const COUNT: usize = 16;

    /// Pages in a folio of this order.
    pub fn pages(self) -> u64 {
        1 << self.0
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
