//! How the readahead window of an open file grows.

use replay::run::History;
use serde::Serialize;
use traces::access::Source;

/// Windows shown of each policy.
const WINDOWS_SHOWN: usize = 32;

/// The first windows of the open file that has most of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ramp {
    /// Which open file, from 0.
    pub open: u32,
    /// One per policy.
    pub by_policy: Vec<PolicyRamp>,
}

/// A policy's windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyRamp {
    /// All windows of the open file.
    pub windows: u64,
    /// The first ones.
    pub first: Vec<RampWindow>,
}

/// A window, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RampWindow {
    /// Its first page.
    pub start: u64,
    /// Its length.
    pub size: u64,
    /// How much of it lies after the readahead mark.
    pub async_size: u64,
    /// The order its folios are to have where they fit.
    pub order: u32,
}

impl Ramp {
    pub(super) fn new(source: &Source, histories: &[History]) -> Self {
        let open_of = |access: u32| source.accesses[access as usize].open;
        let mut windows = vec![0_u64; source.opens.len()];
        for window in histories.iter().flat_map(|history| &history.windows) {
            windows[open_of(window.access) as usize] += 1;
        }
        let most = (0..windows.len()).max_by_key(|open| (windows[*open], usize::MAX - open));
        let open = most.unwrap_or(0) as u32;
        let of_policy = |history: &History| {
            let own = || history.windows.iter().filter(|window| open_of(window.access) == open);
            let first = own().take(WINDOWS_SHOWN).map(|window| RampWindow {
                start: window.index,
                size: window.ra.size,
                async_size: window.ra.async_size.min(window.ra.size),
                order: window.order,
            });
            PolicyRamp { windows: own().count() as u64, first: first.collect() }
        };
        Self { open, by_policy: histories.iter().map(of_policy).collect() }
    }
}
