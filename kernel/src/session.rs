//! Replays of a built tree: in a worker process, or in this one for those who trust the tree.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::abi::{Access, Decisions, InstanceSettings, OpenId, RawSettings, RawStop};
use crate::built::Built;
use crate::error::{Error, Fault, Place, Result};
use crate::object::{Object, RawInstance};
use crate::parent::Worker;
use crate::protocol::{Answer, Op};

/// Where the tree's code runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In a process of its own without rights, whose end is an error and nothing more.
    Worker(Limits),
    /// In this process: a crash or an endless loop of the tree's code is this program's.
    InProcess,
}

impl Default for Isolation {
    fn default() -> Self {
        Self::Worker(Limits::default())
    }
}

/// What a worker may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Address space.
    pub memory_bytes: u64,
    /// Time one access may take.
    pub access_time: Duration,
    /// Processor time of the worker's whole life, for one whose session is gone.
    pub cpu_time: Duration,
    /// The program to run as the worker, which calls [`crate::run_if_asked`] first; by default this
    /// one again.
    pub program: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 8 << 30,
            access_time: Duration::from_secs(5),
            cpu_time: Duration::from_secs(3600),
            program: None,
        }
    }
}

/// A built tree, loaded. Instances of one session take turns in its worker; start a session per
/// thread to use several processors, of the same or of different builds.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    built: Built,
    backend: Backend,
    next_instance: AtomicU32,
    notes: Vec<String>,
}

enum Backend {
    InProcess(Arc<Object>),
    Worker(Mutex<Worker>),
}

impl Session {
    /// Loads the object, here or in a new worker.
    pub fn start(built: &Built, isolation: &Isolation) -> Result<Self> {
        let (backend, notes) = match isolation {
            Isolation::InProcess => (Backend::InProcess(Object::load(built.object())?), Vec::new()),
            Isolation::Worker(limits) => {
                let (worker, notes) = Worker::start(built, limits)?;
                (Backend::Worker(Mutex::new(worker)), notes)
            }
        };
        let inner =
            Inner { built: built.clone(), backend, next_instance: AtomicU32::new(0), notes };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What this machine's kernel could not hold back from the worker.
    pub fn notes(&self) -> &[String] {
        &self.inner.notes
    }

    /// The error of a fault that shows only to whoever follows what is decided.
    pub fn fault(&self, access: u64, fault: Fault, place: Option<Place>) -> Error {
        self.inner.fault(access, fault, place)
    }

    /// A file with an empty page cache.
    pub fn instance(&self, settings: InstanceSettings) -> Result<Instance> {
        let settings = RawSettings::try_from(settings)?;
        let session = Arc::clone(&self.inner);
        let backend = match &self.inner.backend {
            Backend::InProcess(object) => {
                let no_memory = Fault::OutOfMemory { limit_bytes: None };
                let instance = RawInstance::new(object, &settings)
                    .ok_or_else(|| session.fault(0, no_memory, None))?;
                session.check(0, instance.stopped())?;
                Local::InProcess(Box::new(instance))
            }
            Backend::Worker(_) => {
                let id = self.inner.next_instance.fetch_add(1, Ordering::Relaxed);
                let (_, stop) = session.ask(Op::New, id, Some(settings))?;
                session.check(0, &stop)?;
                Local::Worker(id)
            }
        };
        Ok(Instance {
            session,
            backend,
            opens: 0,
            replayed: 0,
            poisoned: false,
            decisions: Decisions::default(),
            warnings: 0,
            first_warning: None,
        })
    }
}

/// A fault leaves the worker dead, which every later call reports; a panic elsewhere changes nothing.
fn lock(worker: &Mutex<Worker>) -> MutexGuard<'_, Worker> {
    worker.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn fault(&self, access: u64, fault: Fault, place: Option<Place>) -> Error {
        Error::Fault { tree: self.built.describe().to_owned(), access, fault, place }
    }

    /// The error a stop stands for.
    fn check(&self, access: u64, stop: &RawStop) -> Result<()> {
        match stop.kind {
            RawStop::BUG => {
                Err(self.fault(access, Fault::Bug(stop.what()), Some(stop_place(stop))))
            }
            RawStop::NO_MEMORY => {
                let limit_bytes = match &self.backend {
                    Backend::InProcess(_) => None,
                    Backend::Worker(worker) => Some(lock(worker).limits().memory_bytes),
                };
                Err(self.fault(access, Fault::OutOfMemory { limit_bytes }, None))
            }
            RawStop::NOT_FORETOLD => {
                Err(Error::NotForetold { tree: self.built.describe().to_owned(), access })
            }
            kind if kind == RawStop::RUNNING.kind => Ok(()),
            _ => Err(self.fault(
                access,
                Fault::Vanished("it stopped for no reason".to_owned()),
                None,
            )),
        }
    }
}

fn stop_place(stop: &RawStop) -> Place {
    Place { file: stop.file(), line: stop.line, function: None }
}

/// One file: its page cache and its open files.
pub struct Instance {
    session: Arc<Inner>,
    backend: Local,
    opens: u32,
    /// Accesses of earlier calls.
    replayed: u64,
    poisoned: bool,
    decisions: Decisions,
    warnings: u64,
    first_warning: Option<(String, Place)>,
}

enum Local {
    InProcess(Box<RawInstance>),
    Worker(u32),
}

impl Instance {
    /// Opens the file once more, with readahead state of its own.
    pub fn open(&mut self) -> Result<OpenId> {
        self.check_usable()?;
        let (id, stop) = match &mut self.backend {
            Local::InProcess(instance) => {
                (instance.open().map_or(u64::MAX, u64::from), *instance.stopped())
            }
            Local::Worker(id) => {
                let (answer, stop) = self.session.ask(Op::Open, *id, None)?;
                (answer.value, stop)
            }
        };
        self.session.check(self.replayed, &stop)?;
        let id = u32::try_from(id).map_err(|_| Error::Poisoned { what: "instance" })?;
        self.opens = id + 1;
        Ok(OpenId(id))
    }

    /// Replays accesses in order and returns what the tree decided. An error ends the instance; it
    /// numbers accesses from the instance's first.
    pub fn replay(&mut self, accesses: &[Access]) -> Result<&Decisions> {
        self.check_usable()?;
        if let Some(open) =
            accesses.iter().filter_map(Access::needs_open).find(|open| open.0 >= self.opens)
        {
            let value = u64::from(open.0);
            return Err(Error::BadSetting {
                setting: "open",
                value,
                expected: "an open file of this instance",
            });
        }
        self.decisions.raw.clear();
        let replayed = match &mut self.backend {
            Local::InProcess(instance) => {
                let progress = AtomicU64::new(0);
                let done = instance.replay(accesses, &progress);
                self.decisions.raw.extend_from_slice(instance.decisions());
                (self.warnings, self.first_warning) = warned(instance.warnings());
                self.session.check(self.replayed + done as u64, instance.stopped())
            }
            Local::Worker(id) => {
                let id = *id;
                self.replay_in_worker(id, accesses)
            }
        };
        self.poisoned = replayed.is_err();
        replayed?;
        self.replayed += accesses.len() as u64;
        Ok(&self.decisions)
    }

    fn replay_in_worker(&mut self, id: u32, accesses: &[Access]) -> Result<()> {
        let Backend::Worker(worker) = &self.session.backend else {
            unreachable!("a worker's instance")
        };
        let mut worker = lock(worker);
        let mut done = 0;
        while done < accesses.len() {
            let decided = self.decisions.raw.len();
            let before = self.replayed + done as u64;
            let answer = worker.replay(id, &accesses[done..], before, &mut self.decisions.raw)?;
            for decision in &mut self.decisions.raw[decided..] {
                decision.shift_access(done as u32);
            }
            done += answer.value as usize;
            if answer.has_stop() {
                let stop = worker.stop_of(&answer);
                (self.warnings, self.first_warning) = warned((answer.warnings, &stop));
                if answer.stop != RawStop::RUNNING.kind {
                    drop(worker);
                    return self.session.check(self.replayed + done as u64, &stop);
                }
            }
        }
        Ok(())
    }

    /// How many of the tree's `WARN_ON`s fired so far, and the first with its place.
    pub fn warnings(&self) -> (u64, Option<&(String, Place)>) {
        (self.warnings, self.first_warning.as_ref())
    }

    fn check_usable(&self) -> Result<()> {
        if self.poisoned { Err(Error::Poisoned { what: "instance" }) } else { Ok(()) }
    }
}

fn warned((count, first): (u64, &RawStop)) -> (u64, Option<(String, Place)>) {
    (count, (count > 0).then(|| (first.what(), stop_place(first))))
}

impl Inner {
    fn ask(&self, op: Op, id: u32, settings: Option<RawSettings>) -> Result<(Answer, RawStop)> {
        let Backend::Worker(worker) = &self.backend else { unreachable!("only a worker is asked") };
        let mut worker = lock(worker);
        let answer = worker.ask(op, id, 0, settings)?;
        Ok((answer, worker.stop_of(&answer)))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let (Local::Worker(id), Backend::Worker(worker)) = (&self.backend, &self.session.backend)
        {
            // A dead worker has forgotten it already.
            _ = lock(worker).ask(Op::Free, *id, 0, None);
        }
    }
}
