//! Block devices and their settings, as sysfs shows them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use traces::event::Device;
use traces::sidecar::QueueFacts;

use crate::mounts::Mount;

/// Reads one value of a sysfs file.
pub(crate) fn value<T: FromStr>(path: &Path) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Memory of the machine.
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit)
}

/// The device a number stands for, from `st_dev` or `st_rdev`.
pub(crate) fn device(number: u64) -> Device {
    Device { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
}

fn directory(device: Device) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{device}"))
}

/// Whether `device` is a block device, rather than a number that a filesystem made up.
pub(crate) fn is_block_device(device: Device) -> bool {
    directory(device).is_dir()
}

/// The block devices a filesystem reads from: its own, the disks its partitions are on, and those
/// below a stack such as LVM, RAID or dm-crypt.
pub(crate) fn below(mount: &Mount) -> BTreeSet<Device> {
    let mut found = BTreeSet::new();
    for device in own_devices(mount) {
        add_with_below(device, &mut found);
    }
    found
}

/// The devices that carry the filesystem itself.
pub(crate) fn own_devices(mount: &Mount) -> Vec<Device> {
    if is_block_device(mount.device) {
        return vec![mount.device];
    }
    let Ok(source) = fs::metadata(&mount.source) else { return Vec::new() };
    let named = device(source.rdev());
    if !is_block_device(named) {
        return Vec::new();
    }
    btrfs_folder(named).map_or_else(|| vec![named], |folder| members(&folder))
}

/// The directory of the btrfs that `member` is a device of.
fn btrfs_folder(member: Device) -> Option<PathBuf> {
    let filesystems = fs::read_dir("/sys/fs/btrfs").ok()?.flatten();
    filesystems.map(|entry| entry.path()).find(|folder| members(folder).contains(&member))
}

/// The devices of the btrfs with this directory.
fn members(folder: &Path) -> Vec<Device> {
    let entries = fs::read_dir(folder.join("devices")).into_iter().flatten().flatten();
    entries.filter_map(|entry| value(&entry.path().join("dev"))).collect()
}

fn add_with_below(device: Device, found: &mut BTreeSet<Device>) {
    if !found.insert(device) {
        return;
    }
    let disk = whole_disk(device);
    found.insert(disk);
    let slaves = fs::read_dir(directory(disk).join("slaves")).into_iter().flatten().flatten();
    for slave in slaves {
        if let Some(slave) = value(&slave.path().join("dev")) {
            add_with_below(slave, found);
        }
    }
}

/// The disk a partition is on; the device itself where it is none.
pub(crate) fn whole_disk(device: Device) -> Device {
    let folder = directory(device);
    if !folder.join("partition").exists() {
        return device;
    }
    // The link leads to .../DISK/PARTITION.
    let real = folder.canonicalize().ok();
    real.and_then(|real| value(&real.parent()?.join("dev"))).unwrap_or(device)
}

/// First sector of a partition on its disk; 0 where the device is none.
pub(crate) fn start_sector(device: Device) -> u64 {
    value(&directory(device).join("start")).unwrap_or(0)
}

/// Requests under way on any of `devices`.
pub(crate) fn in_flight(devices: &BTreeSet<Device>) -> u64 {
    let of_device = |device: &Device| -> u64 {
        let text = fs::read_to_string(directory(*device).join("inflight")).unwrap_or_default();
        text.split_whitespace().filter_map(|count| count.parse::<u64>().ok()).sum()
    };
    devices.iter().map(of_device).sum()
}

/// `read_ahead_kb` of the filesystem's `bdi`, which is not always its disk's.
pub(crate) fn read_ahead_kb(mount: &Mount) -> Option<u64> {
    let named =
        |device: Device| value(&PathBuf::from(format!("/sys/class/bdi/{device}/read_ahead_kb")));
    let own = own_devices(mount).first().copied();
    let of_btrfs = || value(&btrfs_folder(own?)?.join("bdi/read_ahead_kb"));
    named(mount.device).or_else(of_btrfs).or_else(|| named(whole_disk(own?)))
}

/// The queue of the disk below `device`.
pub(crate) fn queue(device: Device) -> QueueFacts {
    let disk = whole_disk(device);
    let queue = directory(disk).join("queue");
    let number = |name: &str| value::<u64>(&queue.join(name));
    let name = directory(disk).canonicalize().ok();
    let name = name.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    QueueFacts {
        device: disk,
        name: name.unwrap_or_default(),
        model: value(&directory(disk).join("device/model")),
        max_sectors_kb: number("max_sectors_kb"),
        max_hw_sectors_kb: number("max_hw_sectors_kb"),
        max_segments: number("max_segments"),
        max_segment_size: number("max_segment_size"),
        chunk_sectors: number("chunk_sectors"),
        logical_block_size: number("logical_block_size"),
        physical_block_size: number("physical_block_size"),
        nr_requests: number("nr_requests"),
        rotational: number("rotational").map(|rotational| rotational != 0),
        scheduler: scheduler(&fs::read_to_string(queue.join("scheduler")).unwrap_or_default()),
    }
}

/// `[none] mq-deadline`: the one in brackets is in use.
fn scheduler(text: &str) -> Option<String> {
    let (_, chosen) = text.split_once('[')?;
    Some(chosen.split_once(']')?.0.to_owned())
}
