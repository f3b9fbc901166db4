//! The tree's side of one file: an instance of its code, and what it has yet to be told.

use std::collections::HashMap;

use kernel::{
    Access, Advice, Completion, Decided, Error, Fault, Instance, InstanceSettings, OpenId, Session,
    TaskId,
};
use replay::readahead::Readahead;
use traces::units::ByteOffset;

/// Stops of a task in a row without anything copied, after which it is taken to be in a loop. The
/// largest read that a capture can hold triggers readahead less often.
const STOPS_MAX: u32 = 100_000;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Mirror {
    instance: Option<Instance>,
    opens: HashMap<u32, OpenMirror>,
    tasks: HashMap<u32, TaskMirror>,
    /// What happened to the cache since the tree's code ran last.
    untold: Vec<Access>,
    /// The tree's code has failed.
    pub(super) failed: bool,
}

#[derive(Clone, Copy)]
struct OpenMirror {
    id: OpenId,
    ra_pages: u64,
    random: bool,
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
        let open = if let Some(open) = self.opens.get(&rac.open) {
            *open
        } else {
            let ra_pages = rac.limits.ra_pages;
            OpenMirror { id: instance.open()?, ra_pages, random: false }
        };
        let batch = &mut self.untold;
        batch.extend(changes(open, rac));
        batch.extend(
            prev_pos
                .then(|| Access::prev_pos(open.id, ByteOffset(rac.ra.prev_pos.cast_unsigned()))),
        );
        batch.push(access(open.id));
        let last = batch.len() - 1;
        let decided = instance
            .replay(batch)
            .map(|decisions| decisions.of(last).map(|decision| decision.what).collect());
        batch.clear();
        let (ra_pages, random) = (rac.ra.ra_pages, rac.ra.random);
        self.opens.insert(rac.open, OpenMirror { ra_pages, random, ..open });
        decided.map_err(|error| numbered(error, rac.access))
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
        let mut task = self.tasks.remove(&thread).unwrap_or(begun);
        rac.access = task.access;
        let decided = self.ask(session, rac, false, |open| access(open, TaskId(thread)))?;
        let is = |is: fn(&Decided) -> bool| decided.iter().any(is);
        task.stops = if is(|d| matches!(d, Decided::Copied { .. })) { 0 } else { task.stops + 1 };
        if task.stops > STOPS_MAX {
            let fault = Fault::NoProgress { stops: task.stops };
            return Err(session.fault(rac.access, fault, None));
        }
        if !is(|d| matches!(d, Decided::Returned { .. })) {
            self.tasks.insert(thread, task);
        }
        Ok(decided)
    }
}

/// The error of a fault with the number of the access in the source, which the instance, whose
/// accesses are steps of those, does not know.
fn numbered(error: Error, number: u64) -> Error {
    match error {
        Error::Fault { tree, fault, place, .. } => {
            Error::Fault { tree, access: number, fault, place }
        }
        other => other,
    }
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
fn changes(open: OpenMirror, rac: &Readahead<'_>) -> Vec<Access> {
    let advise = |advice| Access::advise(open.id, advice, ByteOffset(0), 0);
    let (ra, device) = (&rac.ra, rac.limits.ra_pages);
    let mut random = open.random;
    let mut changes = Vec::new();
    let known = [device, 2 * device].contains(&ra.ra_pages);
    if (random && !ra.random) || (known && ra.ra_pages != open.ra_pages) {
        let normal = !known || ra.ra_pages == device;
        changes.push(advise(if normal { Advice::Normal } else { Advice::Sequential }));
        random = false;
    }
    if !known && (ra.ra_pages != open.ra_pages || !changes.is_empty()) {
        changes.push(Access::ra_pages(open.id, ra.ra_pages as u32));
    }
    if ra.random && !random {
        changes.push(advise(Advice::Random));
    }
    changes
}
