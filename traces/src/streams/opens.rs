//! Which open file an access went through.
//!
//! Events carry no file pointer. System calls name a descriptor. Otherwise the
//! readahead events show the state of the open file before each trigger, and
//! that state was left behind by an earlier access through the same open:
//! `prev_pos` is where its last read ended, `size` and `async_size` what its
//! last window was.

use std::collections::VecDeque;

use super::window::{Key, Sizes};
use crate::access::{Access, AccessKind, Open, scaled_ra_pages};
use crate::event::RecordedRa;

/// An access with what its events say about the open it went through.
pub(super) struct Raw {
    pub(super) access: Access,
    pub(super) file: u32,
    /// Descriptor, where a system call named one: unique per open(2) of a thread.
    pub(super) descriptor: Option<u64>,
    /// State before the first trigger of the access.
    pub(super) before: Option<RecordedRa>,
    /// Window (`size`, `async_size`) after the last trigger of the access.
    pub(super) window_after: Option<(u64, u64)>,
    /// Events show a window where only `POSIX_FADV_RANDOM` explains the order-0 path.
    pub(super) shows_random: bool,
}

impl Raw {
    pub(super) fn new(file: u32, access: Access) -> Self {
        Self {
            access,
            file,
            descriptor: None,
            before: None,
            window_after: None,
            shows_random: false,
        }
    }
}

/// What is known of an open file while accesses are dealt out.
struct Known {
    index: u32,
    descriptor: Option<u64>,
    last_thread: u32,
    last_used: u64,
    prev_pos: i64,
    window: (u64, u64),
    reads: bool,
}

impl Known {
    fn new(index: u32, raw: &Raw) -> Self {
        Self {
            index,
            descriptor: raw.descriptor,
            last_thread: raw.access.thread,
            last_used: 0,
            prev_pos: -1,
            window: (0, 0),
            reads: false,
        }
    }
}

/// `ra_pages` of the device.
#[derive(Clone, Copy)]
pub(super) struct RaPages {
    /// When the capture was made.
    pub(super) recorded: u64,
    /// For the replay.
    pub(super) wanted: u64,
}

impl RaPages {
    /// What an open had that did not have the device's, by the device's for the replay.
    fn of_open(self, recorded: u64) -> Option<u64> {
        let scaled = || scaled_ra_pages(recorded, self.recorded, self.wanted);
        (recorded != self.recorded).then(scaled)
    }
}

/// An open file as it becomes known.
struct Opened {
    open: Open,
    /// Whether an access through it triggered readahead.
    triggered: bool,
    /// The last `ra_pages` it was seen with, and the last that was another.
    ra_pages: [Option<u64>; 2],
}

impl Opened {
    fn new(file: u32) -> Self {
        let open = Open { windowless: true, ..Open::new(file) };
        Self { open, triggered: false, ra_pages: [None; 2] }
    }

    fn take_in(&mut self, raw: &Raw) {
        self.open.random |= raw.shows_random;
        self.open.windowless &= raw.window_after.is_none();
        self.triggered |= raw.before.is_some();
        if let Some(seen) = raw.before.map(|before| before.ra_pages)
            && self.ra_pages[0] != Some(seen)
        {
            self.ra_pages = [Some(seen), self.ra_pages[0]];
        }
    }

    fn finish(self, device: RaPages) -> Open {
        Open {
            windowless: self.open.windowless && self.triggered,
            ra_pages: self.ra_pages.into_iter().flatten().find_map(|seen| device.of_open(seen)),
            ..self.open
        }
    }
}

/// Deals accesses out to the open files of each file, one after the other.
#[derive(Default)]
pub(super) struct Opens {
    opens: Vec<Opened>,
    /// By file.
    known: Vec<Vec<Known>>,
}

impl Opens {
    /// Chooses the open file of the access at `at`; those before it have theirs.
    pub(super) fn assign(
        &mut self,
        waiting: &mut VecDeque<(Key, Raw)>,
        at: usize,
        sizes: &impl Sizes,
    ) {
        let raw = &waiting[at].1;
        let file = raw.file as usize;
        if self.known.len() <= file {
            self.known.resize_with(file + 1, Vec::new);
        }
        let of_file = &mut self.known[file];
        let mut is_new = false;
        let place = choose(of_file, raw).unwrap_or_else(|| {
            is_new = true;
            of_file.push(Known::new(self.opens.len() as u32, raw));
            self.opens.push(Opened::new(raw.file));
            of_file.len() - 1
        });
        let known = &mut of_file[place];
        remember(known, raw, sizes.stated(raw.file));
        let open = known.index;
        self.opens[open as usize].take_in(raw);
        if is_new {
            claim_silent_reads(waiting, at, open);
        }
        waiting[at].1.access.open = open;
    }

    /// The open files. `ra_pages` is set where it differs from the device's.
    pub(super) fn finish(self, ra_pages: RaPages) -> Vec<Open> {
        self.opens.into_iter().map(|opened| opened.finish(ra_pages)).collect()
    }
}

/// Reads without a trigger say nothing of their open. Those of the same thread right before the
/// first one that does, and that shows where they ended, went through the same open.
fn claim_silent_reads(waiting: &mut VecDeque<(Key, Raw)>, at: usize, open: u32) {
    let Raw { file, access: Access { thread, .. }, before, .. } = waiting[at].1;
    let Some(before) = before.filter(|before| before.prev_pos >= 0) else { return };
    let earlier = waiting.range_mut(..at).rev().map(|(_, raw)| raw);
    let silent = earlier.filter(|raw| raw.file == file && raw.access.thread == thread);
    for (distance, raw) in silent.take_while(|raw| raw.before.is_none()).enumerate() {
        let AccessKind::Read { pos, count } = raw.access.kind else { continue };
        if distance == 0 && (pos.0 + count).cast_signed() != before.prev_pos {
            return;
        }
        raw.access.open = open;
    }
}

fn remember(open: &mut Known, raw: &Raw, size_bytes: Option<u64>) {
    if matches!(raw.access.kind, AccessKind::Evict { .. }) {
        return;
    }
    open.last_thread = raw.access.thread;
    open.last_used = raw.access.seq;
    if let Some(window) = raw.window_after {
        open.window = window;
    }
    if let AccessKind::Read { pos, count } = raw.access.kind {
        open.prev_pos = (pos.0 + count).min(size_bytes.unwrap_or(u64::MAX)).cast_signed();
        open.reads = true;
    }
}

/// The known open that fits an access best, `None` if it must be a new one.
fn choose(known: &[Known], raw: &Raw) -> Option<usize> {
    if matches!(raw.access.kind, AccessKind::Evict { .. }) {
        // An eviction concerns the file, whichever open it is written down for.
        return (!known.is_empty()).then_some(0);
    }
    if let Some(descriptor) = raw.descriptor {
        return known.iter().position(|open| open.descriptor == Some(descriptor));
    }
    if let Some(before) = raw.before {
        let fresh = before.prev_pos == -1 && before.size == 0 && before.async_size == 0;
        let fits = |open: &&Known| {
            if fresh {
                !open.reads && open.window == (0, 0)
            } else {
                // A state without a window cannot be that of an open that had one.
                let windowless = (before.size, before.async_size) == (0, 0);
                open.window == (before.size, before.async_size)
                    || !windowless && open.prev_pos == before.prev_pos && open.reads
            }
        };
        let score = |open: &Known| {
            (
                u8::from(open.window == (before.size, before.async_size))
                    + u8::from(open.prev_pos == before.prev_pos),
                open.last_thread == raw.access.thread,
                open.last_used,
            )
        };
        let best = known.iter().enumerate().filter(|(_, open)| fits(open));
        return best.max_by_key(|(_, open)| score(open)).map(|(place, _)| place);
    }
    let continues = |open: &Known| match raw.access.kind {
        AccessKind::Read { pos, .. } => open.prev_pos == pos.0.cast_signed(),
        _ => false,
    };
    // A thread that never used the file most likely opened it itself.
    let own = known.iter().enumerate().filter(|(_, open)| open.last_thread == raw.access.thread);
    own.max_by_key(|(_, open)| (continues(open), open.last_used)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_follows_a_changed_setting_of_its_device() {
        let changed = RaPages { recorded: 32, wanted: 128 };
        assert_eq!(changed.of_open(32), None, "it has what the device has");
        assert_eq!(
            changed.of_open(64),
            Some(256),
            "POSIX_FADV_SEQUENTIAL doubles what the device has"
        );
        let unchanged = RaPages { recorded: 32, wanted: 32 };
        assert_eq!(unchanged.of_open(64), Some(64));
    }
}
