//! One typed event model for every capture format and kernel version.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

use crate::units::{ByteOffset, Order, PageIndex, Sector, Time};

/// A block device, as events and sysfs name it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Device {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A text that is not `MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected MAJOR:MINOR, such as 259:0")]
pub struct NotADevice;

impl FromStr for Device {
    type Err = NotADevice;

    fn from_str(text: &str) -> Result<Self, NotADevice> {
        let (major, minor) = text.split_once(':').ok_or(NotADevice)?;
        let number = |text: &str| text.parse().map_err(|_| NotADevice);
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

/// A file: inode number on the device of its filesystem.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FileId {
    /// `s_dev` of the filesystem.
    pub device: Device,
    /// Inode number.
    pub inode: u64,
}

impl fmt::Display for FileId {
    /// `DEVICE/0xINODE`, the inode in hexadecimal as the filemap events print it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:#x}", self.device, self.inode)
    }
}

/// Index into [`Capture::comms`](crate::capture::Capture::comms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm(pub u32);

/// One event of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// When it was recorded.
    pub time: Time,
    /// CPU it was recorded on.
    pub cpu: u32,
    /// Thread that was running (`pid` in kernel terms).
    pub pid: u32,
    /// Name of that thread.
    pub comm: Comm,
    /// What happened.
    pub kind: EventKind,
}

/// `struct file_ra_state` as the readahead events print it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedRa {
    /// `ra->order` (6.16 and later).
    pub order: u32,
    /// `ra->size`, pages.
    pub size: u64,
    /// `ra->async_size`, pages.
    pub async_size: u64,
    /// `ra->ra_pages`.
    pub ra_pages: u64,
    /// `ra->mmap_miss`.
    pub mmap_miss: u32,
    /// `ra->prev_pos`, -1 before the first read.
    pub prev_pos: i64,
}

/// The `rwbs` flags of a block event that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a letter of the field")]
pub struct Rwbs {
    /// R: a read.
    pub read: bool,
    /// W: a write.
    pub write: bool,
    /// A: readahead. Every buffered read carries it.
    pub ahead: bool,
    /// M: filesystem metadata.
    pub meta: bool,
}

/// A run of sectors on a device, as a bio or a request covers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The device.
    pub device: Device,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u64,
}

/// System calls that a capture may record as `sys_enter`/`sys_exit` pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the system calls'")]
pub enum Syscall {
    Read,
    Pread64,
    Readv,
    Preadv,
    Openat,
    Close,
    Lseek,
    Fadvise64,
    Readahead,
    Mmap,
    Madvise,
    Sendfile64,
    Dup,
    Dup2,
    Dup3,
    Fcntl,
}

impl Syscall {
    /// Every call, with the names of its two events.
    pub const ALL: [(Self, &str, &str); 16] = [
        (Self::Read, "sys_enter_read", "sys_exit_read"),
        (Self::Pread64, "sys_enter_pread64", "sys_exit_pread64"),
        (Self::Readv, "sys_enter_readv", "sys_exit_readv"),
        (Self::Preadv, "sys_enter_preadv", "sys_exit_preadv"),
        (Self::Openat, "sys_enter_openat", "sys_exit_openat"),
        (Self::Close, "sys_enter_close", "sys_exit_close"),
        (Self::Lseek, "sys_enter_lseek", "sys_exit_lseek"),
        (Self::Fadvise64, "sys_enter_fadvise64", "sys_exit_fadvise64"),
        (Self::Readahead, "sys_enter_readahead", "sys_exit_readahead"),
        (Self::Mmap, "sys_enter_mmap", "sys_exit_mmap"),
        (Self::Madvise, "sys_enter_madvise", "sys_exit_madvise"),
        (Self::Sendfile64, "sys_enter_sendfile64", "sys_exit_sendfile64"),
        (Self::Dup, "sys_enter_dup", "sys_exit_dup"),
        (Self::Dup2, "sys_enter_dup2", "sys_exit_dup2"),
        (Self::Dup3, "sys_enter_dup3", "sys_exit_dup3"),
        (Self::Fcntl, "sys_enter_fcntl", "sys_exit_fcntl"),
    ];

    /// The names of its two events.
    fn names(self) -> (&'static str, &'static str) {
        let (_, enter, exit) = Self::ALL[self as usize];
        (enter, exit)
    }
}

/// What an event says. Field names are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EventKind {
    /// `xfs_file_buffered_read`: a read enters the filesystem.
    BufferedRead {
        /// File read.
        file: FileId,
        /// `disize`, the on-disk file size in bytes.
        size_bytes: u64,
        /// First byte asked for.
        pos: ByteOffset,
        /// Bytes asked for.
        count: u64,
    },
    /// `mm_filemap_get_pages` (6.12): one batch of a read is ready to copy.
    GetPages {
        /// File read.
        file: FileId,
        /// Page of the current position.
        index: PageIndex,
        /// Last page of the whole request, inclusive.
        last: PageIndex,
    },
    /// `mm_filemap_fault` (6.12): a fault reached the page cache.
    Fault {
        /// File mapped.
        file: FileId,
        /// Page that faulted.
        index: PageIndex,
    },
    /// `mm_filemap_map_pages` (6.12): fault-around looked at a range.
    MapPages {
        /// File mapped.
        file: FileId,
        /// First page looked at.
        index: PageIndex,
        /// Last page looked at, inclusive.
        last: PageIndex,
    },
    /// `mm_filemap_add_to_page_cache`.
    AddToPageCache {
        /// File.
        file: FileId,
        /// First page of the folio.
        index: PageIndex,
        /// Folio order; 0 where the kernel does not print one (before 5.17).
        order: Order,
        /// Page frame number of the folio's first page; 0 where unknown.
        pfn: u64,
    },
    /// `mm_filemap_delete_from_page_cache`.
    DeleteFromPageCache {
        /// File.
        file: FileId,
        /// First page of the folio.
        index: PageIndex,
        /// Folio order.
        order: Order,
    },
    /// `page_cache_ra_unbounded` (6.18): the order-0 path.
    RaUnbounded {
        /// File.
        file: FileId,
        /// First page.
        index: PageIndex,
        /// Pages to read.
        nr_to_read: u64,
        /// Pages after the readahead mark.
        lookahead_size: u64,
    },
    /// `page_cache_ra_order` (6.18): a window, as it enters the large-folio path.
    RaOrder {
        /// File.
        file: FileId,
        /// First page.
        index: PageIndex,
        /// `ra->order`.
        order: u32,
        /// `ra->size`, pages.
        size: u64,
        /// `ra->async_size`, pages.
        async_size: u64,
        /// `ra->ra_pages`.
        ra_pages: u64,
    },
    /// `page_cache_sync_ra` (6.18): a read found a hole.
    SyncRa {
        /// File.
        file: FileId,
        /// Page of the hole.
        index: PageIndex,
        /// Pages left of the request.
        req_count: u64,
        /// State before.
        ra: RecordedRa,
    },
    /// `page_cache_async_ra` (6.18): a read or fault met a readahead mark.
    AsyncRa {
        /// File.
        file: FileId,
        /// First page of the marked folio (for a fault: the page that faulted).
        index: PageIndex,
        /// Pages left of the request.
        req_count: u64,
        /// State before.
        ra: RecordedRa,
    },
    /// `block_bio_queue`.
    BioQueue {
        /// Where.
        extent: Extent,
        /// Operation.
        rwbs: Rwbs,
    },
    /// `block_bio_backmerge` or `block_bio_frontmerge`.
    BioMerge {
        /// The bio that was merged.
        extent: Extent,
        /// Operation.
        rwbs: Rwbs,
    },
    /// `block_split`: a bio was cut in two.
    BioSplit {
        /// The part that goes on.
        extent: Extent,
        /// First sector of the rest.
        rest: Sector,
        /// Operation.
        rwbs: Rwbs,
    },
    /// `block_unplug`.
    Unplug {
        /// Requests that were held back.
        requests: u32,
    },
    /// `block_rq_issue`: a request goes to the device.
    RqIssue {
        /// Where.
        extent: Extent,
        /// Operation.
        rwbs: Rwbs,
    },
    /// `block_rq_complete`.
    RqComplete {
        /// Where.
        extent: Extent,
        /// Operation.
        rwbs: Rwbs,
        /// 0 or a negative errno.
        error: i32,
    },
    /// A system call begins. Arguments beyond the recorded ones are 0.
    SyscallEnter {
        /// Which.
        call: Syscall,
        /// Arguments as the kernel got them.
        args: [u64; 6],
    },
    /// A system call returns.
    SyscallExit {
        /// Which.
        call: Syscall,
        /// Return value, negative for an error.
        ret: i64,
    },
    /// `task_newtask`: the thread makes another one.
    NewTask {
        /// The new thread.
        pid: u32,
        /// What the two have in common (`CLONE_FILES` and others).
        clone_flags: u64,
    },
}

impl EventKind {
    /// The kernel's name for the event; merges of both directions are one kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::BufferedRead { .. } => "xfs_file_buffered_read",
            Self::GetPages { .. } => "mm_filemap_get_pages",
            Self::Fault { .. } => "mm_filemap_fault",
            Self::MapPages { .. } => "mm_filemap_map_pages",
            Self::AddToPageCache { .. } => "mm_filemap_add_to_page_cache",
            Self::DeleteFromPageCache { .. } => "mm_filemap_delete_from_page_cache",
            Self::RaUnbounded { .. } => "page_cache_ra_unbounded",
            Self::RaOrder { .. } => "page_cache_ra_order",
            Self::SyncRa { .. } => "page_cache_sync_ra",
            Self::AsyncRa { .. } => "page_cache_async_ra",
            Self::BioQueue { .. } => "block_bio_queue",
            Self::BioMerge { .. } => "block_bio_merge",
            Self::BioSplit { .. } => "block_split",
            Self::Unplug { .. } => "block_unplug",
            Self::RqIssue { .. } => "block_rq_issue",
            Self::RqComplete { .. } => "block_rq_complete",
            Self::SyscallEnter { call, .. } => call.names().0,
            Self::SyscallExit { call, .. } => call.names().1,
            Self::NewTask { .. } => "task_newtask",
        }
    }

    /// The file an event names, if it names one.
    pub fn file(&self) -> Option<FileId> {
        match *self {
            Self::BufferedRead { file, .. }
            | Self::GetPages { file, .. }
            | Self::Fault { file, .. }
            | Self::MapPages { file, .. }
            | Self::AddToPageCache { file, .. }
            | Self::DeleteFromPageCache { file, .. }
            | Self::RaUnbounded { file, .. }
            | Self::RaOrder { file, .. }
            | Self::SyncRa { file, .. }
            | Self::AsyncRa { file, .. } => Some(file),
            _ => None,
        }
    }
}
