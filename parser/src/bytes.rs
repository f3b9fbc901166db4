//! Numbers in binary formats, in either byte order.

/// Byte order of the machine that wrote a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl Endian {
    /// The number in the `size` bytes at `at`; sizes are 1, 2, 4 and 8.
    pub(crate) fn uint(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at.checked_add(size)?)?;
        match (self, size) {
            (_, 1) => Some(u64::from(bytes[0])),
            (Self::Little, 2) => Some(u16::from_le_bytes(bytes.try_into().ok()?).into()),
            (Self::Big, 2) => Some(u16::from_be_bytes(bytes.try_into().ok()?).into()),
            (Self::Little, 4) => Some(u32::from_le_bytes(bytes.try_into().ok()?).into()),
            (Self::Big, 4) => Some(u32::from_be_bytes(bytes.try_into().ok()?).into()),
            (Self::Little, 8) => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
            (Self::Big, 8) => Some(u64::from_be_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// The 16-bit number at `at` of a record, which must lie inside.
    #[inline]
    pub(crate) fn u16_at<const N: usize>(self, record: &[u8; N], at: usize) -> u16 {
        let bytes = [record[at], record[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The 32-bit number at `at` of a record, which must lie inside.
    #[inline]
    pub(crate) fn u32_at<const N: usize>(self, record: &[u8; N], at: usize) -> u32 {
        let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 64-bit number at `at` of a record, which must lie inside.
    #[inline]
    pub(crate) fn u64_at<const N: usize>(self, record: &[u8; N], at: usize) -> u64 {
        let halves = [self.u32_at(record, at), self.u32_at(record, at + 4)].map(u64::from);
        match self {
            Self::Little => halves[1] << 32 | halves[0],
            Self::Big => halves[0] << 32 | halves[1],
        }
    }

    /// The 32-bit number at `at`.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        self.uint(bytes, at, 4).map(|value| value as u32)
    }

    /// The 64-bit number at `at`.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        self.uint(bytes, at, 8)
    }
}

/// The text of a fixed-size field, up to its NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}
