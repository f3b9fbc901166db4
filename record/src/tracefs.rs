//! tracefs, and an instance of its own for a recording.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::at;
use crate::{RecordError, mounts};

/// In front of the process id in the names of our instances.
const PREFIX: &str = "rareplay.";

/// tracefs, wherever it is mounted.
pub(crate) struct Tracefs {
    root: PathBuf,
    /// The mount, where nobody had made one. It is attached nowhere, so it is gone with this descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds tracefs, or mounts it for this process alone.
    pub(crate) fn find() -> Result<Self, RecordError> {
        let mounts = mounts::read()?;
        let mounted = mounts.iter().find(|mount| mount.fs_type == "tracefs");
        if let Some(mounted) = mounted.filter(|mount| mount.point.join("instances").is_dir()) {
            return Ok(Self { root: mounted.point.clone(), _mount: None });
        }
        let mount = mount_detached().map_err(|errno| match errno {
            rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => RecordError::NotPermitted {
                what: "cannot mount tracefs".to_owned(),
                source: errno.into(),
            },
            _ => RecordError::NoTracefs { source: errno.into() },
        })?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { root, _mount: Some(mount) })
    }

    /// Makes an instance, and removes those that recordings left behind which were killed.
    pub(crate) fn instance(&self) -> Result<Instance, RecordError> {
        let instances = self.root.join("instances");
        remove_stale(&instances);
        let path = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&path).map_err(at(&path))?;
        Ok(Instance { path })
    }

    /// Where one of its files is.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }
}

/// A whole file of tracefs. Some give nothing more after the first read, however short it was, so each
/// read asks for much.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    const READ_BYTES: usize = 1 << 20;
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn mount_detached() -> rustix::io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())
}

/// An instance whose process is gone, and which nobody reads, has no use any more.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// A ring buffer of our own. Removing it switches its events off.
pub(crate) struct Instance {
    path: PathBuf,
}

impl Instance {
    /// Where one of its files is.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Writes one of its control files.
    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), RecordError> {
        let path = self.path(file);
        fs::write(&path, text).map_err(at(&path))
    }

    /// The CPUs that have a buffer, ascending.
    pub(crate) fn cpus(&self) -> Result<Vec<u32>, RecordError> {
        let path = self.path("per_cpu");
        let entries = fs::read_dir(&path).map_err(at(&path))?.flatten();
        let mut cpus: Vec<u32> = entries
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok())
            .collect();
        cpus.sort_unstable();
        Ok(cpus)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        const TRIES: u32 = 50;
        let _ = self.write("tracing_on", "0");
        // Somebody may be looking into it.
        for _ in 0..TRIES {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
        eprintln!("rareplay: {} is in use and was not removed", self.path.display());
    }
}
