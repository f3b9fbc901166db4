//! Replay on virtual time: what would have happened under another policy.
//!
//! A closed loop: each thread runs its accesses one after the other, waits for
//! the folios it needs, copies, thinks as long as it did in the recording, and
//! goes on. Threads, requests on their way and completions are events of one
//! queue, ordered by time and then by age, so a replay is deterministic. Every
//! thread has a CPU of its own.

mod flights;
mod history;
mod tasks;
mod think;
mod timeline;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    while let Some(Reverse(event)) = run.events.pop() {
        run.event(event);
    }
    run.finish()
}

/// What an event does, ordered only to make events comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A request completes.
    Complete(u32),
    /// A request reaches the queue of the device.
    Issue(u32),
    /// A thread goes on.
    Thread(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    time: Time,
    age: u64,
    what: What,
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadState {
    /// Next entry of its list of accesses.
    next: usize,
    /// When the access it is in began.
    began: Option<Time>,
    /// When its last batch was ready.
    ready: Time,
    /// Position of the read it is in.
    pos: Option<ByteOffset>,
    /// The touch it is in has to be tried again.
    retry: bool,
    /// The forced readahead it is in.
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
    events: BinaryHeap<Reverse<Event>>,
    age: u64,
    threads: Vec<ThreadState>,
    /// Threads that wait for a folio.
    waiting: Vec<u32>,
    /// Per thread, the accesses it makes.
    lists: Vec<Vec<u32>>,
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
        let mut lists = vec![Vec::new(); source.threads.len()];
        for (index, access) in source.accesses.iter().enumerate() {
            lists[access.thread as usize].push(index as u32);
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
            events: BinaryHeap::new(),
            age: 0,
            threads: vec![ThreadState::default(); source.threads.len()],
            waiting: Vec::new(),
            lists,
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
        for thread in 0..self.lists.len() {
            if let Some(&first) = self.lists[thread].first() {
                let begins = self.source.accesses[first as usize].time;
                let delay = if self.options.think { begins - origin } else { 0 };
                self.schedule(Time(delay), What::Thread(thread as u32));
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

    fn schedule(&mut self, time: Time, what: What) {
        self.age += 1;
        self.events.push(Reverse(Event { time, age: self.age, what }));
    }

    /// Whether nothing else happens up to `time`, so that what is due then may be done at once.
    fn is_next(&self, time: Time) -> bool {
        self.events.peek().is_none_or(|Reverse(event)| event.time > time)
    }

    fn event(&mut self, event: Event) {
        match event.what {
            What::Complete(id) => self.complete(event.time, id),
            What::Issue(id) => self.issue(event.time, id),
            What::Thread(thread) => {
                let mut now = event.time;
                while let Some(next) = self.step(thread, now) {
                    if !self.is_next(next) {
                        return self.schedule(next, What::Thread(thread));
                    }
                    now = next;
                }
            }
        }
    }

    fn complete(&mut self, now: Time, id: u32) {
        self.timeline.requests_completed += 1;
        let mut completed = std::mem::take(&mut self.completed);
        self.queue.complete(now, id, &mut completed);
        self.queue.dispatch(now, &mut self.begun);
        self.schedule_begun();
        for id in completed.drain(..) {
            let flight = self.flights.get(id);
            if let (Some(history), Some(at)) = (&mut self.timeline.history, flight.recorded) {
                history.requests[at as usize].completed = now;
            }
            let file = flight.request.file;
            for (from, to) in self.flights.end(id).into_iter().filter(|(from, to)| from < to) {
                self.machine.set_uptodate(file as usize, from, to);
                if !self.waiting.is_empty() {
                    self.wake(now, file, from, to);
                }
            }
        }
        self.completed = completed;
    }

    fn issue(&mut self, now: Time, id: u32) {
        self.queue.issue(now, self.flights.get(id).request, id, &mut self.begun);
        self.schedule_begun();
    }

    fn schedule_begun(&mut self) {
        for at in 0..self.begun.len() {
            let begun = self.begun[at];
            if let Some(history) = &mut self.timeline.history {
                let flight = self.flights.get_mut(begun.queued.id);
                flight.recorded = Some(history.add_request(flight.access, &begun));
            }
            self.schedule(begun.completes, What::Complete(begun.queued.id));
        }
        self.begun.clear();
    }

    /// Threads that wait for a folio in the range go on.
    fn wake(&mut self, now: Time, file: u32, from: PageIndex, to: PageIndex) {
        let mut at = 0;
        while at < self.waiting.len() {
            let thread = self.waiting[at];
            let state = &mut self.threads[thread as usize];
            let woken =
                state.waiting.take_if(|(_, f, page)| *f == file && (from..to).contains(page));
            let Some((since, _, page)) = woken else {
                at += 1;
                continue;
            };
            if let (Some(history), true) = (&mut self.timeline.history, now > since) {
                let access = self.lists[thread as usize][state.next];
                history.waits.push(WaitTimes { access, page, from: since, until: now });
            }
            self.waiting.swap_remove(at);
            // What completes while the thread is still busy costs it no sleep.
            let resumes = if now > since { now + self.options.cpu.wake_ns } else { since };
            state.waited_ns += now.0.saturating_sub(since.0);
            self.schedule(resumes, What::Thread(thread));
        }
    }

    /// One step of a thread, from `now` on. Returns when the next one is due, if it need not wait.
    fn step(&mut self, thread: u32, now: Time) -> Option<Time> {
        let list = &self.lists[thread as usize];
        let &index = list.get(self.threads[thread as usize].next)?;
        let access = self.source.accesses[index as usize];
        self.machine.access = u64::from(index);
        let mut time = now;
        if self.threads[thread as usize].began.is_none() {
            self.threads[thread as usize].began = Some(now);
            self.timeline.last_begins_ns = self.timeline.last_begins_ns.max(now.0);
            time += self.call_ns(&access);
        }
        let step = self.execute(thread, &access);
        if let Some(history) = &mut self.timeline.history
            && let Some(decisions) = &mut self.machine.file_of(access.open as usize).log.decisions
        {
            history.take_windows(time, index, decisions);
        }
        let time =
            if self.machine.submitted.runs.is_empty() { time } else { self.send(time, index) };
        self.limit_memory();
        if !matches!(step, Step::Wait(_)) {
            self.threads[thread as usize].ready = time;
        }
        self.after(thread, &access, time, step)
    }

    fn call_ns(&self, access: &Access) -> u64 {
        match access.kind {
            AccessKind::Evict { .. } | AccessKind::Fault { retry: true, .. } => 0,
            _ => self.options.cpu.call_ns,
        }
    }

    fn execute(&mut self, thread: u32, access: &Access) -> Step {
        let own_reads = self.machine.policy().paths().own_reads();
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
        let state = &mut self.threads[thread as usize];
        match step {
            Step::Again { cpu_ns } => Some(now + cpu_ns),
            Step::Wait(folio) => {
                let file = self.source.opens[access.open as usize].file;
                // A folio beyond the end of the file is zeroed while it is sent.
                if self.machine.files[file as usize].cache.is_uptodate(folio) {
                    return Some(now);
                }
                state.waiting = Some((now, file, folio.index));
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
        let state = &mut self.threads[thread as usize];
        let done = *state;
        *state = ThreadState { next: done.next + 1, ..ThreadState::default() };
        let counts = matches!(
            access.kind,
            AccessKind::Read { .. } | AccessKind::Touch { .. } | AccessKind::Fault { .. }
        );
        if counts {
            self.timeline.streams[access.open as usize].add(done.waited_ns);
        }
        let list = &self.lists[thread as usize];
        if self.options.keep_reads && matches!(access.kind, AccessKind::Read { .. }) {
            let began = done.began.unwrap_or(now);
            let ready = done.ready.max(began);
            self.timeline.reads.push(ReadTimes { access: list[done.next], began, ready });
        }
        let ends = now + cpu_ns;
        if let Some(history) = &mut self.timeline.history {
            let began = done.began.unwrap_or(now);
            let (access, waited_ns) = (list[done.next], done.waited_ns);
            let times = AccessTimes { access, began, ended: ends, waited_ns };
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
        let &next = list.get(done.next + 1)?;
        Some(ends + self.think_ns.get(next as usize).copied().unwrap_or(0))
    }

    fn read(&mut self, thread: u32, access: &Access, pos: ByteOffset, count: u64) -> Step {
        let open = access.open as usize;
        let cpu = self.options.cpu;
        let end = ByteOffset(pos.0.saturating_add(count));
        let size_bytes = self.machine.file_of(open).limits.size_bytes;
        let readable = end.min(ByteOffset(size_bytes));
        let at = self.threads[thread as usize].pos.unwrap_or(pos);
        if at >= readable {
            return Step::Done { cpu_ns: 0 };
        }
        let batch = match self.threads[thread as usize].batch.take() {
            Some((end, folios)) => Batch::Ready { end, folios },
            None => self.machine.get_pages(open, at, end),
        };
        match batch {
            Batch::Wait(folio) => {
                self.threads[thread as usize].pos = Some(at);
                Step::Wait(folio)
            }
            Batch::ReadyAfter { wait, end, folios } => {
                self.threads[thread as usize].pos = Some(at);
                self.threads[thread as usize].batch = Some((end, folios));
                Step::Wait(wait)
            }
            Batch::Ready { end: batch_end, folios } => {
                let to = readable.min(batch_end.offset());
                self.machine.copied(open, at, to);
                self.mark_accessed(open, at.page(), to.page_up());
                let copy_ns = (to - at).div_ceil(PAGE_SIZE) * cpu.copy_page_ns;
                let cpu_ns = copy_ns + u64::from(folios) * cpu.copy_folio_ns;
                if to < readable {
                    self.threads[thread as usize].pos = Some(to);
                    return Step::Again { cpu_ns };
                }
                self.machine.read_returns(open, to);
                Step::Done { cpu_ns }
            }
        }
    }

    fn touch(&mut self, thread: u32, access: &Access, page: PageIndex) -> Step {
        let state = &mut self.threads[thread as usize];
        let open = access.open as usize;
        match self.machine.touch(
            thread as usize,
            open,
            page,
            std::mem::replace(&mut state.retry, true),
        ) {
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
        let begun = self.threads[thread as usize].forced.take();
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
        self.threads[thread as usize].forced = Some(fill);
        Step::Again { cpu_ns }
    }

    /// Sends what `access` submitted from `now` on to the device; returns when that is done.
    fn send(&mut self, now: Time, access: u32) -> Time {
        let cpu = self.options.cpu;
        let mut time = now;
        let submitted = std::mem::take(&mut self.machine.submitted);
        for (run, folios) in submitted.iter() {
            if let Some(history) = &mut self.timeline.history {
                history.sent.push(Sent { time, access, run });
                history.folios.extend_from_slice(folios);
            }
            let pages = self.source.files[run.file as usize].size_bytes.div_ceil(PAGE_SIZE);
            let map = &self.maps[run.file as usize];
            // Free memory is taken to be scattered: no two folios share a segment.
            self.layer.submit(run, folios, pages, map, |_, _| false, &mut self.requests);
            let unread = self.flights.begin(access, folios, pages, &self.requests, &mut self.ids);
            for folio in unread {
                self.machine.set_uptodate(run.file as usize, folio.index, folio.end());
            }
            self.requests.clear();
            time += folios.len() as u64 * cpu.folio_ns;
            time = self.send_requests(time);
            if let Some((_, lru)) = &mut self.lru {
                for folio in folios {
                    lru.insert(run.file, *folio);
                }
            }
        }
        self.machine.submitted = submitted;
        self.machine.submitted.clear();
        time
    }

    fn send_requests(&mut self, mut time: Time) -> Time {
        let mut ids = std::mem::take(&mut self.ids);
        for id in ids.drain(..) {
            time += self.options.cpu.request_ns;
            if self.is_next(time) {
                self.issue(time, id);
            } else {
                self.schedule(time, What::Issue(id));
            }
        }
        self.ids = ids;
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
