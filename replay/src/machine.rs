//! Files, open files and mappings under one policy.
//!
//! The machine executes single accesses against the page caches. It knows no
//! time: the drivers ([`run`](crate::run), [`trace_order`](crate::trace_order))
//! decide when an access goes on and hand what was submitted to the device.

use std::sync::atomic::{AtomicU64, Ordering};

use traces::access::{Mapping, Source};
use traces::units::{ByteOffset, Order, PAGE_SIZE, PageIndex};

use crate::log::{Decision, Log, Submitted};
use crate::mapping::PageTable;
use crate::page_cache::{Folio, PageCache, Stop};
use crate::policy::{Paths, Policy, PrevPos, Rules};
use crate::readahead::{FileKey, FileLimits, FileRa, ForcedFill, Readahead, Rule, Trigger};
use crate::task::{Hold, Progress, Reached, TaskAccess};

/// Files of all machines so far, which gives each a key of its own.
static FILES_MADE: AtomicU64 = AtomicU64::new(0);

/// One file: its page cache, limits and counters.
#[derive(Debug)]
pub struct FileState {
    /// What is cached.
    pub cache: PageCache,
    /// Size and device limits.
    pub limits: FileLimits,
    /// What was done.
    pub log: Log,
    /// Pages evicted before the program used them.
    pub evicted_unused_pages: u64,
    /// Forced readaheads under way on the file.
    forced_running: u32,
    key: FileKey,
}

/// One open file.
#[derive(Debug)]
pub struct OpenState {
    /// Index of its file.
    pub file: usize,
    /// Its readahead state.
    pub ra: FileRa,
    /// Advice on its mapping.
    pub mapping: Mapping,
    /// Pages of the mapping that are in the page table.
    pub page_table: PageTable,
    clean: CleanRun,
}

/// The rest of a folio that a batch found cached, uptodate and without a mark. Small sequential
/// reads stay in it for a while and need no walk.
#[derive(Clone, Copy, Debug, Default)]
struct CleanRun {
    from: PageIndex,
    to: PageIndex,
    /// [`PageCache::removals`] when it was found.
    removals: u64,
}

impl CleanRun {
    fn new(from: PageIndex, to: PageIndex, cache: &PageCache) -> Self {
        Self { from, to, removals: cache.removals() }
    }
}

/// What one step of a read found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Pages up to `end` can be copied.
    Ready {
        /// The page after the last one.
        end: PageIndex,
        /// Folios they lie in.
        folios: u32,
    },
    /// The first folio is not uptodate; the step is to be repeated when it is.
    Wait(Folio),
    /// Pages up to `end` can be copied when the folio that follows them is uptodate.
    ReadyAfter {
        /// That folio.
        wait: Folio,
        /// The page after the last one.
        end: PageIndex,
        /// Folios they lie in.
        folios: u32,
    },
}

/// Page caches and open files under one policy.
pub struct Machine<'a> {
    policy: &'a dyn Policy,
    /// The policy's rules and paths, kept at hand for every step.
    rules: Rules,
    paths: Paths,
    /// Files, in the order of the source.
    pub files: Vec<FileState>,
    /// Open files, in the order of the source.
    pub opens: Vec<OpenState>,
    /// Runs of pages handed to the filesystem and not yet taken by the driver.
    pub submitted: Submitted,
    /// Why the replay cannot be used: the policy's own code failed.
    pub failure: Option<String>,
    /// The replay has to be repeated, see [`Readahead::repeat`].
    pub repeat: bool,
    /// Number of the access being replayed, which the driver sets.
    pub access: u64,
    /// Whether data is there as soon as it is asked for.
    immediate: bool,
}

impl<'a> Machine<'a> {
    /// A machine with the files and opens of a source, nothing read yet.
    ///
    /// With `immediate`, data arrives at once and no step waits. With `keep_decisions`, every
    /// decision is kept in the logs.
    pub fn new(
        policy: &'a dyn Policy,
        source: &Source,
        immediate: bool,
        keep_decisions: bool,
    ) -> Self {
        let settings = &source.settings;
        let order_max =
            if policy.rules().large_folios { settings.order_max.value } else { Order(0) };
        let files = source.files.iter().map(|file| {
            let mut cache = PageCache::new();
            let key = FileKey(FILES_MADE.fetch_add(1, Ordering::Relaxed));
            for &(index, order) in &file.cached {
                let folio = Folio { index, order };
                // A page seen cached twice, in folios of two orders, keeps its first folio.
                if cache.insert(folio, false, true).is_ok() {
                    policy.inserted_by_read(key, folio);
                }
            }
            let limits = FileLimits {
                size_bytes: file.size_bytes,
                ra_pages: settings.ra_pages.value,
                io_pages: settings.io_pages(),
                order_min: settings.order_min.value,
                order_max,
            };
            let log = if keep_decisions { Log::with_decisions() } else { Log::default() };
            FileState { cache, limits, log, evicted_unused_pages: 0, forced_running: 0, key }
        });
        let opens = source.opens.iter().map(|open| {
            let mut ra = FileRa::new(open.ra_pages.unwrap_or(settings.ra_pages.value));
            ra.random = open.random;
            OpenState {
                file: open.file as usize,
                ra,
                mapping: open.mapping,
                page_table: PageTable::default(),
                clean: CleanRun::default(),
            }
        });
        Self {
            policy,
            rules: policy.rules(),
            paths: policy.paths(),
            files: files.collect(),
            opens: opens.collect(),
            submitted: Submitted::default(),
            failure: None,
            repeat: false,
            access: 0,
            immediate,
        }
    }

    /// The policy.
    pub fn policy(&self) -> &'a dyn Policy {
        self.policy
    }

    /// The policy's rules.
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// Whose code carries out accesses.
    pub(crate) fn paths(&self) -> Paths {
        self.paths
    }

    /// The file behind an open.
    pub fn file_of(&mut self, open: usize) -> &mut FileState {
        &mut self.files[self.opens[open].file]
    }

    /// A readahead request of `open` at `index`.
    pub(crate) fn readahead(&mut self, open: usize, index: PageIndex) -> Readahead<'_> {
        let number = open as u32;
        let open = &mut self.opens[open];
        let file = &mut self.files[open.file];
        Readahead {
            policy: self.policy,
            ra: &mut open.ra,
            cache: &mut file.cache,
            limits: file.limits,
            log: &mut file.log,
            submitted: &mut self.submitted,
            file: open.file as u32,
            file_key: file.key,
            open: number,
            access: self.access,
            failure: &mut self.failure,
            repeat: &mut self.repeat,
            index: index.0,
            rule: Rule::Random,
            cut_pages: 0,
            uptodate: self.immediate,
        }
    }

    /// Notes that what follows on the file of `open` belongs to an access.
    pub(crate) fn note_access(&mut self, open: usize, number: u64) {
        self.access = number;
        self.file_of(open).log.decision(|| Decision::Access { number });
    }

    /// `page_cache_sync_ra` at a hole.
    pub fn sync_ra(&mut self, open: usize, index: PageIndex, req_count: u64) {
        let policy = self.policy;
        let mut rac = self.readahead(open, index);
        rac.note_trigger(Trigger::Sync, index, req_count);
        policy.sync_ra(&mut rac, req_count);
    }

    /// `page_cache_async_ra` on a marked folio, from page `index` of it.
    pub fn async_ra(&mut self, open: usize, index: PageIndex, folio: Folio, req_count: u64) {
        let policy = self.policy;
        let mut rac = self.readahead(open, index);
        rac.note_trigger(Trigger::Async, index, req_count);
        policy.async_ra(&mut rac, folio, req_count);
    }

    /// The first page after a request that ends at byte `end`, on a folio boundary.
    pub fn request_end(&self, open: usize, end: ByteOffset) -> PageIndex {
        let limits = &self.files[self.opens[open].file].limits;
        let mask = limits.order_min.pages() - 1;
        PageIndex((end.page_up().0 + mask) & !mask)
    }

    /// One step of a read (`filemap_get_pages`): collects cached folios from `pos` on, after
    /// readahead where there are none, and triggers asynchronous readahead on a mark.
    ///
    /// `end` is the byte after the request.
    #[inline]
    pub fn get_pages(&mut self, open: usize, pos: ByteOffset, end: ByteOffset) -> Batch {
        let last = self.request_end(open, end);
        self.get_pages_until(open, pos.page(), last, last)
    }

    /// [`get_pages`](Self::get_pages) that looks no further than page `until`, of a request whose
    /// pages end before `last`.
    #[inline]
    pub(crate) fn get_pages_until(
        &mut self,
        open: usize,
        index: PageIndex,
        last: PageIndex,
        until: PageIndex,
    ) -> Batch {
        let state = &mut self.opens[open];
        let cache = &self.files[state.file].cache;
        let clean = state.clean;
        if clean.from <= index && until <= clean.to && clean.removals == cache.removals() {
            return Batch::Ready { end: clean.to, folios: 1 };
        }
        let folios_max = self.rules.batch_folios_max;
        let mut batch = cache.walk(index, until, folios_max);
        if batch.folios == 1 && batch.stop == Stop::End {
            state.clean = CleanRun::new(index, batch.end, cache);
        }
        if batch.folios == 0 {
            self.sync_ra(open, index, last - index);
            batch = self.file_of(open).cache.walk(index, until, folios_max);
            if batch.folios == 0 {
                return self.create_folio(open, index);
            }
        }
        let mut folios = batch.folios;
        if let Stop::Flagged(folio) = batch.stop {
            if self.file_of(open).cache.is_marked(folio) {
                self.async_ra(open, folio.index, folio, last - folio.index);
            }
            if !self.file_of(open).cache.is_uptodate(folio) {
                if folios == 1 {
                    return Batch::Wait(folio);
                }
                batch.end = folio.index;
                folios -= 1;
                if self.rules.batch_waits {
                    return Batch::ReadyAfter { wait: folio, end: batch.end, folios };
                }
            } else if folios == 1 && !self.file_of(open).cache.is_marked(folio) {
                let state = &mut self.opens[open];
                state.clean = CleanRun::new(index, batch.end, &self.files[state.file].cache);
            }
        }
        Batch::Ready { end: batch.end, folios }
    }

    /// `filemap_create_folio`: readahead gave nothing, so one smallest folio is read on its own.
    fn create_folio(&mut self, open: usize, index: PageIndex) -> Batch {
        let folio = self.readahead(open, index).single_folio();
        if self.immediate {
            Batch::Ready { end: folio.end(), folios: 1 }
        } else {
            Batch::Wait(folio)
        }
    }

    /// The program has copied `from..to`.
    #[inline]
    pub fn copied(&mut self, open: usize, from: ByteOffset, to: ByteOffset) {
        let prev_pos = self.rules.prev_pos;
        let open = &mut self.opens[open];
        self.files[open.file].cache.set_used(from.page(), to.page_up());
        if prev_pos == PrevPos::AsCopied {
            open.ra.prev_pos = to.0.cast_signed();
        }
    }

    /// A read returns, having copied up to `pos`.
    #[inline]
    pub fn read_returns(&mut self, open: usize, pos: ByteOffset) {
        self.opens[open].ra.prev_pos = pos.0.cast_signed();
    }

    /// A whole read in a machine without waiting.
    #[inline]
    pub fn read(&mut self, open: usize, pos: ByteOffset, count: u64) {
        debug_assert!(self.immediate);
        if self.paths.own_reads() {
            self.finish_task(0, open, Some(TaskAccess::Read { pos, count }), pos);
            return;
        }
        let end = ByteOffset(pos.0.saturating_add(count));
        let readable = end.min(ByteOffset(self.file_of(open).limits.size_bytes));
        let mut at = pos;
        while at < readable {
            let Batch::Ready { end: batch_end, .. } = self.get_pages(open, at, end) else {
                return;
            };
            let to = readable.min(batch_end.offset());
            self.copied(open, at, to);
            at = to;
        }
        if at > pos {
            self.read_returns(open, at);
        }
    }

    /// Begins an access of `thread` as a task of the policy's own code, or goes on with the one it is
    /// in, which has copied up to `copied`.
    pub(crate) fn run_task(
        &mut self,
        thread: usize,
        open: usize,
        access: Option<TaskAccess>,
        copied: ByteOffset,
        hold: Hold,
    ) -> Progress {
        let policy = self.policy;
        let mut rac = self.readahead(open, copied.page());
        rac.rule = Rule::Tree;
        if let Some(TaskAccess::WillNeed { pages, .. }) = access {
            rac.count_forced(pages);
        }
        let progress = policy.run_task(&mut rac, thread as u32, access, hold);
        if let Some(to) = progress.copied_to {
            self.file_of(open).cache.set_used(copied.page(), to.page_up());
        }
        let page_table = &mut self.opens[open].page_table;
        for &(first, pages) in &progress.mapped {
            (first.0..first.0 + pages).for_each(|page| page_table.map(PageIndex(page)));
        }
        progress
    }

    /// Runs a task to its end in a machine without waiting. Returns the byte after the last one read.
    pub(crate) fn finish_task(
        &mut self,
        thread: usize,
        open: usize,
        mut access: Option<TaskAccess>,
        mut copied: ByteOffset,
    ) -> ByteOffset {
        loop {
            let step = self.run_task(thread, open, access.take(), copied, Hold::Never);
            copied = step.copied_to.unwrap_or(copied);
            if step.reached == Reached::Returned {
                return copied;
            }
        }
    }

    /// The replay is over: the policy's own code catches up with it.
    pub fn settle(&mut self) {
        let policy = self.policy;
        if self.paths.own_reads() {
            for open in 0..self.opens.len() {
                policy.settle(&mut self.readahead(open, PageIndex(0)));
            }
        }
    }

    /// Pages that a forced readahead of `pages` pages from `page` on looks at.
    pub(crate) fn forced_pages(&mut self, open: usize, page: PageIndex, pages: u64) -> u64 {
        self.readahead(open, page).forced_pages(pages)
    }

    /// The data of the folios of `file` that start in `from..to` is there.
    pub(crate) fn set_uptodate(&mut self, file: usize, from: PageIndex, to: PageIndex) {
        let state = &mut self.files[file];
        state.cache.set_uptodate(from, to);
        self.policy.arrived(state.key, from, to);
    }

    /// `POSIX_FADV_WILLNEED`, `MADV_WILLNEED` or `readahead(2)`.
    pub fn will_need(&mut self, open: usize, page: PageIndex, pages: u64) {
        if self.paths.own_reads() {
            self.finish_task(0, open, Some(TaskAccess::WillNeed { page, pages }), page.offset());
            return;
        }
        if let Some(mut fill) = self.begin_will_need(open, page, pages) {
            self.advance_will_need(open, &mut fill, u64::MAX);
        }
    }

    /// Begins [`will_need`](Self::will_need). `None` if the policy has nothing to do.
    pub(crate) fn begin_will_need(
        &mut self,
        open: usize,
        page: PageIndex,
        pages: u64,
    ) -> Option<ForcedFill> {
        let policy = self.policy;
        let mut rac = self.readahead(open, page);
        rac.note_trigger(Trigger::Forced, page, pages);
        rac.rule = Rule::Forced;
        rac.count_forced(pages);
        let fill = policy.begin_forced(&mut rac, pages);
        self.file_of(open).forced_running += u32::from(fill.is_some());
        fill
    }

    /// Goes on with a forced readahead up to page `until`. Whether it is done.
    pub(crate) fn advance_will_need(
        &mut self,
        open: usize,
        fill: &mut ForcedFill,
        until: u64,
    ) -> bool {
        let policy = self.policy;
        let before = self.file_of(open).log.cache_lock.acquisitions;
        let mut rac = self.readahead(open, PageIndex(0));
        rac.rule = Rule::Forced;
        let done = fill.advance(&mut rac, until);
        if done {
            policy.end_forced(&mut rac);
        }
        let file = self.file_of(open);
        if file.forced_running > 1 {
            file.log.cache_lock.contended += file.log.cache_lock.acquisitions - before;
        }
        file.forced_running -= u32::from(done);
        done
    }

    /// `POSIX_FADV_NORMAL`.
    pub fn advise_normal(&mut self, open: usize) {
        let ra_pages = self.file_of(open).limits.ra_pages;
        let ra = &mut self.opens[open].ra;
        ra.ra_pages = ra_pages;
        ra.random = false;
    }

    /// `POSIX_FADV_SEQUENTIAL`.
    pub fn advise_sequential(&mut self, open: usize) {
        self.advise_normal(open);
        self.opens[open].ra.ra_pages *= 2;
    }

    /// `POSIX_FADV_RANDOM`.
    pub fn advise_random(&mut self, open: usize) {
        self.opens[open].ra.random = true;
    }

    /// `POSIX_FADV_DONTNEED`: drops the folios that lie wholly inside the range and are not mapped
    /// (`mapping_try_invalidate` leaves a folio that someone else holds).
    pub fn dont_need(&mut self, open: usize, pos: ByteOffset, count: u64) {
        let size_bytes = self.file_of(open).limits.size_bytes;
        let end = if count == 0 { u64::MAX } else { pos.0.saturating_add(count) };
        let first = pos.page_up();
        // A partial last page stays, unless the range ends exactly with the file.
        let whole = ByteOffset(if end == size_bytes { end } else { end & !(PAGE_SIZE - 1) });
        let last = whole.page_up().min(ByteOffset(size_bytes).page_up());
        self.evict_where(open, first, last, |machine, file, folio| {
            let mut opens = machine.opens.iter().filter(|open| open.file == file);
            !opens.any(|open| open.page_table.maps_any(folio))
        });
    }

    /// Takes out of the cache what lies wholly in `first..end`.
    pub fn evict_range(&mut self, open: usize, first: PageIndex, end: PageIndex) {
        self.evict_where(open, first, end, |_, _, _| true);
    }

    fn evict_where(
        &mut self,
        open: usize,
        first: PageIndex,
        end: PageIndex,
        goes: impl Fn(&Self, usize, Folio) -> bool,
    ) {
        let file = self.opens[open].file;
        let mut page = first;
        while page < end {
            let Some(folio) = self.files[file].cache.folio_at(page) else {
                page += 1;
                continue;
            };
            if folio.index >= first && folio.end() <= end && goes(self, file, folio) {
                self.evict(file, folio);
            }
            page = folio.end();
        }
    }

    /// Takes one folio out of the cache of `file`, and out of every mapping of it.
    pub fn evict(&mut self, file: usize, folio: Folio) {
        let state = &mut self.files[file];
        state.evicted_unused_pages += state.cache.remove(folio);
        state.log.cache_lock.acquisitions += 1;
        self.policy.evicted(state.key, folio);
        for open in self.opens.iter_mut().filter(|open| open.file == file) {
            open.page_table.unmap(folio);
        }
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        for file in &self.files {
            self.policy.forgotten(file.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use traces::access::{File, Open};
    use traces::event::FileId;
    use traces::settings::Settings;

    use super::*;
    use crate::policy;

    /// What a read of 40 pages that are cached in folios of one page finds, of which the first
    /// `uptodate` are.
    fn batch(policy: &str, uptodate: u64) -> Batch {
        let mut source = Source::generated("generated", Settings::default());
        let (id, path) = (FileId::default(), None);
        let (cached, extents) = (Vec::new(), Vec::new());
        source.files.push(File { id, path, size_bytes: 1 << 20, cached, extents });
        source.opens.push(Open::new(0));
        let policy = policy::parse(policy).unwrap();
        let mut machine = Machine::new(&*policy, &source, false, false);
        for page in 0..40 {
            let folio = Folio { index: PageIndex(page), order: Order(0) };
            machine.files[0].cache.insert(folio, false, page < uptodate).unwrap();
        }
        machine.get_pages(0, ByteOffset(0), ByteOffset(40 * PAGE_SIZE))
    }

    #[test]
    fn before_6_18_a_read_waits_before_it_copies() {
        let wait = Folio { index: PageIndex(3), order: Order(0) };
        let end = PageIndex(3);
        for before in ["linux-5.15", "linux-6.1", "linux-6.12", "linux-6.16"] {
            assert_eq!(batch(before, 3), Batch::ReadyAfter { wait, end, folios: 3 }, "{before}");
        }
        for since in ["linux-6.18", "linux-7.3"] {
            assert_eq!(batch(since, 3), Batch::Ready { end, folios: 3 }, "{since}");
        }
        let first = Folio { index: PageIndex(0), order: Order(0) };
        for policy in policy::ENTRIES.iter().map(|entry| entry.name) {
            assert_eq!(batch(policy, 0), Batch::Wait(first), "{policy}");
        }
    }

    #[test]
    fn batches_have_grown() {
        for (policy, folios) in [("linux-6.7", 15), ("linux-6.8", 31), ("linux-7.3", 31)] {
            let end = PageIndex(u64::from(folios));
            assert_eq!(batch(policy, 40), Batch::Ready { end, folios }, "{policy}");
        }
    }
}
