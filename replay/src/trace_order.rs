//! Replay in the order of the trace: how concurrent threads took turns is taken
//! from the capture, what readahead decides is not.
//!
//! A read of several batches is held at each recorded point ([`Anchor`]) until
//! the trace reaches it, so that threads see each other's folios and marks as
//! they did on the machine. Without anchors each access runs to its end where
//! it began, which is the same for one thread.

use traces::access::{Access, AccessKind, Anchor, AnchorKind, Source};
use traces::units::{ByteOffset, PageIndex};

use crate::fault::FaultResult;
use crate::machine::{Batch, Machine};
use crate::page_cache::{Folio, Stop};

/// A read that has begun and not returned.
#[derive(Clone, Copy)]
struct Reading {
    open: usize,
    start: ByteOffset,
    pos: ByteOffset,
    /// The byte after the request.
    end: ByteOffset,
    /// The same, no further than the end of the file.
    readable: ByteOffset,
}

/// Replays every access of `source` on an immediate machine.
pub fn replay(machine: &mut Machine<'_>, source: &Source) {
    let mut replay = TraceOrder { machine, reading: vec![None; source.threads.len()] };
    let mut anchors = source.anchors.iter().peekable();
    for access in &source.accesses {
        while let Some(anchor) = anchors.next_if(|anchor| anchor.seq < access.seq) {
            replay.anchor(anchor);
        }
        replay.access(access);
    }
    anchors.for_each(|anchor| replay.anchor(anchor));
    for thread in 0..source.threads.len() {
        replay.finish(thread);
    }
}

struct TraceOrder<'m, 'p> {
    machine: &'m mut Machine<'p>,
    reading: Vec<Option<Reading>>,
}

impl TraceOrder<'_, '_> {
    fn access(&mut self, access: &Access) {
        self.finish(access.thread as usize);
        if let AccessKind::Read { pos, count } = access.kind {
            let open = access.open as usize;
            let end = ByteOffset(pos.0.saturating_add(count));
            let size_bytes = self.machine.file_of(open).limits.size_bytes;
            let readable = end.min(ByteOffset(size_bytes));
            let reading = Reading { open, start: pos, pos, end, readable };
            self.reading[access.thread as usize] = Some(reading);
        } else {
            execute(self.machine, access);
        }
    }

    /// Runs a thread's read up to a recorded point.
    fn anchor(&mut self, anchor: &Anchor) {
        let Some(mut reading) = self.reading[anchor.thread as usize].take() else { return };
        self.run_until(&mut reading, anchor.page);
        let last = self.machine.request_end(reading.open, reading.end);
        if anchor.page < last && reading.pos.page() <= anchor.page {
            let cached = self.machine.file_of(reading.open).cache.folio_at(anchor.page);
            match (anchor.kind, cached) {
                (AnchorKind::Async, Some(folio)) => self.meet_mark(&reading, folio, last),
                (AnchorKind::Sync | AnchorKind::Batch, None) => {
                    self.machine.sync_ra(reading.open, anchor.page, last - anchor.page);
                }
                _ => {}
            }
        }
        if anchor.kind == AnchorKind::Batch && self.is_last_batch(&reading, last) {
            self.run_until(&mut reading, last);
            self.return_read(reading);
        } else {
            self.reading[anchor.thread as usize] = Some(reading);
        }
    }

    fn meet_mark(&mut self, reading: &Reading, folio: Folio, last: PageIndex) {
        if self.machine.file_of(reading.open).cache.is_marked(folio) {
            self.machine.async_ra(reading.open, folio.index, folio, last - folio.index);
        }
    }

    /// Whether everything left of the read is cached, uptodate and without marks.
    fn is_last_batch(&mut self, reading: &Reading, last: PageIndex) -> bool {
        let index = reading.pos.page();
        let cache = &self.machine.file_of(reading.open).cache;
        cache.walk(index, last, u32::MAX).stop == Stop::End
    }

    /// Copies up to page `until`, with the readahead that falls due on the way.
    fn run_until(&mut self, reading: &mut Reading, until: PageIndex) {
        let last = self.machine.request_end(reading.open, reading.end);
        let until = until.min(last);
        while reading.pos < reading.readable && reading.pos.page() < until {
            let index = reading.pos.page();
            let batch = self.machine.get_pages_until(reading.open, index, last, until);
            let Batch::Ready { end, .. } = batch else { return };
            let to = reading.readable.min(end.min(until).offset()).max(reading.pos);
            self.machine.copied(reading.open, reading.pos, to);
            reading.pos = to;
        }
    }

    fn finish(&mut self, thread: usize) {
        if let Some(mut reading) = self.reading[thread].take() {
            self.run_until(&mut reading, PageIndex(u64::MAX));
            self.return_read(reading);
        }
    }

    fn return_read(&mut self, reading: Reading) {
        if reading.pos > reading.start {
            self.machine.read_returns(reading.open, reading.pos);
        }
    }
}

/// Executes one access to its end on an immediate machine.
pub fn execute(machine: &mut Machine<'_>, access: &Access) {
    let open = access.open as usize;
    match access.kind {
        AccessKind::Read { pos, count } => machine.read(open, pos, count),
        AccessKind::Touch { page } => {
            let mut retry = false;
            while let FaultResult::Retry(_) = machine.touch(open, page, retry) {
                retry = true;
            }
        }
        AccessKind::Fault { page, retry } => {
            machine.fault(open, page, retry);
        }
        AccessKind::FaultAround { first, last, served, retry } => {
            machine.fault_around(open, None, first, last, retry || !served);
        }
        AccessKind::WillNeed { page, pages } => machine.will_need(open, page, pages),
        AccessKind::AdviseNormal => machine.advise_normal(open),
        AccessKind::AdviseSequential => machine.advise_sequential(open),
        AccessKind::AdviseRandom => machine.advise_random(open),
        AccessKind::DontNeed { pos, count } => machine.dont_need(open, pos, count),
        AccessKind::Evict { page, order } => {
            machine.evict_range(open, page, page + order.pages());
        }
    }
}
