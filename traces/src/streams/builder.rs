//! The pass over the events.

use rustc_hash::FxHashMap;

use super::blocks::Blocks;
use super::opens::{RaPages, Raw};
use super::page_set::PageSet;
use super::settings::Seen;
use super::syscalls::{Advice, ReadCall, Syscalls};
use super::window::{Key, Sizes, Taker, Window};
use super::{StreamError, StreamOptions};
use crate::access::{
    Access, AccessKind, Anchor, AnchorKind, Fidelity, File, FileExtent, Open, Recorded,
    RecordedFolio, Source,
};
use crate::capture::{Capture, LossKind};
use crate::event::{Comm, Event, EventKind, FileId, RecordedRa};
use crate::sidecar::FileFacts;
use crate::units::{ByteOffset, Order, PAGE_SHIFT, PageIndex, SECTORS_PER_PAGE, Time};

/// How often what has waited long enough is passed on, in events.
const SETTLE_EVENTS: u64 = 1024;

/// What the events say about a file.
struct FileState {
    id: FileId,
    size_bytes: Option<u64>,
    pages_max: u64,
    ever: PageSet,
    cached: Vec<(PageIndex, Order)>,
    accesses: u64,
    /// Whether any of these is not an eviction, which happens to files of all programs.
    accessed: bool,
}

/// The files of a pass by number.
struct Files {
    states: Vec<FileState>,
    /// Size of files of which nothing tells it.
    default_bytes: Option<u64>,
}

impl Sizes for Files {
    fn stated(&self, file: u32) -> Option<u64> {
        self.states[file as usize].size_bytes
    }

    fn likely(&self, file: u32) -> u64 {
        let state = &self.states[file as usize];
        state.size_bytes.or(self.default_bytes).unwrap_or(state.pages_max << PAGE_SHIFT)
    }
}

/// The access a thread is in.
#[derive(Clone, Copy)]
struct Current {
    raw: Key,
    file: u32,
    /// Whether it is a read, and not a fault.
    is_read: bool,
    /// Pages asked for, `None` when an earlier event than the one that shows them opened it.
    first: PageIndex,
    last: PageIndex,
    /// Whether the positions come from page-granular events.
    paged: bool,
}

/// Pages the running trigger of a thread covers, so that order-0 fills inside are its own.
#[derive(Clone, Copy)]
struct Covered {
    file: u32,
    first: u64,
    end: u64,
}

#[derive(Default)]
struct ThreadState {
    index: u32,
    current: Option<Current>,
    covered: Option<Covered>,
    last_event: Time,
    /// Its last access, whatever became of it.
    last_access: Option<Key>,
    /// A fault of this page dropped the lock and will be tried again.
    faulted: Option<(u32, PageIndex)>,
}

/// A pass over the events of a capture that finds its accesses.
///
/// Everything it finds goes to a [`Taker`], in order. What it holds itself is bounded by a constant
/// and what there are of threads, files and open files, unless it is told to keep everything.
pub struct Pass<'a, T> {
    options: &'a StreamOptions,
    /// What the sidecar says of files.
    known: FxHashMap<FileId, &'a FileFacts>,
    files: Files,
    file_index: FxHashMap<FileId, u32>,
    threads: FxHashMap<u32, ThreadState>,
    thread_names: Vec<(Comm, u32)>,
    window: Window<T>,
    /// Whether all is kept that a replay needs beside the accesses.
    is_whole: bool,
    /// Whether insertions stand for accesses.
    is_inferring: bool,
    anchors: Vec<Anchor>,
    descriptors: FxHashMap<u64, u32>,
    syscalls: Syscalls,
    blocks: Blocks,
    seen: Seen,
    fidelity: Fidelity,
    events: u64,
    kernel_min: (u32, u32),
    /// Folios that were inserted.
    inserted: u64,
    /// Accesses, without evictions.
    accesses: u64,
    implausible_events: u64,
}

/// What a pass gave.
pub struct Passed<T> {
    /// Everything but what went to the taker: no accesses, no insertions, no device reads.
    pub source: Source,
    /// Index into [`Source::files`] by the number of the file in the pass; `None` for files that
    /// nothing accessed.
    pub files: Vec<Option<u32>>,
    /// Index into [`Source::opens`] by the number of the open file in the pass.
    pub opens: Vec<Option<u32>>,
    /// Accesses of the files of the source.
    pub accesses: u64,
    /// Whoever took what was found.
    pub taker: T,
}

impl<'a, T: Taker> Pass<'a, T> {
    /// A pass that keeps everything to its end.
    pub(super) fn whole(options: &'a StreamOptions, taker: T) -> Self {
        Self::new(options, taker, None)
    }

    /// A pass that passes accesses on `events` events after it has chosen their open file, for which
    /// it waits as long.
    pub fn windowed(options: &'a StreamOptions, taker: T, events: u64) -> Self {
        Self::new(options, taker, Some(events))
    }

    /// Takes what readahead did for what the program asked for: nothing else is there.
    #[must_use]
    pub fn inferring(self) -> Self {
        Self { is_inferring: true, fidelity: Fidelity::Insertions, ..self }
    }

    fn new(options: &'a StreamOptions, taker: T, window: Option<u64>) -> Self {
        let default_bytes = options.settings.file_size_bytes.value;
        Self {
            options,
            known: options.files.iter().map(|file| (file.id(), file)).collect(),
            files: Files { states: Vec::new(), default_bytes },
            file_index: FxHashMap::default(),
            threads: FxHashMap::default(),
            thread_names: Vec::new(),
            window: Window::new(taker, window),
            is_whole: window.is_none(),
            is_inferring: false,
            anchors: Vec::new(),
            descriptors: FxHashMap::default(),
            syscalls: Syscalls::default(),
            blocks: Blocks::new(window.is_none()),
            seen: Seen::default(),
            fidelity: Fidelity::Exact,
            events: 0,
            kernel_min: (0, 0),
            inserted: 0,
            accesses: 0,
            implausible_events: 0,
        }
    }

    /// Whether any event so far shows what a program asked for.
    pub fn has_accesses(&self) -> bool {
        self.accesses > 0
    }

    fn file(&mut self, id: FileId) -> u32 {
        *self.file_index.entry(id).or_insert_with(|| {
            self.files.states.push(FileState {
                id,
                size_bytes: self.known.get(&id).map(|known| known.size_bytes),
                pages_max: 0,
                ever: PageSet::default(),
                cached: Vec::new(),
                accesses: 0,
                accessed: false,
            });
            self.files.states.len() as u32 - 1
        })
    }

    fn state(&mut self, file: u32) -> &mut FileState {
        &mut self.files.states[file as usize]
    }

    fn thread(&mut self, event: &Event) -> &mut ThreadState {
        self.threads.entry(event.pid).or_insert_with(|| {
            self.thread_names.push((event.comm, event.pid));
            ThreadState { index: self.thread_names.len() as u32 - 1, ..ThreadState::default() }
        })
    }

    /// Takes in the next event.
    pub fn event(&mut self, event: &Event) {
        let seq = self.events;
        self.events += 1;
        if seq.is_multiple_of(SETTLE_EVENTS) {
            self.settle();
        }
        self.kernel_min = self.kernel_min.max(since(&event.kind));
        self.take_in(seq, event);
    }

    /// Passes on what has waited long enough.
    fn settle(&mut self) {
        self.window.settle(self.events, &self.files);
        let settled = self.window.settled(self.events);
        self.blocks.settle(settled, self.window.taker());
    }

    fn take_in(&mut self, seq: u64, event: &Event) {
        if !is_plausible(&event.kind) {
            self.implausible_events += 1;
            return;
        }
        let returning = self.returning(event);
        match event.kind {
            EventKind::BufferedRead { file, size_bytes, pos, count } => {
                let file = self.file(file);
                self.state(file).size_bytes = Some(size_bytes);
                let descriptor = self.syscalls.reading(event.pid);
                let call = ReadCall { seq, time: event.time, descriptor, pos, count };
                self.begin_read(event, file, call);
            }
            EventKind::GetPages { file, index, last } => {
                let file = self.file(file);
                self.batch(seq, event, file, index, last);
            }
            EventKind::SyncRa { file, index, req_count, ra } => {
                let file = self.file(file);
                self.trigger(seq, event, file, index, req_count, ra, AnchorKind::Sync);
            }
            EventKind::AsyncRa { file, index, req_count, ra } => {
                let file = self.file(file);
                self.trigger(seq, event, file, index, req_count, ra, AnchorKind::Async);
            }
            EventKind::RaOrder { file, index, order, size, async_size, ra_pages } => {
                let file = self.file(file);
                self.window(event, file, index, order, (size, async_size), ra_pages);
            }
            EventKind::RaUnbounded { file, index, nr_to_read, .. } => {
                let file = self.file(file);
                self.order0(seq, event, file, index, nr_to_read);
            }
            EventKind::Fault { file, index } => {
                let file = self.file(file);
                self.fault(seq, event, file, index);
            }
            EventKind::MapPages { file, index, last } => {
                let file = self.file(file);
                self.fault_around(seq, event, file, index, last);
            }
            EventKind::AddToPageCache { file, index, order, pfn } => {
                let file = self.file(file);
                self.added(seq, event, file, index, order, pfn);
            }
            EventKind::DeleteFromPageCache { file, index, order } => {
                let file = self.file(file);
                self.deleted(seq, event, file, index, order);
            }
            EventKind::SyscallEnter { call, args } => {
                self.end_access(event.pid);
                if let Some(advice) = self.syscalls.enter(seq, event, call, args) {
                    self.advise(advice);
                }
            }
            EventKind::SyscallExit { ret, .. } => {
                if let Some(last) = returning {
                    self.anchor(seq, event, last, AnchorKind::Return);
                }
                self.syscalls.exit(event.pid, ret);
                self.end_access(event.pid);
            }
            EventKind::BioQueue { .. }
            | EventKind::RqIssue { .. }
            | EventKind::RqComplete { .. } => {
                self.blocks.event(seq, event, self.window.taker());
            }
            EventKind::BioSplit { rwbs, .. } => self.seen.split |= rwbs.read && !rwbs.meta,
            EventKind::NewTask { pid, clone_flags } => {
                self.syscalls.new_task(event.pid, pid, clone_flags);
            }
            EventKind::BioMerge { .. } | EventKind::Unplug { .. } => {}
        }
        // A call that is no access is a part of what the program does between accesses.
        let is_other_call = match event.kind {
            EventKind::SyscallEnter { .. } | EventKind::NewTask { .. } => true,
            EventKind::SyscallExit { .. } => returning.is_none(),
            _ => false,
        };
        if let Some(thread) = self.threads.get_mut(&event.pid).filter(|_| !is_other_call) {
            thread.last_event = event.time;
        }
    }

    /// The last page asked for by the read that returns with this event, if one does.
    fn returning(&self, event: &Event) -> Option<PageIndex> {
        if !matches!(event.kind, EventKind::SyscallExit { .. }) {
            return None;
        }
        let read = self.threads.get(&event.pid)?.current.filter(|read| read.is_read)?;
        self.syscalls.is_reading(event.pid).then_some(read.last)
    }

    fn push(&mut self, seq: u64, event: &Event, file: u32, kind: AccessKind) -> Key {
        self.push_begun(seq, event.time, event, file, kind)
    }

    /// Adds an access that has begun before the event that shows it.
    fn push_begun(
        &mut self,
        seq: u64,
        time: Time,
        event: &Event,
        file: u32,
        kind: AccessKind,
    ) -> Key {
        let thread = self.thread(event);
        let has_before = thread.last_event.0 > 0;
        let think_ns = if has_before { time.0.saturating_sub(thread.last_event.0) } else { 0 };
        let access = Access { time, seq, thread: thread.index, open: 0, think_ns, kind };
        let key = self.add(Raw::new(file, access));
        self.thread(event).last_access = Some(key);
        key
    }

    fn add(&mut self, raw: Raw) -> Key {
        let file = self.state(raw.file);
        file.accesses += 1;
        // An eviction belongs to no program.
        if !matches!(raw.access.kind, AccessKind::Evict { .. }) {
            file.accessed = true;
            self.accesses += 1;
        }
        self.window.push(raw)
    }

    fn begin_read(&mut self, event: &Event, file: u32, call: ReadCall) -> Key {
        let ReadCall { seq, time, descriptor, pos, count } = call;
        self.end_access(event.pid);
        self.blocks.forget_unread(event.pid);
        let raw = self.push_begun(seq, time, event, file, AccessKind::Read { pos, count });
        if let Some(waiting) = self.window.get(raw) {
            waiting.descriptor = descriptor;
        }
        if let Some(descriptor) = descriptor
            && self.descriptors.insert(descriptor, file).is_none()
        {
            for advice in self.syscalls.advice_on(descriptor) {
                self.advise(advice);
            }
        }
        let last = ByteOffset((pos.0 + count).max(pos.0 + 1) - 1).page();
        let first = pos.page();
        let current = Current { raw, file, is_read: true, first, last, paged: false };
        self.thread(event).current = Some(current);
        raw
    }

    /// A thread's access is over: what it read and nobody inserted was cached from the start.
    fn end_access(&mut self, pid: u32) {
        let Some(thread) = self.threads.get_mut(&pid) else {
            return;
        };
        thread.covered = None;
        let Some(current) = thread.current.take() else {
            return;
        };
        if !current.is_read || !self.is_whole {
            return;
        }
        let file = self.state(current.file);
        let size_bytes = file.size_bytes.unwrap_or(u64::MAX);
        let Some(file_last) = size_bytes.checked_sub(1).map(|last| last >> PAGE_SHIFT) else {
            return;
        };
        for page in current.first.0..=current.last.0.min(file_last) {
            if !file.ever.contains(page) {
                file.cached.push((PageIndex(page), Order(0)));
                file.ever.insert(page, 1);
            }
        }
    }

    /// The read of `file` a thread is in. Begins one where only page-granular events or system
    /// calls tell.
    fn current_read(
        &mut self,
        seq: u64,
        event: &Event,
        file: u32,
        index: PageIndex,
        last: PageIndex,
    ) -> Key {
        let current = self.thread(event).current;
        if let Some(current) = current.filter(|current| current.file == file) {
            if !current.paged {
                return current.raw;
            }
            if current.last == last && index >= current.first {
                return current.raw;
            }
        }
        if let Some(call) = self.syscalls.claim_read(event.pid, index) {
            return self.begin_read(event, file, call);
        }
        let pos = index.offset();
        let count = (last + 1).offset().0.saturating_sub(pos.0);
        let call = ReadCall { seq, time: event.time, descriptor: None, pos, count };
        let raw = self.begin_read(event, file, call);
        self.fidelity = self.fidelity.max(Fidelity::Page);
        if let Some(current) = &mut self.thread(event).current {
            current.paged = true;
        }
        raw
    }

    fn anchor(&mut self, seq: u64, event: &Event, page: PageIndex, kind: AnchorKind) {
        let thread = self.thread(event).index;
        if !self.is_whole {
            return;
        }
        self.anchors.push(Anchor { seq, time: event.time, thread, page, kind });
    }

    fn batch(&mut self, seq: u64, event: &Event, file: u32, index: PageIndex, last: PageIndex) {
        self.current_read(seq, event, file, index, last);
        self.thread(event).covered = None;
        self.anchor(seq, event, index, AnchorKind::Batch);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    fn trigger(
        &mut self,
        seq: u64,
        event: &Event,
        file: u32,
        index: PageIndex,
        req_count: u64,
        ra: RecordedRa,
        kind: AnchorKind,
    ) {
        *self.seen.ra_pages.entry(ra.ra_pages).or_default() += 1;
        let raw = match self.thread(event).current {
            Some(fault) if !fault.is_read => fault.raw,
            _ => {
                let last = PageIndex((index.0 + req_count).max(1) - 1);
                let raw = self.current_read(seq, event, file, index, last);
                self.anchor(seq, event, index, kind);
                raw
            }
        };
        if let Some(waiting) = self.window.get(raw) {
            waiting.before.get_or_insert(ra);
        }
        let end = index.0 + req_count.max(1);
        self.thread(event).covered = Some(Covered { file, first: index.0, end });
    }

    fn window(
        &mut self,
        event: &Event,
        file: u32,
        index: PageIndex,
        order: u32,
        window: (u64, u64),
        ra_pages: u64,
    ) {
        *self.seen.ra_pages.entry(ra_pages).or_default() += 1;
        self.seen.window_pages_max = self.seen.window_pages_max.max(window.0);
        self.seen.large_windows += u64::from(order >= 2 && window.0 >= 4);
        let thread = self.thread(event);
        thread.covered = Some(Covered { file, first: index.0, end: index.0 + window.0 });
        if let Some(current) = thread.current
            && let Some(waiting) = self.window.get(current.raw)
        {
            waiting.window_after = Some(window);
        }
    }

    /// The order-0 path: part of the running trigger, or a forced readahead of its own.
    fn order0(&mut self, seq: u64, event: &Event, file: u32, index: PageIndex, nr_to_read: u64) {
        let covered = self.thread(event).covered;
        let inside = covered.is_some_and(|covered| {
            covered.file == file && (covered.first..covered.end).contains(&index.0)
        });
        if inside {
            self.note_random(event, index);
            return;
        }
        self.seen.forced(nr_to_read);
        self.blocks.forget_unread(event.pid);
        self.push(seq, event, file, AccessKind::WillNeed { page: index, pages: nr_to_read });
    }

    /// A sequential read gets a window unless `POSIX_FADV_RANDOM` is set.
    fn note_random(&mut self, event: &Event, index: PageIndex) {
        let Some(current) = self.thread(event).current else {
            return;
        };
        let Some(raw) = self.window.get(current.raw) else {
            return;
        };
        let Some(before) = raw.before.filter(|_| raw.window_after.is_none()) else {
            return;
        };
        let sequential = index.0.wrapping_sub(before.prev_pos.cast_unsigned() >> PAGE_SHIFT) <= 1;
        let window_due = index.0 == 0 || sequential;
        raw.shows_random |= window_due && before.ra_pages != 0;
    }

    fn fault(&mut self, seq: u64, event: &Event, file: u32, index: PageIndex) {
        let retry = self.thread(event).faulted.take() == Some((file, index));
        self.end_access(event.pid);
        self.blocks.forget_unread(event.pid);
        self.fidelity = self.fidelity.max(Fidelity::Page);
        let before = self.thread(event).last_access;
        let raw = self.push(seq, event, file, AccessKind::Fault { page: index, retry });
        let state = self.state(file);
        state.pages_max = state.pages_max.max(index.0 + 1);
        let thread = self.thread(event);
        let (first, last) = (index, index);
        thread.current = Some(Current { raw, file, is_read: false, first, last, paged: false });
        thread.faulted = Some((file, index));
        // A fault that fault-around looked at just before was not served by it.
        if let Some(before) = before.and_then(|before| self.window.get(before))
            && let AccessKind::FaultAround { served, .. } = &mut before.access.kind
        {
            *served = false;
        }
    }

    fn fault_around(
        &mut self,
        seq: u64,
        event: &Event,
        file: u32,
        first: PageIndex,
        last: PageIndex,
    ) {
        let thread = self.thread(event);
        let retry = thread
            .faulted
            .is_some_and(|(faulted, page)| faulted == file && (first..=last).contains(&page));
        if !retry {
            thread.faulted = None;
        }
        self.end_access(event.pid);
        let kind = AccessKind::FaultAround { first, last, served: true, retry };
        self.push(seq, event, file, kind);
    }

    fn added(
        &mut self,
        seq: u64,
        event: &Event,
        file: u32,
        page: PageIndex,
        order: Order,
        pfn: u64,
    ) {
        let pages = order.pages();
        let (keeps, state) = (self.is_whole, self.state(file));
        state.pages_max = state.pages_max.max(page.0 + pages);
        if keeps {
            state.ever.insert(page.0, pages);
        }
        self.inserted += 1;
        self.seen.large_folios |= order.0 > 0;
        self.blocks.added(event.pid, file, page, pages);
        let thread = self.thread(event).index;
        if self.is_inferring {
            let kind = AccessKind::Read { pos: page.offset(), count: pages << PAGE_SHIFT };
            let access = Access { time: event.time, seq, thread, open: 0, think_ns: 0, kind };
            self.add(Raw::new(file, access));
        }
        self.window.folio(RecordedFolio { file, thread, page, order, pfn, time: event.time, seq });
    }

    fn deleted(&mut self, seq: u64, event: &Event, file: u32, page: PageIndex, order: Order) {
        let (keeps, state) = (self.is_whole, self.state(file));
        if keeps && !state.ever.contains(page.0) {
            state.cached.push((page, order));
            state.ever.insert(page.0, order.pages());
        }
        // It belongs to no open; it is dealt to one of its file later.
        self.push(seq, event, file, AccessKind::Evict { page, order });
    }

    /// Takes in advice, as soon as reads make the file of its descriptor known.
    fn advise(&mut self, advice: Advice) {
        let Some(&file) = self.descriptors.get(&advice.descriptor) else {
            self.syscalls.keep(advice);
            return;
        };
        let Advice { seq, event, descriptor, code, pos, count } = advice;
        let kind = match code {
            0 => AccessKind::AdviseNormal,
            1 => AccessKind::AdviseRandom,
            2 => AccessKind::AdviseSequential,
            4 => AccessKind::DontNeed { pos: ByteOffset(pos), count },
            // WILLNEED shows as order-0 readahead; NOREUSE changes nothing here.
            _ => return,
        };
        self.seen.advised_sequential |= kind == AccessKind::AdviseSequential;
        let thread = self.thread(&event).index;
        let access = Access { time: event.time, seq, thread, open: 0, think_ns: 0, kind };
        self.add(Raw { descriptor: Some(descriptor), ..Raw::new(file, access) });
    }

    /// Passes on what is left. `capture` is what else the capture says; its events are not looked at.
    pub fn finish(mut self, capture: &Capture, name: &str) -> Result<Passed<T>, StreamError> {
        let pids: Vec<u32> = self.threads.keys().copied().collect();
        for pid in pids {
            self.end_access(pid);
        }
        if !self.has_accesses() {
            return Err(self.no_accesses(name));
        }
        self.blocks.settle(u64::MAX, self.window.taker());
        let (taker, opens) = self.window.finish(&self.files);
        let mut settings = self.options.settings.clone();
        let stated = self.options.ra_pages_stated;
        self.seen.apply(&mut settings, stated, self.blocks.largest_sectors());
        if let Some(kernel) = &capture.header.kernel {
            settings.kernel.offer(kernel.clone(), crate::settings::Origin::Recorded);
        }
        let opens = opens.finish(RaPages {
            recorded: self.seen.device_ra_pages(stated).unwrap_or(settings.ra_pages.value),
            wanted: settings.ra_pages.value,
        });
        let states = &self.files.states;
        let files = renumber(states.iter().map(|file| file.accessed));
        let of_files = |open: &Open| files[open.file as usize].map(|file| Open { file, ..*open });
        let open_numbers = renumber(opens.iter().map(|open| of_files(open).is_some()));
        let accessed = states.iter().filter(|file| file.accessed);
        let mut losses = capture.losses.clone();
        if let count @ 1.. = self.implausible_events {
            let what = || "an event that names a place no file has".to_owned();
            losses.add(LossKind::BadFields, count, what);
        }
        let threads = self.thread_names.iter();
        let threads = threads.map(|&(comm, pid)| format!("{}-{pid}", capture.comms.name(comm)));
        let recorded = Recorded {
            metadata_reads: self.blocks.metadata_reads,
            unissued: self.blocks.take_unissued(),
            ..Recorded::default()
        };
        Ok(Passed {
            accesses: accessed.map(|file| file.accesses).sum(),
            opens: open_numbers,
            source: Source {
                name: name.to_owned(),
                about: String::new(),
                fidelity: self.fidelity,
                opens: opens.iter().filter_map(of_files).collect(),
                files: take_files(self.files, &self.known, &self.blocks),
                settings,
                threads: threads.collect(),
                accesses: Vec::new(),
                anchors: self.anchors,
                kernel_min: self.kernel_min,
                recorded: Some(recorded),
                losses,
            },
            files,
            taker,
        })
    }

    fn no_accesses(&self, name: &str) -> StreamError {
        let name = name.to_owned();
        if self.inserted > 0 {
            StreamError::OnlyInferred { name, fidelity: Fidelity::Insertions }
        } else {
            StreamError::NoAccesses { name, events: self.events }
        }
    }
}

/// Where the files lie: by the sidecar, which knows all of it, unless the device reads say otherwise.
fn extents(known: Option<&FileFacts>, seen: Vec<FileExtent>) -> Vec<FileExtent> {
    match known.map(|known| &known.extents).filter(|whole| agrees(whole, &seen)) {
        Some(whole) if !whole.is_empty() => whole.clone(),
        _ => seen,
    }
}

/// The files that were accessed.
fn take_files(files: Files, known: &FxHashMap<FileId, &FileFacts>, blocks: &Blocks) -> Vec<File> {
    let sizes: Vec<u64> = (0..files.states.len() as u32).map(|file| files.likely(file)).collect();
    let numbered = files.states.into_iter().zip(0..).zip(sizes);
    let accessed = numbered.filter(|((file, _), _)| file.accessed);
    let file = |((file, number), size_bytes): ((FileState, u32), u64)| {
        let known = known.get(&file.id).copied();
        File {
            id: file.id,
            path: known.map(|known| known.path.clone()),
            size_bytes,
            cached: file.cached,
            extents: extents(known, blocks.extents(number)),
        }
    };
    accessed.map(file).collect()
}

/// Numbers from 0 for what is kept.
fn renumber(keep: impl Iterator<Item = bool>) -> Vec<Option<u32>> {
    let mut next = 0..;
    keep.map(|keep| if keep { next.next() } else { None }).collect()
}

/// Whether `whole` puts every page of `seen` where `seen` does.
fn agrees(whole: &[FileExtent], seen: &[FileExtent]) -> bool {
    seen.iter().all(|seen| {
        whole.iter().any(|extent| {
            extent.page <= seen.page
                && seen.page + seen.pages <= extent.page + extent.pages
                && extent.sector + (seen.page - extent.page) * SECTORS_PER_PAGE == seen.sector
        })
    })
}

/// The first kernel (major, minor) with an event like this.
fn since(kind: &EventKind) -> (u32, u32) {
    match kind {
        EventKind::SyncRa { .. }
        | EventKind::AsyncRa { .. }
        | EventKind::RaOrder { .. }
        | EventKind::RaUnbounded { .. } => (6, 18),
        EventKind::GetPages { .. } | EventKind::Fault { .. } | EventKind::MapPages { .. } => {
            (6, 12)
        }
        EventKind::AddToPageCache { order, .. } if order.0 > 0 => (5, 18),
        _ => (0, 0),
    }
}

/// Pages of the largest file a replay takes: 256 TiB. State is kept per 16 MiB of a file.
const FILE_PAGES_MAX: u64 = 1 << 36;
/// Most bytes of one read (`MAX_RW_COUNT`).
pub(super) const READ_BYTES_MAX: u64 = 0x7fff_f000;

/// Whether an event names a place that a file can have. Damaged captures hold others.
pub fn is_plausible(kind: &EventKind) -> bool {
    let fits =
        |first: u64, pages: u64| first.checked_add(pages).is_some_and(|end| end <= FILE_PAGES_MAX);
    match *kind {
        EventKind::BufferedRead { size_bytes, pos, count, .. } => {
            count <= READ_BYTES_MAX
                && size_bytes >> PAGE_SHIFT <= FILE_PAGES_MAX
                && pos.0 >> PAGE_SHIFT <= FILE_PAGES_MAX
        }
        EventKind::GetPages { index, last, .. } | EventKind::MapPages { index, last, .. } => {
            index <= last && fits(last.0, 1)
        }
        EventKind::Fault { index, .. } => fits(index.0, 1),
        EventKind::AddToPageCache { index, order, .. }
        | EventKind::DeleteFromPageCache { index, order, .. } => {
            usize::from(order.0) < Order::COUNT
                && fits(index.0, order.pages())
                && index.0 % order.pages() == 0
        }
        EventKind::RaUnbounded { index, nr_to_read: pages, .. }
        | EventKind::RaOrder { index, size: pages, .. }
        | EventKind::SyncRa { index, req_count: pages, .. }
        | EventKind::AsyncRa { index, req_count: pages, .. } => fits(index.0, pages),
        EventKind::BioQueue { extent, .. }
        | EventKind::RqIssue { extent, .. }
        | EventKind::RqComplete { extent, .. } => {
            extent.sector.0.checked_add(extent.sectors).is_some() && extent.sectors < 1 << 32
        }
        _ => true,
    }
}
