//! Which open file an access went through.
//!
//! Events carry no file pointer. System calls name a descriptor. Otherwise the
//! readahead events show the state of the open file before each trigger, and
//! that state was left behind by an earlier access through the same open:
//! `prev_pos` is where its last read ended, `size` and `async_size` what its
//! last window was.

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

/// Numbers the opens of each file and puts them into the accesses.
///
/// Returns the opens; `ra_pages` is set where it differs from the device's.
pub(super) fn assign(raws: &mut [Raw], sizes: &[Option<u64>], ra_pages: RaPages) -> Vec<Open> {
    let mut opens: Vec<Open> = Vec::new();
    let mut triggered: Vec<bool> = Vec::new();
    let mut known: Vec<Vec<Known>> = sizes.iter().map(|_| Vec::new()).collect();
    for at in 0..raws.len() {
        let raw = &raws[at];
        let of_file = &mut known[raw.file as usize];
        let mut is_new = false;
        let place = choose(of_file, raw).unwrap_or_else(|| {
            is_new = true;
            of_file.push(Known {
                index: opens.len() as u32,
                descriptor: raw.descriptor,
                last_thread: raw.access.thread,
                last_used: 0,
                prev_pos: -1,
                window: (0, 0),
                reads: false,
            });
            triggered.push(false);
            opens.push(Open { windowless: true, ..Open::new(raw.file) });
            of_file.len() - 1
        });
        let open = &mut of_file[place];
        remember(open, raw, sizes[raw.file as usize]);
        let index = open.index;
        if is_new {
            claim_silent_reads(&mut raws[..=at], index);
        }
        let raw = &mut raws[at];
        raw.access.open = index;
        let entry = &mut opens[open.index as usize];
        entry.random |= raw.shows_random;
        triggered[index as usize] |= raw.before.is_some();
        entry.windowless &= raw.window_after.is_none();
        if let Some(own) = raw.before.and_then(|before| ra_pages.of_open(before.ra_pages)) {
            entry.ra_pages = Some(own);
        }
    }
    for (open, triggered) in opens.iter_mut().zip(triggered) {
        open.windowless &= triggered;
    }
    opens
}

/// Reads without a trigger say nothing of their open. Those of the same thread right before the
/// first one that does, and that shows where they ended, went through the same open.
fn claim_silent_reads(raws: &mut [Raw], open: u32) {
    let Some((first, earlier)) = raws.split_last_mut() else { return };
    let Some(before) = first.before.filter(|before| before.prev_pos >= 0) else { return };
    let silent = earlier
        .iter_mut()
        .rev()
        .filter(|raw| raw.file == first.file && raw.access.thread == first.access.thread);
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
