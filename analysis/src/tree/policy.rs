//! A tree's code as a [`Policy`].

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::{Access, Advice, Built, Decided, Session, Stops};
use replay::page_cache::Folio;
use replay::policy::{Paths, Policy, Rules};
use replay::readahead::{FileKey, ForcedFill, Readahead, Rule, Trigger};
use replay::task::{Hold, Progress, Reached, TaskAccess};
use traces::units::{ByteOffset, PAGE_SHIFT, PageIndex};

use super::mirror::Mirror;
use super::{ReadPath, TreeError, TreeOptions, build, generation_of};

/// A kernel tree's own readahead and, unless asked otherwise, read path.
pub struct TreePolicy {
    name: String,
    rules: Rules,
    read_path: ReadPath,
    built: Built,
    session: Session,
    files: Mutex<HashMap<FileKey, Mirror>>,
}

impl TreePolicy {
    /// Builds a tree and starts its worker.
    pub fn new(spec: &str, options: &TreeOptions) -> Result<Self, TreeError> {
        let built = build(spec, options)?;
        let rules = replay::policy::parse(generation_of(&built))?.rules();
        let session = Session::start(&built, &options.isolation()).map_err(|source| {
            TreeError::Kernel { spec: spec.to_owned(), source: Box::new(source) }
        })?;
        Ok(Self {
            name: spec.to_owned(),
            rules,
            read_path: options.read_path,
            built,
            session,
            files: Mutex::default(),
        })
    }

    fn files(&self) -> MutexGuard<'_, HashMap<FileKey, Mirror>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the tree's code run and follows what it decides. Nothing once it has failed, so that the
    /// replay comes to an end and the failure can be told.
    fn ask(
        &self,
        rac: &mut Readahead<'_>,
        run: impl FnOnce(&mut Mirror, &mut Readahead<'_>) -> kernel::Result<Vec<Decided>>,
    ) -> Option<Vec<Decided>> {
        let mut files = self.files();
        let mirror = files.entry(rac.file_key).or_default();
        if mirror.failed {
            return None;
        }
        let failure = match run(mirror, rac) {
            Ok(decided) if follow(rac, &decided) => return Some(decided),
            Ok(_) => "its page cache and the replay's have come to differ".to_owned(),
            Err(error) => error.to_string(),
        };
        mirror.failed = true;
        rac.failure.get_or_insert(format!("{}: {failure}", self.name));
        None
    }

    /// [`ask`](Self::ask) for a trigger of the built-in read path, which needs `pages` pages read.
    fn trigger(
        &self,
        rac: &mut Readahead<'_>,
        pages: u64,
        access: impl Fn(kernel::OpenId) -> Access,
    ) {
        rac.rule = Rule::Tree;
        let decided = self.ask(rac, |mirror, rac| {
            let mut decided = mirror.ask(&self.session, rac, true, access)?;
            // The built-in read path has written down its own trigger.
            decided.retain(|decided| !matches!(decided, Decided::Trigger { .. }));
            Ok(decided)
        });
        if decided.is_none() {
            rac.fill_order0_in_file(pages.max(1), 0);
        }
    }

    fn tell(&self, file: FileKey, access: Access) {
        self.files().entry(file).or_default().tell(access);
    }
}

/// Carries out decisions on the replay's side. `false` if they do not fit its page cache.
fn follow(rac: &mut Readahead<'_>, decided: &[Decided]) -> bool {
    let mut fits = true;
    let mut rest = decided;
    while !rest.is_empty() {
        let is_trigger = |decided: &Decided| matches!(decided, Decided::Trigger { .. });
        let next = rest[1..].iter().position(is_trigger).map_or(rest.len(), |at| at + 1);
        let (part, after) = rest.split_at(next);
        note(rac, part);
        for decided in part {
            fits &= carry_out(rac, decided);
        }
        rest = after;
    }
    fits
}

/// Writes down a trigger and the window it led to. The tree's state is logged after the folios; the
/// replay notes it before them.
fn note(rac: &mut Readahead<'_>, part: &[Decided]) {
    for decided in part {
        match *decided {
            Decided::Trigger { trigger, index, req_count } => {
                rac.note_trigger(replay_trigger(trigger), index, u64::from(req_count));
            }
            Decided::Window { start, size, async_size, order } => {
                rac.ra.start = start.0;
                rac.ra.size = u64::from(size);
                rac.ra.async_size = u64::from(async_size);
                rac.ra.order = order.map_or(0, |order| u32::from(order.0));
                rac.index = start.0;
                rac.note_window(rac.ra.order);
            }
            _ => {}
        }
    }
}

fn carry_out(rac: &mut Readahead<'_>, decided: &Decided) -> bool {
    match *decided {
        Decided::Folio { index, order, marked } => {
            return rac.follow_folio(Folio { index, order }, marked);
        }
        Decided::DeviceRead { start, pages } => rac.follow_read(start, u64::from(pages)),
        Decided::PrevPos { pos } => rac.ra.prev_pos = pos,
        Decided::Trigger { trigger: kernel::Trigger::Async, index, .. } => {
            if let Some(folio) = rac.cache.folio_at(index) {
                rac.cache.clear_mark(folio);
            }
        }
        // What is there already would be waited for without end.
        Decided::Waits { index, order } => {
            let folio = Folio { index, order };
            return rac.cache.folio_at(index) == Some(folio) && !rac.cache.is_uptodate(folio);
        }
        _ => {}
    }
    true
}

fn replay_trigger(trigger: kernel::Trigger) -> Trigger {
    match trigger {
        kernel::Trigger::Sync => Trigger::Sync,
        kernel::Trigger::Async => Trigger::Async,
        kernel::Trigger::Forced => Trigger::Forced,
    }
}

/// The kernel crate's view of an access.
fn access_of(open: kernel::OpenId, access: TaskAccess) -> Access {
    match access {
        TaskAccess::Read { pos, count } => Access::read(open, pos, count),
        TaskAccess::Touch { page, mapping } => {
            let mapping = kernel::Mapping {
                random: mapping.rand_read,
                sequential: mapping.seq_read,
                exec: mapping.exec,
                huge_pages: mapping.hugepage,
            };
            Access::touch(open, page, mapping)
        }
        TaskAccess::WillNeed { page, pages } => {
            Access::advise(open, Advice::WillNeed, page.offset(), pages << PAGE_SHIFT)
        }
    }
}

fn stops(hold: Hold) -> Stops {
    match hold {
        Hold::Never => Stops::NONE,
        Hold::AfterCopies => Stops { after_copies: true, ..Stops::NONE },
        Hold::AtEvents { until } => {
            Stops { at_triggers: true, at_batches: true, until, ..Stops::NONE }
        }
        Hold::BeforeInsertion { until } => Stops { before_insertions: true, until, ..Stops::NONE },
    }
}

/// What a step came to: the last thing decided says where it stands.
fn progress(decided: &[Decided]) -> Progress {
    let mut progress = Progress::RETURNED;
    for decided in decided {
        match *decided {
            Decided::Copied { to, folios } => {
                progress.copied_to = Some(to);
                progress.folios += folios;
                progress.reached = Reached::Copied;
            }
            Decided::Mapped { index, pages } => progress.mapped.push((index, u64::from(pages))),
            Decided::Trigger { trigger, index, .. } => {
                progress.reached = Reached::Triggered { trigger: replay_trigger(trigger), index };
            }
            Decided::Batch { start, pages } => {
                progress.reached = Reached::Batch { end: start + u64::from(pages) };
            }
            Decided::Waits { index, order } => {
                progress.reached = Reached::Waits(Folio { index, order });
            }
            Decided::Held { index } => progress.reached = Reached::Held { index },
            Decided::Returned { .. } => progress.reached = Reached::Returned,
            _ => {}
        }
    }
    progress
}

impl Policy for TreePolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    fn id(&self) -> String {
        format!("{} {:?}", self.built.id(), self.read_path)
    }

    fn notes(&self) -> Vec<String> {
        [self.built.notes(), self.session.notes()].concat()
    }

    fn not_modelled(&self) -> &'static [&'static str] {
        Built::not_modelled()
    }

    fn paths(&self) -> Paths {
        match self.read_path {
            ReadPath::Tree => Paths::Own,
            ReadPath::Native => Paths::OwnFaults,
        }
    }

    fn run_task(
        &self,
        rac: &mut Readahead<'_>,
        thread: u32,
        access: Option<TaskAccess>,
        hold: Hold,
    ) -> Progress {
        let stops = stops(hold);
        let decided = self.ask(rac, |mirror, rac| {
            mirror.ask_task(&self.session, rac, thread, |open, task| match access {
                Some(access) => access_of(open, access).in_task(task, stops),
                None => Access::go_on(task, stops),
            })
        });
        decided.map_or(Progress::RETURNED, |decided| progress(&decided))
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        let index = PageIndex(rac.index);
        self.trigger(rac, req_count, |open| Access::sync_ra(open, index, req_count));
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        if rac.ra.ra_pages == 0 {
            return;
        }
        rac.cache.clear_mark(folio);
        let index = PageIndex(rac.index);
        // A mark may be met without anything being read, so nothing is owed on failure.
        self.trigger(rac, 1, |open| Access::async_ra(open, index, req_count));
    }

    /// Only the built-in fault path fills windows this way, and a tree's has its own.
    fn ra_order(&self, rac: &mut Readahead<'_>, _order: u32) {
        rac.fill_order0_in_file(rac.ra.size, 0);
    }

    fn begin_forced(&self, rac: &mut Readahead<'_>, nr_to_read: u64) -> Option<ForcedFill> {
        let (pos, len) = (ByteOffset(rac.index << PAGE_SHIFT), nr_to_read << PAGE_SHIFT);
        let advice = |open| Access::advise(open, Advice::WillNeed, pos, len);
        self.trigger(rac, nr_to_read, advice);
        None
    }

    fn inserted_by_read(&self, file: FileKey, folio: Folio) {
        self.tell(file, Access::cached(folio.index, folio.order));
    }

    fn evicted(&self, file: FileKey, folio: Folio) {
        self.tell(file, Access::evict(folio.index));
    }

    fn arrived(&self, file: FileKey, from: PageIndex, to: PageIndex) {
        self.tell(file, Access::complete(from, to - from));
    }

    fn forgotten(&self, file: FileKey) {
        self.files().remove(&file);
    }
}
