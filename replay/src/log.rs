//! What a replay writes down: counts always, single decisions on request.

use serde::Serialize;
use traces::units::{Order, PageIndex};

use crate::page_cache::Folio;
use crate::readahead::{FileRa, Rule, Trigger};

/// One thing a policy did, in the order it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// What follows belongs to this access of the source, counted from 0.
    Access {
        /// Its number.
        number: u64,
    },
    /// A policy was called.
    Triggered {
        /// By what.
        trigger: Trigger,
        /// Page of the hole or first page of the marked folio.
        index: u64,
        /// Pages left of the request.
        req_count: u64,
        /// State before.
        ra: FileRa,
    },
    /// A window goes to the large-folio path.
    Window {
        /// Where it begins.
        index: u64,
        /// State after the decision.
        ra: FileRa,
        /// The order its folios are to have where they fit.
        order: u32,
        /// The rule that chose it.
        rule: Rule,
        /// Pages it was shortened by to end on a boundary.
        cut_pages: u64,
    },
    /// Pages go to the order-0 path.
    Order0 {
        /// Where it begins.
        index: u64,
        /// Pages.
        nr_to_read: u64,
        /// Pages after the mark.
        lookahead_size: u64,
        /// The rule that chose them.
        rule: Rule,
    },
    /// A folio was put into the cache.
    Inserted {
        /// Which.
        folio: Folio,
        /// With the readahead mark.
        mark: bool,
    },
    /// A forced readahead was skipped, as another one covers it.
    Skipped {
        /// First page.
        index: u64,
        /// Pages asked for.
        nr_to_read: u64,
    },
}

/// A run of pages sent to the filesystem in one `->readahead()` or `->read_folio()` call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Index of the file.
    pub file: u32,
    /// First page.
    pub index: PageIndex,
    /// Pages.
    pub pages: u64,
    /// Folios, which follow those of the submission before in [`Submitted::folios`].
    pub folios: u32,
}

/// What was handed to the filesystem and not yet taken by the driver of the replay.
#[derive(Debug, Default)]
pub struct Submitted {
    /// Runs of pages, in order.
    pub runs: Vec<Submission>,
    /// Their folios, in order.
    pub folios: Vec<Folio>,
    unsubmitted: u32,
}

impl Submitted {
    pub(crate) fn add(&mut self, folio: Folio) {
        self.folios.push(folio);
        self.unsubmitted += 1;
    }

    pub(crate) fn submit(&mut self, file: u32, index: PageIndex, pages: u64) {
        let folios = std::mem::take(&mut self.unsubmitted);
        self.runs.push(Submission { file, index, pages, folios });
    }

    /// Forgets what was taken.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.folios.clear();
    }

    /// Each run with its folios.
    pub fn iter(&self) -> impl Iterator<Item = (Submission, &[Folio])> {
        let mut rest = &self.folios[..];
        self.runs.iter().map(move |run| {
            let (own, after) = rest.split_at(run.folios as usize);
            rest = after;
            (*run, own)
        })
    }
}

/// Work done under or around the page cache lock (`xa_lock` of the mapping).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CacheLock {
    /// Times the lock is taken: every insertion tried and every folio removed.
    pub acquisitions: u64,
    /// Acquisitions by a forced readahead while another thread's one is under way on the file.
    pub contended: u64,
    /// Insertions that found a page already there.
    pub insert_conflicts: u64,
    /// Pages looked up by the order-0 path.
    pub lookups: u64,
    /// Of these, found in the cache.
    pub found: u64,
    /// Forced readahead calls.
    pub forced_calls: u64,
    /// Pages these asked for, after the limit of a call.
    pub forced_pages: u64,
    /// Forced calls whose pages were all cached when they were made.
    pub forced_covered: u64,
    /// Forced calls skipped because another one in flight covers them.
    pub forced_skipped: u64,
}

impl std::ops::AddAssign for CacheLock {
    fn add_assign(&mut self, other: Self) {
        let Self {
            acquisitions,
            contended,
            insert_conflicts,
            lookups,
            found,
            forced_calls,
            forced_pages,
            forced_covered,
            forced_skipped,
        } = other;
        self.acquisitions += acquisitions;
        self.contended += contended;
        self.insert_conflicts += insert_conflicts;
        self.lookups += lookups;
        self.found += found;
        self.forced_calls += forced_calls;
        self.forced_pages += forced_pages;
        self.forced_covered += forced_covered;
        self.forced_skipped += forced_skipped;
    }
}

/// Counters of one replayed file, and the decisions if they are kept.
#[derive(Debug, Default)]
pub struct Log {
    /// Folios inserted, by order.
    pub folios_by_order: [u64; Order::COUNT],
    /// Folios allocated whose insertion found a page already there, by order.
    pub conflicts_by_order: [u64; Order::COUNT],
    /// Pages inserted.
    pub pages_inserted: u64,
    /// Windows filled.
    pub windows: u64,
    /// Cache lock work.
    pub cache_lock: CacheLock,
    /// Everything that was decided, when kept.
    pub decisions: Option<Vec<Decision>>,
}

impl Log {
    /// A log that keeps every decision.
    pub fn with_decisions() -> Self {
        Self { decisions: Some(Vec::new()), ..Self::default() }
    }

    /// Folios inserted so far.
    pub fn inserted(&self) -> u64 {
        self.folios_by_order.iter().sum()
    }

    /// Keeps a decision, if decisions are kept.
    #[inline]
    pub(crate) fn decision(&mut self, decision: impl FnOnce() -> Decision) {
        if let Some(decisions) = &mut self.decisions {
            decisions.push(decision());
        }
    }

    pub(crate) fn insert(&mut self, folio: Folio, mark: bool, added: bool) {
        self.cache_lock.acquisitions += 1;
        if !added {
            self.cache_lock.insert_conflicts += 1;
            self.conflicts_by_order[usize::from(folio.order.0)] += 1;
            return;
        }
        self.folios_by_order[usize::from(folio.order.0)] += 1;
        self.pages_inserted += folio.pages();
        self.decision(|| Decision::Inserted { folio, mark });
    }
}
