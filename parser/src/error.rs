//! What can be wrong with a capture as a whole.

use std::io;

use traces::units::PAGE_SIZE;

/// Why a capture could not be read.
///
/// Damage after the first events is no error: it is counted in
/// [`Capture::losses`](traces::capture::Capture::losses).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system could not deliver the bytes.
    #[error("{name}: {source}")]
    Io {
        /// Input.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing in the input.
    #[error("{name}: empty: expected a capture ({expected})")]
    Empty {
        /// Input.
        name: String,
        /// Formats that would do.
        expected: String,
    },
    /// The first bytes or lines belong to no known format.
    #[error("{name}: not a capture: expected {expected}, found {found}")]
    NotACapture {
        /// Input.
        name: String,
        /// Formats that would do.
        expected: String,
        /// Where the input stops looking like one, and what stands there.
        found: String,
    },
    /// A binary capture breaks off or contradicts itself in front of its events.
    #[error("{name}: byte {offset}: expected {expected}, found {found}")]
    Malformed {
        /// Input.
        name: String,
        /// Where.
        offset: u64,
        /// What belongs there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The capture is from a kernel with other pages than the model counts in.
    #[error(
        "{name}: recorded with pages of {bytes} bytes: only {PAGE_SIZE}-byte pages are supported"
    )]
    PageSize {
        /// Input.
        name: String,
        /// Bytes in a page of that kernel.
        bytes: u32,
    },
    /// A capture that must be read here and there is too large to be unpacked into memory.
    #[error("{name}: unpacks to more than {bytes_max} bytes: unpack it into a file first")]
    TooLarge {
        /// Input.
        name: String,
        /// The limit.
        bytes_max: u64,
    },
    /// A compressed input is damaged before its first event.
    #[error("{name}: byte {offset} of the unpacked data: damaged {compression} data: {reason}")]
    Damaged {
        /// Input.
        name: String,
        /// Bytes unpacked before the damage.
        offset: u64,
        /// Name of the compression.
        compression: &'static str,
        /// What the decoder said.
        reason: String,
    },
}
