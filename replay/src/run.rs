//! Replay on virtual time: what would have happened under another policy.
//!
//! A closed loop: each thread runs its accesses one after the other, waits for
//! the folios it needs, copies, thinks as long as it did in the recording, and
//! goes on. Threads and device completions are events of one queue, ordered by
//! time and then by age, so a replay is deterministic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use traces::access::{Access, AccessKind, Source};
use traces::units::{ByteOffset, PAGE_SIZE, PageIndex, Time};

use crate::block::{BlockLayer, ExtentMap, QueueLimits, Request};
use crate::device::Device;
use crate::fault::FaultResult;
use crate::lru::Lru;
use crate::machine::{Batch, Machine};
use crate::page_cache::Folio;
use crate::policy::Policy;
use crate::readahead::ForcedFill;

/// What the CPU spends, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCosts {
    /// A read call or a fault, without copying.
    pub call_ns: u64,
    /// Copying 4 KiB to the program.
    pub copy_page_ns: u64,
    /// Looking up a page in the order-0 path.
    pub lookup_ns: u64,
    /// Allocating, inserting and submitting a folio.
    pub folio_ns: u64,
    /// Building and issuing a request.
    pub request_ns: u64,
}

impl Default for CpuCosts {
    fn default() -> Self {
        Self { call_ns: 300, copy_page_ns: 350, lookup_ns: 20, folio_ns: 400, request_ns: 2_000 }
    }
}

/// How a run ends.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// From the first access to the end of the last one.
    pub elapsed_ns: u64,
    /// How long each read or fault waited for data, in the order they ended.
    pub waits_ns: Vec<u64>,
    /// Requests the device got.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
}

/// Everything a run needs besides the source.
pub struct RunOptions {
    /// CPU costs.
    pub cpu: CpuCosts,
    /// Whether threads pause between accesses as long as they did in the recording.
    pub think: bool,
}

/// Replays `source` under `policy` on `device`. Returns the machine as it ends and the timeline.
pub fn run<'p>(
    source: &Source,
    policy: &'p dyn Policy,
    device: &mut dyn Device,
    options: &RunOptions,
) -> (Machine<'p>, Timeline) {
    let machine = Machine::new(policy, source, false, false);
    let mut run = Run::new(source, machine, device, options);
    run.start();
    while let Some(Reverse(event)) = run.queue.pop() {
        run.event(event);
    }
    (run.machine, run.timeline)
}

/// What an event does, ordered only to make events comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Pages of a file become uptodate.
    Uptodate { file: u32, from: PageIndex, to: PageIndex },
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
    /// Position of the read it is in.
    pos: Option<ByteOffset>,
    /// The touch it is in has to be tried again.
    retry: bool,
    /// The forced readahead it is in.
    forced: Option<ForcedFill>,
    /// Since when it waits, and for which folio.
    waiting: Option<(Time, u32, PageIndex)>,
    waited_ns: u64,
}

struct Run<'s, 'p, 'd> {
    source: &'s Source,
    machine: Machine<'p>,
    device: &'d mut dyn Device,
    options: &'s RunOptions,
    layer: BlockLayer,
    maps: Vec<ExtentMap>,
    requests: Vec<Request>,
    queue: BinaryHeap<Reverse<Event>>,
    age: u64,
    threads: Vec<ThreadState>,
    /// Per thread, the accesses it makes.
    lists: Vec<Vec<u32>>,
    lru: Option<(u64, Lru)>,
    timeline: Timeline,
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
        Self {
            source,
            machine,
            device,
            options,
            layer: BlockLayer::new(QueueLimits::new(&source.settings)),
            maps: source.files.iter().map(|file| ExtentMap::new(file.extents.clone())).collect(),
            requests: Vec::new(),
            queue: BinaryHeap::new(),
            age: 0,
            threads: vec![ThreadState::default(); source.threads.len()],
            lists,
            lru: source.settings.memory_pages.value.map(|pages| (pages, Lru::default())),
            timeline: Timeline::default(),
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

    fn schedule(&mut self, time: Time, what: What) {
        self.age += 1;
        self.queue.push(Reverse(Event { time, age: self.age, what }));
    }

    fn event(&mut self, event: Event) {
        match event.what {
            What::Uptodate { file, from, to } => {
                self.machine.files[file as usize].cache.set_uptodate(from, to);
                self.wake(event.time, file, from, to);
            }
            What::Thread(thread) => self.step(thread, event.time),
        }
    }

    /// Threads that wait for a folio in the range go on.
    fn wake(&mut self, now: Time, file: u32, from: PageIndex, to: PageIndex) {
        for thread in 0..self.threads.len() {
            let state = &mut self.threads[thread];
            if let Some((since, _, _)) =
                state.waiting.take_if(|(_, f, page)| *f == file && (from..to).contains(page))
            {
                state.waited_ns += now - since;
                self.schedule(now, What::Thread(thread as u32));
            }
        }
    }

    /// One step of a thread, from `now` on.
    fn step(&mut self, thread: u32, now: Time) {
        let list = &self.lists[thread as usize];
        let Some(&index) = list.get(self.threads[thread as usize].next) else { return };
        let access = self.source.accesses[index as usize];
        let folios_before = self.machine.file_of(access.open as usize).log.inserted();
        let step = match access.kind {
            AccessKind::Read { pos, count } => self.read(thread, &access, pos, count),
            AccessKind::Touch { page } | AccessKind::Fault { page, retry: false } => {
                self.touch(thread, &access, page)
            }
            AccessKind::FaultAround { first, last, served: true, retry: false } => {
                match self.first_unmapped(&access, first, last) {
                    Some(page) => self.touch(thread, &access, page),
                    None => Step::Done { cpu_ns: 0 },
                }
            }
            // The rest of a recorded fault belongs to the touch above.
            AccessKind::Fault { .. } | AccessKind::FaultAround { .. } => Step::Done { cpu_ns: 0 },
            // Under a memory limit the model evicts, not the recording.
            AccessKind::Evict { .. } if self.lru.is_some() => Step::Done { cpu_ns: 0 },
            AccessKind::WillNeed { page, pages } => self.will_need(thread, &access, page, pages),
            _ => {
                crate::trace_order::execute(&mut self.machine, &access);
                Step::Done { cpu_ns: 0 }
            }
        };
        let folios = self.machine.file_of(access.open as usize).log.inserted() - folios_before;
        let submit_ns = folios * self.options.cpu.folio_ns + self.send(now);
        self.limit_memory();
        self.after(thread, &access, now + submit_ns, step);
    }

    /// The thread goes on, waits, or begins its next access.
    fn after(&mut self, thread: u32, access: &Access, now: Time, step: Step) {
        let file = self.source.opens[access.open as usize].file;
        let state = &mut self.threads[thread as usize];
        match step {
            Step::Again { cpu_ns } => self.schedule(now + cpu_ns, What::Thread(thread)),
            Step::Wait(folio) => state.waiting = Some((now, file, folio.index)),
            Step::Done { cpu_ns } => {
                let waited_ns = std::mem::take(&mut state.waited_ns);
                let now = now + cpu_ns;
                let counts = matches!(
                    access.kind,
                    AccessKind::Read { .. } | AccessKind::Touch { .. } | AccessKind::Fault { .. }
                );
                if counts {
                    self.timeline.waits_ns.push(waited_ns);
                }
                self.timeline.elapsed_ns = self.timeline.elapsed_ns.max(now.0);
                let state = &mut self.threads[thread as usize];
                *state = ThreadState { next: state.next + 1, ..ThreadState::default() };
                if let Some(&next) = self.lists[thread as usize].get(state.next) {
                    let think = self.source.accesses[next as usize].think_ns;
                    let think = if self.options.think { think } else { 0 };
                    self.schedule(now + think, What::Thread(thread));
                }
            }
        }
    }

    fn read(&mut self, thread: u32, access: &Access, pos: ByteOffset, count: u64) -> Step {
        let open = access.open as usize;
        let cpu = self.options.cpu;
        let end = ByteOffset(pos.0.saturating_add(count));
        let size_bytes = self.machine.file_of(open).limits.size_bytes;
        let readable = end.min(ByteOffset(size_bytes));
        let at = self.threads[thread as usize].pos.unwrap_or(pos);
        if at >= readable {
            return Step::Done { cpu_ns: cpu.call_ns };
        }
        match self.machine.get_pages(open, at, end) {
            Batch::Wait(folio) => {
                self.threads[thread as usize].pos = Some(at);
                Step::Wait(folio)
            }
            Batch::Ready { end: batch_end, .. } => {
                let to = readable.min(batch_end.offset());
                self.machine.copied(open, at, to);
                self.mark_accessed(open, at.page(), to.page_up());
                let cpu_ns = (to - at).div_ceil(PAGE_SIZE) * cpu.copy_page_ns;
                if to < readable {
                    self.threads[thread as usize].pos = Some(to);
                    return Step::Again { cpu_ns };
                }
                self.machine.read_returns(open, to);
                Step::Done { cpu_ns: cpu_ns + cpu.call_ns }
            }
        }
    }

    fn touch(&mut self, thread: u32, access: &Access, page: PageIndex) -> Step {
        let state = &mut self.threads[thread as usize];
        let open = access.open as usize;
        let cpu_ns = self.options.cpu.call_ns;
        match self.machine.touch(open, page, std::mem::replace(&mut state.retry, true)) {
            FaultResult::Mapped => {
                self.mark_accessed(open, page, page + 1);
                Step::Done { cpu_ns }
            }
            FaultResult::Retry(Some(folio)) => Step::Wait(folio),
            FaultResult::Retry(None) => Step::Again { cpu_ns },
        }
    }

    /// A slice of a forced readahead. Between slices other threads run, and may want the same pages.
    fn will_need(&mut self, thread: u32, access: &Access, page: PageIndex, pages: u64) -> Step {
        const SLICE_PAGES: u64 = 8;
        let open = access.open as usize;
        let cpu = self.options.cpu;
        let begun = self.threads[thread as usize].forced.take();
        let begun = begun.or_else(|| self.machine.begin_will_need(open, page, pages));
        let Some(mut fill) = begun else { return Step::Done { cpu_ns: cpu.call_ns } };
        let lookups = self.machine.file_of(open).log.cache_lock.lookups;
        let until = fill.position() + SLICE_PAGES;
        let done = self.machine.advance_will_need(open, &mut fill, until);
        let lookups = self.machine.file_of(open).log.cache_lock.lookups - lookups;
        let cpu_ns = lookups * cpu.lookup_ns;
        if done {
            return Step::Done { cpu_ns: cpu_ns + cpu.call_ns };
        }
        self.threads[thread as usize].forced = Some(fill);
        Step::Again { cpu_ns }
    }

    /// The page a recorded fault-around most likely served: the first one not mapped yet.
    fn first_unmapped(
        &self,
        access: &Access,
        first: PageIndex,
        last: PageIndex,
    ) -> Option<PageIndex> {
        let table = &self.machine.opens[access.open as usize].page_table;
        (first.0..=last.0).map(PageIndex).find(|page| !table.is_mapped(*page))
    }

    /// Sends what was submitted to the device; the CPU time that took.
    fn send(&mut self, now: Time) -> u64 {
        let submitted = std::mem::take(&mut self.machine.submitted);
        let mut requests_sent = 0;
        for (run, folios) in submitted.iter() {
            let file = &self.source.files[run.file as usize];
            let pages = file.size_bytes.div_ceil(PAGE_SIZE);
            let map = &self.maps[run.file as usize];
            let mut requests = std::mem::take(&mut self.requests);
            // Free memory is taken to be scattered: no two folios share a segment.
            self.layer.submit(run, folios, pages, map, |_, _| false, &mut requests);
            requests_sent += requests.len() as u64;
            self.issue(now, run.file, folios, &requests);
            requests.clear();
            self.requests = requests;
            if let Some((_, lru)) = &mut self.lru {
                for folio in folios {
                    lru.insert(run.file, *folio);
                }
            }
        }
        self.machine.submitted = submitted;
        self.machine.submitted.clear();
        requests_sent * self.options.cpu.request_ns
    }

    /// Issues the requests of one submission; a folio is uptodate when all of it has been read.
    fn issue(&mut self, now: Time, file: u32, folios: &[Folio], requests: &[Request]) {
        let mut done = Vec::with_capacity(requests.len());
        for request in requests {
            self.timeline.requests += 1;
            self.timeline.request_bytes += request.sectors * 512;
            let end = request.page + request.sectors.div_ceil(8);
            done.push((end, self.device.read(now, request)));
        }
        let mut at = 0;
        let mut together: Option<(PageIndex, PageIndex, Time)> = None;
        for folio in folios {
            while done.get(at).is_some_and(|(end, _)| *end <= folio.index) {
                at += 1;
            }
            let mut time = now;
            for &(end, request_done) in &done[at..] {
                time = time.max(request_done);
                if end >= folio.end() {
                    break;
                }
            }
            match &mut together {
                Some((_, to, last)) if *last == time => *to = folio.end(),
                _ => self.uptodate_at(file, together.replace((folio.index, folio.end(), time))),
            }
        }
        self.uptodate_at(file, together);
    }

    fn uptodate_at(&mut self, file: u32, range: Option<(PageIndex, PageIndex, Time)>) {
        if let Some((from, to, time)) = range {
            self.schedule(time, What::Uptodate { file, from, to });
        }
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
