//! A loop device over a slow file, with XFS and one file to read.
//!
//! The loop device opens the slow file with direct I/O. Without, its reads would go through the page
//! cache and the readahead of the slow file: other sizes would be read, some of them twice.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::time::Duration;

use fuser::BackgroundSession;

use super::law::{self, Late, Law};

/// Size of the file that is read.
pub(super) const FILE_BYTES: u64 = 64 << 20;
const IMAGE_BYTES: u64 = 400 << 20;
/// Below the 1 MiB that FUSE reads at once, so that a request is one read.
const MAX_SECTORS_KB: u64 = 512;

/// See the [module](self). All of it is gone with this value.
pub(super) struct SlowDevice {
    mount: PathBuf,
    device: Option<String>,
    slow: PathBuf,
    session: Option<BackgroundSession>,
    late: Late,
}

impl SlowDevice {
    /// Makes the filesystem at full speed, then puts the slow file below it.
    pub(super) fn new(folder: &Path, law: Law) -> anyhow::Result<Self> {
        let (image, slow, mount) = (folder.join("image"), folder.join("slow"), folder.join("mnt"));
        std::fs::create_dir_all(&slow)?;
        std::fs::create_dir_all(&mount)?;
        File::create(&image)?.set_len(IMAGE_BYTES)?;
        tool("mkfs.xfs", &["-q", &text(&image)])?;
        let mut made = Self { mount, device: None, slow, session: None, late: Late::default() };
        made.attach(&text(&image), &[])?;
        tool("mount", &[made.device(), &text(&made.mount)])?;
        fill(&made.file())?;
        made.detach()?;
        made.session = Some(law::serve(File::open(&image)?, law, &made.slow, &made.late)?);
        made.attach(&text(&made.slow.join(law::NAME)), &["--direct-io=on", "--read-only"])?;
        Ok(made)
    }

    /// The file to read.
    pub(super) fn file(&self) -> PathBuf {
        self.mount.join("file")
    }

    /// Mounts the filesystem anew, so that nothing of it is cached.
    pub(super) fn make_cold(&self, read_ahead_kb: u64) -> anyhow::Result<()> {
        let _ = tool("umount", &[&text(&self.mount)]);
        self.set("max_sectors_kb", MAX_SECTORS_KB)?;
        self.set("read_ahead_kb", read_ahead_kb)?;
        tool("mount", &["-o", "ro,norecovery", self.device(), &text(&self.mount)])?;
        Ok(())
    }

    /// How late the slow file answered so far: in the median, and at worst.
    pub(super) fn late(&self) -> (Duration, Duration) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
        late.sort_unstable();
        (late.get(late.len() / 2).copied().unwrap_or_default(), late.pop().unwrap_or_default())
    }

    fn set(&self, name: &str, value: u64) -> anyhow::Result<()> {
        let disk = self.device().trim_start_matches("/dev/");
        Ok(std::fs::write(format!("/sys/block/{disk}/queue/{name}"), value.to_string())?)
    }

    fn device(&self) -> &str {
        self.device.as_deref().unwrap_or_default()
    }

    fn attach(&mut self, file: &str, options: &[&str]) -> anyhow::Result<()> {
        let words = [options, &["--find", "--show", file]].concat();
        self.device = Some(tool("losetup", &words)?.trim().to_owned());
        Ok(())
    }

    fn detach(&mut self) -> anyhow::Result<()> {
        tool("umount", &[&text(&self.mount)])?;
        if let Some(device) = self.device.take() {
            tool("losetup", &["--detach", &device])?;
        }
        Ok(())
    }
}

impl Drop for SlowDevice {
    fn drop(&mut self) {
        if let Err(error) = self.detach() {
            eprintln!("{error:#}");
        }
        // Ends the threads that serve it; the loop device has let go of it by now.
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            eprintln!("cannot unmount {}: {error}", self.slow.display());
        }
    }
}

fn fill(path: &Path) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![0xa5; 1 << 20];
    for _ in 0..FILE_BYTES >> 20 {
        file.write_all(&block)?;
    }
    Ok(file.sync_all()?)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn tool(program: &str, words: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(words).output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program} {}: {}", words.join(" "), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
