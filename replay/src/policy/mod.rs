//! Readahead implementations: one file each, behind one trait.
//!
//! A *generation* is the readahead of one kernel line; a *change* is a proposed
//! patch, stacked on a generation: `linux-7.3+align-async-window-v2`. Adding
//! one is a file, a line in [`ENTRIES`], and a row in the pinned table
//! in the tests.

use std::sync::Arc;

use traces::units::PageIndex;

use crate::page_cache::Folio;
use crate::readahead::{FileKey, ForcedFill, Readahead};
use crate::task::{Hold, Progress, TaskAccess};
use crate::xarray::NoHole;

mod align_async_window;
mod change;
mod linux_5_15;
mod linux_6_12;
mod linux_6_18;
mod linux_6_8;
mod mainline;
mod ondemand;
mod randread_disabled;
mod skip_overlapped;

/// One readahead implementation.
///
/// The methods are the entry points of `mm/readahead.c`. An implementation
/// reaches the other entry points through [`Readahead::policy`], so that a
/// change stacked on top is in effect everywhere.
pub trait Policy: Send + Sync {
    /// Name on the command line.
    fn name(&self) -> &str;

    /// Identifies what it does to one version of this program: the same id is the same behaviour.
    fn id(&self) -> String {
        self.name().to_owned()
    }

    /// What whoever reads its results should know of it.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What its code would do on a kernel and a replay does not make it do.
    fn not_modelled(&self) -> &'static [&'static str] {
        &[]
    }

    /// Facts about the read and mmap path that belong to the same kernel.
    fn rules(&self) -> Rules;

    /// `page_cache_sync_ra`: a read found a hole at `rac.index`, with `req_count` pages to go.
    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64);

    /// `page_cache_async_ra`: a read or fault met the mark on `folio`.
    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64);

    /// `page_cache_ra_order`: fills the window in `rac.ra` from `rac.index` on.
    ///
    /// `order` is the preferred order as the caller passes it: of the marked folio before 6.16,
    /// of the readahead state since.
    fn ra_order(&self, rac: &mut Readahead<'_>, order: u32);

    /// The beginning of `force_page_cache_ra` for `nr_to_read` pages from `rac.index` on. `None` if
    /// there is nothing to do.
    fn begin_forced(&self, rac: &mut Readahead<'_>, nr_to_read: u64) -> Option<ForcedFill> {
        Some(ForcedFill::new(rac, nr_to_read))
    }

    /// The end of a forced readahead that was begun.
    fn end_forced(&self, _rac: &mut Readahead<'_>) {}

    /// Whose code carries out reads, faults and forced readahead.
    fn paths(&self) -> Paths {
        Paths::BuiltIn
    }

    /// Begins an access of `thread` as a task of the policy's own code, or goes on with its task if
    /// there is no access. Only for policies with [`paths`](Self::paths) of their own.
    fn run_task(
        &self,
        _rac: &mut Readahead<'_>,
        _thread: u32,
        _access: Option<TaskAccess>,
        _hold: Hold,
    ) -> Progress {
        Progress::RETURNED
    }

    /// The replay is over. Policies that put steps of their own code off catch up with them, for the
    /// file of `rac`.
    fn settle(&self, _rac: &mut Readahead<'_>) {}

    /// The read path has put a folio into the cache without readahead. For policies that keep a
    /// page cache of their own.
    fn inserted_by_read(&self, _file: FileKey, _folio: Folio) {}

    /// A folio has left the cache. For policies that keep a page cache of their own.
    fn evicted(&self, _file: FileKey, _folio: Folio) {}

    /// The data of the folios that start in `from..to` has arrived. For policies that keep a page
    /// cache of their own.
    fn arrived(&self, _file: FileKey, _from: PageIndex, _to: PageIndex) {}

    /// A file is not replayed any more. For policies that keep a page cache of their own.
    fn forgotten(&self, _file: FileKey) {}
}

/// Whose code carries out accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// This crate's, by the policy's [`Rules`].
    BuiltIn,
    /// The policy's for faults, this crate's for reads and forced readahead.
    OwnFaults,
    /// The policy's for all of them.
    Own,
}

impl Paths {
    /// Whether faults are the policy's.
    pub fn own_faults(self) -> bool {
        self != Self::BuiltIn
    }

    /// Whether reads and forced readahead are the policy's.
    pub fn own_reads(self) -> bool {
        self == Self::Own
    }
}

/// When `prev_pos` of the open file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrevPos {
    /// After each batch is copied.
    AsCopied,
    /// Once, when the read returns.
    AtReturn,
}

/// How fault-around lowers `mmap_miss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAroundHits {
    /// By every page it looks at in a cached folio.
    Pages,
    /// By one for the folio that serves the fault, unless the fault is a retry.
    Served,
}

/// What belongs to a kernel version but lies outside `mm/readahead.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of a kernel version")]
pub struct Rules {
    /// What `page_cache_next_miss` returns when it found no hole.
    pub next_no_hole: NoHole,
    /// What `page_cache_prev_miss` returns when it found no hole.
    pub prev_no_hole: NoHole,
    /// When `prev_pos` is written.
    pub prev_pos: PrevPos,
    /// Most folios of one batch of a read: 31 since 9cecde80aae0 ("mm: increase folio batch size", 6.9).
    pub batch_folios_max: u32,
    /// Whether a read waits for a batch's last folio before it copies the ones before it, as it did
    /// until "mm/filemap: skip non-uptodate folio if there are available folios" (6.18).
    pub batch_waits: bool,
    /// Whether the order-0 path sets a readahead mark in a window cut at the end of the file.
    pub mark_at_eof: bool,
    /// Whether the large-folio path exists.
    pub large_folios: bool,
    /// How fault-around counts as hits.
    pub fault_around_hits: FaultAroundHits,
    /// Whether fault-around maps a large folio as a whole, beyond its 16 pages.
    pub maps_whole_folio: bool,
    /// Whether an executable mapping has a read-around of its own (no async part).
    pub exec_window: bool,
}

/// An entry of `policy list`.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name on the command line.
    pub name: &'static str,
    /// One line: what it is.
    pub summary: &'static str,
    /// Kernel commits and versions it follows.
    pub follows: &'static str,
    /// How it was checked against real kernels.
    pub checked: &'static str,
    make: Make,
}

#[derive(Clone, Copy)]
enum Make {
    Generation(fn() -> Arc<dyn Policy>),
    Change { base: &'static str, stack: fn(Arc<dyn Policy>) -> Arc<dyn Policy> },
}

impl Entry {
    /// The generation a change is stacked on when none is named; `None` for a generation.
    pub fn base(&self) -> Option<&'static str> {
        match self.make {
            Make::Generation(_) => None,
            Make::Change { base, .. } => Some(base),
        }
    }
}

/// Every built-in policy: generations by age, then changes.
pub const ENTRIES: &[Entry] = &[
    linux_5_15::ENTRY,
    linux_6_8::ENTRY_6_1,
    linux_6_8::ENTRY_6_7,
    linux_6_8::ENTRY_6_8,
    linux_6_12::ENTRY,
    linux_6_18::ENTRY_6_16,
    linux_6_18::ENTRY_6_18,
    mainline::ENTRY,
    align_async_window::ENTRY,
    randread_disabled::ENTRY,
    skip_overlapped::ENTRY,
];

/// A policy name that is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No entry has this name.
    #[error("unknown policy `{name}`; known are {}", known())]
    Unknown {
        /// The name.
        name: String,
    },
    /// `A+B` where `B` is a generation.
    #[error("`{name}` is a kernel generation and cannot be stacked on another; put it first")]
    NotAChange {
        /// The name.
        name: String,
    },
}

fn known() -> String {
    ENTRIES.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

fn entry(name: &str) -> Result<&'static Entry, PolicyError> {
    let found = ENTRIES.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| PolicyError::Unknown { name: name.to_owned() })
}

/// The entry behind a name without `+`.
pub fn describe(name: &str) -> Result<&'static Entry, PolicyError> {
    entry(name)
}

/// The policy a command line names: a generation, a change, or `GENERATION+CHANGE+...`.
pub fn parse(spec: &str) -> Result<Arc<dyn Policy>, PolicyError> {
    let mut parts = spec.split('+');
    let first = entry(parts.next().unwrap_or_default())?;
    let mut policy = match first.make {
        Make::Generation(make) => make(),
        Make::Change { base, stack } => stack(parse(base)?),
    };
    for name in parts {
        match entry(name)?.make {
            Make::Generation(_) => {
                return Err(PolicyError::NotAChange { name: name.to_owned() });
            }
            Make::Change { stack, .. } => policy = stack(policy),
        }
    }
    Ok(policy)
}

/// The generation that a kernel release such as `6.18.44` runs, if one is modelled.
pub fn for_kernel(release: &str) -> Option<&'static str> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    let version: (u32, u32) = (numbers.next()?, numbers.next()?);
    match version {
        (5, 4..=17) => Some("linux-5.15"),
        (6, 1) => Some("linux-6.1"),
        (5, 18..) | (6, 0 | 2..=7) => Some("linux-6.7"),
        (6, 8..=10) => Some("linux-6.8"),
        (6, 11..=15) => Some("linux-6.12"),
        (6, 16 | 17) => Some("linux-6.16"),
        (6, 18..) | (7, 0..=1) => Some("linux-6.18"),
        (7, _) => Some("linux-7.3"),
        _ => None,
    }
}
