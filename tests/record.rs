//! `record` end to end: on a loop device of its own, with a real filesystem, through the kernel.
//!
//! Needs root, tracefs, a loop device and mkfs; says what is missing where it cannot run. The
//! programs recorded are this test binary itself, started again for one access pattern.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const FILE_BYTES: u64 = 48 * MIB;

/// Patterns that [`reader`] knows.
const PATTERNS: [&str; 8] =
    ["seq4k", "seq1m", "random", "unaligned", "mmap", "threads", "shared", "inherited"];

/// Names the pattern and the file to the process that reads.
const PATTERN: &str = "RAREPLAY_TEST_PATTERN";
const FILE: &str = "RAREPLAY_TEST_FILE";

/// One recording at a time: they would see each other's load, and an instance is called after the
/// process that makes it.
static ALONE: Mutex<()> = Mutex::new(());

/// Not a test of its own: what the recordings run.
#[test]
fn reader() {
    let (Ok(pattern), Ok(path)) = (std::env::var(PATTERN), std::env::var(FILE)) else { return };
    let path = Path::new(&path);
    match &*pattern {
        "seq4k" => sequential(path, 4 << 10),
        "seq1m" => sequential(path, 1 << 20),
        "random" => random(&File::open(path).expect("the file is there"), 1, 4096),
        "unaligned" => random(&File::open(path).expect("the file is there"), 7, 1),
        "mmap" => mapped(path),
        "threads" => std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    let file = File::open(path).expect("the file is there");
                    let half = FILE_BYTES / 2;
                    let mut buffer = vec![0; 64 << 10];
                    for pos in (0..half).step_by(buffer.len()) {
                        file.read_exact_at(&mut buffer, thread * half + pos)
                            .expect("it is long enough");
                    }
                });
            }
        }),
        "shared" => shared(path),
        "inherited" => inherited(path),
        "half" => half(&mut std::io::stdin().lock()),
        "sleep" => std::thread::sleep(Duration::from_secs(60)),
        other => panic!("no pattern {other}"),
    }
}

fn sequential(path: &Path, bytes: usize) {
    let mut file = File::open(path).expect("the file is there");
    let mut buffer = vec![0; bytes];
    while file.read(&mut buffer).expect("it is readable") > 0 {}
}

/// 500 reads of up to 128 KiB, in places and sizes that are multiples of `unit`.
fn random(file: &File, seed: u64, unit: u64) {
    let mut state = seed;
    let mut next = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut buffer = vec![0; 128 << 10];
    for _ in 0..500 {
        let count = (next((128 << 10) / unit) + 1) * unit;
        let pos = next((FILE_BYTES - count) / unit) * unit;
        file.read_exact_at(&mut buffer[..count as usize], pos).expect("it is long enough");
    }
}

/// Two threads that read through one descriptor in turn, each the half of the file that is its own.
/// Reads at the same time race for the one readahead state: a trigger within a microsecond or two of
/// another meets what that one has changed so far, and a replay takes one after the other.
fn shared(path: &Path) {
    let file = File::open(path).expect("the file is there");
    let turns = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (file, turns) = (&file, &turns);
            scope.spawn(move || {
                let half = FILE_BYTES / 2;
                let mut buffer = vec![0; 64 << 10];
                for pos in (0..half).step_by(buffer.len()) {
                    for turn in 0..2 {
                        if turn == thread {
                            let pos = thread * half + pos;
                            file.read_exact_at(&mut buffer, pos).expect("it is long enough");
                        }
                        turns.wait();
                    }
                }
            });
        }
    });
}

/// A process and its child that read through one open file, one half after the other.
fn inherited(path: &Path) {
    let mut file = File::open(path).expect("the file is there");
    half(&mut file);
    let program = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(program);
    child.args(["--exact", "reader"]).env(PATTERN, "half").stdin(file);
    assert!(child.stdout(Stdio::null()).status().expect("it is there").success());
}

/// Half a file, in small reads.
fn half(file: &mut impl Read) {
    let mut buffer = vec![0; 16 << 10];
    for _ in 0..FILE_BYTES / 2 / buffer.len() as u64 {
        file.read_exact(&mut buffer).expect("it is long enough");
    }
}

#[expect(unsafe_code, reason = "a mapping has no safe wrapper")]
fn mapped(path: &Path) {
    let file = File::open(path).expect("the file is there");
    // SAFETY: nobody changes the file while it is read.
    let map = unsafe { memmap2::Mmap::map(&file).expect("it can be mapped") };
    let sum: u64 = map.iter().step_by(4096).map(|byte| u64::from(*byte)).sum();
    assert!(sum > 0, "the file is not empty");
}

/// A filesystem on a loop device, with one file. All of it is gone with this value.
struct Disk {
    folder: tempfile::TempDir,
    device: String,
    _alone: Option<MutexGuard<'static, ()>>,
}

impl Disk {
    /// `None`, with the reason printed, where this machine or user cannot have one.
    fn new(mkfs: &[&str]) -> Option<Self> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        match Self::try_new(mkfs, tempfile::tempdir(), Some(alone)) {
            Ok(disk) => Some(disk),
            Err(why) => {
                eprintln!("skipped: {why}");
                None
            }
        }
    }

    /// A disk whose image lies on the filesystem of this one.
    fn stacked(&self, mkfs: &[&str]) -> Self {
        let folder = tempfile::tempdir_in(self.mount_point());
        Self::try_new(mkfs, folder, None).expect("the disk below was made the same way")
    }

    fn try_new(
        mkfs: &[&str],
        folder: std::io::Result<tempfile::TempDir>,
        alone: Option<MutexGuard<'static, ()>>,
    ) -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("recording needs root".to_owned());
        }
        let folder = folder.map_err(|error| error.to_string())?;
        let image = folder.path().join("image");
        let made = File::create(&image).and_then(|file| file.set_len(400 * MIB));
        made.map_err(|error| error.to_string())?;
        let image = image.display().to_string();
        tool(&[mkfs, &[&image]].concat())?;
        let device = tool(&["losetup", "--find", "--show", &image])?.trim().to_owned();
        let disk = Self { folder, device, _alone: alone };
        fs::create_dir(disk.mount_point()).map_err(|error| error.to_string())?;
        disk.mount()?;
        let block: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8 + 1).collect();
        let mut file = File::create(disk.file()).map_err(|error| error.to_string())?;
        for _ in 0..FILE_BYTES / MIB {
            file.write_all(&block).map_err(|error| error.to_string())?;
        }
        Ok(disk)
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    fn file(&self) -> PathBuf {
        self.mount_point().join("some file")
    }

    fn mount(&self) -> Result<(), String> {
        tool(&["mount", &self.device, &self.mount_point().display().to_string()]).map(drop)
    }

    fn unmount(&self) -> Result<(), String> {
        tool(&["umount", &self.mount_point().display().to_string()]).map(drop)
    }

    /// Empties the page cache of this filesystem alone.
    fn forget(&self) {
        self.unmount().and_then(|()| self.mount()).expect("nobody uses it");
    }

    /// Records a pattern, from a cold cache.
    fn record(&self, pattern: &str, options: &[&str]) -> Output {
        self.forget();
        self.command(pattern, options).output().expect("the program is there")
    }

    fn command(&self, pattern: &str, options: &[&str]) -> Command {
        let program = std::env::current_exe().expect("this program has a path");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rareplay"));
        command.args(["record", "--file"]).arg(self.file()).args(options).arg("--").arg(program);
        command.args(["--exact", "reader"]).env(PATTERN, pattern).env(FILE, self.file());
        command.stdin(Stdio::null());
        command
    }

    /// Whether tracefs still has the instance of a recording.
    fn has_instance_of(&self, recording: u32) -> bool {
        let tracefs = self.folder.path().join("tracefs");
        fs::create_dir_all(&tracefs).expect("the folder is ours");
        let point = tracefs.display().to_string();
        tool(&["mount", "-t", "tracefs", "nodev", &point]).expect("recording works here");
        let instances = tracefs.join("instances");
        assert!(instances.is_dir(), "tracefs has instances");
        let found = instances.join(format!("rareplay.{recording}")).is_dir();
        tool(&["umount", &point]).expect("nobody uses it");
        found
    }

    /// Where a capture goes.
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.unmount();
        let _ = tool(&["losetup", "--detach", &self.device]);
    }
}

fn tool(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
    if !output.status.success() {
        return Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn rareplay(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rareplay")).args(words).output().expect("the program is there")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every pattern, recorded and replayed: each folio and each device read has to be there.
fn patterns_verify(mkfs: &[&str]) {
    let Some(disk) = Disk::new(mkfs) else { return };
    let mut failures = Vec::new();
    for (number, pattern) in PATTERNS.into_iter().enumerate() {
        // Each format gets its share; the first pattern is recorded in both.
        for format in ["text", "raw"] {
            if number > 0 && (format == "raw") != (number % 2 == 0) {
                continue;
            }
            let capture = disk.path(&format!("{pattern}.{format}"));
            let recorded = disk.record(pattern, &["--format", format, "-o", &capture]);
            assert!(recorded.status.success(), "{pattern} {format}: {}", stderr(&recorded));
            let verified = rareplay(&["verify", &capture]);
            if !verified.status.success() {
                let text = String::from_utf8_lossy(&verified.stdout);
                failures.push(format!("{pattern} {format}: {text}{}", stderr(&verified)));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn recordings_on_xfs_verify_exactly() {
    patterns_verify(&["mkfs.xfs", "-q"]);
}

#[test]
fn recordings_on_ext4_verify_exactly() {
    patterns_verify(&["mkfs.ext4", "-q"]);
}

#[test]
fn only_the_upper_of_two_stacked_loop_devices_is_recorded() {
    let Some(below) = Disk::new(&["mkfs.ext4", "-q"]) else { return };
    let disk = below.stacked(&["mkfs.xfs", "-q"]);
    let capture = below.path("run.ftrace");
    let recorded = disk.record("seq1m", &["-o", &capture]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let verified = rareplay(&["verify", &capture]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    let number = rustix::fs::stat(&disk.device).expect("the device is there").st_rdev;
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    let sidecar = below.folder.path().join("run.ftrace.meta.toml");
    let sidecar = traces::sidecar::Sidecar::read(&sidecar).expect("it was written");
    assert_eq!(sidecar.files[0].device.to_string(), number);
    let report = rareplay(&["inspect", &capture, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let devices: Vec<_> = report["devices"].as_array().expect("devices").iter().collect();
    assert_eq!((devices.len(), &devices[0]["device"]), (1, &number.into()));
}

#[test]
fn the_sidecar_describes_the_file_and_the_machine() {
    let Some(disk) = Disk::new(&["mkfs.xfs", "-q"]) else { return };
    let capture = disk.path("run.ftrace.zst");
    let recorded = disk.record("seq1m", &["-o", &capture]);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let sidecar = disk.folder.path().join("run.ftrace.meta.toml");
    let sidecar = traces::sidecar::Sidecar::read(&sidecar).expect("it was written");
    let [file] = &sidecar.files[..] else { panic!("one file was read: {:?}", sidecar.files) };
    assert_eq!((Path::new(&file.path), file.size_bytes), (&*disk.file(), FILE_BYTES));
    let pages: u64 = file.extents.iter().map(|extent| extent.pages).sum();
    assert_eq!(pages, FILE_BYTES / 4096);
    assert_eq!(sidecar.settings["fs"].as_str(), Some("xfs"));
    assert!(sidecar.settings["read_ahead_kb"].as_integer().is_some_and(|kb| kb > 0));
    assert_eq!(sidecar.machine.map(|machine| machine.page_size), Some(4096));
    let shown = rareplay(&["inspect", &capture]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("some file"), "{shown}");
}

#[test]
fn the_program_s_exit_code_is_passed_on() {
    let Some(disk) = Disk::new(&["mkfs.ext4", "-q"]) else { return };
    let capture = disk.path("run.ftrace");
    let mount = disk.mount_point().display().to_string();
    let exit = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rareplay"));
        command.args(["record", "--mount", &mount, "-o", &capture, "--"]).args(words);
        let mut child = command.stderr(Stdio::null()).spawn().expect("the program is there");
        let status = child.wait().expect("it is our child");
        assert!(!disk.has_instance_of(child.id()), "the instance of {words:?} is left");
        status.code()
    };
    assert_eq!(exit(&["true"]), Some(0));
    assert_eq!(exit(&["sh", "-c", "exit 3"]), Some(3));
    assert_eq!(exit(&["sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(exit(&["/nowhere/to/be/found"]), Some(64));
}

#[test]
fn a_signal_ends_the_recording_and_leaves_nothing_behind() {
    let Some(disk) = Disk::new(&["mkfs.ext4", "-q"]) else { return };
    for (signal, code) in
        [(rustix::process::Signal::INT, 130), (rustix::process::Signal::TERM, 143)]
    {
        let capture = disk.path("run.ftrace");
        let mut command = disk.command("sleep", &["-o", &capture]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.as_mut().expect("the program is there");
        let pid = rustix::process::Pid::from_child(child);
        let begin = Instant::now();
        while children(child.id()).is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(30), "the reader never started");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(disk.has_instance_of(child.id()), "a recording under way has an instance");
        rustix::process::kill_process(pid, signal).expect("it is our child");
        let status = child.wait().expect("it is our child");
        assert_eq!(status.code(), Some(code));
        assert!(!disk.has_instance_of(child.id()), "the instance is left");
        assert!(Path::new(&capture).exists(), "what was recorded is kept");
    }
}

/// Children of a process.
fn children(pid: u32) -> String {
    let path = format!("/proc/{pid}/task/{pid}/children");
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[test]
fn what_cannot_be_recorded_is_a_usage_error() {
    let output = rareplay(&["record", "--file", "/nowhere", "--", "true"]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(
        stderr(&output),
        "rareplay: cannot record /nowhere: No such file or directory (os error 2)\n"
    );
    let output = rareplay(&["record", "--dev", "/dev/null", "--", "true"]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(stderr(&output), "rareplay: cannot record /dev/null: it is not a block device\n");
    let output = rareplay(&["record", "--file", "/etc", "--", "true"]);
    assert!(stderr(&output).contains("--mount takes a directory"), "{}", stderr(&output));
}
