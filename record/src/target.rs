//! What is recorded: files, the filesystem of a mount point or device, or everything.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use traces::event::{Device, FileId};

use crate::mounts::{self, Mount};
use crate::{RecordError, sysfs};

/// What to record, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// Every filesystem.
    Everything,
    /// These files.
    Files(Vec<PathBuf>),
    /// The filesystem mounted at, or holding, this path.
    Mount(PathBuf),
    /// The filesystem on this block device, by path or `MAJOR:MINOR`.
    Device(PathBuf),
}

/// What is recorded, as events name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The files, where only some are recorded.
    pub files: Vec<TargetFile>,
    /// The filesystems they are on; none stands for all.
    pub filesystems: Vec<Filesystem>,
    /// The block devices below, down to those that get the requests.
    pub devices: BTreeSet<Device>,
}

/// A file that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetFile {
    /// Its name.
    pub path: PathBuf,
    /// As events name it.
    pub id: FileId,
}

/// A filesystem that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// `s_dev`.
    pub device: Device,
    /// Its type, such as `xfs`.
    pub fs_type: String,
}

impl Target {
    /// Finds out what the user means.
    pub fn resolve(spec: &TargetSpec) -> Result<Self, RecordError> {
        let mounts = mounts::read()?;
        let mut target = Self::default();
        match spec {
            TargetSpec::Everything => {}
            TargetSpec::Files(paths) => {
                for path in paths {
                    target.add_file(path, &mounts)?;
                }
            }
            TargetSpec::Mount(path) => {
                let real = canonical(path)?;
                target.add_filesystem(mount_of(&real, &mounts)?);
            }
            TargetSpec::Device(path) => target.add_device(path, &mounts)?,
        }
        Ok(target)
    }

    fn add_file(&mut self, path: &Path, mounts: &[Mount]) -> Result<(), RecordError> {
        let real = canonical(path)?;
        let metadata = fs::metadata(&real).map_err(|error| wrong(path, &error.to_string()))?;
        if !metadata.is_file() {
            let why = "it is not a regular file; --mount takes a directory and --dev a device";
            return Err(wrong(path, why));
        }
        let mount = mount_of(&real, mounts)?;
        let id = FileId { device: mount.device, inode: metadata.ino() };
        self.files.push(TargetFile { path: real, id });
        self.add_filesystem(mount);
        Ok(())
    }

    fn add_device(&mut self, path: &Path, mounts: &[Mount]) -> Result<(), RecordError> {
        let numbers = path.to_str().and_then(|text| text.parse().ok());
        let device: Device = match numbers {
            Some(device) => device,
            None => device_at(path)?,
        };
        let on_it =
            |mount: &&Mount| mount.device == device || sysfs::own_devices(mount).contains(&device);
        let mount = mounts.iter().find(on_it);
        let mount = mount.ok_or_else(|| wrong(path, "no filesystem on it is mounted"))?;
        self.add_filesystem(mount);
        Ok(())
    }

    fn add_filesystem(&mut self, mount: &Mount) {
        let filesystem = Filesystem { device: mount.device, fs_type: mount.fs_type.clone() };
        if !self.filesystems.contains(&filesystem) {
            self.filesystems.push(filesystem);
            self.devices.extend(sysfs::below(mount));
        }
    }
}

fn wrong(path: &Path, why: &str) -> RecordError {
    RecordError::Target { path: path.to_owned(), why: why.to_owned() }
}

fn canonical(path: &Path) -> Result<PathBuf, RecordError> {
    path.canonicalize().map_err(|error| wrong(path, &error.to_string()))
}

fn mount_of<'m>(real: &Path, mounts: &'m [Mount]) -> Result<&'m Mount, RecordError> {
    mounts::holding(mounts, real).ok_or_else(|| wrong(real, "it lies on no mount"))
}

fn device_at(path: &Path) -> Result<Device, RecordError> {
    let metadata = fs::metadata(path).map_err(|error| wrong(path, &error.to_string()))?;
    if !metadata.file_type().is_block_device() {
        return Err(wrong(path, "it is not a block device"));
    }
    Ok(sysfs::device(metadata.rdev()))
}
