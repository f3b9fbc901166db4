//! A recording from its beginning to its end.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use traces::access::Fidelity;

use crate::command::Waiter;
use crate::error::at;
use crate::events::{self, Choice, ChosenEvent, Threads};
use crate::pump::Pump;
use crate::target::{Target, TargetSpec};
use crate::tracefs::{self, Instance, Tracefs};
use crate::{CpuLoss, RecordError, cached, stats, sysfs};

/// How the events are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As the kernel prints them, in one file; times in microseconds.
    Text,
    /// As they lie in the ring buffer, in a directory laid out like tracefs; times in nanoseconds.
    Raw,
}

/// What to record, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to record.
    pub target: TargetSpec,
    /// How to keep it.
    pub format: Format,
    /// Where.
    pub output: PathBuf,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Ring buffer per CPU, in bytes; one that suits the machine if missing.
    pub buffer_bytes: Option<u64>,
    /// Whether to drop the machine's clean caches first.
    pub drop_caches: bool,
}

/// A finished recording.
#[derive(Debug)]
pub struct Recording {
    /// How the program ended.
    pub status: ExitStatus,
    /// What was recorded, as events name it.
    pub target: Target,
    /// How exactly the events show what the program read.
    pub reads: Fidelity,
    /// What could not be recorded, or was not as it should be, for people.
    pub notes: Vec<String>,
    /// Ring buffer per CPU, in bytes.
    pub buffer_bytes: u64,
    /// CPUs whose buffer lost events.
    pub losses: Vec<CpuLoss>,
}

/// Records while a program runs. What was changed on the machine is put back in any case.
pub fn record(request: &Request) -> Result<Recording, RecordError> {
    let mut waiter = Waiter::new().map_err(at(Path::new("signal handlers")))?;
    let target = Target::resolve(&request.target)?;
    let tracefs = Tracefs::find()?;
    if request.drop_caches {
        drop_caches()?;
    }
    let mut notes = Vec::new();
    note_cached(&target, &mut notes);
    let instance = tracefs.instance()?;
    instance.write("tracing_on", "0")?;
    prepare_output(request)?;
    let cpus = instance.cpus()?;
    let buffer_bytes = request.buffer_bytes.unwrap_or_else(|| suitable_buffer_bytes(cpus.len()));
    set_up_buffer(&instance, buffer_bytes)?;
    let pump = Pump::start(&instance, &cpus, request.format, &request.output)?;
    let threads = Threads { writer: pump.thread, numbers_known: in_first_pid_namespace() };
    let choice = events::choose(&instance.path("events"), &target, threads)?;
    enable(&instance, &choice.events)?;
    instance.write("tracing_on", "1")?;
    let status = waiter.run(&request.command);
    if status.is_ok() {
        wait_for_devices(&target);
    }
    instance.write("tracing_on", "0")?;
    pump.finish()?;
    let losses = stats::losses(&instance, &cpus)?;
    if request.format == Format::Raw {
        keep_descriptions(&tracefs, &instance, &cpus, &choice, &request.output)?;
    }
    notes.extend(choice.notes);
    let reads = choice.reads;
    Ok(Recording { status: status?, target, reads, notes, buffer_bytes, losses })
}

fn drop_caches() -> Result<(), RecordError> {
    let path = Path::new("/proc/sys/vm/drop_caches");
    rustix::fs::sync();
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(b"3"))
        .map_err(at(path))
}

/// A replay takes what was cached for granted, so that readahead shows only around it.
fn note_cached(target: &Target, notes: &mut Vec<String>) {
    for file in &target.files {
        if let Ok(pages @ 1..) = cached::pages(&file.path) {
            let path = file.path.display();
            notes.push(format!(
                "{pages} pages of {path} were in the page cache before; --drop-caches empties it"
            ));
        }
    }
}

/// Makes the output ready to be written: a file, or a directory that is new or an older recording's.
fn prepare_output(request: &Request) -> Result<(), RecordError> {
    let output = &request.output;
    let exists = || RecordError::OutputExists { path: output.clone() };
    match request.format {
        Format::Text if output.is_dir() => Err(exists()),
        Format::Text => Ok(()),
        Format::Raw => {
            if output.join("per_cpu").is_dir() && output.join("events").is_dir() {
                fs::remove_dir_all(output).map_err(at(output))?;
            }
            match fs::create_dir(output) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists()),
                result => result.map_err(at(output)),
            }
        }
    }
}

/// Enough for a burst, and not more than a machine of many CPUs can spare.
fn suitable_buffer_bytes(cpus: usize) -> u64 {
    const MOST: u64 = 64 << 20;
    const LEAST: u64 = 1 << 20;
    let spare = sysfs::memory_bytes() / 32 / cpus.max(1) as u64;
    spare.clamp(LEAST, MOST)
}

fn set_up_buffer(instance: &Instance, bytes: u64) -> Result<(), RecordError> {
    // The monotonic clock is that of blktrace and of perf's -k mono, so captures of all can be joined.
    instance.write("trace_clock", "mono")?;
    instance.write("buffer_size_kb", &(bytes >> 10).max(1).to_string())?;
    // Raw pages are taken when an eighth of a buffer is full. Older kernels have no such setting, and no need.
    let _ = instance.write("buffer_percent", "12");
    Ok(())
}

fn enable(instance: &Instance, events: &[ChosenEvent]) -> Result<(), RecordError> {
    for ChosenEvent { path, filter } in events {
        if let Some(filter) = filter {
            instance.write(&format!("events/{path}/filter"), filter).map_err(
                |error| match error {
                    RecordError::Io { source, .. } => RecordError::Filter {
                        event: path.replace('/', ":"),
                        filter: filter.clone(),
                        source,
                    },
                    other => other,
                },
            )?;
        }
        instance.write(&format!("events/{path}/enable"), "1")?;
    }
    Ok(())
}

/// Whether this process sees the process numbers that the kernel prints.
fn in_first_pid_namespace() -> bool {
    /// `PROC_PID_INIT_INO`.
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new(FIRST))
}

/// Readahead that the program did not wait for completes after its end.
fn wait_for_devices(target: &Target) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let begin = Instant::now();
    while sysfs::in_flight(&target.devices) > 0 && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Copies what the pages cannot be read without.
fn keep_descriptions(
    whole: &Tracefs,
    instance: &Instance,
    cpus: &[u32],
    choice: &Choice,
    output: &Path,
) -> Result<(), RecordError> {
    let formats = choice.events.iter().map(|event| format!("events/{}/format", event.path));
    let stats = cpus.iter().map(|cpu| format!("per_cpu/cpu{cpu}/stats"));
    for name in formats.chain(stats).chain(["events/header_page".to_owned()]) {
        let from = instance.path(&name);
        write(&output.join(&name), &tracefs::read(&from).map_err(at(&from))?)?;
    }
    let names = tracefs::read(&whole.path("saved_cmdlines")).unwrap_or_default();
    write(&output.join("saved_cmdlines"), &names)
}

fn write(path: &Path, content: &[u8]) -> Result<(), RecordError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(at(folder))?;
    fs::write(path, content).map_err(at(path))
}
