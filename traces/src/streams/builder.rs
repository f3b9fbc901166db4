//! The pass over the events.

use rustc_hash::FxHashMap;

use super::blocks::{self, Blocks};
use super::opens::{self, RaPages, Raw};
use super::page_set::PageSet;
use super::settings::Seen;
use super::syscalls::{Advice, Syscalls};
use super::{StreamError, StreamOptions};
use crate::access::{
    Access, AccessKind, Anchor, AnchorKind, Fidelity, File, FileExtent, Recorded, RecordedFolio,
    RecordedRead, Source,
};
use crate::capture::{Capture, LossKind};
use crate::event::{Event, EventKind, FileId, RecordedRa};
use crate::settings::Settings;
use crate::sidecar::FileFacts;
use crate::units::{ByteOffset, Order, PAGE_SHIFT, PageIndex, SECTORS_PER_PAGE, Time};

pub(super) fn build(
    capture: &Capture,
    name: &str,
    options: &StreamOptions,
) -> Result<Source, StreamError> {
    let mut builder = Builder::new(capture, &options.files);
    for (seq, event) in capture.events.iter().enumerate() {
        builder.event(seq as u64, event);
    }
    builder.finish(capture, name, options)
}

/// What the events say about a file.
struct FileState {
    id: FileId,
    size_bytes: Option<u64>,
    pages_max: u64,
    ever: PageSet,
    cached: Vec<(PageIndex, Order)>,
    accessed: bool,
}

/// The access a thread is in.
#[derive(Clone, Copy)]
struct Current {
    raw: usize,
    file: u32,
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
    /// A fault of this page dropped the lock and will be tried again.
    faulted: Option<(u32, PageIndex)>,
}

struct Builder<'a> {
    capture: &'a Capture,
    /// What the sidecar says of files.
    known: FxHashMap<FileId, &'a FileFacts>,
    files: Vec<FileState>,
    file_index: FxHashMap<FileId, u32>,
    threads: FxHashMap<u32, ThreadState>,
    thread_names: Vec<String>,
    raws: Vec<Raw>,
    anchors: Vec<Anchor>,
    folios: Vec<RecordedFolio>,
    descriptors: FxHashMap<u64, u32>,
    syscalls: Syscalls,
    blocks: Blocks,
    seen: Seen,
    fidelity: Fidelity,
    implausible_events: u64,
}

impl<'a> Builder<'a> {
    fn new(capture: &'a Capture, known: &'a [FileFacts]) -> Self {
        Self {
            capture,
            known: known.iter().map(|file| (file.id(), file)).collect(),
            files: Vec::new(),
            file_index: FxHashMap::default(),
            threads: FxHashMap::default(),
            thread_names: Vec::new(),
            raws: Vec::new(),
            anchors: Vec::new(),
            folios: Vec::new(),
            descriptors: FxHashMap::default(),
            syscalls: Syscalls::default(),
            blocks: Blocks::default(),
            seen: Seen::default(),
            fidelity: Fidelity::Exact,
            implausible_events: 0,
        }
    }

    fn file(&mut self, id: FileId) -> u32 {
        *self.file_index.entry(id).or_insert_with(|| {
            self.files.push(FileState {
                id,
                size_bytes: self.known.get(&id).map(|known| known.size_bytes),
                pages_max: 0,
                ever: PageSet::default(),
                cached: Vec::new(),
                accessed: false,
            });
            self.files.len() as u32 - 1
        })
    }

    fn thread(&mut self, event: &Event) -> &mut ThreadState {
        self.threads.entry(event.pid).or_insert_with(|| {
            let name = self.capture.comms.name(event.comm);
            self.thread_names.push(format!("{name}-{}", event.pid));
            ThreadState { index: self.thread_names.len() as u32 - 1, ..ThreadState::default() }
        })
    }

    fn event(&mut self, seq: u64, event: &Event) {
        if !is_plausible(&event.kind) {
            self.implausible_events += 1;
            return;
        }
        match event.kind {
            EventKind::BufferedRead { file, size_bytes, pos, count } => {
                let file = self.file(file);
                self.files[file as usize].size_bytes = Some(size_bytes);
                self.begin_read(seq, event, file, pos, count, None);
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
                self.syscalls.enter(event.pid, call, args, seq);
            }
            EventKind::SyscallExit { ret, .. } => {
                self.syscalls.exit(event.pid, ret);
                self.end_access(event.pid);
            }
            EventKind::BioQueue { .. }
            | EventKind::RqIssue { .. }
            | EventKind::RqComplete { .. } => {
                self.blocks.event(event);
            }
            EventKind::BioSplit { rwbs, .. } => self.seen.split |= rwbs.read && !rwbs.meta,
            EventKind::BioMerge { .. } | EventKind::Unplug { .. } => {}
        }
        if let Some(thread) = self.threads.get_mut(&event.pid) {
            thread.last_event = event.time;
        }
    }

    fn push(&mut self, seq: u64, event: &Event, file: u32, kind: AccessKind) -> usize {
        let thread = self.thread(event);
        let think_ns = if thread.last_event.0 == 0 { 0 } else { event.time - thread.last_event };
        let access =
            Access { time: event.time, seq, thread: thread.index, open: 0, think_ns, kind };
        self.files[file as usize].accessed = true;
        self.raws.push(Raw {
            access,
            file,
            descriptor: None,
            before: None,
            window_after: None,
            shows_random: false,
        });
        self.raws.len() - 1
    }

    fn begin_read(
        &mut self,
        seq: u64,
        event: &Event,
        file: u32,
        pos: ByteOffset,
        count: u64,
        descriptor: Option<u64>,
    ) {
        self.end_access(event.pid);
        self.blocks.forget_unread(event.pid);
        let raw = self.push(seq, event, file, AccessKind::Read { pos, count });
        self.raws[raw].descriptor = descriptor;
        let last = ByteOffset((pos.0 + count).max(pos.0 + 1) - 1).page();
        let current = Current { raw, file, first: pos.page(), last, paged: false };
        self.thread(event).current = Some(current);
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
        let AccessKind::Read { .. } = self.raws[current.raw].access.kind else {
            return;
        };
        let file = &mut self.files[current.file as usize];
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
    ) -> usize {
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
            self.begin_read(call.seq, event, file, call.pos, call.count, Some(call.descriptor));
            self.descriptors.insert(call.descriptor, file);
        } else {
            let pos = index.offset();
            let count = (last + 1).offset().0.saturating_sub(pos.0);
            self.begin_read(seq, event, file, pos, count, None);
            self.fidelity = self.fidelity.max(Fidelity::Page);
            if let Some(current) = &mut self.thread(event).current {
                current.paged = true;
            }
        }
        self.raws.len() - 1
    }

    fn anchor(&mut self, seq: u64, event: &Event, page: PageIndex, kind: AnchorKind) {
        let thread = self.thread(event).index;
        self.anchors.push(Anchor { seq, thread, page, kind });
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
        let in_fault = self.thread(event).current.is_some_and(|current| {
            !matches!(self.raws[current.raw].access.kind, AccessKind::Read { .. })
        });
        *self.seen.ra_pages.entry(ra.ra_pages).or_default() += 1;
        let raw = if in_fault {
            self.thread(event).current.map_or(0, |current| current.raw)
        } else {
            let last = PageIndex((index.0 + req_count).max(1) - 1);
            let raw = self.current_read(seq, event, file, index, last);
            self.anchor(seq, event, index, kind);
            raw
        };
        self.raws[raw].before.get_or_insert(ra);
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
        if let Some(current) = thread.current {
            self.raws[current.raw].window_after = Some(window);
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
        let raw = &self.raws[current.raw];
        let Some(before) = raw.before.filter(|_| raw.window_after.is_none()) else {
            return;
        };
        let sequential = index.0.wrapping_sub(before.prev_pos.cast_unsigned() >> PAGE_SHIFT) <= 1;
        let window_due = index.0 == 0 || sequential;
        self.raws[current.raw].shows_random |= window_due && before.ra_pages != 0;
    }

    fn fault(&mut self, seq: u64, event: &Event, file: u32, index: PageIndex) {
        let retry = self.thread(event).faulted.take() == Some((file, index));
        self.end_access(event.pid);
        self.blocks.forget_unread(event.pid);
        self.fidelity = self.fidelity.max(Fidelity::Page);
        let raw = self.push(seq, event, file, AccessKind::Fault { page: index, retry });
        let thread = self.thread(event);
        thread.current = Some(Current { raw, file, first: index, last: index, paged: false });
        thread.faulted = Some((file, index));
        // A fault that fault-around looked at just before was not served by it.
        let index = thread.index;
        if let Some(before) = self.raws[..raw].iter_mut().rev().find(|r| r.access.thread == index)
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
        let state = &mut self.files[file as usize];
        state.pages_max = state.pages_max.max(page.0 + pages);
        state.ever.insert(page.0, pages);
        self.seen.large_folios |= order.0 > 0;
        self.blocks.added(event.pid, file, page, pages);
        let thread = self.thread(event).index;
        self.folios.push(RecordedFolio { file, thread, page, order, pfn, time: event.time, seq });
    }

    fn deleted(&mut self, seq: u64, event: &Event, file: u32, page: PageIndex, order: Order) {
        let state = &mut self.files[file as usize];
        if !state.ever.contains(page.0) {
            state.cached.push((page, order));
            state.ever.insert(page.0, order.pages());
        }
        // An eviction belongs to no open; it is dealt to one of its file later.
        let accessed = state.accessed;
        self.push(seq, event, file, AccessKind::Evict { page, order });
        self.files[file as usize].accessed = accessed;
    }

    fn finish(
        mut self,
        capture: &Capture,
        name: &str,
        options: &StreamOptions,
    ) -> Result<Source, StreamError> {
        let pids: Vec<u32> = self.threads.keys().copied().collect();
        for pid in pids {
            self.end_access(pid);
        }
        self.take_advice(capture);
        if !self.files.iter().any(|file| file.accessed) {
            self.infer(capture, name, options)?;
        }
        self.drop_foreign_files();
        let recorded = self.take_recorded();
        let mut settings = options.settings.clone();
        self.seen.apply(&mut settings, &recorded.reads);
        if let Some(kernel) = &capture.header.kernel {
            settings.kernel.offer(kernel.clone(), crate::settings::Origin::Recorded);
        }
        let sizes: Vec<_> = self.files.iter().map(|file| file.size_bytes).collect();
        let ra_pages = RaPages {
            recorded: self.seen.device_ra_pages().unwrap_or(settings.ra_pages.value),
            wanted: settings.ra_pages.value,
        };
        let opens = opens::assign(&mut self.raws, &sizes, ra_pages);
        let files = self.take_files(&settings);
        let mut losses = capture.losses.clone();
        if let count @ 1.. = self.implausible_events {
            let what = || "an event that names a place no file has".to_owned();
            losses.add(LossKind::BadFields, count, what);
        }
        Ok(Source {
            name: name.to_owned(),
            about: String::new(),
            fidelity: self.fidelity,
            settings,
            files,
            opens,
            threads: self.thread_names,
            accesses: self.raws.into_iter().map(|raw| raw.access).collect(),
            anchors: self.anchors,
            kernel_min: kernel_min(capture),
            recorded: Some(recorded),
            losses,
        })
    }

    /// Advice through descriptors whose file the reads made known.
    fn take_advice(&mut self, capture: &Capture) {
        for Advice { seq, pid, descriptor, code, pos, count } in
            std::mem::take(&mut self.syscalls.advice)
        {
            let Some(&file) = self.descriptors.get(&descriptor) else {
                continue;
            };
            let kind = match code {
                0 => AccessKind::AdviseNormal,
                1 => AccessKind::AdviseRandom,
                2 => AccessKind::AdviseSequential,
                4 => AccessKind::DontNeed { pos: ByteOffset(pos), count },
                // WILLNEED shows as order-0 readahead; NOREUSE changes nothing here.
                _ => continue,
            };
            self.seen.advised_sequential |= kind == AccessKind::AdviseSequential;
            let event = &capture.events[seq as usize];
            debug_assert_eq!(event.pid, pid);
            let raw = self.push(seq, event, file, kind);
            self.raws[raw].descriptor = Some(descriptor);
            self.raws[raw].access.think_ns = 0;
        }
        self.raws.sort_by_key(|raw| raw.access.seq);
    }

    /// Streams from what was inserted, where nothing shows what was asked for.
    fn infer(
        &mut self,
        capture: &Capture,
        name: &str,
        options: &StreamOptions,
    ) -> Result<(), StreamError> {
        if self.folios.is_empty() {
            let events = capture.events.len();
            return Err(StreamError::NoAccesses { name: name.to_owned(), events });
        }
        self.fidelity = Fidelity::Insertions;
        if !options.allow_inferred {
            let fidelity = self.fidelity;
            return Err(StreamError::OnlyInferred { name: name.to_owned(), fidelity });
        }
        for folio in self.folios.clone() {
            let event = capture.events[folio.seq as usize];
            let (pos, count) = (folio.page.offset(), folio.order.pages() << PAGE_SHIFT);
            self.push(folio.seq, &event, folio.file, AccessKind::Read { pos, count });
        }
        Ok(())
    }

    /// Keeps only files with an access, and renumbers them.
    fn drop_foreign_files(&mut self) {
        let mut renumbered = vec![None; self.files.len()];
        let mut kept = 0;
        for (file, place) in self.files.iter().zip(&mut renumbered) {
            if file.accessed {
                *place = Some(kept);
                kept += 1;
            }
        }
        let renumber = |file: &mut u32| match renumbered[*file as usize] {
            Some(place) => {
                *file = place;
                true
            }
            None => false,
        };
        self.raws.retain_mut(|raw| renumber(&mut raw.file));
        self.folios.retain_mut(|folio| renumber(&mut folio.file));
        for (old, new) in renumbered.iter().enumerate() {
            if let Some(new) = new {
                self.blocks.renumber(old as u32, *new);
            }
        }
        self.files.retain(|file| file.accessed);
    }

    fn take_recorded(&mut self) -> Recorded {
        let extents: Vec<_> =
            (0..self.files.len() as u32).map(|f| self.blocks.extents(f)).collect();
        let mut blocks = std::mem::take(&mut self.blocks);
        let metadata_reads = blocks.metadata_reads;
        let unissued = blocks.take_unissued();
        let mut reads: Vec<RecordedRead> = Vec::new();
        let mut foreign_reads = 0;
        for mut read in blocks.into_reads() {
            read.target = extents.iter().enumerate().find_map(|(file, extents)| {
                Some((file as u32, blocks::page_at(extents, read.sector)?))
            });
            foreign_reads += u64::from(read.target.is_none());
            reads.push(read);
        }
        for (file, extents) in extents.into_iter().enumerate() {
            self.blocks.keep_extents(file as u32, extents);
        }
        Recorded {
            folios: std::mem::take(&mut self.folios),
            reads,
            metadata_reads,
            foreign_reads,
            unissued,
        }
    }

    /// Where a file lies: by the sidecar, which knows all of it, unless the device reads say otherwise.
    fn extents(&mut self, file: u32, id: FileId) -> Vec<FileExtent> {
        let seen = self.blocks.extents(file);
        let whole = self.known.get(&id).map(|known| &known.extents);
        match whole.filter(|whole| agrees(whole, &seen)) {
            Some(whole) if !whole.is_empty() => whole.clone(),
            _ => seen,
        }
    }

    fn take_files(&mut self, settings: &Settings) -> Vec<File> {
        let read_ends = self.raws.iter().filter_map(|raw| match raw.access.kind {
            AccessKind::Touch { page } | AccessKind::Fault { page, .. } => {
                Some((raw.file, page.0 + 1))
            }
            _ => None,
        });
        let mut pages_max: Vec<u64> = self.files.iter().map(|file| file.pages_max).collect();
        for (file, end) in read_ends {
            pages_max[file as usize] = pages_max[file as usize].max(end);
        }
        let files = std::mem::take(&mut self.files).into_iter().enumerate();
        files
            .map(|(index, file)| File {
                id: file.id,
                path: self.known.get(&file.id).map(|known| known.path.clone()),
                size_bytes: file
                    .size_bytes
                    .or(settings.file_size_bytes.value)
                    .unwrap_or(pages_max[index] << PAGE_SHIFT),
                cached: file.cached,
                extents: self.extents(index as u32, file.id),
            })
            .collect()
    }
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

fn kernel_min(capture: &Capture) -> (u32, u32) {
    let since = |event: &Event| match event.kind {
        EventKind::SyncRa { .. }
        | EventKind::AsyncRa { .. }
        | EventKind::RaOrder { .. }
        | EventKind::RaUnbounded { .. } => (6, 18),
        EventKind::GetPages { .. } | EventKind::Fault { .. } | EventKind::MapPages { .. } => {
            (6, 12)
        }
        EventKind::AddToPageCache { order, .. } if order.0 > 0 => (5, 18),
        _ => (0, 0),
    };
    capture.events.iter().map(since).max().unwrap_or_default()
}

/// Pages of the largest file a replay takes: 256 TiB. State is kept per 16 MiB of a file.
const FILE_PAGES_MAX: u64 = 1 << 36;
/// Most bytes of one read (`MAX_RW_COUNT`).
pub(super) const READ_BYTES_MAX: u64 = 0x7fff_f000;

/// Whether an event names a place that a file can have. Damaged captures hold others.
fn is_plausible(kind: &EventKind) -> bool {
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
