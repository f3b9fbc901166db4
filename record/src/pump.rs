//! Moves events from the ring buffer to the output while the program runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::RecordError;
use crate::error::at;
use crate::session::Format;
use crate::tracefs::Instance;

/// How long the pump rests once the buffer is empty. At a million events a second 20 MB come in.
const REST: Duration = Duration::from_millis(20);
/// How often raw buffers are emptied that have not filled up: pages read early are mostly padding.
const SWEEP: Duration = Duration::from_secs(2);
/// The kernel hands out less than this at a time.
const READ_BYTES: usize = 1 << 16;

/// Its priority, as nice(1) counts.
const NICE: i32 = -10;

/// A file of the ring buffer and where its content goes.
struct Pipe {
    path: PathBuf,
    from: File,
    to: Box<dyn Write + Send>,
}

impl Pipe {
    fn open(path: PathBuf, to: Box<dyn Write + Send>) -> Result<Self, RecordError> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let from = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        Ok(Self { from: from.map_err(at(&path))?, path, to })
    }

    /// Moves what there is.
    fn drain(&mut self, buffer: &mut [u8]) -> Result<(), RecordError> {
        loop {
            match self.from.read(buffer) {
                // Nothing is left and tracing is off.
                Ok(0) => return Ok(()),
                Ok(count) => self.to.write_all(&buffer[..count]).map_err(at(&self.path))?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(at(&self.path)(source)),
            }
        }
    }
}

/// The thread that moves events.
pub(crate) struct Pump {
    /// Its number, to keep its own work out of the capture.
    pub(crate) thread: u32,
    stop: Arc<AtomicBool>,
    handle: Option<JoinHandle<Result<(), RecordError>>>,
}

impl Pump {
    /// Opens the buffer of `instance` and the output, and begins to move.
    pub(crate) fn start(
        instance: &Instance,
        cpus: &[u32],
        format: Format,
        output: &Path,
    ) -> Result<Self, RecordError> {
        let pipes = match format {
            Format::Text => vec![text_pipe(instance, output)?],
            Format::Raw => raw_pipes(instance, cpus, output)?,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = sync_channel(1);
        let seen = Arc::clone(&stop);
        let handle = std::thread::spawn(move || {
            // Where it does not get its share of a busy machine, events are lost.
            let _ = rustix::process::setpriority_process(None, NICE);
            let _ = tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned());
            match format {
                Format::Text => pump_text(pipes, &seen),
                Format::Raw => pump_raw(pipes, &seen),
            }
        });
        Ok(Self { thread: number(&told), stop, handle: Some(handle) })
    }

    /// Moves the rest and ends. Tracing is off by now.
    pub(crate) fn finish(mut self) -> Result<(), RecordError> {
        self.end().unwrap_or(Ok(()))
    }

    fn end(&mut self) -> Option<Result<(), RecordError>> {
        self.stop.store(true, Ordering::Release);
        let handle = self.handle.take()?;
        Some(handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn number(told: &Receiver<u32>) -> u32 {
    told.recv().unwrap_or(0)
}

/// `trace_pipe`, in which the kernel merges the CPUs by time, to a file, packed if its name says so.
fn text_pipe(instance: &Instance, output: &Path) -> Result<Pipe, RecordError> {
    let file = File::create(output).map_err(at(output))?;
    let mut to: Box<dyn Write + Send> = if output.extension().is_some_and(|end| end == "zst") {
        Box::new(zstd::Encoder::new(file, 1).map_err(at(output))?.auto_finish())
    } else {
        Box::new(BufWriter::with_capacity(1 << 20, file))
    };
    to.write_all(b"# tracer: nop\n#\n").map_err(at(output))?;
    Pipe::open(instance.path("trace_pipe"), to)
}

/// The pages of each CPU, in the layout of tracefs.
fn raw_pipes(instance: &Instance, cpus: &[u32], output: &Path) -> Result<Vec<Pipe>, RecordError> {
    let mut pipes = Vec::new();
    for cpu in cpus {
        let place = format!("per_cpu/cpu{cpu}");
        let folder = output.join(&place);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let path = folder.join("trace_pipe_raw");
        let file = BufWriter::with_capacity(1 << 18, File::create(&path).map_err(at(&path))?);
        let from = instance.path(&format!("{place}/trace_pipe_raw"));
        pipes.push(Pipe::open(from, Box::new(file))?);
    }
    Ok(pipes)
}

fn pump_text(mut pipes: Vec<Pipe>, stop: &AtomicBool) -> Result<(), RecordError> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let last = stop.load(Ordering::Acquire);
        for pipe in &mut pipes {
            pipe.drain(&mut buffer)?;
        }
        if last {
            return flush(pipes);
        }
        std::thread::sleep(REST);
    }
}

fn pump_raw(mut pipes: Vec<Pipe>, stop: &AtomicBool) -> Result<(), RecordError> {
    let mut buffer = vec![0; READ_BYTES];
    let mut swept = Instant::now();
    loop {
        let last = stop.load(Ordering::Acquire);
        let sweep = last || swept.elapsed() > SWEEP;
        if sweep {
            swept = Instant::now();
        }
        let full = filled(&pipes);
        for (pipe, full) in pipes.iter_mut().zip(full) {
            if full || sweep {
                pipe.drain(&mut buffer)?;
            }
        }
        if last {
            return flush(pipes);
        }
    }
}

/// Which buffers hold as much as `buffer_percent` asks for, once one does or the rest is over.
fn filled(pipes: &[Pipe]) -> Vec<bool> {
    let rest = Timespec { tv_sec: 0, tv_nsec: REST.as_nanos() as i64 };
    let mut polled: Vec<_> =
        pipes.iter().map(|pipe| PollFd::new(&pipe.from, PollFlags::IN)).collect();
    let _ = poll(&mut polled, Some(&rest));
    polled.iter().map(|fd| fd.revents().contains(PollFlags::IN)).collect()
}

fn flush(pipes: Vec<Pipe>) -> Result<(), RecordError> {
    for mut pipe in pipes {
        pipe.to.flush().map_err(at(&pipe.path))?;
    }
    Ok(())
}
