//! Why two policies differ: the first decision in which they part, and a cause
//! for every folio that is smaller than it could be.
//!
//! Both policies replay the source in trace order with every decision kept.
//! Per file, the two lists are equal up to the first divergence; from there on
//! each is judged on its own: every inserted folio below the largest order the
//! windows allow gets one [`Cause`].

use std::collections::BTreeMap;
use std::ops::Range;

use replay::log::Decision;
use replay::machine::Machine;
use replay::page_cache::Folio;
use replay::policy::Policy;
use replay::readahead::{FileRa, Rule, Trigger};
use replay::trace_order;
use serde::Serialize;
use traces::access::{AccessKind, Source};
use traces::capture::Losses;
use traces::units::{PAGE_SIZE, PageIndex};

/// Name of the JSON schema.
pub const SCHEMA: &str = "rareplay.explain/1";

/// Why a folio is smaller than the largest order of its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Its start is not aligned to the order the window asks for.
    StartNotAligned,
    /// The window ends before a folio of that order would.
    WindowEnd,
    /// The window is smaller than the largest order: it was cut to end on a boundary, or is growing
    /// again after such a cut.
    SmallWindow,
    /// The window, or the order, is still growing after a synchronous trigger.
    RampUp,
    /// The file ends.
    EndOfFile,
    /// A folio in the way was cached already; what is left of the window takes single pages.
    GapCached,
    /// A read without a sequence takes single pages.
    RandomRead,
    /// Forced readahead takes single pages.
    ForcedReadahead,
    /// The filesystem, or the kernel, has no large folios.
    NoLargeFolios,
}

impl Cause {
    /// The cause in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::StartNotAligned => "start not aligned",
            Self::WindowEnd => "window ends first",
            Self::SmallWindow => "window smaller than the order, by a cut",
            Self::RampUp => "ramp-up",
            Self::EndOfFile => "end of file",
            Self::GapCached => "gap already cached",
            Self::RandomRead => "random read",
            Self::ForcedReadahead => "forced readahead",
            Self::NoLargeFolios => "no large folios",
        }
    }
}

/// Pages by cause; folios of the largest order have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CauseCount {
    /// Folios.
    pub folios: u64,
    /// Their pages.
    pub pages: u64,
}

/// Where windows start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alignment {
    /// The power of two, in pages.
    pub modulus: u64,
    /// Window starts modulo it, the most frequent first, with how many windows start there.
    pub starts: Vec<(u64, u64)>,
}

/// One policy's side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicySide {
    /// Its name.
    pub policy: String,
    /// Windows of the large-folio path.
    pub windows: u64,
    /// Windows shortened to end on a boundary.
    pub windows_cut: u64,
    /// Windows of a sixteenth of the largest window or less: cut to a few pages, or growing again
    /// after such a cut.
    pub windows_short: u64,
    /// Pages of the largest window before it was cut.
    pub window_pages_max: u64,
    /// Pages in folios of the largest order.
    pub pages_largest: u64,
    /// Everything below it.
    pub causes: BTreeMap<Cause, CauseCount>,
    /// Window starts.
    pub alignment: Alignment,
}

/// One decision, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionView {
    /// What was decided.
    pub decision: String,
    /// The rule that chose it.
    pub rule: Option<String>,
}

/// The first point where the policies part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The file, as `DEVICE/0xINODE`.
    pub file: String,
    /// Number of the access, from 0.
    pub access: u64,
    /// The access in words.
    pub access_is: String,
    /// The trigger and the readahead state it met, the same under both.
    pub state_before: String,
    /// What each policy decided, in their order.
    pub decisions: [DecisionView; 2],
    /// Folios around it under each policy, one character a page: the order, `.` for a hole.
    pub map: FolioMap,
}

/// Folios of a stretch of a file under both policies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FolioMap {
    /// First page shown.
    pub first_page: u64,
    /// One line per policy: each page's folio order in base 16, `.` where nothing is cached.
    pub lines: [String; 2],
}

/// The whole explanation: `rareplay.explain/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// `rareplay.explain/1`.
    pub schema: &'static str,
    /// The source.
    pub source: String,
    /// The largest order that a window of either policy allows.
    pub order_max: u8,
    /// Where they part first; `None` if they never do.
    pub divergence: Option<Divergence>,
    /// Both policies.
    pub sides: [PolicySide; 2],
    /// What the capture lost.
    pub losses: Losses,
}

/// What to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExplainOptions {
    /// Only this inode.
    pub inode: Option<u64>,
    /// The first divergence at or after this access.
    pub from_access: u64,
}

/// A file or access that the source does not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// A policy's own code failed.
    #[error("{source_name}: {failure}")]
    PolicyFailed {
        /// The source.
        source_name: String,
        /// How.
        failure: String,
    },
    /// No file has this inode number.
    #[error("{source_name} has no access to inode {inode:#x}; it has {known}")]
    NoSuchFile {
        /// The source.
        source_name: String,
        /// The inode asked for.
        inode: u64,
        /// The inodes there are.
        known: String,
    },
}

/// Explains how `a` and `b` differ on `source`.
pub fn explain(
    source: &Source,
    a: &dyn Policy,
    b: &dyn Policy,
    options: ExplainOptions,
) -> Result<Explanation, ExplainError> {
    let files = chosen_files(source, options.inode)?;
    let machines = [a, b].map(|policy| trace_order::run(source, policy));
    if let Some(failure) = machines.iter().find_map(|machine| machine.failure.clone()) {
        return Err(ExplainError::PolicyFailed { source_name: source.name.clone(), failure });
    }
    let largest = |machine: &Machine<'_>| {
        files.iter().map(|file| window_pages_max(decisions(machine, *file))).max().unwrap_or(1)
    };
    let window_pages = machines.iter().map(largest).max().unwrap_or(1).max(1);
    let order_max = source.settings.order_max.value.0.min(window_pages.ilog2() as u8);
    let divergence = files
        .iter()
        .filter_map(|file| diverge(source, &machines, *file, options.from_access))
        .min_by_key(|divergence| divergence.access);
    let side = |machine: &Machine<'_>| {
        let mut side = Judge::new(machine.policy().name(), order_max, window_pages);
        for file in &files {
            side.file(decisions(machine, *file), machine.files[*file].limits);
        }
        side.finish()
    };
    Ok(Explanation {
        schema: SCHEMA,
        source: source.name.clone(),
        order_max,
        divergence,
        sides: [side(&machines[0]), side(&machines[1])],
        losses: source.losses.clone(),
    })
}

fn chosen_files(source: &Source, inode: Option<u64>) -> Result<Vec<usize>, ExplainError> {
    let chosen: Vec<usize> = (0..source.files.len())
        .filter(|file| inode.is_none_or(|inode| source.files[*file].id.inode == inode))
        .collect();
    match inode {
        Some(inode) if chosen.is_empty() => {
            let known = source.files.iter().take(8).map(|file| format!("{:#x}", file.id.inode));
            Err(ExplainError::NoSuchFile {
                source_name: source.name.clone(),
                inode,
                known: known.collect::<Vec<_>>().join(", "),
            })
        }
        _ => Ok(chosen),
    }
}

fn decisions<'m>(machine: &'m Machine<'_>, file: usize) -> &'m [Decision] {
    machine.files[file].log.decisions.as_deref().unwrap_or_default()
}

/// The largest window as decided, before it was cut.
fn window_pages_max(decisions: &[Decision]) -> u64 {
    let windows = decisions.iter().filter_map(|decision| match decision {
        Decision::Window { ra, cut_pages, .. } => Some(ra.size + cut_pages),
        _ => None,
    });
    windows.max().unwrap_or(0)
}

/// What two lists must share: everything but the state a trigger happened to meet.
fn same(a: &Decision, b: &Decision) -> bool {
    match (a, b) {
        (
            Decision::Window { index: a_index, ra: a, .. },
            Decision::Window { index: b_index, ra: b, .. },
        ) => (a_index, a.size, a.async_size) == (b_index, b.size, b.async_size),
        (
            Decision::Triggered { index: a_index, req_count: a, .. },
            Decision::Triggered { index: b_index, req_count: b, .. },
        ) => (a_index, a) == (b_index, b),
        _ => a == b,
    }
}

fn diverge(
    source: &Source,
    machines: &[Machine<'_>; 2],
    file: usize,
    from_access: u64,
) -> Option<Divergence> {
    let [a, b] = [decisions(&machines[0], file), decisions(&machines[1], file)];
    let starts = |list: &[Decision]| {
        let at = list.iter().position(
            |decision| matches!(decision, Decision::Access { number } if *number >= from_access),
        );
        at.unwrap_or(list.len())
    };
    let (from_a, from_b) = (starts(a), starts(b));
    let shared = a[from_a..].iter().zip(&b[from_b..]).take_while(|(a, b)| same(a, b)).count();
    let (at_a, at_b) = (from_a + shared, from_b + shared);
    let (next_a, next_b) = (a.get(at_a), b.get(at_b));
    if next_a.is_none() && next_b.is_none() {
        return None;
    }
    let access = a[..at_a].iter().rev().find_map(|decision| match decision {
        Decision::Access { number } => Some(*number),
        _ => None,
    });
    let access = access.unwrap_or(0);
    let page = [next_a, next_b].into_iter().flatten().filter_map(page_of).min().unwrap_or(0);
    Some(Divergence {
        file: source.files[file].name(),
        access,
        access_is: describe_access(source, access),
        state_before: state_before(&a[..at_a]),
        decisions: [describe(next_a), describe(next_b)],
        map: folio_map(machines, file, page),
    })
}

fn page_of(decision: &Decision) -> Option<u64> {
    match decision {
        Decision::Window { index, .. }
        | Decision::Order0 { index, .. }
        | Decision::Triggered { index, .. }
        | Decision::Skipped { index, .. } => Some(*index),
        Decision::Inserted { folio, .. } => Some(folio.index.0),
        Decision::Access { .. } => None,
    }
}

fn describe(decision: Option<&Decision>) -> DecisionView {
    let (decision, rule) = match decision {
        None => ("nothing more".to_owned(), None),
        Some(Decision::Access { number }) => (format!("nothing; goes on to access {number}"), None),
        Some(Decision::Triggered { trigger, index, req_count, .. }) => {
            (format!("{trigger:?} readahead at page {index} for {req_count} pages"), None)
        }
        Some(Decision::Window { index, ra, order, rule, cut_pages }) => {
            let cut = match cut_pages {
                0 => String::new(),
                pages => format!(", cut by {pages} to end on a boundary"),
            };
            let window = format!(
                "window of {} pages at {index}, mark {} before its end, order {order}{cut}",
                ra.size, ra.async_size
            );
            (window, Some(*rule))
        }
        Some(Decision::Order0 { index, nr_to_read, rule, .. }) => {
            (format!("{nr_to_read} single pages at {index}"), Some(*rule))
        }
        Some(Decision::Inserted { folio, mark }) => {
            let mark = if *mark { "with the mark" } else { "without a mark" };
            (format!("folio of order {} at page {}, {mark}", folio.order, folio.index), None)
        }
        Some(Decision::Skipped { index, nr_to_read }) => {
            (format!("{nr_to_read} pages at {index} skipped: covered by one in flight"), None)
        }
    };
    DecisionView { decision, rule: rule.map(|rule| rule.describe().to_owned()) }
}

fn describe_access(source: &Source, number: u64) -> String {
    let Some(access) = source.accesses.get(number as usize) else { return String::new() };
    match access.kind {
        AccessKind::Read { pos, count } => format!("read of {count} bytes at {pos}"),
        AccessKind::Touch { page } => format!("touch of page {page}"),
        AccessKind::Fault { page, .. } => format!("fault at page {page}"),
        AccessKind::FaultAround { first, last, .. } => format!("fault-around of {first} to {last}"),
        AccessKind::WillNeed { page, pages } => format!("WILLNEED of {pages} pages at {page}"),
        AccessKind::AdviseNormal => "POSIX_FADV_NORMAL".to_owned(),
        AccessKind::AdviseSequential => "POSIX_FADV_SEQUENTIAL".to_owned(),
        AccessKind::AdviseRandom => "POSIX_FADV_RANDOM".to_owned(),
        AccessKind::DontNeed { pos, count } => format!("DONTNEED of {count} bytes at {pos}"),
        AccessKind::Evict { page, order } => format!("eviction of page {page}, order {order}"),
    }
}

fn state_before(decisions: &[Decision]) -> String {
    let last = decisions.iter().rev().find_map(|decision| match decision {
        Decision::Triggered { trigger, index, req_count, ra } => {
            Some((trigger, index, req_count, ra))
        }
        _ => None,
    });
    last.map_or("no trigger before".to_owned(), |(trigger, index, req_count, ra)| {
        let trigger = match trigger {
            Trigger::Sync => "hole",
            Trigger::Async => "mark",
            Trigger::Forced => "forced",
            Trigger::ReadAround => "fault",
        };
        let FileRa { start, size, async_size, order, ra_pages, .. } = ra;
        format!(
            "{trigger} at page {index}, {req_count} pages to go; start={start} size={size} \
             async_size={async_size} order={order} ra_pages={ra_pages}"
        )
    })
}

/// 64 pages on each side of `page`.
fn folio_map(machines: &[Machine<'_>; 2], file: usize, page: u64) -> FolioMap {
    const AROUND_PAGES: u64 = 64;
    let first_page = page.saturating_sub(AROUND_PAGES / 4) & !15;
    let line = |machine: &Machine<'_>| {
        let cache = &machine.files[file].cache;
        let pages = (first_page..first_page + AROUND_PAGES).map(PageIndex);
        pages
            .map(|page| match cache.folio_at(page) {
                None => '.',
                Some(folio) => char::from_digit(u32::from(folio.order.0), 16).unwrap_or('+'),
            })
            .collect()
    };
    FolioMap { first_page, lines: [line(&machines[0]), line(&machines[1])] }
}

/// Judges the decisions of one policy.
struct Judge {
    order_max: u8,
    window_pages_max: u64,
    starts: BTreeMap<u64, u64>,
    /// A window was cut, and none has been as large as it may be since.
    regrowing: bool,
    side: PolicySide,
}

/// The window or order-0 run that insertions belong to.
#[derive(Clone, Copy)]
enum Context {
    Window { start: u64, end: u64 },
    Order0(Cause),
}

impl Judge {
    fn new(policy: &str, order_max: u8, window_pages_max: u64) -> Self {
        let side = PolicySide {
            policy: policy.to_owned(),
            windows: 0,
            windows_cut: 0,
            windows_short: 0,
            window_pages_max,
            pages_largest: 0,
            causes: BTreeMap::new(),
            alignment: Alignment { modulus: 1 << order_max, starts: Vec::new() },
        };
        Self { order_max, window_pages_max, starts: BTreeMap::new(), regrowing: false, side }
    }

    fn file(&mut self, decisions: &[Decision], limits: replay::readahead::FileLimits) {
        let large = limits.order_max.0 > 0;
        let file_pages = limits.size_bytes.div_ceil(PAGE_SIZE);
        let mut context = Context::Order0(Cause::RandomRead);
        for decision in decisions {
            match decision {
                Decision::Window { index, ra, cut_pages, .. } => {
                    self.window(*index, ra, *cut_pages);
                    context = if large {
                        Context::Window { start: *index, end: index + ra.size }
                    } else {
                        Context::Order0(Cause::NoLargeFolios)
                    };
                }
                Decision::Order0 { rule, .. } => {
                    context = Context::Order0(order0_cause(*rule, large));
                }
                Decision::Inserted { folio, .. } => self.folio(*folio, context, file_pages),
                _ => {}
            }
        }
    }

    fn window(&mut self, index: u64, ra: &FileRa, cut_pages: u64) {
        self.side.windows += 1;
        self.side.windows_cut += u64::from(cut_pages > 0);
        self.regrowing = cut_pages > 0 || self.regrowing && ra.size < self.window_pages_max;
        self.side.windows_short += u64::from(ra.size * 16 <= self.window_pages_max);
        *self.starts.entry(index & ((1 << self.order_max) - 1)).or_default() += 1;
    }

    fn folio(&mut self, folio: Folio, context: Context, file_pages: u64) {
        if folio.order.0 >= self.order_max {
            self.side.pages_largest += folio.pages();
            return;
        }
        let cause = match context {
            Context::Order0(cause) => cause,
            Context::Window { start, end } => self.cause(folio, &(start..end), file_pages),
        };
        let count = self.side.causes.entry(cause).or_default();
        count.folios += 1;
        count.pages += folio.pages();
    }

    /// Why a folio of a window is below the largest order.
    fn cause(&self, folio: Folio, window: &Range<u64>, file_pages: u64) -> Cause {
        let largest_pages = 1 << self.order_max;
        let window_pages = window.end - window.start;
        if window_pages < largest_pages {
            if self.regrowing { Cause::SmallWindow } else { Cause::RampUp }
        } else if !folio.index.0.is_multiple_of(largest_pages) {
            Cause::StartNotAligned
        } else if folio.index.0 + largest_pages > window.end.min(file_pages) {
            let ends_with_file = window.end >= file_pages;
            if ends_with_file { Cause::EndOfFile } else { Cause::WindowEnd }
        } else {
            Cause::RampUp
        }
    }

    fn finish(mut self) -> PolicySide {
        let mut starts: Vec<(u64, u64)> = self.starts.into_iter().collect();
        starts.sort_by_key(|(start, count)| (std::cmp::Reverse(*count), *start));
        starts.truncate(8);
        self.side.alignment.starts = starts;
        self.side
    }
}

fn order0_cause(rule: Rule, large: bool) -> Cause {
    match rule {
        _ if !large => Cause::NoLargeFolios,
        Rule::Forced => Cause::ForcedReadahead,
        Rule::Random => Cause::RandomRead,
        _ => Cause::GapCached,
    }
}
