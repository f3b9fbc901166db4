//! The memory a session and its worker share: requests and accesses one way, answers and decisions
//! the other, and the note a dying worker leaves.
//!
//! A step of a replay takes the tree's code less time than the kernel needs to wake a process, so
//! whoever waits looks at the memory for a moment before it sleeps. That is in vain where both share
//! a processor, and then left off for a while.
#![expect(unsafe_code, reason = "memory that another process writes")]

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::abi::{Access, RawCrash, RawDecision, RawStop};
use crate::error::{Error, Result};

/// Accesses that fit at once.
pub(crate) const ACCESSES: usize = 1 << 14;
/// Decisions that fit at once.
pub(crate) const DECISIONS: usize = 1 << 16;

const CRASH_AT: usize = 0;
const PROGRESS_AT: usize = 1024;
const REQUESTS_AT: usize = 1536;
const ANSWERS_AT: usize = 2048;
const STOP_AT: usize = 2560;
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

    /// What the session asks.
    pub(crate) fn requests(&self) -> Line<'_> {
        Line { shared: self, at: REQUESTS_AT }
    }

    /// What the worker answers.
    pub(crate) fn answers(&self) -> Line<'_> {
        Line { shared: self, at: ANSWERS_AT }
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

    /// What an answer of the worker says more of, see [`Answer::has_stop`](crate::protocol::Answer).
    pub(crate) fn put_stop(&self, stop: &RawStop) {
        // SAFETY: mapped, and the session waits for the answer.
        unsafe { self.at::<RawStop>(STOP_AT).write_volatile(*stop) };
    }

    /// The same for the session. It is copied once, so that a worker that goes on writing cannot
    /// change what was looked at.
    pub(crate) fn stop(&self) -> RawStop {
        // SAFETY: any bytes are valid.
        unsafe { self.at::<RawStop>(STOP_AT).read_volatile() }
    }

    /// Copies as many as fit and returns how many.
    pub(crate) fn put_accesses(&self, accesses: &[Access]) -> usize {
        let n = accesses.len().min(ACCESSES);
        // SAFETY: `n` accesses fit, and the worker waits for its next request.
        unsafe {
            self.at::<Access>(ACCESSES_AT)
                .copy_from_nonoverlapping(NonNull::from(accesses).cast(), n);
        };
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

/// Looks at the memory before whoever waits goes to sleep; some ten microseconds.
const LOOKS: u32 = 500;
/// Times of looking in vain after which it may be worth it again.
const LOOKS_AGAIN: u32 = 32;
/// Bytes that processors pass to each other at once.
const LINE_BYTES: usize = 64;
/// Where a frame begins, after its number.
const FRAME_AT: usize = size_of::<u32>();

/// Frames in one direction, one at a time: the number of frames so far and the last frame on one
/// cache line, so that both come over together, and on another one whether their receiver sleeps.
pub(crate) struct Line<'s> {
    shared: &'s Shared,
    at: usize,
}

impl Line<'_> {
    fn number(&self) -> &AtomicU32 {
        // SAFETY: the memory is mapped as long as `self`, and only ever used as an atomic.
        unsafe { self.shared.at::<AtomicU32>(self.at).as_ref() }
    }

    fn sleeps(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.shared.at::<AtomicU32>(self.at + LINE_BYTES).as_ref() }
    }

    fn frame(&self) -> NonNull<u8> {
        self.shared.at(self.at + FRAME_AT)
    }

    /// Sends a frame. Whether its receiver sleeps and has to be woken.
    pub(crate) fn put<const N: usize>(&self, frame: &[u8; N]) -> bool {
        const { assert!(FRAME_AT + N <= LINE_BYTES) };
        // SAFETY: the frame fits, and its receiver waits for the number to change.
        unsafe { self.frame().copy_from_nonoverlapping(NonNull::from(frame).cast(), N) };
        self.number().fetch_add(1, Ordering::SeqCst);
        self.sleeps().swap(0, Ordering::SeqCst) != 0
    }

    /// Whether a frame is there that comes after number `seen`. If not, the receiver is to sleep.
    pub(crate) fn looks(&self, seen: u32, watch: &mut Watch) -> bool {
        for _ in 0..watch.looks() {
            if self.number().load(Ordering::Acquire) != seen {
                watch.in_vain = 0;
                return true;
            }
            std::hint::spin_loop();
        }
        watch.in_vain = watch.in_vain.saturating_add(1);
        self.sleeps().store(1, Ordering::SeqCst);
        self.number().load(Ordering::SeqCst) != seen
    }

    /// The frame that is there, and its number. It is copied once, so that a worker that goes on
    /// writing cannot change what was looked at.
    pub(crate) fn take<const N: usize>(&self) -> ([u8; N], u32) {
        const { assert!(FRAME_AT + N <= LINE_BYTES) };
        let number = self.number().load(Ordering::Acquire);
        let mut frame = [0; N];
        // SAFETY: the frame fits, and any bytes are valid.
        unsafe { self.frame().copy_to_nonoverlapping(NonNull::from(&mut frame).cast(), N) };
        (frame, number)
    }
}

/// How long a receiver looks before it sleeps.
pub(crate) struct Watch {
    many_processors: bool,
    /// Times in a row that it looked in vain.
    in_vain: u32,
}

impl Watch {
    /// Of a process that has not given up its rights yet.
    pub(crate) fn new() -> Self {
        let many_processors = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        Self { many_processors, in_vain: 0 }
    }

    fn looks(&self) -> u32 {
        let worth_it = self.in_vain < 2 || self.in_vain.is_multiple_of(LOOKS_AGAIN);
        if self.many_processors && worth_it { LOOKS } else { 1 }
    }
}
