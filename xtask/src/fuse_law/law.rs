//! A file that is read in a stated time.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEntry,
    Request, Session,
};

/// Name of the file.
pub(super) const NAME: &str = "disk";
const INODE: INodeNo = INodeNo(2);
/// Attributes do not change.
const VALID: Duration = Duration::from_secs(3600);
/// How long before a deadline the wait stops sleeping: a timer is late by less than this.
const SPIN: Duration = Duration::from_micros(200);

/// How long reads take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    /// Whatever the size.
    pub(super) fixed: Duration,
    /// Per byte.
    pub(super) byte: Duration,
    /// Reads served side by side; others wait for one of them.
    pub(super) parallel: usize,
}

impl Law {
    fn cost(&self, bytes: u32) -> Duration {
        self.fixed + self.byte * bytes
    }
}

/// How late each read was answered, by the law.
pub(super) type Late = Arc<Mutex<Vec<Duration>>>;

/// Serves the file `image` as `folder/disk`, by `law`, until the session is dropped.
pub(super) fn serve(
    image: File,
    law: Law,
    folder: &Path,
    late: &Late,
) -> anyhow::Result<BackgroundSession> {
    let bytes = image.metadata()?.len();
    let servers = Mutex::new(vec![Instant::now(); law.parallel]);
    let mut config = Config::default();
    // More threads than servers, so that none of these waits for a request to be taken in.
    config.n_threads = Some(law.parallel + 4);
    config.clone_fd = true;
    let disk = Disk { image, bytes, law, servers, late: Arc::clone(late) };
    Ok(Session::new(disk, folder, &config)?.spawn()?)
}

struct Disk {
    image: File,
    bytes: u64,
    law: Law,
    /// When each server is free again.
    servers: Mutex<Vec<Instant>>,
    late: Late,
}

impl Disk {
    /// When a read that arrives now is done.
    fn deadline(&self, bytes: u32) -> Instant {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let Some(free) = servers.iter_mut().min() else { return now };
        *free = now.max(*free) + self.law.cost(bytes);
        *free
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let (kind, size) = match inode {
            INODE => (FileType::RegularFile, self.bytes),
            _ => (FileType::Directory, 0),
        };
        FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        }
    }
}

impl Filesystem for Disk {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without it, the loop device's requests would be read one after another.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| std::io::ErrorKind::Unsupported)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == NAME {
            reply.entry(&VALID, &self.attributes(INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&VALID, &self.attributes(inode));
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let deadline = self.deadline(size);
        let mut data = vec![0; size as usize];
        let read = self.image.read_at(&mut data, offset);
        wait_until(deadline);
        self.late.lock().unwrap_or_else(PoisonError::into_inner).push(deadline.elapsed());
        match read {
            Ok(count) => reply.data(&data[..count]),
            Err(_) => reply.error(Errno::EIO),
        }
    }
}

/// Sleeps most of the time, and looks at the clock for the rest of it.
fn wait_until(deadline: Instant) {
    std::thread::sleep(deadline.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
    while Instant::now() < deadline {
        std::hint::spin_loop();
    }
}
