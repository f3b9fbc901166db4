//! Accesses that the policy's own code carries out, in the order of the trace.
//!
//! A recorded point is an event of the kernel: a trigger, or a batch that is ready to be copied. The
//! code looks up folios just before it, so a task is let go on when the trace reaches the point, and
//! held right after its own. A batch looks no further than the next recorded point, since the kernel
//! looked there only then.

use traces::access::{Anchor, AnchorKind, Source};
use traces::units::{ByteOffset, PageIndex};

use super::{Running, TraceOrder};
use crate::readahead::Trigger;
use crate::task::{Hold, Reached, TaskAccess};

/// An access under way.
#[derive(Clone, Copy)]
pub(super) struct Task {
    open: usize,
    /// Number of its access.
    pub(super) access: u64,
    /// Whether the trace has its return.
    returns: bool,
    /// What it does, until it begins.
    unbegun: Option<TaskAccess>,
    /// The byte after the last one copied. While it is held, the batch it looks for starts here.
    pos: ByteOffset,
    /// The page after the last one a forced readahead looks at.
    end: PageIndex,
    /// Where it is held, once it has begun.
    at: Option<Reached>,
}

impl Task {
    /// Whether what was recorded at `anchor` lies behind it.
    fn has_passed(&self, anchor: &Anchor) -> bool {
        let Some(at) = self.at else { return false };
        let start = self.pos.page();
        if start != anchor.page && !(anchor.kind == AnchorKind::Async && start < anchor.page) {
            return start > anchor.page;
        }
        match (anchor.kind, at) {
            (AnchorKind::Sync, _) => true,
            (AnchorKind::Async, Reached::Triggered { trigger: Trigger::Async, index }) => {
                index >= anchor.page
            }
            (AnchorKind::Async, Reached::Batch { end }) => end > anchor.page,
            (AnchorKind::Batch, at) => matches!(at, Reached::Batch { .. }),
            (AnchorKind::Async | AnchorKind::Return, _) => false,
        }
    }

    /// The page that is looked up first when it goes on.
    fn looks_at(&self) -> PageIndex {
        match self.at {
            Some(Reached::Batch { end }) => end,
            _ => self.pos.page(),
        }
    }

    /// How far it may look on its way to `anchor`.
    fn until(&self, anchor: &Anchor, next: Option<PageIndex>) -> PageIndex {
        if self.looks_at() < anchor.page && anchor.kind != AnchorKind::Async {
            return anchor.page;
        }
        if anchor.kind == AnchorKind::Async {
            return anchor.page + 1;
        }
        next.filter(|next| *next > anchor.page).unwrap_or(PageIndex(u64::MAX))
    }
}

/// For every anchor the page of the next one in the same read.
pub(super) fn next_of_read(source: &Source) -> Vec<Option<PageIndex>> {
    let mut next = vec![None; source.anchors.len()];
    let mut later = vec![None; source.threads.len()];
    let mut accesses = source.accesses.iter().rev().peekable();
    let anchors = source.anchors.iter().enumerate().rev();
    for (number, anchor) in anchors.filter(|(_, anchor)| anchor.kind != AnchorKind::Return) {
        while let Some(access) = accesses.next_if(|access| access.seq > anchor.seq) {
            later[access.thread as usize] = None;
        }
        next[number] = later[anchor.thread as usize].replace(anchor.page);
    }
    next
}

impl TraceOrder<'_, '_> {
    pub(super) fn begin_read(&mut self, thread: usize, open: usize, pos: ByteOffset, count: u64) {
        let unbegun = Some(TaskAccess::Read { pos, count });
        let (access, end) = (self.machine.access, PageIndex(0));
        let returns = self.returns(access);
        let task = Task { open, access, returns, unbegun, pos, end, at: None };
        self.running[thread] = Some(Running::Task(task));
    }

    pub(super) fn begin_forced(&mut self, thread: usize, open: usize, page: PageIndex, pages: u64) {
        let unbegun = Some(TaskAccess::WillNeed { page, pages });
        let end = page + self.machine.forced_pages(open, page, pages);
        let (access, pos) = (self.machine.access, page.offset());
        let task = Task { open, access, returns: false, unbegun, pos, end, at: None };
        self.force_task_until(thread, task, page);
    }

    /// A thread's forced readahead has inserted `page`.
    pub(super) fn task_inserted(&mut self, thread: usize, task: Task, page: PageIndex) {
        if task.end > PageIndex(0) {
            self.force_task_until(thread, task, page + 1);
        }
    }

    /// Runs a forced readahead up to page `until`, and to its end where nothing is left to insert.
    fn force_task_until(&mut self, thread: usize, mut task: Task, until: PageIndex) {
        let cache = &self.machine.file_of(task.open).cache;
        if cache.contains_all(until, task.end) {
            return self.finish_task(thread, task);
        }
        let looked = match task.at {
            Some(Reached::Held { index }) => index,
            _ => task.pos.page(),
        };
        if looked < until && !self.step(thread, &mut task, Hold::BeforeInsertion { until }) {
            return;
        }
        self.running[thread] = Some(Running::Task(task));
    }

    /// Lets a thread's read go on up to a recorded point, and to its end after the last one.
    pub(super) fn task_anchor(
        &mut self,
        thread: usize,
        mut task: Task,
        anchor: &Anchor,
        next: Option<PageIndex>,
    ) {
        if task.end > PageIndex(0) {
            return self.finish_task(thread, task);
        }
        while !task.has_passed(anchor) {
            let until = task.until(anchor, next);
            if !self.step(thread, &mut task, Hold::AtEvents { until }) {
                return;
            }
        }
        if anchor.kind == AnchorKind::Batch && next.is_none() && !task.returns {
            return self.finish_task(thread, task);
        }
        self.running[thread] = Some(Running::Task(task));
    }

    pub(super) fn finish_task(&mut self, thread: usize, task: Task) {
        self.running[thread] = None;
        self.machine.finish_task(thread, task.open, task.unbegun, task.pos);
    }

    /// Lets a task go on until it is held. Whether it is not over yet.
    fn step(&mut self, thread: usize, task: &mut Task, hold: Hold) -> bool {
        self.running[thread] = None;
        let access = task.unbegun.take();
        let step = self.machine.run_task(thread, task.open, access, task.pos, hold);
        task.pos = step.copied_to.unwrap_or(task.pos);
        task.at = Some(step.reached);
        step.reached != Reached::Returned
    }
}
