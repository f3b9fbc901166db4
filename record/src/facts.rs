//! What a capture cannot say of itself: the machine, the queues, the files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fiemap::{Fiemap, FiemapExtentFlags};
use traces::access::FileExtent;
use traces::event::{Device, FileId};
use traces::sidecar::{FileFacts, MachineFacts, QueueFacts, Sidecar};
use traces::units::{ByteOffset, SECTOR_SHIFT, SECTORS_PER_PAGE, Sector};
use walkdir::{DirEntryExt, WalkDir};

use crate::mounts::{self, Mount};
use crate::target::Target;
use crate::{RecordError, sysfs};

/// Files of a capture, by how many pages of each were read.
pub type PagesRead = BTreeMap<FileId, u64>;

/// Describes what a capture was made on. `read` are the files that its events name; where a single
/// setting stands for all filesystems, it is that of the one most was read from.
pub fn sidecar(made: &str, target: &Target, read: &PagesRead) -> Result<Sidecar, RecordError> {
    let mounts = mounts::read()?;
    let mut sidecar =
        Sidecar { made: made.to_owned(), machine: Some(machine()), ..Sidecar::default() };
    sidecar.settings.insert("kernel".to_owned(), uname(|uname| uname.release().to_bytes()).into());
    let main = busiest(target, read);
    if let Some(mount) = mounts.iter().find(|mount| Some(mount.device) == main) {
        add_settings(mount, &mut sidecar);
    }
    let filesystems: BTreeSet<Device> = read.keys().map(|file| file.device).collect();
    for device in filesystems {
        let on_it: Vec<_> = mounts.iter().filter(|mount| mount.device == device).collect();
        let inodes = read.keys().filter(|file| file.device == device).map(|file| file.inode);
        add_files(&on_it, inodes.collect(), target, &mut sidecar.files);
    }
    sidecar.files.sort_by_key(FileFacts::id);
    Ok(sidecar)
}

/// The filesystem most was read from.
fn busiest(target: &Target, read: &PagesRead) -> Option<Device> {
    let mut pages: BTreeMap<Device, u64> = BTreeMap::new();
    for (file, read) in read {
        *pages.entry(file.device).or_default() += read;
    }
    let most = pages.into_iter().max_by_key(|(_, pages)| *pages).map(|(device, _)| device);
    most.or_else(|| target.filesystems.first().map(|fs| fs.device))
}

fn machine() -> MachineFacts {
    MachineFacts {
        arch: uname(|uname| uname.machine().to_bytes()),
        kernel_version: uname(|uname| uname.version().to_bytes()),
        page_size: rustix::param::page_size() as u64,
        cpus: std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u64),
        memory_bytes: sysfs::memory_bytes(),
    }
}

fn uname(field: impl Fn(&rustix::system::Uname) -> &[u8]) -> String {
    String::from_utf8_lossy(field(&rustix::system::uname())).into_owned()
}

/// The settings a replay needs of a filesystem and the disk below it.
fn add_settings(mount: &Mount, sidecar: &mut Sidecar) {
    let queues: Vec<QueueFacts> = sysfs::below(mount)
        .into_iter()
        .filter(|device| sysfs::whole_disk(*device) == *device)
        .map(sysfs::queue)
        .collect();
    let own = sysfs::own_devices(mount).first().map(|device| sysfs::whole_disk(*device));
    let main = queues.iter().find(|queue| Some(queue.device) == own);
    let numbers = [
        ("read_ahead_kb", sysfs::read_ahead_kb(mount)),
        ("max_sectors_kb", main.and_then(|queue| queue.max_sectors_kb)),
        ("max_segments", main.and_then(|queue| queue.max_segments)),
        ("max_segment_size", main.and_then(|queue| queue.max_segment_size)),
        ("chunk_sectors", main.and_then(|queue| queue.chunk_sectors)),
        ("nr_requests", main.and_then(|queue| queue.nr_requests)),
    ];
    let settings = &mut sidecar.settings;
    settings.insert("fs".to_owned(), mount.fs_type.clone().into());
    if let Some(scheduler) = main.and_then(|queue| queue.scheduler.clone()) {
        settings.insert("scheduler".to_owned(), scheduler.into());
    }
    for (key, value) in numbers {
        if let Some(value) = value.and_then(|value| i64::try_from(value).ok()) {
            settings.insert(key.to_owned(), value.into());
        }
    }
    sidecar.queues = queues;
}

/// Describes the `wanted` inodes of one filesystem, those that were named by the name they were given.
fn add_files(
    mounts: &[&Mount],
    mut wanted: BTreeSet<u64>,
    target: &Target,
    files: &mut Vec<FileFacts>,
) {
    let Some(first) = mounts.first() else { return };
    for file in target.files.iter().filter(|file| file.id.device == first.device) {
        if wanted.remove(&file.id.inode) {
            files.extend(describe(first, file.id, &file.path));
        }
    }
    for mount in mounts {
        find_files(mount, &mut wanted, files);
    }
}

/// Finds the `wanted` inodes below a mount, and describes them.
fn find_files(mount: &Mount, wanted: &mut BTreeSet<u64>, files: &mut Vec<FileFacts>) {
    let walk = WalkDir::new(&mount.point).same_file_system(true);
    for entry in walk.into_iter().flatten() {
        if wanted.is_empty() {
            return;
        }
        if !entry.file_type().is_file() || !wanted.remove(&entry.ino()) {
            continue;
        }
        let id = FileId { device: mount.device, inode: entry.ino() };
        files.extend(describe(mount, id, entry.path()));
    }
}

/// What the filesystem says of a file; nothing where it is gone.
fn describe(mount: &Mount, id: FileId, path: &Path) -> Option<FileFacts> {
    let metadata = fs::metadata(path).ok().filter(|metadata| metadata.ino() == id.inode)?;
    Some(FileFacts {
        device: id.device,
        inode: id.inode,
        path: path.display().to_string(),
        size_bytes: metadata.len(),
        extents: extents(mount, path, metadata.len()).unwrap_or_default(),
    })
}

/// The extents of a file with data, in sectors as the block events of its disk have them.
fn extents(mount: &Mount, path: &Path, size: u64) -> io::Result<Vec<FileExtent>> {
    // btrfs gives addresses of its own, which it maps to devices.
    let [device] = sysfs::own_devices(mount)[..] else { return Ok(Vec::new()) };
    if mount.fs_type == "btrfs" {
        return Ok(Vec::new());
    }
    let start = sysfs::start_sector(device);
    let nowhere = FiemapExtentFlags::UNKNOWN
        | FiemapExtentFlags::DELALLOC
        | FiemapExtentFlags::ENCODED
        | FiemapExtentFlags::NOT_ALIGNED
        | FiemapExtentFlags::UNWRITTEN;
    let mut extents: Vec<FileExtent> = Vec::new();
    for extent in Fiemap::new(&File::open(path)?) {
        let extent = extent?;
        if extent.fe_flags.intersects(nowhere) || extent.fe_logical >= size {
            continue;
        }
        let page = ByteOffset(extent.fe_logical).page();
        let pages = ByteOffset(extent.fe_length).page_up().0;
        let sector = Sector(start + (extent.fe_physical >> SECTOR_SHIFT));
        match extents.last_mut() {
            Some(last)
                if last.page + last.pages == page
                    && last.sector + last.pages * SECTORS_PER_PAGE == sector =>
            {
                last.pages += pages;
            }
            _ => extents.push(FileExtent { page, pages, sector }),
        }
    }
    Ok(extents)
}
