//! What a run did when, kept only on request: what charts over time are drawn from.

use traces::units::{PageIndex, Time};

use crate::block::Request;
use crate::device::queue::Begun;
use crate::log::{Decision, Submission};
use crate::page_cache::Folio;
use crate::readahead::FileRa;

/// The events of a run.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Reads and faults, in the order they ended.
    pub accesses: Vec<AccessTimes>,
    /// Other calls that took time, such as forced readahead, in the order they ended.
    pub calls: Vec<AccessTimes>,
    /// Waits of all of these, in the order they ended.
    pub waits: Vec<WaitTimes>,
    /// Runs of pages handed to the filesystem, in order.
    pub sent: Vec<Sent>,
    /// Folios of all these runs, in order.
    pub folios: Vec<Folio>,
    /// Windows that policies chose, in order.
    pub windows: Vec<ChosenWindow>,
    /// Requests that the device got, in the order it took them up.
    pub requests: Vec<RequestTimes>,
}

/// Times of one read, fault or other call.
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

/// A wait for a folio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimes {
    /// Index of the access that waited.
    pub access: u32,
    /// First page of the folio.
    pub page: PageIndex,
    /// Since when.
    pub from: Time,
    /// When the folio was uptodate.
    pub until: Time,
}

/// A request of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimes {
    /// Index of the access that caused it.
    pub access: u32,
    /// What it reads, with what the scheduler merged into it.
    pub request: Request,
    /// When it was submitted to the queue.
    pub submitted: Time,
    /// When it got a tag, from which on it counts as being at the device.
    pub issued: Time,
    /// When its completion was reported.
    pub completed: Time,
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
    /// Keeps a request that the device has taken up. Returns its place.
    pub(super) fn add_request(&mut self, access: u32, begun: &Begun) -> u32 {
        let Begun { queued, completes: completed } = *begun;
        let (request, submitted, issued) = (queued.request, queued.submitted, queued.issued);
        self.requests.push(RequestTimes { access, request, submitted, issued, completed });
        (self.requests.len() - 1) as u32
    }

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
