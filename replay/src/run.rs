//! Replay on virtual time: what would have happened under another policy.
//!
//! A closed loop: each thread runs its accesses one after the other, waits for
//! the folios it needs, copies, thinks as long as it did in the recording, and
//! goes on. Threads, requests on their way and completions are events of one
//! queue, ordered by time and then by age, so a replay is deterministic. Every
//! thread has a CPU of its own.

mod events;
mod flights;
mod history;
mod tasks;
mod think;
mod timeline;

use serde::{Deserialize, Serialize};
use traces::access::{Access, AccessKind, Source};
use traces::units::{ByteOffset, PAGE_SIZE, PageIndex, Time};

pub use history::{AccessTimes, ChosenWindow, History, RequestTimes, Sent, WaitTimes};
pub use timeline::{ReadTimes, StreamWaits, Timeline, Waits};

use crate::block::{BlockLayer, ExtentMap, QueueLimits, Request};
use crate::device::Device;
use crate::device::queue::{Begun, DeviceQueue, QueueParameters};
use crate::fault::FaultResult;
use crate::lru::Lru;
use crate::machine::{Batch, Machine};
use crate::page_cache::Folio;
use crate::policy::Policy;
use crate::readahead::ForcedFill;
use events::{Events, What};
use flights::Flights;

/// What the CPU spends, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCosts {
    /// A read call or a fault, without what follows.
    pub call_ns: u64,
    /// Copying 4 KiB to the program.
    pub copy_page_ns: u64,
    /// Taking a folio into a batch and letting it go after the copy.
    pub copy_folio_ns: u64,
    /// Looking up a page in the order-0 path.
    pub lookup_ns: u64,
    /// Allocating and inserting a folio.
    pub folio_ns: u64,
    /// Building and issuing a request.
    pub request_ns: u64,
    /// From a completion to the thread that waited for it.
    pub wake_ns: u64,
}

impl Default for CpuCosts {
    /// A server of the 2020s.
    fn default() -> Self {
        Self {
            call_ns: 300,
            copy_page_ns: 350,
            copy_folio_ns: 30,
            lookup_ns: 20,
            folio_ns: 400,
            request_ns: 1_500,
            wake_ns: 2_000,
        }
    }
}

/// Pages that a forced readahead looks at before other threads run.
const SLICE_PAGES: u64 = 8;

/// Everything a run needs besides the source.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// CPU costs.
    pub cpu: CpuCosts,
    /// The queue in front of the device.
    pub queue: QueueParameters,
    /// Whether threads pause between accesses as long as they did in the recording.
    pub think: bool,
    /// Whether the times of every read are kept.
    pub keep_reads: bool,
    /// Whether everything that charts over time show is kept.
    pub keep_history: bool,
}

/// Replays `source` under `policy` on `device`. Returns the machine as it ends and the timeline.
pub fn run<'p>(
    source: &Source,
    policy: &'p dyn Policy,
    device: &mut dyn Device,
    options: &RunOptions,
) -> (Machine<'p>, Timeline) {
    let machine = Machine::new(policy, source, false, options.keep_history);
    let mut run = Run::new(source, machine, device, options);
    run.start();
    while let Some((time, what)) = run.events.next() {
        run.event(time, what);
    }
    run.finish()
}

/// A thread of the source.
#[derive(Debug, Default)]
struct Thread {
    /// The accesses it makes.
    accesses: Vec<u32>,
    /// Which of them it is in, or makes next.
    next: usize,
    /// Where it is in that one.
    state: AccessState,
}

/// Where a thread is in an access.
#[derive(Clone, Copy, Debug, Default)]
struct AccessState {
    /// When it began.
    began: Option<Time>,
    /// When its last batch was ready.
    ready: Time,
    /// Position of the read.
    pos: Option<ByteOffset>,
    /// The touch has to be tried again.
    retry: bool,
    /// How far the forced readahead is.
    forced: Option<ForcedFill>,
    /// The page after the batch it copies when it has waited, and the batch's folios.
    batch: Option<(PageIndex, u32)>,
    /// Since when it waits, and for which folio.
    waiting: Option<(Time, u32, PageIndex)>,
    waited_ns: u64,
}

/// How a step of a thread ends.
#[derive(Clone, Copy)]
enum Step {
    /// There is more to do at once.
    Again { cpu_ns: u64 },
    /// A folio has to become uptodate first.
    Wait(Folio),
    /// The access is over.
    Done { cpu_ns: u64 },
}

struct Run<'s, 'p, 'd> {
    source: &'s Source,
    machine: Machine<'p>,
    options: &'s RunOptions,
    layer: BlockLayer,
    maps: Vec<ExtentMap>,
    queue: DeviceQueue<'d>,
    flights: Flights,
    events: Events,
    threads: Vec<Thread>,
    /// Threads that wait for a folio.
    waiting: Vec<u32>,
    /// Per access, the pause before it; empty without pauses.
    think_ns: Vec<u64>,
    lru: Option<(u64, Lru)>,
    timeline: Timeline,
    /// Kept only to be used again.
    requests: Vec<Request>,
    ids: Vec<u32>,
    begun: Vec<Begun>,
    completed: Vec<u32>,
}

impl<'s, 'p, 'd> Run<'s, 'p, 'd> {
    fn new(
        source: &'s Source,
        machine: Machine<'p>,
        device: &'d mut dyn Device,
        options: &'s RunOptions,
    ) -> Self {
        let mut threads = Vec::new();
        threads.resize_with(source.threads.len(), Thread::default);
        for (index, access) in source.accesses.iter().enumerate() {
            threads[access.thread as usize].accesses.push(index as u32);
        }
        let think_ns = if options.think {
            think::program_ns(source, options.cpu.copy_page_ns)
        } else {
            Vec::new()
        };
        let streams = vec![StreamWaits::default(); source.opens.len()];
        let limits = QueueLimits::new(&source.settings);
        let queue = DeviceQueue::new(device, options.queue.under(&source.settings), limits);
        let history = options.keep_history.then(History::default);
        Self {
            source,
            machine,
            options,
            layer: BlockLayer::new(limits),
            maps: source.files.iter().map(|file| ExtentMap::new(file.extents.clone())).collect(),
            queue,
            flights: Flights::default(),
            events: Events::default(),
            threads,
            waiting: Vec::new(),
            think_ns,
            lru: source.settings.memory_pages.value.map(|pages| (pages, Lru::default())),
            timeline: Timeline { streams, history, ..Timeline::default() },
            requests: Vec::new(),
            ids: Vec::new(),
            begun: Vec::new(),
            completed: Vec::new(),
        }
    }

    /// Threads begin as far apart as they did in the recording.
    fn start(&mut self) {
        let origin = self.source.accesses.first().map_or(Time(0), |access| access.time);
        for (number, thread) in self.threads.iter().enumerate() {
            if let Some(&first) = thread.accesses.first() {
                let begins = self.source.accesses[first as usize].time;
                let delay = if self.options.think { begins - origin } else { 0 };
                self.events.schedule(Time(delay), What::Thread(number as u32));
            }
        }
    }

    fn finish(mut self) -> (Machine<'p>, Timeline) {
        self.machine.settle();
        debug_assert!(self.waiting.is_empty(), "a thread waits for a folio that nobody reads");
        let mut timeline = self.timeline;
        timeline.queue = self.queue.into_use();
        (self.machine, timeline)
    }

    fn event(&mut self, now: Time, what: What) {
        match what {
            What::Complete(id) => self.complete(now, id),
            What::Issue(id) => self.issue(now, id),
            What::Thread(thread) => {
                let mut now = now;
                while let Some(next) = self.step(thread, now) {
                    if !self.events.is_next(next) {
                        return self.events.schedule(next, What::Thread(thread));
                    }
                    now = next;
                }
            }
        }
    }

    fn complete(&mut self, now: Time, id: u32) {
        self.timeline.requests_completed += 1;
        self.queue.complete(now, id, &mut self.completed);
        self.queue.dispatch(now, &mut self.begun);
        self.schedule_begun();
        for at in 0..self.completed.len() {
            let id = self.completed[at];
            let flight = self.flights.get(id);
            if let (Some(history), Some(at)) = (&mut self.timeline.history, flight.recorded) {
                history.requests[at as usize].completed = now;
            }
            let file = flight.request.file;
            for &(from, to) in self.flights.end(id).iter().filter(|(from, to)| from < to) {
                self.machine.set_uptodate(file as usize, from, to);
                if !self.waiting.is_empty() {
                    self.wake(now, file, from, to);
                }
            }
        }
        self.completed.clear();
    }

    fn issue(&mut self, now: Time, id: u32) {
        self.queue.issue(now, self.flights.get(id).request, id, &mut self.begun);
        self.schedule_begun();
    }

    fn schedule_begun(&mut self) {
        for begun in &self.begun {
            if let Some(history) = &mut self.timeline.history {
                let flight = self.flights.get_mut(begun.queued.id);
                flight.recorded = Some(history.add_request(flight.access, begun));
            }
            self.events.schedule(begun.completes, What::Complete(begun.queued.id));
        }
        self.begun.clear();
    }

    /// Threads that wait for a folio in the range go on.
    fn wake(&mut self, now: Time, file: u32, from: PageIndex, to: PageIndex) {
        let mut at = 0;
        while at < self.waiting.len() {
            let thread = self.waiting[at];
            let Thread { accesses, next, state } = &mut self.threads[thread as usize];
            let woken =
                state.waiting.take_if(|(_, f, page)| *f == file && (from..to).contains(page));
            let Some((since, _, page)) = woken else {
                at += 1;
                continue;
            };
            if let (Some(history), true) = (&mut self.timeline.history, now > since) {
                let access = accesses[*next];
                history.waits.push(WaitTimes { access, page, from: since, until: now });
            }
            self.waiting.swap_remove(at);
            // What completes while the thread is still busy costs it no sleep.
            let resumes = if now > since { now + self.options.cpu.wake_ns } else { since };
            state.waited_ns += now.0.saturating_sub(since.0);
            self.events.schedule(resumes, What::Thread(thread));
        }
    }

    /// One step of a thread, from `now` on. Returns when the next one is due, if it need not wait.
    fn step(&mut self, thread: u32, now: Time) -> Option<Time> {
        let Thread { accesses, next, state } = &mut self.threads[thread as usize];
        let &index = accesses.get(*next)?;
        let source = self.source;
        let access = &source.accesses[index as usize];
        self.machine.access = u64::from(index);
        let mut time = now;
        if state.began.is_none() {
            state.began = Some(now);
            self.timeline.last_begins_ns = self.timeline.last_begins_ns.max(now.0);
            time += self.call_ns(access);
        }
        let step = self.execute(thread, access);
        if let Some(history) = &mut self.timeline.history
            && let Some(decisions) = &mut self.machine.file_of(access.open as usize).log.decisions
        {
            history.take_windows(time, index, decisions);
        }
        let time =
            if self.machine.submitted.runs.is_empty() { time } else { self.send(time, index) };
        self.limit_memory();
        if !matches!(step, Step::Wait(_)) {
            self.state(thread).ready = time;
        }
        self.after(thread, access, time, step)
    }

    fn state(&mut self, thread: u32) -> &mut AccessState {
        &mut self.threads[thread as usize].state
    }

    fn call_ns(&self, access: &Access) -> u64 {
        match access.kind {
            AccessKind::Evict { .. } | AccessKind::Fault { retry: true, .. } => 0,
            _ => self.options.cpu.call_ns,
        }
    }

    fn execute(&mut self, thread: u32, access: &Access) -> Step {
        let own_reads = self.machine.paths().own_reads();
        match access.kind {
            AccessKind::Read { pos, count } if own_reads => {
                self.read_as_task(thread, access, pos, count)
            }
            AccessKind::WillNeed { page, pages } if own_reads => {
                self.will_need_as_task(thread, access, page, pages)
            }
            AccessKind::Read { pos, count } => self.read(thread, access, pos, count),
            AccessKind::Touch { page } | AccessKind::Fault { page, retry: false } => {
                self.touch(thread, access, page)
            }
            AccessKind::FaultAround { first, last, served: true, retry: false } => {
                match self.machine.first_unmapped(access.open as usize, first, last) {
                    Some(page) => self.touch(thread, access, page),
                    None => Step::Done { cpu_ns: 0 },
                }
            }
            // The rest of a recorded fault belongs to the touch above.
            AccessKind::Fault { .. } | AccessKind::FaultAround { .. } => Step::Done { cpu_ns: 0 },
            // Under a memory limit the model evicts, not the recording.
            AccessKind::Evict { .. } if self.lru.is_some() => Step::Done { cpu_ns: 0 },
            AccessKind::WillNeed { page, pages } => self.will_need(thread, access, page, pages),
            _ => {
                crate::trace_order::execute(&mut self.machine, access);
                Step::Done { cpu_ns: 0 }
            }
        }
    }

    /// The thread goes on, waits, or begins its next access.
    fn after(&mut self, thread: u32, access: &Access, now: Time, step: Step) -> Option<Time> {
        match step {
            Step::Again { cpu_ns } => Some(now + cpu_ns),
            Step::Wait(folio) => {
                let file = self.source.opens[access.open as usize].file;
                // A folio beyond the end of the file is zeroed while it is sent.
                if self.machine.files[file as usize].cache.is_uptodate(folio) {
                    return Some(now);
                }
                self.state(thread).waiting = Some((now, file, folio.index));
                self.waiting.push(thread);
                None
            }
            Step::Done { cpu_ns } => self.access_ends(thread, access, now, cpu_ns),
        }
    }

    /// An access is over after `cpu_ns` more. Returns when the thread's next one begins.
    fn access_ends(
        &mut self,
        thread: u32,
        access: &Access,
        now: Time,
        cpu_ns: u64,
    ) -> Option<Time> {
        let Thread { accesses, next, state } = &mut self.threads[thread as usize];
        let number = accesses[*next];
        let done = std::mem::take(state);
        *next += 1;
        let counts = matches!(
            access.kind,
            AccessKind::Read { .. } | AccessKind::Touch { .. } | AccessKind::Fault { .. }
        );
        if counts {
            self.timeline.streams[access.open as usize].add(done.waited_ns);
        }
        if self.options.keep_reads && matches!(access.kind, AccessKind::Read { .. }) {
            let began = done.began.unwrap_or(now);
            let ready = done.ready.max(began);
            self.timeline.reads.push(ReadTimes { access: number, began, ready });
        }
        let ends = now + cpu_ns;
        if let Some(history) = &mut self.timeline.history {
            let began = done.began.unwrap_or(now);
            let waited_ns = done.waited_ns;
            let times = AccessTimes { access: number, began, ended: ends, waited_ns };
            if counts {
                history.accesses.push(times);
            } else if ends > began {
                history.calls.push(times);
            }
        }
        // Reclaim may go on long after the last read.
        if !matches!(access.kind, AccessKind::Evict { .. }) {
            self.timeline.elapsed_ns = self.timeline.elapsed_ns.max(ends.0);
        }
        let &next = accesses.get(*next)?;
        Some(ends + self.think_ns.get(next as usize).copied().unwrap_or(0))
    }

    fn read(&mut self, thread: u32, access: &Access, pos: ByteOffset, count: u64) -> Step {
        let open = access.open as usize;
        let cpu = self.options.cpu;
        let end = ByteOffset(pos.0.saturating_add(count));
        let size_bytes = self.machine.file_of(open).limits.size_bytes;
        let readable = end.min(ByteOffset(size_bytes));
        let state = &mut self.threads[thread as usize].state;
        let at = state.pos.unwrap_or(pos);
        if at >= readable {
            return Step::Done { cpu_ns: 0 };
        }
        let batch = match state.batch.take() {
            Some((end, folios)) => Batch::Ready { end, folios },
            None => self.machine.get_pages(open, at, end),
        };
        match batch {
            Batch::Wait(folio) => {
                state.pos = Some(at);
                Step::Wait(folio)
            }
            Batch::ReadyAfter { wait, end, folios } => {
                state.pos = Some(at);
                state.batch = Some((end, folios));
                Step::Wait(wait)
            }
            Batch::Ready { end: batch_end, folios } => {
                let to = readable.min(batch_end.offset());
                self.machine.copied(open, at, to);
                self.mark_accessed(open, at.page(), to.page_up());
                let copy_ns = (to - at).div_ceil(PAGE_SIZE) * cpu.copy_page_ns;
                let cpu_ns = copy_ns + u64::from(folios) * cpu.copy_folio_ns;
                if to < readable {
                    self.state(thread).pos = Some(to);
                    return Step::Again { cpu_ns };
                }
                self.machine.read_returns(open, to);
                Step::Done { cpu_ns }
            }
        }
    }

    fn touch(&mut self, thread: u32, access: &Access, page: PageIndex) -> Step {
        let open = access.open as usize;
        let retry = std::mem::replace(&mut self.state(thread).retry, true);
        match self.machine.touch(thread as usize, open, page, retry) {
            FaultResult::Mapped => {
                self.mark_accessed(open, page, page + 1);
                Step::Done { cpu_ns: 0 }
            }
            FaultResult::Retry(Some(folio)) => Step::Wait(folio),
            FaultResult::Retry(None) => Step::Again { cpu_ns: self.options.cpu.call_ns },
        }
    }

    /// A slice of a forced readahead. Between slices other threads run, and may want the same pages.
    fn will_need(&mut self, thread: u32, access: &Access, page: PageIndex, pages: u64) -> Step {
        let open = access.open as usize;
        let begun = self.state(thread).forced.take();
        let begun = begun.or_else(|| self.machine.begin_will_need(open, page, pages));
        let Some(mut fill) = begun else { return Step::Done { cpu_ns: 0 } };
        let lookups = self.machine.file_of(open).log.cache_lock.lookups;
        let until = fill.position() + SLICE_PAGES;
        let done = self.machine.advance_will_need(open, &mut fill, until);
        let lookups = self.machine.file_of(open).log.cache_lock.lookups - lookups;
        let cpu_ns = lookups * self.options.cpu.lookup_ns;
        if done {
            return Step::Done { cpu_ns };
        }
        self.state(thread).forced = Some(fill);
        Step::Again { cpu_ns }
    }

    /// Sends what `access` submitted from `now` on to the device; returns when that is done.
    fn send(&mut self, now: Time, access: u32) -> Time {
        let mut time = now;
        let mut sent = 0;
        for at in 0..self.machine.submitted.runs.len() {
            let run = self.machine.submitted.runs[at];
            let (first, end) = (sent, sent + run.folios as usize);
            let folios = &self.machine.submitted.folios[first..end];
            if let Some(history) = &mut self.timeline.history {
                history.sent.push(Sent { time, access, run });
                history.folios.extend_from_slice(folios);
            }
            if let Some((_, lru)) = &mut self.lru {
                for folio in folios {
                    lru.insert(run.file, *folio);
                }
            }
            let pages = self.source.files[run.file as usize].size_bytes.div_ceil(PAGE_SIZE);
            let map = &self.maps[run.file as usize];
            // Free memory is taken to be scattered: no two folios share a segment.
            self.layer.submit(run, folios, pages, map, |_, _| false, &mut self.requests);
            let read = self.flights.begin(access, folios, pages, &self.requests, &mut self.ids);
            for unread in first + read..end {
                let folio = self.machine.submitted.folios[unread];
                self.machine.set_uptodate(run.file as usize, folio.index, folio.end());
            }
            self.requests.clear();
            time += u64::from(run.folios) * self.options.cpu.folio_ns;
            time = self.send_requests(time);
            sent = end;
        }
        self.machine.submitted.clear();
        time
    }

    fn send_requests(&mut self, mut time: Time) -> Time {
        for at in 0..self.ids.len() {
            let id = self.ids[at];
            time += self.options.cpu.request_ns;
            if self.events.is_next(time) {
                self.issue(time, id);
            } else {
                self.events.schedule(time, What::Issue(id));
            }
        }
        self.ids.clear();
        time
    }

    fn mark_accessed(&mut self, open: usize, from: PageIndex, to: PageIndex) {
        let Some((_, lru)) = &mut self.lru else { return };
        let file = self.machine.opens[open].file;
        let mut page = from;
        while page < to {
            let Some(folio) = self.machine.files[file].cache.folio_at(page) else { return };
            lru.mark_accessed(file as u32, folio);
            page = folio.end();
        }
    }

    fn limit_memory(&mut self) {
        let Some((limit, lru)) = &mut self.lru else { return };
        while lru.pages() > *limit {
            let Some((file, folio)) = lru.reclaim() else { return };
            let cached = self.machine.files[file as usize].cache.folio_at(folio.index);
            if cached == Some(folio) {
                self.machine.evict(file as usize, folio);
            }
        }
    }
}
