//! What a run did when, kept only on request: what charts over time are drawn from.

use traces::units::Time;

use crate::log::{Decision, Submission};
use crate::page_cache::Folio;
use crate::readahead::FileRa;

/// The events of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Reads and faults, in the order they ended.
    pub accesses: Vec<AccessTimes>,
    /// Runs of pages handed to the filesystem, in order.
    pub sent: Vec<Sent>,
    /// Folios of all these runs, in order.
    pub folios: Vec<Folio>,
    /// Windows that policies chose, in order.
    pub windows: Vec<ChosenWindow>,
}

/// Times of one read or fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTimes {
    /// Index into the source's accesses.
    pub access: u32,
    /// When it began.
    pub began: Time,
    /// When it was over.
    pub ended: Time,
    /// How long of that it waited for data.
    pub waited_ns: u64,
}

/// A run of pages handed to the filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub time: Time,
    /// Index of the access that caused it.
    pub access: u32,
    /// The pages.
    pub run: Submission,
}

/// A window that a policy chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenWindow {
    /// When.
    pub time: Time,
    /// Index of the access that caused it.
    pub access: u32,
    /// Its first page.
    pub index: u64,
    /// State of the open file after the decision.
    pub ra: FileRa,
    /// The order its folios are to have where they fit.
    pub order: u32,
}

impl History {
    /// Keeps the windows of some decisions, and lets the decisions go.
    pub(super) fn take_windows(&mut self, time: Time, access: u32, decisions: &mut Vec<Decision>) {
        self.windows.extend(decisions.drain(..).filter_map(|decision| match decision {
            Decision::Window { index, ra, order, .. } => {
                Some(ChosenWindow { time, access, index, ra, order })
            }
            _ => None,
        }));
    }
}
