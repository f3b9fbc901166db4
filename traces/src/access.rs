//! Access streams: what programs asked of the page cache, free of what readahead made of it.

use serde::{Deserialize, Serialize};

use crate::capture::Losses;
use crate::event::{Device, FileId};
use crate::settings::{Origin, SettingError, Settings};
use crate::units::{ByteOffset, Order, PAGE_SIZE, PageIndex, Sector, Time};

/// How much of what the program did a stream reproduces; best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Every read with its position and length.
    Exact,
    /// Reads and faults to the page.
    Page,
    /// Only what triggered readahead.
    Trigger,
    /// Only what was put into the page cache.
    Insertions,
    /// Only what the device was asked for.
    Device,
}

impl Fidelity {
    /// Whether the stream shows what the program asked for, rather than what readahead did.
    pub fn is_replayable(self) -> bool {
        self <= Self::Page
    }
}

/// One access, or one other thing that changes what readahead sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// When it began.
    pub time: Time,
    /// Position among the events of its capture, to order it against [`Anchor`]s.
    pub seq: u64,
    /// Index into [`Source::threads`].
    pub thread: u32,
    /// Index into [`Source::opens`].
    pub open: u32,
    /// Nanoseconds the program spent between its last access and this one.
    pub think_ns: u64,
    /// What it was.
    pub kind: AccessKind,
}

/// The kinds of [`Access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A buffered read of `count` bytes at `pos`.
    Read {
        /// First byte.
        pos: ByteOffset,
        /// Bytes asked for.
        count: u64,
    },
    /// The program touches a page of a mapping; whether that faults is up to the replay.
    Touch {
        /// The page.
        page: PageIndex,
    },
    /// A recorded fault that reached the page cache (`filemap_fault`).
    Fault {
        /// The page.
        page: PageIndex,
        /// Whether it was the second try of a fault that had to wait.
        retry: bool,
    },
    /// A recorded fault-around (`filemap_map_pages`).
    FaultAround {
        /// First page looked at.
        first: PageIndex,
        /// Last page looked at, inclusive.
        last: PageIndex,
        /// Whether it served the fault, so that none reached the page cache.
        served: bool,
        /// Whether it was the second try of a fault that had to wait.
        retry: bool,
    },
    /// `POSIX_FADV_WILLNEED`, `readahead(2)` or `MADV_WILLNEED`.
    WillNeed {
        /// First page.
        page: PageIndex,
        /// Pages.
        pages: u64,
    },
    /// `POSIX_FADV_NORMAL`.
    AdviseNormal,
    /// `POSIX_FADV_SEQUENTIAL`.
    AdviseSequential,
    /// `POSIX_FADV_RANDOM`.
    AdviseRandom,
    /// `POSIX_FADV_DONTNEED`.
    DontNeed {
        /// First byte.
        pos: ByteOffset,
        /// Bytes; 0 means to the end of the file.
        count: u64,
    },
    /// A folio left the page cache (reclaim or invalidation), as recorded.
    Evict {
        /// First page of the folio.
        page: PageIndex,
        /// Its order.
        order: Order,
    },
}

/// A recorded point of a running read or fault, to keep concurrent threads in trace order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Position among the events of its capture.
    pub seq: u64,
    /// When it was recorded.
    pub time: Time,
    /// Index into [`Source::threads`].
    pub thread: u32,
    /// Page the event names; the last one asked for where a read returns.
    pub page: PageIndex,
    /// What the kernel recorded there.
    pub kind: AnchorKind,
}

/// The kinds of [`Anchor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorKind {
    /// The read found a hole.
    Sync,
    /// The read met a readahead mark.
    Async,
    /// A batch was ready to copy.
    Batch,
    /// The read returned to the program.
    Return,
}

/// A file that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Which.
    pub id: FileId,
    /// Its path, where something said so.
    pub path: Option<String>,
    /// `i_size`.
    pub size_bytes: u64,
    /// Folios in the page cache before the first access.
    pub cached: Vec<(PageIndex, Order)>,
    /// Where its pages lie on the device, by first page.
    pub extents: Vec<FileExtent>,
}

impl File {
    /// Where a file that was not recorded begins on its device: a little in, as a filesystem would
    /// put it.
    pub const FIRST_SECTOR: Sector = Sector(2048);

    /// A file in one extent from `sector` on, nothing of it cached.
    pub fn contiguous(id: FileId, size_bytes: u64, sector: Sector) -> Self {
        let pages = size_bytes.div_ceil(PAGE_SIZE);
        let extent = FileExtent { page: PageIndex(0), pages, sector };
        Self { id, path: None, size_bytes, cached: Vec::new(), extents: vec![extent] }
    }

    /// What to call it: its path if it is known, and what the events call it, if any do.
    pub fn name(&self) -> String {
        match &self.path {
            Some(path) if self.id.device == Device::default() => path.clone(),
            Some(path) => format!("{path} ({})", self.id),
            None => self.id.to_string(),
        }
    }
}

/// A run of pages that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExtent {
    /// First page.
    pub page: PageIndex,
    /// Pages.
    pub pages: u64,
    /// Sector of the first page.
    pub sector: Sector,
}

/// An open file: its own readahead state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Index into [`Source::files`].
    pub file: u32,
    /// `ra_pages` at open where it differs from the device's.
    pub ra_pages: Option<u64>,
    /// Whether it starts with `POSIX_FADV_RANDOM`.
    pub random: bool,
    /// Whether its reads triggered readahead but never got a window: small random reads, or
    /// `POSIX_FADV_RANDOM`, which only a replay can tell apart.
    pub windowless: bool,
    /// How it is mapped.
    pub mapping: Mapping,
}

impl Open {
    /// An open of `file` without any advice.
    pub fn new(file: u32) -> Self {
        Self { file, ra_pages: None, random: false, windowless: false, mapping: Mapping::default() }
    }
}

/// Advice on a mapping (`vm_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a bit of vm_flags")]
pub struct Mapping {
    /// `VM_SEQ_READ`, from `MADV_SEQUENTIAL`.
    pub seq_read: bool,
    /// `VM_RAND_READ`, from `MADV_RANDOM`.
    pub rand_read: bool,
    /// `VM_HUGEPAGE`, from `MADV_HUGEPAGE`.
    pub hugepage: bool,
    /// `VM_EXEC`.
    pub exec: bool,
}

/// A folio that was put into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFolio {
    /// Index into [`Source::files`].
    pub file: u32,
    /// Index into [`Source::threads`].
    pub thread: u32,
    /// First page.
    pub page: PageIndex,
    /// Order.
    pub order: Order,
    /// Page frame number, 0 where unknown.
    pub pfn: u64,
    /// When.
    pub time: Time,
    /// Position among the events of its capture.
    pub seq: u64,
}

/// A read request the device got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRead {
    /// First sector.
    pub sector: Sector,
    /// Sectors.
    pub sectors: u64,
    /// When it was issued.
    pub issued: Time,
    /// When it completed, if that was recorded.
    pub completed: Option<Time>,
    /// Index into [`Source::files`] and first page, where the extent map tells.
    pub target: Option<(u32, PageIndex)>,
}

/// What a capture recorded of the page cache and the device, to hold a replay against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Folios in the order they were inserted.
    pub folios: Vec<RecordedFolio>,
    /// Data reads in the order they were issued.
    pub reads: Vec<RecordedRead>,
    /// Metadata reads, which no replay makes.
    pub metadata_reads: u64,
    /// Data reads of files without a stream (other programs, directories).
    pub foreign_reads: u64,
    /// Sectors of data bios that were queued but whose request was not recorded as issued, as
    /// (first sector, sectors).
    pub unissued: Vec<(Sector, u64)>,
}

/// Everything a replay needs: a capture's access streams or a workload description.
#[derive(Clone, Debug)]
pub struct Source {
    /// File name of the capture or workload.
    pub name: String,
    /// What it is, in words, where its author said so.
    pub about: String,
    /// How much the streams reproduce.
    pub fidelity: Fidelity,
    /// Settings and where each came from.
    pub settings: Settings,
    /// Files.
    pub files: Vec<File>,
    /// Open files.
    pub opens: Vec<Open>,
    /// Threads, by name.
    pub threads: Vec<String>,
    /// What was asked, in time order.
    pub accesses: Vec<Access>,
    /// Trace-order anchors, in time order.
    pub anchors: Vec<Anchor>,
    /// The oldest kernel (major, minor) that records all the events the capture holds.
    pub kernel_min: (u32, u32),
    /// What was recorded; `None` for a workload description.
    pub recorded: Option<Recorded>,
    /// What the capture lost.
    pub losses: Losses,
}

impl Source {
    /// A source that was not recorded, still without files, open files and accesses.
    pub fn generated(name: &str, settings: Settings) -> Self {
        Self {
            name: name.to_owned(),
            about: String::new(),
            fidelity: Fidelity::Exact,
            settings,
            files: Vec::new(),
            opens: Vec::new(),
            threads: Vec::new(),
            accesses: Vec::new(),
            anchors: Vec::new(),
            kernel_min: (0, 0),
            recorded: None,
            losses: Losses::default(),
        }
    }

    /// Sets one setting by its `--set` key, with everything that follows from it.
    pub fn set(&mut self, key: &str, value: &str, origin: Origin) -> Result<(), SettingError> {
        let before = self.settings.ra_pages.value;
        self.settings.set(key, value, origin)?;
        let now = self.settings.ra_pages.value;
        for open in &mut self.opens {
            open.ra_pages = open.ra_pages.map(|own| scaled_ra_pages(own, before, now));
        }
        Ok(())
    }
}

/// `ra_pages` of an open whose device goes from `before` to `now`: what `POSIX_FADV_SEQUENTIAL`
/// doubled stays twice the device's.
pub(crate) fn scaled_ra_pages(own: u64, before: u64, now: u64) -> u64 {
    own * now / before.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_follow_the_read_ahead_of_their_device() {
        let open = |ra_pages| Open {
            file: 0,
            ra_pages,
            random: false,
            windowless: false,
            mapping: Mapping::default(),
        };
        let mut source = Source::generated("s", Settings::default());
        source.opens = vec![open(None), open(Some(64)), open(Some(1024))];
        source.set("read_ahead_kb", "512", Origin::Given).unwrap();
        let own: Vec<_> = source.opens.iter().map(|open| open.ra_pages).collect();
        assert_eq!(own, [None, Some(256), Some(4096)]);
        source.set("max_sectors_kb", "64", Origin::Given).unwrap();
        assert_eq!(source.opens[1].ra_pages, Some(256));
        assert!(source.set("read_ahead_kb", "many", Origin::Given).is_err());
    }
}
