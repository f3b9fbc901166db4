//! The layouts of `shim/abi.h`, and the accesses and decisions they carry.

use std::num::NonZeroU32;

use traces::units::{ByteOffset, Order, PageIndex};

use crate::error::{Error, Result, harmless};

/// `KSHIM_ABI`.
pub(crate) const ABI: u32 = 3;

/// An open file of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OpenId(pub(crate) u32);

/// What is known about a file and its device before the replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceSettings {
    /// Size of the file in bytes.
    pub i_size: u64,
    /// `read_ahead_kb` in pages.
    pub ra_pages: u32,
    /// `max_sectors_kb` in pages.
    pub io_pages: u32,
    /// Smallest folio of the file's mapping. Kernels before 6.12 know only 0.
    pub min_order: Order,
    /// Largest folio of the file's mapping; 0 for a filesystem without large folios. Kernels before
    /// 6.12 know only 0 and their own maximum, which any other value means.
    pub max_order: Order,
    /// When reads complete.
    pub completion: Completion,
    /// log2 of the pages a fault may map around itself: 4 for the usual `fault_around_bytes`.
    pub fault_around: Order,
}

impl Default for InstanceSettings {
    /// An empty file on a filesystem with large folios, `read_ahead_kb` 128, `max_sectors_kb` 512.
    fn default() -> Self {
        Self {
            i_size: 0,
            ra_pages: 32,
            io_pages: 128,
            min_order: Order(0),
            max_order: Order(9),
            completion: Completion::AtOnce,
            fault_around: Order(4),
        }
    }
}

/// When the folios of a device read become uptodate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Completion {
    /// As soon as it is submitted: the device is infinitely fast.
    #[default]
    AtOnce,
    /// When an access waits for one of its folios, or [`Access::complete`] says so.
    WhenWaited,
    /// When [`Access::complete`] says so. A task that needs one of its folios stands still until it
    /// is let go on; other accesses do not wait.
    WhenTold,
}

/// `struct kshim_settings`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawSettings {
    pub(crate) i_size: u64,
    pub(crate) ra_pages: u32,
    pub(crate) io_pages: u32,
    pub(crate) min_order: u8,
    pub(crate) max_order: u8,
    pub(crate) completion: u8,
    pub(crate) fault_around_order: u8,
    pub(crate) reserved: u32,
}

impl TryFrom<InstanceSettings> for RawSettings {
    type Error = Error;

    fn try_from(s: InstanceSettings) -> Result<Self> {
        let bad = |setting, value, expected| Err(Error::BadSetting { setting, value, expected });
        if s.min_order > s.max_order {
            return bad("min_order", u64::from(s.min_order.0), "not above max_order");
        }
        if s.max_order.0 > 11 {
            return bad("max_order", u64::from(s.max_order.0), "at most 11");
        }
        if s.fault_around.0 > 9 {
            return bad("fault_around", u64::from(s.fault_around.0), "at most 9, one page table");
        }
        if s.i_size > i64::MAX as u64 {
            return bad("i_size", s.i_size, "at most 2^63-1");
        }
        Ok(Self {
            i_size: s.i_size,
            ra_pages: s.ra_pages,
            io_pages: s.io_pages,
            min_order: s.min_order.0,
            max_order: s.max_order.0,
            completion: s.completion as u8,
            fault_around_order: s.fault_around.0,
            reserved: 0,
        })
    }
}

/// `posix_fadvise` advice that readahead looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Advice {
    /// `POSIX_FADV_NORMAL`
    Normal = 2,
    /// `POSIX_FADV_RANDOM`
    Random = 3,
    /// `POSIX_FADV_SEQUENTIAL`
    Sequential = 4,
    /// `POSIX_FADV_WILLNEED`
    WillNeed = 5,
    /// `POSIX_FADV_DONTNEED`
    DontNeed = 6,
}

/// How a file is mapped, for [`Access::touch`]: the flags of the mapping that readahead looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a mapping")]
pub struct Mapping {
    /// `MADV_RANDOM`
    pub random: bool,
    /// `MADV_SEQUENTIAL`
    pub sequential: bool,
    /// Mapped executable.
    pub exec: bool,
    /// `MADV_HUGEPAGE`
    pub huge_pages: bool,
}

/// A task of an instance: an access that runs as a thread of the kernel does, standing still where
/// it has to wait or is held. The caller numbers them, from 0; a number is free again once its access
/// has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TaskId(pub u32);

/// Where a task is held, besides where it has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags of a task")]
pub struct Stops {
    /// After each trigger.
    pub at_triggers: bool,
    /// When a batch of folios is ready to be copied.
    pub at_batches: bool,
    /// When a batch has been copied that is not the read's last.
    pub after_copies: bool,
    /// Before a folio is inserted at `until` or later.
    pub before_insertions: bool,
    /// Batches end with the folio that holds the page before this one.
    pub until: PageIndex,
}

impl Stops {
    /// Nowhere.
    pub const NONE: Self = Self {
        at_triggers: false,
        at_batches: false,
        after_copies: false,
        before_insertions: false,
        until: PageIndex(u64::MAX),
    };

    fn bits(self) -> u8 {
        u8::from(self.at_triggers)
            | u8::from(self.at_batches) << 1
            | u8::from(self.after_copies) << 2
            | u8::from(self.before_insertions) << 3
    }
}

/// One access, or another event that readahead sees.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    kind: u8,
    flags: u8,
    order: u8,
    stops: u8,
    open: u32,
    pos: u64,
    len: u64,
    until: u64,
    task: u32,
    foretold: u32,
}

impl Access {
    const READ: u8 = 0;
    const TOUCH: u8 = 1;
    const READAHEAD: u8 = 7;
    const EVICT: u8 = 8;
    const CACHED: u8 = 9;
    const COMPLETE: u8 = 10;
    const CLOSE: u8 = 11;
    const SYNC_RA: u8 = 12;
    const ASYNC_RA: u8 = 13;
    const PREV_POS: u8 = 14;
    const GO_ON: u8 = 15;
    const RA_PAGES: u8 = 16;
    const NO_TASK: u32 = u32::MAX;

    const fn new(kind: u8, open: OpenId, pos: u64, len: u64) -> Self {
        Self {
            kind,
            flags: 0,
            order: 0,
            stops: 0,
            open: open.0,
            pos,
            len,
            until: u64::MAX,
            task: Self::NO_TASK,
            foretold: 0,
        }
    }

    /// The access as the beginning of a task, which runs as far as it can and `stops` allow.
    #[must_use]
    pub fn in_task(self, task: TaskId, stops: Stops) -> Self {
        Self { task: task.0, stops: stops.bits(), until: stops.until.0, ..self }
    }

    /// Says of a read in a task that it will copy all of its bytes from `folios` cached folios and
    /// return. That is then not among the decisions; if it does anything else, the replay ends with
    /// [`Error::NotForetold`](crate::Error::NotForetold) right after.
    #[must_use]
    pub const fn foretold(self, folios: NonZeroU32) -> Self {
        Self { foretold: folios.get(), ..self }
    }

    /// Goes on with a task that stands still. What it waits for has been completed or evicted.
    pub fn go_on(task: TaskId, stops: Stops) -> Self {
        Self::new(Self::GO_ON, OpenId(u32::MAX), 0, 0).in_task(task, stops)
    }

    /// `read` of `len` bytes at `pos`.
    pub const fn read(open: OpenId, pos: ByteOffset, len: u64) -> Self {
        Self::new(Self::READ, open, pos.0, len)
    }

    /// A load from a page of the mapped file: a fault unless the page is mapped already. The whole
    /// file counts as mapped from its start, through each open file once.
    pub fn touch(open: OpenId, page: PageIndex, mapping: Mapping) -> Self {
        let flags = u8::from(mapping.random)
            | u8::from(mapping.sequential) << 1
            | u8::from(mapping.exec) << 2
            | u8::from(mapping.huge_pages) << 3;
        Self { flags, ..Self::new(Self::TOUCH, open, page.offset().0, 1) }
    }

    /// `posix_fadvise` of `len` bytes at `pos`; `len` 0 is to the end of the file.
    pub const fn advise(open: OpenId, advice: Advice, pos: ByteOffset, len: u64) -> Self {
        Self::new(advice as u8, open, pos.0, len)
    }

    /// `readahead` of `len` bytes at `pos`.
    pub const fn readahead(open: OpenId, pos: ByteOffset, len: u64) -> Self {
        Self::new(Self::READAHEAD, open, pos.0, len)
    }

    /// Reclaim of the folio that holds `page`, which is also unmapped.
    pub fn evict(page: PageIndex) -> Self {
        Self::new(Self::EVICT, OpenId(u32::MAX), page.offset().0, 0)
    }

    /// A folio that was in the page cache before the replay; nothing is logged for it.
    pub fn cached(page: PageIndex, order: Order) -> Self {
        Self { order: order.0, ..Self::new(Self::CACHED, OpenId(u32::MAX), page.offset().0, 0) }
    }

    /// Completion of the reads in flight of `pages` pages from `page` on.
    pub fn complete(page: PageIndex, pages: u64) -> Self {
        Self::new(Self::COMPLETE, OpenId(u32::MAX), page.offset().0, PageIndex(pages).offset().0)
    }

    /// Close of an open file; its id is not used again.
    pub const fn close(open: OpenId) -> Self {
        Self::new(Self::CLOSE, open, 0, 0)
    }

    /// `page_cache_sync_ra` at a hole, with `req_count` pages to go: for a read path of the caller's
    /// own, which inserts and evicts nothing itself but follows what is decided here.
    pub fn sync_ra(open: OpenId, index: PageIndex, req_count: u64) -> Self {
        Self::new(Self::SYNC_RA, open, index.offset().0, req_count)
    }

    /// `page_cache_async_ra` for the folio at `index`, see [`Access::sync_ra`].
    pub fn async_ra(open: OpenId, index: PageIndex, req_count: u64) -> Self {
        Self::new(Self::ASYNC_RA, open, index.offset().0, req_count)
    }

    /// `prev_pos` of the file's readahead state as a read leaves it, see [`Access::sync_ra`].
    pub const fn prev_pos(open: OpenId, pos: ByteOffset) -> Self {
        Self::new(Self::PREV_POS, open, pos.0, 0)
    }

    /// `ra_pages` of the file's readahead state, where neither the device nor advice gives it: a
    /// program may have opened the file before the device's was changed.
    pub const fn ra_pages(open: OpenId, pages: u32) -> Self {
        Self::new(Self::RA_PAGES, open, 0, pages as u64)
    }

    pub(crate) fn needs_open(&self) -> Option<OpenId> {
        (!matches!(self.kind, Self::EVICT | Self::CACHED | Self::COMPLETE | Self::GO_ON))
            .then_some(OpenId(self.open))
    }
}

/// `struct kshim_decision`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawDecision {
    access: u32,
    kind: u8,
    order: u8,
    flags: u16,
    index: u64,
    n: u32,
    extra: u32,
}

/// What calls readahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A page that is not there: `page_cache_sync_ra`.
    Sync,
    /// A folio with the readahead mark: `page_cache_async_ra`.
    Async,
    /// Asked for regardless of the pattern (`force_page_cache_ra`), or a sync trigger of a file in
    /// random mode or with readahead disabled.
    Forced,
}

/// Something the tree's code decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decided {
    /// The read path called readahead.
    Trigger {
        /// How.
        trigger: Trigger,
        /// First page it is about.
        index: PageIndex,
        /// Pages asked for; above 2^32-1 that.
        req_count: u32,
    },
    /// The file's readahead state changed; follows the folios and reads it led to.
    Window {
        /// `start`
        start: PageIndex,
        /// `size` in pages
        size: u32,
        /// `async_size` in pages
        async_size: u32,
        /// `order`, where the kernel keeps one there.
        order: Option<Order>,
    },
    /// A folio was put in the page cache.
    Folio {
        /// Its first page.
        index: PageIndex,
        /// Its order.
        order: Order,
        /// It carries the readahead mark.
        marked: bool,
    },
    /// A read was submitted: to the filesystem, which may still split it at extents and limits.
    DeviceRead {
        /// First page.
        start: PageIndex,
        /// Pages.
        pages: u32,
    },
    /// A touch found its page not mapped.
    Fault {
        /// The page.
        index: PageIndex,
        /// It was not in the page cache either.
        major: bool,
    },
    /// Pages were mapped, by the fault or around it.
    Mapped {
        /// First page.
        index: PageIndex,
        /// Pages.
        pages: u32,
    },
    /// `POSIX_FADV_DONTNEED` took a folio out of the page cache.
    Dropped {
        /// Its first page.
        index: PageIndex,
        /// Its order.
        order: Order,
    },
    /// A task copied to the program.
    Copied {
        /// The byte after the last one.
        to: ByteOffset,
        /// Folios it copied from.
        folios: u32,
    },
    /// A task is about to copy a batch.
    Batch {
        /// First page.
        start: PageIndex,
        /// Pages to the end of its last folio.
        pages: u32,
    },
    /// A task waits for a folio.
    Waits {
        /// Its first page.
        index: PageIndex,
        /// Its order.
        order: Order,
    },
    /// A task is about to insert a folio.
    Held {
        /// Its first page.
        index: PageIndex,
    },
    /// A task is over.
    Returned {
        /// Of a read, the byte after the last one.
        to: ByteOffset,
    },
    /// `prev_pos` of a task's open file at the trigger that follows, where it has changed.
    PrevPos {
        /// As the kernel has it, -1 for a file not read yet.
        pos: i64,
    },
}

/// A decision and the access that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Number of the access within the slice given to the replay.
    pub access: u32,
    /// What was decided.
    pub what: Decided,
}

impl RawDecision {
    /// The number of the access it belongs to.
    pub(crate) fn access(&self) -> u32 {
        self.access
    }

    pub(crate) fn shift_access(&mut self, by: u32) {
        self.access = self.access.saturating_add(by);
    }

    /// Nothing for a kind that does not exist: a worker's memory is in the hands of the tree's code.
    fn decode(&self) -> Option<Decision> {
        let index = PageIndex(self.index);
        let order = Order(self.order);
        let what = match (self.kind, self.flags) {
            (0, how) => {
                let trigger = match how {
                    0 => Trigger::Sync,
                    1 => Trigger::Async,
                    2 => Trigger::Forced,
                    _ => return None,
                };
                Decided::Trigger { trigger, index, req_count: self.n }
            }
            (1, _) => Decided::Window {
                start: index,
                size: self.n,
                async_size: self.extra,
                order: (self.order != u8::MAX).then_some(order),
            },
            (2, marked) if usize::from(self.order) < Order::COUNT => {
                Decided::Folio { index, order, marked: marked != 0 }
            }
            (3, _) => Decided::DeviceRead { start: index, pages: self.n },
            (4, major) => Decided::Fault { index, major: major != 0 },
            (5, _) => Decided::Mapped { index, pages: self.n },
            (6, _) if usize::from(self.order) < Order::COUNT => Decided::Dropped { index, order },
            (7, _) => Decided::Copied { to: ByteOffset(self.index), folios: self.n },
            (8, _) => Decided::Batch { start: index, pages: self.n },
            (9, _) if usize::from(self.order) < Order::COUNT => Decided::Waits { index, order },
            (10, _) => Decided::Held { index },
            (11, _) => Decided::Returned { to: ByteOffset(self.index) },
            (12, _) => Decided::PrevPos { pos: self.index.cast_signed() },
            _ => return None,
        };
        Some(Decision { access: self.access, what })
    }
}

/// The decisions of one call, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub(crate) raw: Vec<RawDecision>,
}

impl Decisions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Decision> {
        self.raw.iter().filter_map(RawDecision::decode)
    }

    /// Those of one access of the slice.
    pub fn of(&self, access: usize) -> impl Iterator<Item = Decision> {
        let first = self.raw.partition_point(|d| (d.access() as usize) < access);
        let rest = self.raw[first..].iter();
        rest.take_while(move |d| d.access() as usize == access).filter_map(RawDecision::decode)
    }
}

/// `struct kshim_stop`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawStop {
    pub(crate) kind: u32,
    pub(crate) line: u32,
    pub(crate) file: [u8; 64],
    pub(crate) what: [u8; 160],
}

impl RawStop {
    pub(crate) const RUNNING: Self = Self { kind: 0, line: 0, file: [0; 64], what: [0; 160] };
    pub(crate) const BUG: u32 = 1;
    pub(crate) const NO_MEMORY: u32 = 2;
    pub(crate) const NOT_FORETOLD: u32 = 3;

    pub(crate) fn file(&self) -> String {
        c_text(&self.file)
    }

    pub(crate) fn what(&self) -> String {
        c_text(&self.what)
    }
}

fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|c| *c == 0).unwrap_or(bytes.len());
    harmless(&String::from_utf8_lossy(&bytes[..end]))
}

/// `struct kshim_crash`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCrash {
    pub(crate) signal: u32,
    pub(crate) system_call: u32,
    pub(crate) address: u64,
    pub(crate) depth: u32,
    pub(crate) reserved: u32,
    pub(crate) frames: [u64; 32],
}

const _: () = {
    assert!(size_of::<RawSettings>() == 24);
    assert!(size_of::<Access>() == 40);
    assert!(size_of::<RawDecision>() == 24);
    assert!(size_of::<RawStop>() == 232);
    assert!(size_of::<RawCrash>() == 280);
};
