//! What every readahead implementation is made of: the per-open state, the
//! request being served, and the two ways of filling a window.
//!
//! [`Readahead`] is `struct readahead_control` with the pieces of its
//! surroundings a policy may look at. A policy decides the window
//! ([`FileRa`]), then calls [`Readahead::fill_window`] for large folios or
//! [`Readahead::fill_order0`] for single pages.

use traces::units::{ByteOffset, Order, PAGE_SHIFT, PageIndex};

use crate::log::{Decision, Log, Submitted};
use crate::page_cache::{Folio, PageCache};
use crate::policy::Policy;

/// `struct file_ra_state`: readahead state of one open file. Sizes are in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRa {
    /// First page of the current window.
    pub start: u64,
    /// Length of the window.
    pub size: u64,
    /// Pages of the window after the readahead mark.
    pub async_size: u64,
    /// Largest window, from `read_ahead_kb` and fadvise.
    pub ra_pages: u64,
    /// Preferred folio order (6.16 and later).
    pub order: u32,
    /// Faults that missed the cache minus those that hit.
    pub mmap_miss: u32,
    /// Byte after the last one read; -1 before the first read.
    pub prev_pos: i64,
    /// `FMODE_RANDOM`, set by `POSIX_FADV_RANDOM`.
    pub random: bool,
}

impl FileRa {
    /// State of a file just opened on a device with this `ra_pages`.
    pub fn new(ra_pages: u64) -> Self {
        Self {
            start: 0,
            size: 0,
            async_size: 0,
            ra_pages,
            order: 0,
            mmap_miss: 0,
            prev_pos: -1,
            random: false,
        }
    }

    /// The page of `prev_pos`; for -1 the page before page 0 as the kernel computes it.
    pub fn prev_index(&self) -> u64 {
        self.prev_pos.cast_unsigned() >> PAGE_SHIFT
    }

    /// Where the readahead mark of the current window belongs.
    pub fn mark(&self) -> u64 {
        (self.start + self.size).wrapping_sub(self.async_size)
    }
}

/// What a policy needs to know of a file and its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// `i_size` in bytes.
    pub size_bytes: u64,
    /// `bdi->ra_pages`.
    pub ra_pages: u64,
    /// `bdi->io_pages`, from `max_sectors_kb`.
    pub io_pages: u64,
    /// Smallest folio order of the mapping.
    pub order_min: Order,
    /// Largest folio order of the mapping; 0 where the filesystem has no large folios.
    pub order_max: Order,
}

impl FileLimits {
    /// The last page of the file, `None` when it is empty.
    pub fn last_page(&self) -> Option<PageIndex> {
        self.size_bytes.checked_sub(1).map(|last| ByteOffset(last).page())
    }
}

/// Names one file of one machine, for policies that keep state of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey(pub u64);

/// What called the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A read or fault found a hole.
    Sync,
    /// A read or fault met a readahead mark.
    Async,
    /// fadvise(WILLNEED), readahead(2), or a read without readahead.
    Forced,
    /// A fault outside any sequence reads around its page.
    ReadAround,
}

/// The rule of a policy that chose what to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A read at the start of the file opens a window.
    StartOfFile,
    /// A request larger than the largest window opens one.
    Oversize,
    /// A hole right after the last read opens a window.
    Sequential,
    /// Cached pages before the hole stand for a stream.
    History,
    /// A hole or mark where the state expects it moves the window on.
    Expected,
    /// A mark of another stream: cached pages after it stand for its window.
    StrangeMark,
    /// None of these: the request and no more.
    Random,
    /// The caller asked for these pages, or readahead is off.
    Forced,
    /// A fault reads around its page.
    ReadAround,
    /// A fault reads whole huge pages (`MADV_HUGEPAGE`).
    HugePage,
    /// A kernel tree's own code, whose reasons are not known.
    Tree,
}

impl Rule {
    /// The rule in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::StartOfFile => "a read at the start of the file opens a window",
            Self::Oversize => "a request larger than the largest window opens one",
            Self::Sequential => "a hole right after the last read opens a window",
            Self::History => "cached pages before the hole stand for a stream",
            Self::Expected => "the expected mark moves the window on",
            Self::StrangeMark => "the mark of another stream; cached pages after it are its window",
            Self::Random => "no sequence: the request and no more",
            Self::Forced => "pages asked for explicitly, or readahead off",
            Self::ReadAround => "a fault reads around its page",
            Self::HugePage => "a fault reads whole huge pages",
            Self::Tree => "the tree's own code",
        }
    }
}

/// One readahead request being served (`struct readahead_control`).
pub struct Readahead<'a> {
    /// The outermost policy: a change stacked on a generation is reached through this.
    pub policy: &'a dyn Policy,
    /// State of the open file.
    pub ra: &'a mut FileRa,
    /// What is cached of the file.
    pub cache: &'a mut PageCache,
    /// The file's limits.
    pub limits: FileLimits,
    /// Where decisions are written down.
    pub log: &'a mut Log,
    /// Where runs of pages for the device are put.
    pub submitted: &'a mut Submitted,
    /// Index of the file.
    pub file: u32,
    /// The file, whichever machine it belongs to.
    pub file_key: FileKey,
    /// Index of the open file.
    pub open: u32,
    /// Number of the access being replayed.
    pub access: u64,
    /// Why the replay cannot be used, once a policy's own code has failed.
    pub failure: &'a mut Option<String>,
    /// The replay has to be repeated: the policy's own code did something else than was foretold.
    pub repeat: &'a mut bool,
    /// `ractl->_index`: where the next fill begins.
    pub index: u64,
    /// The rule that chose what is read.
    pub rule: Rule,
    /// Pages the window was shortened by to end on a boundary.
    pub cut_pages: u64,
    /// Whether inserted folios are uptodate at once (a replay without time).
    pub uptodate: bool,
}

impl Readahead<'_> {
    /// `ractl_max_pages`: the largest window for a request of this many pages.
    pub fn max_pages(&self, req_count: u64) -> u64 {
        let (ra_pages, io_pages) = (self.ra.ra_pages, self.limits.io_pages);
        if req_count > ra_pages && io_pages > ra_pages { req_count.min(io_pages) } else { ra_pages }
    }

    /// Most pages of one forced readahead.
    pub fn forced_pages_max(&self) -> u64 {
        self.limits.io_pages.max(self.ra.ra_pages)
    }

    /// Rounds a page down to the mapping's smallest folio.
    pub fn align(&self, index: u64) -> u64 {
        index & !(self.limits.order_min.pages() - 1)
    }

    /// Writes down the window that is about to be filled with folios up to `order`, and why.
    pub fn note_window(&mut self, order: u32) {
        self.log.windows += 1;
        self.log.decision(|| Decision::Window {
            index: self.index,
            ra: *self.ra,
            order,
            rule: self.rule,
            cut_pages: self.cut_pages,
        });
    }

    /// Writes down what called readahead, and the state it met.
    pub fn note_trigger(&mut self, trigger: Trigger, index: PageIndex, req_count: u64) {
        let (index, ra) = (index.0, *self.ra);
        self.log.decision(|| Decision::Triggered { trigger, index, req_count, ra });
    }

    /// Puts one folio into the cache. `false` on a conflict.
    fn add(&mut self, index: u64, order: u32, mark: bool) -> bool {
        let folio = Folio { index: PageIndex(index), order: Order(order as u8) };
        let added = self.cache.insert(folio, mark, self.uptodate).is_ok();
        self.log.insert(folio, mark, added);
        added
    }

    /// `read_pages` after large folios: sends what was added since `self.index` to the device.
    fn submit(&mut self, end: u64) {
        if end > self.index {
            self.submitted.submit(self.file, PageIndex(self.index), end - self.index);
            self.index = end;
        }
    }

    /// `read_pages` after smallest folios.
    fn submit_order0(&mut self, end: u64) {
        let order = self.limits.order_min;
        for index in (self.index..end).step_by(order.pages() as usize) {
            self.submitted.add(Folio { index: PageIndex(index), order });
        }
        self.submit(end);
    }

    /// The large-folio loop of `page_cache_ra_order`: naturally aligned folios up to `order` from
    /// `self.index` to `limit` inclusive, the mark on the folio that contains `mark`.
    ///
    /// Small orders the generation does not know are left out through `usable`. Returns whether a
    /// folio already in the cache ended the loop; `self.index` is then its page.
    pub fn fill_window(
        &mut self,
        limit: u64,
        order: u32,
        mark: Mark,
        usable: impl Fn(u32) -> u32,
    ) -> bool {
        self.index = self.align(self.index);
        let order_min = u32::from(self.limits.order_min.0);
        let mut index = self.index;
        let mut conflict = false;
        while index <= limit {
            let mut fit = order;
            if index & ((1 << fit) - 1) != 0 {
                fit = usable(index.trailing_zeros());
            }
            while fit > order_min && index + (1 << fit) - 1 > limit {
                fit = usable(fit - 1);
            }
            if !self.add(index, fit, mark.is_in(index, fit)) {
                conflict = true;
                break;
            }
            self.submitted.add(Folio { index: PageIndex(index), order: Order(fit as u8) });
            index += 1 << fit;
        }
        self.submit(index);
        conflict
    }

    /// `page_cache_ra_unbounded`: smallest folios for `nr_to_read` pages, skipping what is cached.
    /// Each contiguous run goes to the device on its own.
    pub fn fill_order0(&mut self, nr_to_read: u64, lookahead_size: u64) {
        Order0Fill::begin(self, nr_to_read, lookahead_size).advance(self, u64::MAX);
    }

    /// Adds and reads one smallest folio that holds `self.index`, as the last resort of a read.
    pub fn single_folio(&mut self) -> Folio {
        let order = self.limits.order_min;
        self.index = self.align(self.index);
        let folio = Folio { index: PageIndex(self.index), order };
        self.add(self.index, u32::from(order.0), false);
        self.submit_order0(folio.end().0);
        self.policy.inserted_by_read(self.file_key, folio);
        folio
    }

    /// Puts a folio into the cache that a policy of its own code has decided on. `false` if a page
    /// of it is cached already.
    pub fn follow_folio(&mut self, folio: Folio, mark: bool) -> bool {
        self.add(folio.index.0, u32::from(folio.order.0), mark)
    }

    /// Sends pages to the device that such a policy has submitted. Other threads may have put folios
    /// into the cache since it did.
    pub fn follow_read(&mut self, start: PageIndex, pages: u64) {
        let mut page = start;
        while page < start + pages {
            let folio = self.cache.folio_at(page);
            folio.inspect(|folio| self.submitted.add(*folio));
            page = folio.map_or(page + 1, Folio::end);
        }
        self.submitted.submit(self.file, start, pages);
    }

    /// `force_page_cache_ra`, all at once.
    pub fn force(&mut self, nr_to_read: u64) {
        let policy = self.policy;
        self.rule = Rule::Forced;
        if let Some(mut fill) = policy.begin_forced(self, nr_to_read) {
            fill.advance(self, u64::MAX);
            policy.end_forced(self);
        }
    }

    /// Pages that a forced readahead of `nr_to_read` pages looks at: no more than one call may, and
    /// none beyond the end of the file.
    pub(crate) fn forced_pages(&self, nr_to_read: u64) -> u64 {
        let end = self.limits.last_page().map_or(0, |last| last.0 + 1);
        nr_to_read.min(self.forced_pages_max()).min(end.saturating_sub(self.index))
    }

    /// Counts a forced call for `nr_to_read` pages before it is made.
    pub fn count_forced(&mut self, nr_to_read: u64) {
        let end = self.index + self.forced_pages(nr_to_read);
        let covered = self.cache.contains_all(PageIndex(self.index), PageIndex(end));
        let lock = &mut self.log.cache_lock;
        lock.forced_calls += 1;
        lock.forced_pages += end - self.index;
        lock.forced_covered += u64::from(covered);
    }

    /// `do_page_cache_ra`: [`fill_order0`](Self::fill_order0) clipped to the end of the file.
    pub fn fill_order0_in_file(&mut self, nr_to_read: u64, lookahead_size: u64) {
        if let Some(mut fill) = self.begin_order0_in_file(nr_to_read, lookahead_size) {
            fill.advance(self, u64::MAX);
        }
    }

    fn begin_order0_in_file(&mut self, nr_to_read: u64, lookahead_size: u64) -> Option<Order0Fill> {
        let left = self.limits.last_page()?.0.checked_sub(self.index)?;
        if nr_to_read > left {
            let marks = self.policy.rules().mark_at_eof;
            let lookahead_size = if marks { lookahead_size } else { 0 };
            return Some(Order0Fill::begin(self, left + 1, lookahead_size));
        }
        Some(Order0Fill::begin(self, nr_to_read, lookahead_size))
    }
}

/// A run of the order-0 path that can stop between pages, so that a replay in trace order can let
/// threads interleave.
#[derive(Clone, Copy, Debug)]
struct Order0Fill {
    /// First page not yet sent to the device (`ractl->_index`).
    unsent: u64,
    /// Next page to look at.
    index: u64,
    end: u64,
    mark: Option<u64>,
}

impl Order0Fill {
    fn begin(rac: &mut Readahead<'_>, nr_to_read: u64, lookahead_size: u64) -> Self {
        let step = rac.limits.order_min.pages();
        let (index, rule) = (rac.index, rac.rule);
        rac.log.decision(|| Decision::Order0 { index, nr_to_read, lookahead_size, rule });
        let mark = (lookahead_size <= nr_to_read)
            .then(|| (rac.index + nr_to_read - lookahead_size).next_multiple_of(step));
        let first = rac.align(rac.index);
        Self { unsent: first, index: first, end: rac.index + nr_to_read, mark }
    }

    /// Fills pages before `until`. Whether the run is done.
    fn advance(&mut self, rac: &mut Readahead<'_>, until: u64) -> bool {
        let step = rac.limits.order_min.pages();
        let order = u32::from(rac.limits.order_min.0);
        rac.index = self.unsent;
        while self.index < self.end.min(until) {
            rac.log.cache_lock.lookups += 1;
            let cached = rac.cache.contains(PageIndex(self.index));
            rac.log.cache_lock.found += u64::from(cached);
            if cached || !rac.add(self.index, order, self.mark == Some(self.index)) {
                rac.submit_order0(self.index);
                rac.index += step;
            }
            self.index += step;
        }
        let done = self.index >= self.end;
        if done {
            rac.submit_order0(self.index);
        }
        self.unsent = rac.index;
        done
    }
}

/// A forced readahead (`force_page_cache_ra`) under way: 2 MiB chunks of single pages.
#[derive(Clone, Copy, Debug)]
pub struct ForcedFill {
    /// First page of the next chunk.
    next: u64,
    left: u64,
    chunk: Option<Order0Fill>,
}

impl ForcedFill {
    /// From `rac.index` on, `nr_to_read` pages at most.
    pub fn new(rac: &Readahead<'_>, nr_to_read: u64) -> Self {
        Self { next: rac.index, left: nr_to_read.min(rac.forced_pages_max()), chunk: None }
    }

    /// Fills pages before `until`. Whether everything is done.
    pub fn advance(&mut self, rac: &mut Readahead<'_>, until: u64) -> bool {
        const CHUNK_PAGES: u64 = (2 << 20) >> PAGE_SHIFT;
        loop {
            if let Some(mut chunk) = self.chunk.take()
                && !chunk.advance(rac, until)
            {
                self.chunk = Some(chunk);
                return false;
            }
            if self.left == 0 {
                return true;
            }
            let pages = self.left.min(CHUNK_PAGES);
            rac.index = self.next;
            self.chunk = rac.begin_order0_in_file(pages, 0);
            self.next += pages;
            self.left -= pages;
        }
    }

    /// The next page it looks at.
    pub fn position(&self) -> u64 {
        self.chunk.map_or(self.next, |chunk| chunk.index)
    }

    /// The page after the last one this readahead looks at.
    pub fn end(&self) -> u64 {
        self.next + self.left
    }
}

/// The page that gets the readahead mark, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No mark.
    None,
    /// On the folio that contains this page.
    On(u64),
    /// On the folio that starts at this page rounded up to the folio's size (before 6.8).
    RoundedUp(u64),
}

impl Mark {
    fn is_in(self, index: u64, order: u32) -> bool {
        match self {
            Self::None => false,
            Self::On(mark) => mark >> order << order == index,
            Self::RoundedUp(mark) => mark.next_multiple_of(1 << order) == index,
        }
    }
}

/// `get_init_ra_size`: the first window for a request of `size` pages.
pub fn initial_size(size: u64, max: u64) -> u64 {
    let rounded = size.next_power_of_two();
    if rounded <= max / 32 {
        rounded * 4
    } else if rounded <= max / 4 {
        rounded * 2
    } else {
        max
    }
}

/// `get_next_ra_size`: the window after one of `size` pages.
pub fn next_size(size: u64, max: u64) -> u64 {
    if size < max / 16 {
        4 * size
    } else if size <= max / 2 {
        2 * size
    } else {
        max
    }
}
