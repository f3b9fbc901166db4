//! The tree's side of one file: an instance of its code, and what it has yet to be told.

use std::num::NonZeroU32;

use kernel::{
    Access, Advice, Completion, Decided, Error, Fault, Instance, InstanceSettings, OpenId, Session,
    TaskId,
};
use replay::readahead::Readahead;
use traces::units::ByteOffset;

/// Stops of a task in a row without anything copied, after which it is taken to be in a loop. The
/// largest read that a capture can hold triggers readahead less often.
const STOPS_MAX: u32 = 100_000;
/// Reads foretold at most before the tree's code has to catch up.
const FORETOLD_MAX: usize = 1024;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Mirror {
    instance: Option<Instance>,
    /// By number.
    opens: Vec<Option<OpenMirror>>,
    /// By thread.
    tasks: Vec<Option<TaskMirror>>,
    /// What the tree's code has yet to do or to be told, since it ran last.
    untold: Vec<Access>,
    /// The reads among that.
    foretold: Vec<Foretold>,
    /// Accesses, and what else was told, before that.
    told: u64,
    /// The tree's code has failed.
    pub(super) failed: bool,
}

#[derive(Clone, Copy)]
struct OpenMirror {
    id: OpenId,
    ra_pages: u64,
    random: bool,
}

/// A read whose outcome is known before the tree's code has carried it out.
#[derive(Clone, Copy)]
struct Foretold {
    /// Where it is in what is untold.
    at: usize,
    /// Number of its access in the source.
    access: u64,
}

/// A task that is not over.
#[derive(Clone, Copy)]
struct TaskMirror {
    /// Number of its access in the source.
    access: u64,
    stops: u32,
}

impl Mirror {
    /// Something has happened to the cache.
    pub(super) fn tell(&mut self, access: Access) {
        self.untold.push(access);
    }

    /// Asks the tree's code what it does for an access. With `prev_pos` the read path is not the
    /// tree's, and has to say what reads leave behind.
    pub(super) fn ask(
        &mut self,
        session: &Session,
        rac: &Readahead<'_>,
        prev_pos: bool,
        access: impl Fn(OpenId) -> Access,
    ) -> kernel::Result<Vec<Decided>> {
        let instance = match &mut self.instance {
            Some(instance) => instance,
            None => self.instance.insert(session.instance(settings(rac))?),
        };
        let open = slot(&mut self.opens, rac.open);
        let id = if let Some(open) = open {
            open.id
        } else {
            let (id, ra_pages) = (instance.open()?, rac.limits.ra_pages);
            open.insert(OpenMirror { id, ra_pages, random: false }).id
        };
        self.tell_changes(rac);
        self.untold.extend(
            prev_pos.then(|| Access::prev_pos(id, ByteOffset(rac.ra.prev_pos.cast_unsigned()))),
        );
        self.untold.push(access(id));
        self.catch_up(rac.access)
    }

    /// Lets the tree's code do what is untold; returns what it decides for the last of it.
    fn catch_up(&mut self, access: u64) -> kernel::Result<Vec<Decided>> {
        let Some(instance) = &mut self.instance else { return Ok(Vec::new()) };
        let last = self.untold.len().saturating_sub(1);
        let decided = instance
            .replay(&self.untold)
            .map(|decisions| decisions.of(last).map(|decision| decision.what).collect());
        let decided = decided.map_err(|error| self.numbered(error, access));
        self.told += self.untold.len() as u64;
        self.untold.clear();
        self.foretold.clear();
        decided
    }

    /// The same where a replay has ended. Only reads that were foretold have to be carried out.
    pub(super) fn settle(&mut self) -> kernel::Result<()> {
        match self.foretold.last() {
            Some(last) => self.catch_up(last.access).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Puts off a read of `thread` that can only copy from `folios` cached folios and return. Not if
    /// the tree's code has to be asked first.
    pub(super) fn foretell(
        &mut self,
        rac: &Readahead<'_>,
        thread: u32,
        folios: NonZeroU32,
        access: impl Fn(OpenId, TaskId) -> Access,
    ) -> bool {
        let open = *slot(&mut self.opens, rac.open);
        let (Some(open), true) = (open, self.foretold.len() < FORETOLD_MAX) else { return false };
        self.tell_changes(rac);
        self.foretold.push(Foretold { at: self.untold.len(), access: rac.access });
        self.untold.push(access(open.id, TaskId(thread)).foretold(folios));
        true
    }

    /// Tells what turns the state of an open at its last access into its state now.
    fn tell_changes(&mut self, rac: &Readahead<'_>) {
        let Some(open) = slot(&mut self.opens, rac.open) else { return };
        changes(*open, rac, &mut self.untold);
        open.ra_pages = rac.ra.ra_pages;
        open.random = rac.ra.random;
    }

    /// The error with the number of an access in the source, which the instance, whose accesses are
    /// steps of those, does not know.
    fn numbered(&self, error: Error, asked: u64) -> Error {
        let number = |at: u64| {
            let foretold = self.foretold.iter().find(|read| self.told + read.at as u64 >= at);
            foretold.map_or(asked, |read| read.access)
        };
        match error {
            Error::Fault { tree, access, fault, place } => {
                Error::Fault { tree, access: number(access), fault, place }
            }
            Error::NotForetold { tree, access } => {
                Error::NotForetold { tree, access: number(access) }
            }
            other => other,
        }
    }

    /// Begins the task of a thread with `access`, or goes on with it.
    pub(super) fn ask_task(
        &mut self,
        session: &Session,
        rac: &mut Readahead<'_>,
        thread: u32,
        access: impl Fn(OpenId, TaskId) -> Access,
    ) -> kernel::Result<Vec<Decided>> {
        let begun = TaskMirror { access: rac.access, stops: 0 };
        let mut task = slot(&mut self.tasks, thread).take().unwrap_or(begun);
        rac.access = task.access;
        let decided = self.ask(session, rac, false, |open| access(open, TaskId(thread)))?;
        let is = |is: fn(&Decided) -> bool| decided.iter().any(is);
        task.stops = if is(|d| matches!(d, Decided::Copied { .. })) { 0 } else { task.stops + 1 };
        if task.stops > STOPS_MAX {
            let fault = Fault::NoProgress { stops: task.stops };
            return Err(session.fault(rac.access, fault, None));
        }
        if !is(|d| matches!(d, Decided::Returned { .. })) {
            *slot(&mut self.tasks, thread) = Some(task);
        }
        Ok(decided)
    }
}

fn slot<T: Copy>(slots: &mut Vec<Option<T>>, number: u32) -> &mut Option<T> {
    let number = number as usize;
    if number >= slots.len() {
        slots.resize(number + 1, None);
    }
    &mut slots[number]
}

fn settings(rac: &Readahead<'_>) -> InstanceSettings {
    let limits = &rac.limits;
    InstanceSettings {
        i_size: limits.size_bytes,
        ra_pages: limits.ra_pages as u32,
        io_pages: limits.io_pages as u32,
        min_order: limits.order_min,
        max_order: limits.order_max,
        completion: if rac.uptodate { Completion::AtOnce } else { Completion::WhenTold },
        ..InstanceSettings::default()
    }
}

/// What turns the open's state at its last access into its state now: advice where advice can, since
/// that is the tree's own code too.
fn changes(open: OpenMirror, rac: &Readahead<'_>, changes: &mut Vec<Access>) {
    let advise = |advice| Access::advise(open.id, advice, ByteOffset(0), 0);
    let (ra, device) = (&rac.ra, rac.limits.ra_pages);
    let known = [device, 2 * device].contains(&ra.ra_pages);
    let advised = (open.random && !ra.random) || (known && ra.ra_pages != open.ra_pages);
    if advised {
        let normal = !known || ra.ra_pages == device;
        changes.push(advise(if normal { Advice::Normal } else { Advice::Sequential }));
    }
    if !known && (ra.ra_pages != open.ra_pages || advised) {
        changes.push(Access::ra_pages(open.id, ra.ra_pages as u32));
    }
    if ra.random && (advised || !open.random) {
        changes.push(advise(Advice::Random));
    }
}
