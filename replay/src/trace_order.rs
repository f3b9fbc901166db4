//! Replay in the order of the trace: how concurrent threads took turns is taken
//! from the capture, what readahead decides is not.
//!
//! A read of several batches is held at each recorded point ([`Anchor`]) until
//! the trace reaches it, so that threads see each other's folios and marks as
//! they did on the machine. Without anchors each access runs to its end where
//! it began, which is the same for one thread.

use traces::access::{Access, AccessKind, Anchor, AnchorKind, RecordedFolio, Source};
use traces::units::{ByteOffset, PageIndex};

use crate::fault::FaultResult;
use crate::machine::{Batch, Machine};
use crate::page_cache::{Folio, Stop};
use crate::policy::Policy;
use crate::readahead::ForcedFill;
use task::Task;

mod task;

/// A read that has begun and not returned.
#[derive(Clone, Copy)]
struct Reading {
    open: usize,
    /// Number of its access.
    access: u64,
    /// Whether the trace has its return.
    returns: bool,
    start: ByteOffset,
    pos: ByteOffset,
    /// The byte after the request.
    end: ByteOffset,
    /// The same, no further than the end of the file.
    readable: ByteOffset,
}

/// What a thread is in the middle of.
#[derive(Clone, Copy)]
enum Running {
    Read(Reading),
    Forced { open: usize, access: u64, fill: ForcedFill },
    Task(Task),
}

impl Running {
    /// Number of the access.
    fn access(&self) -> u64 {
        match self {
            Self::Read(reading) => reading.access,
            Self::Forced { access, .. } => *access,
            Self::Task(task) => task.access,
        }
    }
}

/// Replays `source` under `policy` on an immediate machine that keeps every decision.
pub fn run<'p>(source: &Source, policy: &'p dyn Policy) -> Machine<'p> {
    loop {
        let mut machine = Machine::new(policy, source, true, true);
        replay(&mut machine, source);
        if !machine.repeat {
            return machine;
        }
    }
}

/// Replays every access of `source` on an immediate machine.
pub fn replay(machine: &mut Machine<'_>, source: &Source) {
    let running = vec![None; source.threads.len()];
    let mut replay = TraceOrder { machine, running, returns: returns(source) };
    let folios = source.recorded.as_ref().map_or(&[][..], |recorded| &recorded.folios);
    // Single insertions matter only where several threads force the same pages.
    let mut folios = if source.threads.len() > 1 { folios } else { &[] }.iter().peekable();
    let own_reads = replay.machine.paths().own_reads();
    let next = if own_reads { task::next_of_read(source) } else { Vec::new() };
    let mut anchors = source.anchors.iter().enumerate().peekable();
    let accesses = source.accesses.iter().map(Some).chain([None]);
    for (number, access) in accesses.enumerate() {
        let until = access.map_or(u64::MAX, |access| access.seq);
        loop {
            let anchor = anchors.peek().map_or(u64::MAX, |(_, anchor)| anchor.seq);
            let folio = folios.peek().map_or(u64::MAX, |folio| folio.seq);
            if anchor.min(folio) >= until {
                break;
            }
            if let Some((number, anchor)) = anchors.next_if(|_| anchor < folio) {
                replay.anchor(anchor, next.get(number).copied().flatten());
            } else if let Some(folio) = folios.next() {
                replay.inserted(folio);
            }
        }
        if let Some(access) = access {
            replay.finish(access.thread as usize);
            replay.machine.note_access(access.open as usize, number as u64);
            replay.access(access);
        }
    }
    for thread in 0..source.threads.len() {
        replay.finish(thread);
    }
    machine.settle();
}

/// Whether the trace has the return of each access. What a read leaves in the readahead state of its
/// open file is written then; without, it is taken to be written when the last batch is ready.
fn returns(source: &Source) -> Vec<bool> {
    let mut returns = vec![false; source.accesses.len()];
    let mut current = vec![None; source.threads.len()];
    let mut accesses = source.accesses.iter().enumerate().peekable();
    for anchor in source.anchors.iter().filter(|anchor| anchor.kind == AnchorKind::Return) {
        while let Some((number, access)) = accesses.next_if(|(_, access)| access.seq < anchor.seq) {
            current[access.thread as usize] = Some(number);
        }
        if let Some(number) = current[anchor.thread as usize] {
            returns[number] = true;
        }
    }
    returns
}

struct TraceOrder<'m, 'p> {
    machine: &'m mut Machine<'p>,
    running: Vec<Option<Running>>,
    returns: Vec<bool>,
}

impl TraceOrder<'_, '_> {
    fn access(&mut self, access: &Access) {
        let thread = access.thread as usize;
        let open = access.open as usize;
        match access.kind {
            AccessKind::Read { pos, count } if self.machine.paths().own_reads() => {
                self.begin_read(thread, open, pos, count);
            }
            AccessKind::WillNeed { page, pages } if self.machine.paths().own_reads() => {
                self.begin_forced(thread, open, page, pages);
            }
            AccessKind::Read { pos, count } => {
                let end = ByteOffset(pos.0.saturating_add(count));
                let size_bytes = self.machine.file_of(open).limits.size_bytes;
                let readable = end.min(ByteOffset(size_bytes));
                let access = self.machine.access;
                let returns = self.returns(access);
                let reading = Reading { open, access, returns, start: pos, pos, end, readable };
                self.running[thread] = Some(Running::Read(reading));
            }
            AccessKind::WillNeed { page, pages } => {
                if let Some(fill) = self.machine.begin_will_need(open, page, pages) {
                    self.force_until(thread, open, fill, page.0);
                }
            }
            _ => execute(self.machine, access),
        }
    }

    /// A folio was inserted by a thread: its forced readahead has come to that page.
    fn inserted(&mut self, folio: &RecordedFolio) {
        let thread = folio.thread as usize;
        self.turn_to(thread);
        match self.running[thread] {
            Some(Running::Forced { open, fill, .. }) => {
                self.force_until(thread, open, fill, folio.page.0 + 1);
            }
            Some(Running::Task(task)) => self.task_inserted(thread, task, folio.page),
            _ => {}
        }
    }

    /// Runs a forced readahead up to page `until`, and to its end where nothing is left to insert.
    fn force_until(&mut self, thread: usize, open: usize, mut fill: ForcedFill, until: u64) {
        let cache = &self.machine.file_of(open).cache;
        let covered = cache.contains_all(PageIndex(until), PageIndex(fill.end()));
        let until = if covered { u64::MAX } else { until };
        let done = self.machine.advance_will_need(open, &mut fill, until);
        let access = self.machine.access;
        self.running[thread] = (!done).then_some(Running::Forced { open, access, fill });
    }

    fn returns(&self, access: u64) -> bool {
        self.returns.get(access as usize).copied().unwrap_or(false)
    }

    /// What is decided from here on belongs to what `thread` is in the middle of.
    fn turn_to(&mut self, thread: usize) {
        if let Some(running) = &self.running[thread] {
            self.machine.access = running.access();
        }
    }

    /// Runs a thread's read up to a recorded point; `next` is the page of the one after it.
    fn anchor(&mut self, anchor: &Anchor, next: Option<PageIndex>) {
        let thread = anchor.thread as usize;
        self.turn_to(thread);
        if anchor.kind == AnchorKind::Return {
            return self.finish(thread);
        }
        if let Some(Running::Task(task)) = self.running[thread] {
            return self.task_anchor(thread, task, anchor, next);
        }
        let Some(Running::Read(mut reading)) = self.running[thread] else {
            return self.finish(thread);
        };
        self.running[thread] = None;
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
        let is_last = anchor.kind == AnchorKind::Batch && self.is_last_batch(&reading, last);
        if is_last {
            self.run_until(&mut reading, last);
        }
        if is_last && !reading.returns {
            self.return_read(reading);
        } else {
            self.running[thread] = Some(Running::Read(reading));
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
        self.turn_to(thread);
        match self.running[thread].take() {
            Some(Running::Read(mut reading)) => {
                self.run_until(&mut reading, PageIndex(u64::MAX));
                self.return_read(reading);
            }
            Some(Running::Forced { open, mut fill, .. }) => {
                self.machine.advance_will_need(open, &mut fill, u64::MAX);
            }
            Some(Running::Task(task)) => self.finish_task(thread, task),
            None => {}
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
    let (thread, open) = (access.thread as usize, access.open as usize);
    match access.kind {
        AccessKind::Read { pos, count } => machine.read(open, pos, count),
        AccessKind::Touch { page } => touch(machine, thread, open, page),
        AccessKind::Fault { page, retry } if machine.paths().own_faults() => {
            if !retry {
                touch(machine, thread, open, page);
            }
        }
        AccessKind::FaultAround { first, last, served, retry } if machine.paths().own_faults() => {
            let page = machine.first_unmapped(open, first, last).filter(|_| served && !retry);
            if let Some(page) = page {
                touch(machine, thread, open, page);
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

/// A touch with as many tries as it takes.
fn touch(machine: &mut Machine<'_>, thread: usize, open: usize, page: PageIndex) {
    let mut retry = false;
    while let FaultResult::Retry(_) = machine.touch(thread, open, page, retry) {
        retry = true;
    }
}
