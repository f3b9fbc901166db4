//! A tree's code as a [`Policy`].

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kernel::{Access, Advice, Built, Decided, Error, Session, Stops};
use replay::page_cache::{Folio, Stop};
use replay::policy::{Paths, Policy, Rules};
use replay::readahead::{FileKey, ForcedFill, Readahead, Rule, Trigger};
use replay::task::{Hold, Progress, Reached, TaskAccess};
use traces::units::{ByteOffset, PAGE_SHIFT, PageIndex};

use super::mirror::Mirror;
use super::{ReadPath, TreeError, TreeOptions, build, generation_of};

/// A kernel tree's own readahead and, unless asked otherwise, read path.
///
/// A step of the tree's code costs a round trip to its worker, while a kernel does nothing that a
/// replay could see for a read of cached, uptodate and unmarked folios but copy. What comes of such a
/// read is foretold: the tree's code is not asked, but does it before its next step, and is held to
/// it. A patch may make it do something else; the replay is then repeated with nothing foretold.
pub struct TreePolicy {
    name: String,
    rules: Rules,
    read_path: ReadPath,
    built: Built,
    session: Session,
    files: Mutex<HashMap<FileKey, Mirror>>,
    /// Whether reads are foretold: the tree's code has not done anything else yet.
    foretells: AtomicBool,
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
            foretells: AtomicBool::new(true),
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
            Err(Error::NotForetold { .. }) => {
                self.foretells.store(false, Ordering::Relaxed);
                *rac.repeat = true;
                mirror.failed = true;
                return None;
            }
            Err(error) => error.to_string(),
        };
        mirror.failed = true;
        rac.failure.get_or_insert(format!("{}: {failure}", self.name));
        None
    }

    /// What a read comes to that finds all of its folios cached, uptodate and unmarked, if it does
    /// and is held nowhere on its way.
    fn foretell(
        &self,
        rac: &Readahead<'_>,
        thread: u32,
        access: TaskAccess,
        hold: Hold,
    ) -> Option<Progress> {
        let TaskAccess::Read { pos, count } = access else { return None };
        let folios_max = match hold {
            Hold::Never => u32::MAX,
            Hold::AfterCopies => self.rules.batch_folios_max,
            Hold::AtEvents { .. } | Hold::BeforeInsertion { .. } => return None,
        };
        let end = ByteOffset(pos.0.checked_add(count)?);
        if end.0 > rac.limits.size_bytes || !self.foretells.load(Ordering::Relaxed) {
            return None;
        }
        let batch = rac.cache.walk(pos.page(), end.page_up(), folios_max);
        let folios = NonZeroU32::new(batch.folios).filter(|_| batch.stop == Stop::End)?;
        let mut files = self.files();
        let mirror = files.get_mut(&rac.file_key).filter(|mirror| !mirror.failed)?;
        let put_off = mirror.foretell(rac, thread, folios, |open, task| {
            access_of(open, access).in_task(task, stops(hold))
        });
        put_off.then_some(Progress {
            copied_to: Some(end),
            folios: folios.get(),
            ..Progress::RETURNED
        })
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
        if let Some(foretold) = access.and_then(|access| self.foretell(rac, thread, access, hold)) {
            return foretold;
        }
        let stops = stops(hold);
        let decided = self.ask(rac, |mirror, rac| {
            mirror.ask_task(&self.session, rac, thread, |open, task| match access {
                Some(access) => access_of(open, access).in_task(task, stops),
                None => Access::go_on(task, stops),
            })
        });
        decided.map_or(Progress::RETURNED, |decided| progress(&decided))
    }

    fn settle(&self, rac: &mut Readahead<'_>) {
        self.ask(rac, |mirror, _| mirror.settle().map(|()| Vec::new()));
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kernel::{Isolation, Options, Tree};
    use replay::trace_order;
    use traces::access::Source;
    use traces::settings::{Origin, Settings};

    use super::*;
    use crate::replay::{Model, replay_one};

    const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/tests/tree");

    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            if path.is_dir() {
                copy(&path, &to.join(name));
            } else {
                std::fs::copy(&path, to.join(name)).unwrap();
            }
        }
    }

    /// Our tree with some text of its read path replaced, once foretold and once not, in this process.
    fn both(folder: &Path, old: &str, new: &str) -> [TreePolicy; 2] {
        copy(Path::new(TREE), folder);
        let path = folder.join("mm/filemap.c");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(old));
        std::fs::write(&path, text.replacen(old, new, 1)).unwrap();
        let options = Options {
            isolation: Isolation::InProcess,
            cache: Some(folder.join("cache")),
            ..Options::default()
        };
        let built =
            Built::new(&Tree::parse(&folder.display().to_string()).unwrap(), &options).unwrap();
        [true, false].map(|foretells| TreePolicy {
            name: "tree".to_owned(),
            rules: replay::policy::parse("linux-7.3").unwrap().rules(),
            read_path: ReadPath::Tree,
            session: Session::start(&built, &Isolation::InProcess).unwrap(),
            built: built.clone(),
            files: Mutex::default(),
            foretells: AtomicBool::new(foretells),
        })
    }

    /// Readers of one file. Our tree leaves no hole within 16 KiB unless reads that are smaller meet
    /// evictions, and fails on such holes.
    fn source(memory: Option<&str>) -> Source {
        let (small, uneven) = if memory.is_some() { ("16K", "48K") } else { ("4K", "1000") };
        let step = |step| format!("[[stream]]\nsteps = [{{ read = {step} }}]\n");
        let steps = [
            format!("\"sequential\", size = \"{small}\""),
            "\"random\", size = \"16K\", count = 300".to_owned(),
            format!("\"sequential\", size = \"{uneven}\""),
        ];
        let text = format!("[file]\nsize = \"2M\"\n{}", steps.map(step).concat());
        let mut settings = Settings::default();
        if let Some(memory) = memory {
            settings.set("memory", memory, Origin::Given).unwrap();
        }
        traces::workload::parse(&text, "readers", &settings).unwrap()
    }

    /// Every decision, access by access.
    fn decided(policy: &TreePolicy) -> String {
        let machine = trace_order::run(&source(None), policy);
        assert_eq!(machine.failure, None);
        format!("{:?}", machine.files[0].log)
    }

    #[test]
    fn decisions_and_times_do_not_depend_on_what_is_foretold() {
        let folder = tempfile::tempdir().unwrap();
        let [foretold, asked] = both(folder.path(), "", "");
        assert_eq!(decided(&foretold), decided(&asked));
        for memory in [None, Some("1M")] {
            let timed = |policy| replay_one(&source(memory), policy, &Model::default());
            let timed = [&foretold, &asked].map(|policy| format!("{:?}", timed(policy)));
            assert_eq!(timed[0], timed[1]);
        }
        assert!(foretold.foretells.into_inner(), "all of it came true");
    }

    #[test]
    fn a_read_path_that_does_something_else_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        // Readahead at a folio without a mark.
        let mark = "if (folio_test_readahead(folio)) {";
        let always = "if (folio_test_readahead(folio) || index % 97 == 1) {";
        let [foretold, asked] = both(folder.path(), mark, always);
        assert_eq!(decided(&foretold), decided(&asked));
        assert!(!foretold.foretells.into_inner());
        let [foretold, asked] = both(folder.path(), mark, always);
        let timed =
            [foretold, asked].map(|policy| replay_one(&source(None), &policy, &Model::default()));
        assert_eq!(format!("{:?}", timed[0]), format!("{:?}", timed[1]));
    }

    #[test]
    fn errors_name_the_access_that_was_foretold() {
        let folder = tempfile::tempdir().unwrap();
        let copies = "iocb->ki_pos += n;";
        let statement = format!("BUG_ON(iocb->ki_pos == 150000); {copies}");
        let failures = both(folder.path(), copies, &statement).map(|policy| {
            let failure = trace_order::run(&source(None), &policy).failure.clone().unwrap();
            let timed = replay_one(&source(None), &policy, &Model::default());
            assert_eq!(timed.failure.unwrap(), failure);
            failure
        });
        assert_eq!(failures[0], failures[1]);
        assert!(failures[0].contains("access "), "{}", failures[0]);
    }
}
