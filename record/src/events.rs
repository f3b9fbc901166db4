//! Which events a kernel has of those that tell what is read, and how they are filtered.

use std::fs;
use std::path::Path;

use traces::access::Fidelity;

use crate::RecordError;
use crate::target::Target;

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenEvent {
    /// Its directory below `events`, `SYSTEM/NAME`.
    pub path: String,
    /// The filter that keeps what concerns the target.
    pub filter: Option<String>,
}

/// The events to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The events.
    pub events: Vec<ChosenEvent>,
    /// How exactly they show the reads of a program.
    pub reads: Fidelity,
    /// What this kernel cannot record, for people.
    pub notes: Vec<String>,
}

/// Threads whose part in the recording is known beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// The one that writes the capture, whose own work must not be in it.
    pub writer: u32,
    /// Whether the program's threads are those with greater numbers. They are not where this process
    /// sees other numbers than the kernel prints (a process namespace).
    pub numbers_known: bool,
}

/// Events of the page cache. The first one is needed, whatever else there is.
const FILEMAP: [&str; 5] = [
    "filemap/mm_filemap_add_to_page_cache",
    "filemap/mm_filemap_delete_from_page_cache",
    GET_PAGES,
    FAULT,
    "filemap/mm_filemap_map_pages",
];
const GET_PAGES: &str = "filemap/mm_filemap_get_pages";
const FAULT: &str = "filemap/mm_filemap_fault";

const READAHEAD: [&str; 4] = [
    "readahead/page_cache_sync_ra",
    "readahead/page_cache_async_ra",
    "readahead/page_cache_ra_order",
    "readahead/page_cache_ra_unbounded",
];

/// From bios to requests and their completion.
const BLOCK: [&str; 6] = [
    "block/block_bio_queue",
    "block/block_bio_backmerge",
    "block/block_bio_frontmerge",
    "block/block_split",
    "block/block_rq_issue",
    "block/block_rq_complete",
];

/// The only filesystem with an event that states each read.
const XFS_READ: &str = "xfs/xfs_file_buffered_read";

/// Calls that read, or that say where and how a descriptor reads, and from which open file.
const CALLS: [&str; 15] = [
    "read",
    "pread64",
    "readv",
    "preadv",
    "preadv2",
    "openat",
    "lseek",
    "fadvise64",
    "readahead",
    "sendfile64",
    "close",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
];

/// Tells which threads share descriptors.
const NEW_TASK: &str = "task/task_newtask";

/// Chooses among the events below `events`, a directory of tracefs or of an instance.
pub fn choose(events: &Path, target: &Target, threads: Threads) -> Result<Choice, RecordError> {
    let mut chooser = Chooser { events, target, threads, chosen: Vec::new() };
    for path in FILEMAP.into_iter().chain(READAHEAD) {
        chooser.take(path);
    }
    if !chooser.has(FILEMAP[0]) {
        return Err(RecordError::MissingEvent {
            event: "filemap:mm_filemap_add_to_page_cache",
            why: "tells which folios are read",
            since: "3.10",
        });
    }
    let mut notes = Vec::new();
    let reads = chooser.take_reads(&mut notes);
    if !chooser.has(FAULT) {
        notes.push(
            "reads through mappings are not recorded: filemap:mm_filemap_fault is there since 6.12"
                .to_owned(),
        );
    }
    if !target.devices.is_empty() || target.filesystems.is_empty() {
        for path in BLOCK {
            chooser.take(path);
        }
        if !chooser.has("block/block_rq_issue") {
            notes.push(
                "device reads are not recorded: this kernel has no block:* events".to_owned(),
            );
        }
    }
    Ok(Choice { events: chooser.chosen, reads, notes })
}

struct Chooser<'a> {
    events: &'a Path,
    target: &'a Target,
    threads: Threads,
    chosen: Vec<ChosenEvent>,
}

impl Chooser<'_> {
    fn has(&self, path: &str) -> bool {
        self.chosen.iter().any(|event| event.path == path)
    }

    /// Takes an event if the kernel has it.
    fn take(&mut self, path: &str) {
        let Ok(format) = fs::read_to_string(self.events.join(path).join("format")) else { return };
        let filter = self.filter(path, &format);
        self.chosen.push(ChosenEvent { path: path.to_owned(), filter });
    }

    /// Takes what shows reads: the filesystem's own event, or else system calls.
    fn take_reads(&mut self, notes: &mut Vec<String>) -> Fidelity {
        let of_type = |xfs: bool| {
            let filesystems = &self.target.filesystems;
            filesystems.is_empty() || filesystems.iter().any(|fs| (fs.fs_type == "xfs") == xfs)
        };
        let (xfs, others) = (of_type(true), of_type(false));
        if xfs {
            self.take(XFS_READ);
        }
        // Of XFS, only calls tell which open file a read goes through.
        if self.threads.numbers_known && (self.has(XFS_READ) || self.has(GET_PAGES)) {
            for call in CALLS {
                self.take(&format!("syscalls/sys_enter_{call}"));
                self.take(&format!("syscalls/sys_exit_{call}"));
            }
            self.take(NEW_TASK);
        }
        let has_calls = self.has(GET_PAGES) && self.has("syscalls/sys_enter_read");
        if has_calls || !others && self.has(XFS_READ) {
            return Fidelity::Exact;
        }
        if self.has(GET_PAGES) {
            notes.push(
                "reads are recorded to the page, not to the byte: system calls cannot be \
                recorded here (CONFIG_FTRACE_SYSCALLS, outside a container)"
                    .to_owned(),
            );
            return Fidelity::Page;
        }
        notes.push(
            "only what readahead inserted is recorded, not what was read: this kernel shows reads \
            of XFS alone (filemap:mm_filemap_get_pages is there since 6.12)"
                .to_owned(),
        );
        Fidelity::Insertions
    }

    fn filter(&self, path: &str, format: &str) -> Option<String> {
        let (system, _) = path.split_once('/')?;
        let clauses = match system {
            "syscalls" | "task" => vec![format!("common_pid > {}", self.threads.writer)],
            "block" => self.devices().into_iter().collect(),
            _ => {
                let writer = format!("common_pid != {}", self.threads.writer);
                self.places(format).into_iter().chain([writer]).collect()
            }
        };
        (!clauses.is_empty()).then(|| clauses.join(" && "))
    }

    /// The devices, for events of the block layer.
    fn devices(&self) -> Option<String> {
        let devices = self.target.devices.iter();
        any(devices.map(|device| format!("dev == {}", kernel_number(device.major, device.minor))))
    }

    /// The files or filesystems, for events that name an inode.
    fn places(&self, format: &str) -> Option<String> {
        let field = |names: [&'static str; 2]| {
            names.into_iter().find(|name| format.contains(&format!(" {name};")))
        };
        let dev = field(["s_dev", "dev"])?;
        let on = |device: traces::event::Device| {
            format!("{dev} == {}", kernel_number(device.major, device.minor))
        };
        if self.target.files.is_empty() {
            return any(self.target.filesystems.iter().map(|fs| on(fs.device)));
        }
        let ino = field(["i_ino", "ino"])?;
        let files = self.target.files.iter();
        any(files.map(|file| format!("({} && {ino} == {})", on(file.id.device), file.id.inode)))
    }
}

/// `dev_t` as events hold it: 12 bits of major, 20 of minor number.
fn kernel_number(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

fn any(clauses: impl Iterator<Item = String>) -> Option<String> {
    let clauses: Vec<_> = clauses.collect();
    match &clauses[..] {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(format!("({})", clauses.join(" || "))),
    }
}

#[cfg(test)]
mod tests;
