//! The worker process: a program run again with a hidden argument, which gives up its rights and
//! then compiles, or loads an object and replays.
//!
//! Its standard input is the socket of the session and its standard output the shared memory, so
//! nothing else has to be inherited.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use crate::abi::RawStop;
use crate::error::{Error, Result};
use crate::object::{Object, RawInstance};
use crate::protocol::{Answer, Op, Request, WAKE};
use crate::sandbox;
use crate::session::Limits;
use crate::shared::{Shared, Watch};

/// The hidden argument.
const WORKER: &str = "--rareplay-kernel-worker";
/// Its value for a worker that compiles.
pub(crate) const COMPILE: &str = "compile";
/// Its value for a worker that replays.
pub(crate) const REPLAY: &str = "replay";
/// Set in a worker, which must not start workers: a program that forgot [`run_if_asked`] would
/// start itself for ever.
const MARK: &str = "RAREPLAY_KERNEL_WORKER";

/// First byte a replaying worker sends, before its notes.
pub(crate) const READY: u8 = 0x52;
/// Exit code of a worker that cannot give up its rights or load the object.
const EXIT_SETUP: u8 = 71;

/// Becomes the worker if the command line says so; the first thing `main` has to do in a program
/// that uses [`crate::Isolation::Worker`].
pub fn run_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORKER {
        return None;
    }
    let task = arguments.next();
    let rest: Vec<OsString> = arguments.collect();
    let outcome = match task.as_deref().and_then(OsStr::to_str) {
        Some(COMPILE) => compile(&rest),
        Some(REPLAY) => replay(&rest),
        _ => Err("unknown task".into()),
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("kernel worker: {e}");
            ExitCode::from(EXIT_SETUP)
        }
    })
}

/// A command that starts a worker.
pub(crate) fn command(limits: &Limits, task: &str) -> Result<Command> {
    let io = |source| Error::Io { what: "the worker's program".to_owned(), source };
    if std::env::var_os(MARK).is_some() {
        return Err(io(std::io::Error::other(
            "a worker cannot start workers: does main call kernel::run_if_asked first?",
        )));
    }
    let program = match &limits.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(io)?,
    };
    let mut command = Command::new(program);
    command.args([WORKER, task]).env(MARK, "1");
    Ok(command)
}

type Outcome = std::result::Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// `MEMORY FOLDER PROGRAM ARGUMENTS...`
fn compile(arguments: &[OsString]) -> Outcome {
    let [memory, work, program, rest @ ..] = arguments else {
        return Err("compile needs a folder and a program".into());
    };
    for note in sandbox::for_compiler(number(memory)?, Path::new(work), Path::new(program))? {
        println!("{note}");
    }
    std::io::stdout().flush()?;
    Err(Command::new(program).args(rest).env_remove(MARK).exec().into())
}

/// `MEMORY CPU OBJECT`
fn replay(arguments: &[OsString]) -> Outcome {
    let [memory, cpu, object] = arguments else {
        return Err("replay needs limits and an object".into());
    };
    let shared = Shared::open(&std::io::stdout())?;
    let watch = Watch::new();
    let mut control = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let path = Path::new(object);
    let notes = sandbox::before_loading(number(memory)?, number(cpu)?, path)?;
    let object = Object::load(path)?;
    if !object.guard(shared.crash_pointer()) {
        return Err("no signal handlers".into());
    }
    sandbox::before_running(control.as_raw_fd())?;
    let notes = notes.join("\n");
    control.write_all(&[READY])?;
    control.write_all(&(notes.len() as u32).to_le_bytes())?;
    control.write_all(notes.as_bytes())?;
    Server { shared, object, watch, instances: HashMap::new() }.serve(&mut control)
}

fn number(word: &OsStr) -> std::result::Result<u64, String> {
    let number = word.to_str().and_then(|w| w.parse().ok());
    number.ok_or_else(|| format!("{} is not a number", word.display()))
}

struct Server {
    shared: Shared,
    object: Arc<Object>,
    watch: Watch,
    instances: HashMap<u32, Served>,
}

struct Served {
    instance: RawInstance,
    /// Decisions of the last replay that were handed over.
    handed: usize,
}

impl Server {
    /// Until the session closes its end.
    fn serve(&mut self, control: &mut File) -> Outcome {
        let mut seen = 0;
        let mut wakes = [0; 64];
        loop {
            while !self.shared.requests().looks(seen, &mut self.watch) {
                if control.read(&mut wakes)? == 0 {
                    return Ok(());
                }
            }
            let (bytes, number) = self.shared.requests().take();
            seen = number;
            let request = Request::from_bytes(bytes).ok_or("unknown request")?;
            let answer =
                self.answer(&request).ok_or("request for an instance that is not there")?;
            if self.shared.answers().put(&answer.to_bytes()) {
                control.write_all(&[WAKE])?;
            }
        }
    }

    fn answer(&mut self, request: &Request) -> Option<Answer> {
        let id = &request.instance;
        match request.op {
            Op::New => {
                let instance = RawInstance::new(&self.object, &request.settings?)?;
                let served = Served { instance, handed: 0 };
                let answer = served.state(&self.shared);
                self.instances.insert(*id, served);
                Some(answer)
            }
            Op::Open => {
                let served = self.instances.get_mut(id)?;
                let value = served.instance.open().map_or(u64::MAX, u64::from);
                Some(Answer { value, ..served.state(&self.shared) })
            }
            Op::Replay => {
                let served = self.instances.get_mut(id)?;
                let accesses = self.shared.accesses(request.count as usize);
                let value = served.instance.replay(accesses, self.shared.progress()) as u64;
                served.handed = 0;
                Some(Answer { value, ..served.hand_over(&self.shared) })
            }
            Op::More => Some(self.instances.get_mut(id)?.hand_over(&self.shared)),
            Op::Free => {
                self.instances.remove(id)?;
                Some(Answer::NOTHING)
            }
        }
    }
}

impl Served {
    fn hand_over(&mut self, shared: &Shared) -> Answer {
        let decisions = &self.instance.decisions()[self.handed..];
        let n = shared.put_decisions(decisions);
        let left = (decisions.len() - n) as u64;
        self.handed += n;
        Answer { decisions: n as u64, left, ..self.state(shared) }
    }

    /// Whether it has stopped and how often it warned, with what there is to say of that.
    fn state(&self, shared: &Shared) -> Answer {
        let (warnings, first_warning) = self.instance.warnings();
        let stopped = self.instance.stopped();
        let answer = Answer { warnings, stop: stopped.kind, ..Answer::NOTHING };
        if answer.has_stop() {
            let runs = stopped.kind == RawStop::RUNNING.kind;
            shared.put_stop(if runs { first_warning } else { stopped });
        }
        answer
    }
}
