//! A kernel tree's own readahead as a policy: `tree:PATH[@REV][,patch=FILE]`.
//!
//! The tree's code keeps a page cache of its own, in its worker. [`TreePolicy`]
//! asks it at every trigger and every fault and follows what it decides; the
//! read path around it is the built-in one of the kernel line the tree belongs
//! to, the mmap path is the tree's own. Whatever else
//! changes the cache (evictions, folios that a read inserts without readahead)
//! is told to the tree's code before the next trigger.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::{
    Access, Advice, Built, Decided, Instance, InstanceSettings, Isolation, OpenId, Options,
    Session, Tree,
};
use replay::page_cache::Folio;
use replay::policy::{self, Policy, PolicyError, Rules};
use replay::readahead::{FileKey, FileLimits, ForcedFill, Readahead, Rule};
use traces::access::Mapping;
use traces::units::{ByteOffset, PAGE_SHIFT, PageIndex};

/// What a policy name of a tree begins with.
pub const PREFIX: &str = "tree:";

/// How trees are built and run.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Run the tree's code in this process rather than in a worker without rights.
    pub in_process: bool,
    /// Leave the folder that was compiled.
    pub keep: bool,
}

/// A policy that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// It is not a tree and not a built-in policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tree cannot be read, built or run.
    #[error("{spec}")]
    Kernel {
        /// The policy as named.
        spec: String,
        /// Why.
        source: Box<kernel::Error>,
    },
    /// The part after the tree is not an option.
    #[error("{spec}: `{part}` is not `patch=FILE`")]
    BadOption {
        /// The policy as named.
        spec: String,
        /// The part.
        part: String,
    },
}

/// The policy that a name on the command line stands for: built in, or a tree.
pub fn parse_policy(spec: &str, options: &TreeOptions) -> Result<Arc<dyn Policy>, TreeError> {
    if spec.starts_with(PREFIX) {
        Ok(Arc::new(TreePolicy::new(spec, options)?))
    } else {
        Ok(policy::parse(spec)?)
    }
}

/// Builds the tree behind a policy name, or finds it built.
pub fn build(spec: &str, options: &TreeOptions) -> Result<Built, TreeError> {
    let mut parts = spec.strip_prefix(PREFIX).unwrap_or(spec).split(',');
    let path = parts.next().unwrap_or_default();
    let isolation = if options.in_process { Isolation::InProcess } else { Isolation::default() };
    let mut build = Options { keep: options.keep, isolation, ..Options::default() };
    for part in parts {
        let Some(patch) = part.strip_prefix("patch=") else {
            return Err(TreeError::BadOption { spec: spec.to_owned(), part: part.to_owned() });
        };
        build.patch = Some(PathBuf::from(patch));
    }
    let failed = |source| TreeError::Kernel { spec: spec.to_owned(), source: Box::new(source) };
    let tree = Tree::parse(path).map_err(failed)?;
    Built::new(&tree, &build).map_err(failed)
}

/// The generation whose read path goes around the tree's readahead: that of its version, or the
/// newest one for a tree newer than all.
pub fn read_path_of(built: &Built) -> &'static str {
    built.version_guess().and_then(policy::for_kernel).unwrap_or("linux-7.3")
}

/// See the module documentation.
pub struct TreePolicy {
    name: String,
    rules: Rules,
    session: Session,
    files: Mutex<HashMap<FileKey, Mirror>>,
}

/// The tree's side of one file.
#[derive(Default)]
struct Mirror {
    instance: Option<Instance>,
    opens: HashMap<u32, OpenMirror>,
    /// What happened to the cache since the last trigger.
    untold: Vec<Access>,
    failed: bool,
}

#[derive(Clone, Copy)]
struct OpenMirror {
    id: OpenId,
    ra_pages: u64,
    random: bool,
}

impl TreePolicy {
    /// Builds a tree and starts its worker.
    pub fn new(spec: &str, options: &TreeOptions) -> Result<Self, TreeError> {
        let built = build(spec, options)?;
        let rules = policy::parse(read_path_of(&built))?.rules();
        let isolation =
            if options.in_process { Isolation::InProcess } else { Isolation::default() };
        let session = Session::start(&built, &isolation).map_err(|source| TreeError::Kernel {
            spec: spec.to_owned(),
            source: Box::new(source),
        })?;
        Ok(Self { name: spec.to_owned(), rules, session, files: Mutex::default() })
    }

    /// Asks the tree's code and follows what it decides. When it fails, the pages asked for are
    /// read all the same, so that the replay comes to an end and the failure can be told.
    fn ask(
        &self,
        rac: &mut Readahead<'_>,
        pages: u64,
        access: impl Fn(OpenId) -> Access,
    ) -> Vec<Decided> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mirror = files.entry(rac.file_key).or_default();
        if !mirror.failed {
            let failure = match self.decide(mirror, rac, access) {
                Ok(decided) if follow(rac, &decided) => return decided,
                Ok(_) => "its page cache and the replay's have come to differ".to_owned(),
                Err(error) => error.to_string(),
            };
            mirror.failed = true;
            rac.failure.get_or_insert(format!("{}: {failure}", self.name));
        }
        rac.fill_order0_in_file(pages.max(1), 0);
        Vec::new()
    }

    fn decide(
        &self,
        mirror: &mut Mirror,
        rac: &Readahead<'_>,
        access: impl Fn(OpenId) -> Access,
    ) -> kernel::Result<Vec<Decided>> {
        let instance = match &mut mirror.instance {
            Some(instance) => instance,
            None => mirror.instance.insert(self.session.instance(settings(&rac.limits))?),
        };
        let known = mirror.opens.get(&rac.open).copied();
        let open = if let Some(open) = known {
            open
        } else {
            let ra_pages = rac.limits.ra_pages;
            OpenMirror { id: instance.open()?, ra_pages, random: false }
        };
        let mut batch = std::mem::take(&mut mirror.untold);
        batch.extend(advice(open, rac));
        let prev_pos = ByteOffset(rac.ra.prev_pos.cast_unsigned());
        batch.push(Access::prev_pos(open.id, prev_pos));
        batch.push(access(open.id));
        let last = batch.len() - 1;
        let decisions = instance.replay(&batch)?;
        let decided = decisions.of(last).map(|decision| decision.what).collect();
        let (ra_pages, random) = (rac.ra.ra_pages, rac.ra.random);
        mirror.opens.insert(rac.open, OpenMirror { ra_pages, random, ..open });
        Ok(decided)
    }

    fn tell(&self, file: FileKey, access: Access) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.entry(file).or_default().untold.push(access);
    }
}

fn settings(limits: &FileLimits) -> InstanceSettings {
    InstanceSettings {
        i_size: limits.size_bytes,
        ra_pages: limits.ra_pages as u32,
        io_pages: limits.io_pages as u32,
        min_order: limits.order_min,
        max_order: limits.order_max,
        ..InstanceSettings::default()
    }
}

/// The advice that turns the open's state at the last trigger into its state now.
fn advice(open: OpenMirror, rac: &Readahead<'_>) -> Option<Access> {
    let advise = |advice| Some(Access::advise(open.id, advice, ByteOffset(0), 0));
    if rac.ra.random && !open.random {
        return advise(Advice::Random);
    }
    if rac.ra.ra_pages == open.ra_pages && rac.ra.random == open.random {
        return None;
    }
    let doubled = rac.ra.ra_pages == 2 * rac.limits.ra_pages && rac.ra.ra_pages > 0;
    advise(if doubled { Advice::Sequential } else { Advice::Normal })
}

/// Carries out decisions on the replay's side. `false` if they do not fit its page cache.
fn follow(rac: &mut Readahead<'_>, decided: &[Decided]) -> bool {
    // The tree's state is logged after the folios it led to; the replay notes it before them.
    for decided in decided {
        if let Decided::Window { start, size, async_size, order } = *decided {
            rac.ra.start = start.0;
            rac.ra.size = u64::from(size);
            rac.ra.async_size = u64::from(async_size);
            rac.ra.order = order.map_or(0, |order| u32::from(order.0));
            rac.index = start.0;
            rac.note_window(rac.ra.order);
        }
    }
    let mut fits = true;
    for decided in decided {
        match *decided {
            Decided::Folio { index, order, marked } => {
                fits &= rac.follow_folio(Folio { index, order }, marked);
            }
            Decided::DeviceRead { start, pages } => rac.follow_read(start, u64::from(pages)),
            _ => {}
        }
    }
    fits
}

impl Policy for TreePolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn rules(&self) -> Rules {
        self.rules
    }

    fn sync_ra(&self, rac: &mut Readahead<'_>, req_count: u64) {
        let index = PageIndex(rac.index);
        rac.rule = Rule::Tree;
        self.ask(rac, req_count, |open| Access::sync_ra(open, index, req_count));
    }

    fn async_ra(&self, rac: &mut Readahead<'_>, folio: Folio, req_count: u64) {
        if rac.ra.ra_pages == 0 {
            return;
        }
        rac.cache.clear_mark(folio);
        let index = PageIndex(rac.index);
        rac.rule = Rule::Tree;
        // A mark may be met without anything being read, so nothing is owed on failure.
        self.ask(rac, 1, |open| Access::async_ra(open, index, req_count));
    }

    /// Only the built-in fault path fills windows this way, and a tree's has its own.
    fn ra_order(&self, rac: &mut Readahead<'_>, _order: u32) {
        rac.fill_order0_in_file(rac.ra.size, 0);
    }

    fn touch(
        &self,
        rac: &mut Readahead<'_>,
        page: PageIndex,
        mapping: Mapping,
    ) -> Option<Vec<(PageIndex, u64)>> {
        let mapping = kernel::Mapping {
            random: mapping.rand_read,
            sequential: mapping.seq_read,
            exec: mapping.exec,
            huge_pages: mapping.hugepage,
        };
        rac.rule = Rule::Tree;
        let decided = self.ask(rac, 1, |open| Access::touch(open, page, mapping));
        let mapped = decided.into_iter().filter_map(|decided| match decided {
            Decided::Mapped { index, pages } => Some((index, u64::from(pages))),
            _ => None,
        });
        Some(mapped.collect())
    }

    fn has_own_faults(&self) -> bool {
        true
    }

    fn begin_forced(&self, rac: &mut Readahead<'_>, nr_to_read: u64) -> Option<ForcedFill> {
        let (pos, len) = (ByteOffset(rac.index << PAGE_SHIFT), nr_to_read << PAGE_SHIFT);
        rac.rule = Rule::Tree;
        self.ask(rac, nr_to_read, |open| Access::advise(open, Advice::WillNeed, pos, len));
        None
    }

    fn inserted_by_read(&self, file: FileKey, folio: Folio) {
        self.tell(file, Access::cached(folio.index, folio.order));
    }

    fn evicted(&self, file: FileKey, folio: Folio) {
        self.tell(file, Access::evict(folio.index));
    }
}
