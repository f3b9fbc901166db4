//! The session's end of a worker: asking, waiting with a limit, and finding out how it died.

use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::SendFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::abi::{Access, RawCrash, RawDecision, RawSettings, RawStop};
use crate::built::Built;
use crate::error::{Error, Fault, Result, harmless};
use crate::inspect;
use crate::protocol::{Answer, Op, Request, WAKE};
use crate::session::Limits;
use crate::shared::{Shared, Watch};
use crate::worker;

/// How often a wait looks whether the worker is getting on.
const TICK: Duration = Duration::from_millis(20);
/// How long a worker gets to write down where it hangs.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Longest notes a worker may send.
const NOTES_BYTES: u32 = 4096;

/// The memory of one file's replay serves the next, rather than going back to the kernel between.
const KEEP_MEMORY: &str =
    "glibc.malloc.trim_threshold=1073741824:glibc.malloc.mmap_threshold=1073741824";

/// A running worker.
pub(crate) struct Worker {
    child: Child,
    control: UnixStream,
    shared: Shared,
    tree: String,
    object: PathBuf,
    limits: Limits,
    /// Number of the last answer.
    answered: u32,
    watch: Watch,
    dead: bool,
}

impl Worker {
    pub(crate) fn start(built: &Built, limits: &Limits) -> Result<(Self, Vec<String>)> {
        let io = |source| Error::Io { what: "worker process".to_owned(), source };
        let (control, theirs) = UnixStream::pair().map_err(io)?;
        let (shared, memory) = Shared::create()?;
        let child = worker::command(limits, worker::REPLAY)?
            .env("GLIBC_TUNABLES", KEEP_MEMORY)
            .arg(limits.memory_bytes.to_string())
            .arg(limits.cpu_time.as_secs().max(1).to_string())
            .arg(built.object())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(memory))
            .stderr(Stdio::piped())
            .spawn()
            .map_err(io)?;
        control.set_read_timeout(Some(TICK)).map_err(io)?;
        let (tree, object) = (built.describe().to_owned(), built.object().to_owned());
        let mut worker = Self {
            child,
            control,
            shared,
            tree,
            object,
            limits: limits.clone(),
            answered: 0,
            watch: Watch::new(),
            dead: false,
        };
        let notes = worker.greeting()?;
        Ok((worker, notes))
    }

    /// What there is to say of an answer's stop or warning.
    pub(crate) fn stop_of(&self, answer: &Answer) -> RawStop {
        let said = if answer.has_stop() { self.shared.stop() } else { RawStop::RUNNING };
        RawStop { kind: answer.stop, ..said }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The worker's first bytes: that it is one, and what it could not give up.
    fn greeting(&mut self) -> Result<Vec<String>> {
        let mut head = [0; 5];
        self.wait(&mut head, 0)?;
        let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if head[0] != worker::READY || len > NOTES_BYTES {
            let source = std::io::Error::other(
                "it is not a worker: does its main call kernel::run_if_asked first?",
            );
            return Err(Error::Io { what: "worker process".to_owned(), source });
        }
        let mut notes = vec![0; len as usize];
        self.wait(&mut notes, 0)?;
        Ok(String::from_utf8_lossy(&notes).lines().map(str::to_owned).collect())
    }

    pub(crate) fn ask(
        &mut self,
        op: Op,
        instance: u32,
        count: u32,
        settings: Option<RawSettings>,
    ) -> Result<Answer> {
        self.ask_at(op, instance, count, settings, 0)
    }

    /// Replays as many accesses as fit at once, `before` being the number of the first.
    pub(crate) fn replay(
        &mut self,
        instance: u32,
        accesses: &[Access],
        before: u64,
        decisions: &mut Vec<RawDecision>,
    ) -> Result<Answer> {
        if self.dead {
            return Err(Error::Poisoned { what: "session" });
        }
        let n = self.shared.put_accesses(accesses);
        let answer = self.ask_at(Op::Replay, instance, n as u32, None, before)?;
        // The tree's code may speak for the worker: nothing it says is followed without end.
        let most = decisions.len() + self.limits.memory_bytes as usize / size_of::<RawDecision>();
        let mut part = answer;
        self.shared.take_decisions(part.decisions as usize, decisions);
        while part.left > 0 && part.decisions > 0 && decisions.len() < most {
            part = self.ask_at(Op::More, instance, 0, None, before)?;
            self.shared.take_decisions(part.decisions as usize, decisions);
        }
        let is_stuck = answer.value == 0 && answer.stop == RawStop::RUNNING.kind;
        if answer.value > n as u64 || is_stuck || part.left > 0 {
            return Err(self.vanished(before, "its answer makes no sense"));
        }
        Ok(answer)
    }

    fn ask_at(
        &mut self,
        op: Op,
        instance: u32,
        count: u32,
        settings: Option<RawSettings>,
        before: u64,
    ) -> Result<Answer> {
        if self.dead {
            return Err(Error::Poisoned { what: "session" });
        }
        let request = Request { op, instance, count, settings };
        if self.shared.requests().put(&request.to_bytes()) {
            // A program may have made SIGPIPE deadly again; a dead worker must not use that.
            let sent = rustix::net::send(&self.control, &[WAKE], SendFlags::NOSIGNAL);
            if sent != Ok(1) {
                return Err(self.died(before));
            }
        }
        self.answer(before)
    }

    /// Waits for the answer, as long as accesses keep ending in time.
    fn answer(&mut self, before: u64) -> Result<Answer> {
        let mut patience = None;
        let mut wakes = [0; 64];
        while !self.shared.answers().looks(self.answered, &mut self.watch) {
            let patience = patience.get_or_insert_with(|| Patience::new(&self.shared));
            self.sleep(&mut wakes, patience, before)?;
        }
        let (bytes, number) = self.shared.answers().take();
        self.answered = number;
        Ok(Answer::from_bytes(&bytes))
    }

    /// Fills `bytes` with what the worker says while it starts.
    fn wait(&mut self, bytes: &mut [u8], before: u64) -> Result<()> {
        let mut patience = Patience::new(&self.shared);
        let mut got = 0;
        while got < bytes.len() {
            got += self.sleep(&mut bytes[got..], &mut patience, before)?;
        }
        Ok(())
    }

    /// Sleeps until the worker says something or a tick is over; returns how much it said.
    fn sleep(&mut self, bytes: &mut [u8], patience: &mut Patience, before: u64) -> Result<usize> {
        let n = match self.control.read(bytes) {
            Ok(0) => return Err(self.died(before)),
            Ok(n) => n,
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                0
            }
            Err(_) => return Err(self.died(before)),
        };
        if patience.is_over(&self.shared, &self.limits) {
            return Err(self.endless(before));
        }
        Ok(n)
    }

    fn endless(&mut self, before: u64) -> Error {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::ALARM).is_ok());
        let deadline = Instant::now() + LAST_WORDS;
        while asked && Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(TICK);
        }
        self.end();
        let limit = self.limits.access_time;
        self.fault(before, Fault::Endless { limit }, self.shared.crash().as_ref())
    }

    fn vanished(&mut self, before: u64, why: &str) -> Error {
        self.end();
        self.fault(before, Fault::Vanished(why.to_owned()), None)
    }

    /// The worker closed its end, so it is ending or has ended.
    fn died(&mut self, before: u64) -> Error {
        let deadline = Instant::now() + LAST_WORDS;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.end();
        let crash = self.shared.crash();
        let fault = match &crash {
            Some(crash) => fault_of(crash),
            None => Fault::Vanished(self.how_it_ended()),
        };
        self.fault(before, fault, crash.as_ref())
    }

    fn end(&mut self) {
        self.dead = true;
        // Both fail only for a process that has been waited for already.
        _ = self.child.kill();
        _ = self.child.wait();
    }

    fn how_it_ended(&mut self) -> String {
        let mut said = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            _ = stderr.take(NOTES_BYTES.into()).read_to_string(&mut said);
        }
        let how = match self.child.try_wait() {
            Ok(Some(status)) => match status.signal() {
                Some(signal) => format!("signal {signal} {said}"),
                None => format!("{status} {said}"),
            },
            _ => said,
        };
        harmless(how.trim())
    }

    fn fault(&self, before: u64, fault: Fault, crash: Option<&RawCrash>) -> Error {
        let access = before + self.shared.progress().load(Ordering::Relaxed);
        let frames = crash
            .map(|c| c.frames[..(c.depth as usize).min(c.frames.len())].to_vec())
            .unwrap_or_default();
        let place = inspect::place(&self.object, &frames);
        Error::Fault { tree: self.tree.clone(), access, fault, place }
    }
}

/// Since when no access has ended.
struct Patience {
    progress: u64,
    since: Instant,
}

impl Patience {
    fn new(shared: &Shared) -> Self {
        Self { progress: shared.progress().load(Ordering::Relaxed), since: Instant::now() }
    }

    fn is_over(&mut self, shared: &Shared, limits: &Limits) -> bool {
        let progress = shared.progress().load(Ordering::Relaxed);
        if progress != self.progress {
            *self = Self { progress, since: Instant::now() };
        }
        self.since.elapsed() > limits.access_time
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

fn fault_of(crash: &RawCrash) -> Fault {
    let signal = crash.signal.cast_signed();
    if signal == libc::SIGSYS {
        return Fault::SystemCall { number: crash.system_call };
    }
    let names = [
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGXCPU, "SIGXCPU"),
    ];
    let name =
        names.iter().find(|(number, _)| *number == signal).map_or("a signal", |(_, name)| name);
    Fault::Signal { name, address: crash.address }
}
