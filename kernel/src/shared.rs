//! The memory a session and its worker share: accesses one way, decisions the other, and the note a
//! dying worker leaves.
#![expect(unsafe_code, reason = "memory that another process writes")]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::abi::{Access, RawCrash, RawDecision};
use crate::error::{Error, Result};

/// Accesses that fit at once.
pub(crate) const ACCESSES: usize = 1 << 14;
/// Decisions that fit at once.
pub(crate) const DECISIONS: usize = 1 << 16;

const CRASH_AT: usize = 0;
const PROGRESS_AT: usize = 1024;
const ACCESSES_AT: usize = 4096;
const DECISIONS_AT: usize = ACCESSES_AT + ACCESSES * size_of::<Access>();
const BYTES: usize = DECISIONS_AT + DECISIONS * size_of::<RawDecision>();

pub(crate) struct Shared {
    map: MmapRaw,
}

impl Shared {
    /// New memory, zeroed, of a size that its other holder cannot change.
    pub(crate) fn create() -> Result<(Self, OwnedFd)> {
        let io =
            |e: rustix::io::Errno| Error::Io { what: "shared memory".to_owned(), source: e.into() };
        let fd = rustix::fs::memfd_create(
            "rareplay-kernel",
            MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
        )
        .map_err(io)?;
        rustix::fs::ftruncate(&fd, BYTES as u64).map_err(io)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(io)?;
        Ok((Self::open(&fd)?, fd))
    }

    pub(crate) fn open(fd: &impl AsFd) -> Result<Self> {
        let io = |source| Error::Io { what: "shared memory".to_owned(), source };
        let file = std::fs::File::from(fd.as_fd().try_clone_to_owned().map_err(io)?);
        let map = MmapOptions::new().len(BYTES).map_raw(&file).map_err(io)?;
        Ok(Self { map })
    }

    fn at<T>(&self, offset: usize) -> NonNull<T> {
        debug_assert!(offset < BYTES && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: a mapping is never at address 0 and the offsets above are within it.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// Accesses replayed so far of the ones last given.
    pub(crate) fn progress(&self) -> &AtomicU64 {
        // SAFETY: aligned, mapped as long as `self`, and written by whole words only.
        unsafe { self.at::<AtomicU64>(PROGRESS_AT).as_ref() }
    }

    pub(crate) fn crash_pointer(&self) -> NonNull<RawCrash> {
        self.at(CRASH_AT)
    }

    /// The note, if a signal left one.
    pub(crate) fn crash(&self) -> Option<RawCrash> {
        // SAFETY: any bytes are a valid note, and who writes it ends then.
        let crash = unsafe { self.crash_pointer().read_volatile() };
        (crash.signal != 0).then_some(crash)
    }

    /// Copies as many as fit and returns how many.
    pub(crate) fn put_accesses(&self, accesses: &[Access]) -> usize {
        let n = accesses.len().min(ACCESSES);
        // SAFETY: `n` accesses fit, and the worker waits for its next request.
        unsafe {
            self.at::<Access>(ACCESSES_AT)
                .copy_from_nonoverlapping(NonNull::from(accesses).cast(), n);
        };
        self.progress().store(0, Ordering::Relaxed);
        n
    }

    /// The first `n` accesses, for the worker.
    pub(crate) fn accesses(&self, n: usize) -> &[Access] {
        // SAFETY: any bytes are valid accesses, and the session waits for the answer.
        unsafe {
            std::slice::from_raw_parts(self.at::<Access>(ACCESSES_AT).as_ptr(), n.min(ACCESSES))
        }
    }

    /// Copies as many as fit and returns how many.
    pub(crate) fn put_decisions(&self, decisions: &[RawDecision]) -> usize {
        let n = decisions.len().min(DECISIONS);
        // SAFETY: `n` decisions fit, and the session waits for the answer.
        unsafe {
            self.at::<RawDecision>(DECISIONS_AT)
                .copy_from_nonoverlapping(NonNull::from(decisions).cast(), n);
        };
        n
    }

    /// Appends the first `n` decisions to `to`.
    pub(crate) fn take_decisions(&self, n: usize, to: &mut Vec<RawDecision>) {
        let n = n.min(DECISIONS);
        to.reserve(n);
        // SAFETY: any bytes are valid raw decisions. They are copied once, so that a worker that goes
        // on writing cannot change what was looked at.
        unsafe {
            let from = self.at::<RawDecision>(DECISIONS_AT).as_ptr();
            from.copy_to_nonoverlapping(to.as_mut_ptr().add(to.len()), n);
            to.set_len(to.len() + n);
        }
    }
}
