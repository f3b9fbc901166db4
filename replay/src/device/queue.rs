//! The request queue in front of a device: scheduler, tags, what is in flight.
//!
//! A request waits with the scheduler until a tag is free
//! (`depth` of them), is then held by the device, and begins when the device
//! takes it up. At most `nr_requests` are at the device or with the scheduler;
//! more wait before it, in order of arrival. What waits there holds up no
//! thread: a kernel would put the submitter to sleep, which here only differs
//! in what else the thread gets done meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
pub use traces::settings::Scheduler;
use traces::settings::Settings;
use traces::units::{SECTOR_SHIFT, Time};

use super::scheduler::Scheduled;
use super::{Device, Queued};
use crate::block::{QueueLimits, Request};

/// The queue in front of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueParameters {
    /// Tags: most requests at the device.
    pub depth: NonZeroU64,
    /// Which request gets the next free tag.
    pub scheduler: Scheduler,
    /// Most requests that are at the device or with the scheduler; left out, all tags without a
    /// scheduler, and twice the tags, at most 256, with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<NonZeroU64>,
}

impl QueueParameters {
    /// These, with what the settings of a source say of the queue.
    #[must_use]
    pub fn under(self, settings: &Settings) -> Self {
        Self {
            depth: self.depth,
            scheduler: settings.scheduler.value.unwrap_or(self.scheduler),
            nr_requests: settings.nr_requests.value.or(self.nr_requests),
        }
    }

    /// Most requests at the device, and most at the device or with the scheduler.
    fn limits(self) -> (usize, usize) {
        /// The default of `nr_requests` with a scheduler is twice this, or twice the tags if those
        /// are fewer (`BLKDEV_DEFAULT_RQ`).
        const DEFAULT_REQUESTS: u64 = 128;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let depth = self.depth.get();
        let requests = self.nr_requests.map(NonZeroU64::get);
        match self.scheduler {
            Scheduler::None => {
                let depth = requests.map_or(depth, |requests| requests.min(depth));
                (count(depth), count(depth))
            }
            Scheduler::MqDeadline => {
                let requests = requests.unwrap_or(2 * depth.min(DEFAULT_REQUESTS));
                (count(depth), count(requests))
            }
        }
    }
}

/// How many requests were at the device from a moment on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DepthChange {
    /// When.
    pub time: Time,
    /// Requests that have a tag.
    pub in_flight: u32,
    /// Requests that wait for one.
    pub waiting: u32,
}

/// What the queue has seen.
#[derive(Clone, Debug, Default)]
pub struct QueueUse {
    /// Requests that the device got.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
    /// Requests by their bytes.
    pub request_sizes: BTreeMap<u64, u64>,
    /// Requests that the scheduler merged into others.
    pub merged: u64,
    /// Requests begun and not completed, over time.
    pub depth: Vec<DepthChange>,
    /// Time with a request in flight.
    pub busy_ns: u64,
    /// Sum over the requests of their time from tag to completion.
    pub in_flight_ns: u64,
    /// Most requests in flight.
    pub depth_max: u64,
    /// Requests whose time the model had to extrapolate.
    pub extrapolated: u64,
    changed: Time,
    /// The last size and how many requests in a row had it: most are of one size.
    sizes_in_a_row: (u64, u64),
}

impl QueueUse {
    /// Mean number of requests at the device in each of `slices` equal parts of the time up to
    /// `end`.
    pub fn depth_by_slice(&self, end: Time, slices: usize) -> Vec<f64> {
        let slice_ns = end.0 as f64 / slices.max(1) as f64;
        let mut depths = vec![0.0; slices];
        let ends = self.depth.iter().skip(1).map(|change| change.time).chain([end]);
        for (change, until) in self.depth.iter().zip(ends).filter(|(c, _)| c.in_flight > 0) {
            let (from, to) = (change.time.0 as f64 / slice_ns, until.0 as f64 / slice_ns);
            let first = u128::from(change.time.0) * slices as u128 / u128::from(end.0.max(1));
            for (slice, depth) in depths.iter_mut().enumerate().skip(first as usize) {
                let (begins, ends) = (slice as f64, slice as f64 + 1.0);
                if begins >= to {
                    break;
                }
                *depth += f64::from(change.in_flight) * (to.min(ends) - from.max(begins));
            }
        }
        depths
    }

    fn count(&mut self, request: &Request) {
        let bytes = request.sectors << SECTOR_SHIFT;
        self.requests += 1;
        self.request_bytes += bytes;
        if self.sizes_in_a_row.0 != bytes {
            self.end_row();
            self.sizes_in_a_row.0 = bytes;
        }
        self.sizes_in_a_row.1 += 1;
    }

    fn end_row(&mut self) {
        let (bytes, count) = std::mem::take(&mut self.sizes_in_a_row);
        if count > 0 {
            *self.request_sizes.entry(bytes).or_default() += count;
        }
    }

    fn change(&mut self, now: Time, in_flight_before: usize, in_flight: usize, waiting: usize) {
        let elapsed_ns = now - self.changed;
        self.changed = now;
        self.in_flight_ns += elapsed_ns * in_flight_before as u64;
        self.busy_ns += if in_flight_before > 0 { elapsed_ns } else { 0 };
        self.depth_max = self.depth_max.max(in_flight as u64);
        let change =
            DepthChange { time: now, in_flight: in_flight as u32, waiting: waiting as u32 };
        match self.depth.last_mut() {
            Some(last) if last.time == now => *last = change,
            _ => self.depth.push(change),
        }
    }
}

/// A request that began, and when it completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The request, with what was merged into it.
    pub queued: Queued,
    /// When it completes.
    pub completes: Time,
}

/// A device and its queue.
pub struct DeviceQueue<'d> {
    device: &'d mut dyn Device,
    depth_max: usize,
    requests_max: usize,
    served_max: usize,
    together: bool,
    /// Submitted, but too many for the scheduler.
    before: VecDeque<Queued>,
    scheduled: Scheduled,
    /// At the device, not begun.
    held: Vec<Queued>,
    begun: usize,
    /// Completed, but not reported yet.
    unreported: Vec<u32>,
    /// Pairs of requests on their way: one, and one that was merged into it.
    merged: Vec<(u32, u32)>,
    usage: QueueUse,
}

impl<'d> DeviceQueue<'d> {
    /// An idle device.
    pub fn new(
        device: &'d mut dyn Device,
        parameters: QueueParameters,
        limits: QueueLimits,
    ) -> Self {
        let (depth_max, requests_max) = parameters.limits();
        Self {
            depth_max,
            requests_max,
            served_max: device.served_at_once(),
            together: device.reports_together(),
            device,
            before: VecDeque::new(),
            scheduled: Scheduled::new(parameters.scheduler, limits),
            held: Vec::new(),
            begun: 0,
            unreported: Vec::new(),
            merged: Vec::new(),
            usage: QueueUse::default(),
        }
    }

    /// What was seen so far.
    pub fn into_use(mut self) -> QueueUse {
        self.usage.end_row();
        self.usage
    }

    /// Hands in a request. Times never go backwards from one call to the next.
    pub fn submit(&mut self, now: Time, request: Request, id: u32) {
        self.before.push_back(Queued { request, submitted: now, issued: now, id });
    }

    /// Hands in a request and begins what the device can take up; appends what began to `begun`.
    pub fn issue(&mut self, now: Time, request: Request, id: u32, begun: &mut Vec<Begun>) {
        let queued = Queued { request, submitted: now, issued: now, id };
        let in_flight = self.in_flight();
        if self.waiting() > 0 || in_flight >= self.depth_max.min(self.requests_max) {
            self.before.push_back(queued);
            return self.dispatch(now, begun);
        }
        self.scheduled.pass(&request);
        self.give_tag(&queued);
        if self.begun < self.served_max {
            self.begin(now, queued, begun);
        } else {
            self.held.push(queued);
        }
        self.usage.change(now, in_flight, in_flight + 1, 0);
    }

    /// The device has completed a request that began; appends what is reported, and what was merged
    /// into it, to `completed`.
    pub fn complete(&mut self, now: Time, id: u32, completed: &mut Vec<u32>) {
        self.begun -= 1;
        if self.together && self.begun + self.held.len() > 0 {
            self.unreported.push(id);
            return;
        }
        let in_flight = self.in_flight() + 1;
        let mut at = completed.len();
        completed.append(&mut self.unreported);
        completed.push(id);
        self.usage.change(now, in_flight, self.in_flight(), self.waiting());
        while at < completed.len() && !self.merged.is_empty() {
            let host = completed[at];
            let guests = self.merged.extract_if(.., |(into, _)| *into == host);
            completed.extend(guests.map(|(_, guest)| guest));
            at += 1;
        }
    }

    /// Gives out tags and begins what the device can take up; appends what began to `begun`.
    pub fn dispatch(&mut self, now: Time, begun: &mut Vec<Begun>) {
        if self.held.is_empty() && self.waiting() == 0 {
            return;
        }
        let in_flight = self.in_flight();
        loop {
            self.schedule();
            if self.in_flight() >= self.depth_max {
                break;
            }
            let Some(queued) = self.scheduled.pop(now) else { break };
            self.give_tag(&queued);
            self.held.push(Queued { issued: now, ..queued });
        }
        while self.begun < self.served_max && !self.held.is_empty() {
            let next = if self.held.len() == 1 { 0 } else { self.device.choose(now, &self.held) };
            let queued = self.held.remove(next);
            self.begin(now, queued, begun);
        }
        if self.in_flight() != in_flight || self.waiting() > 0 {
            self.usage.change(now, in_flight, self.in_flight(), self.waiting());
        }
    }

    fn give_tag(&mut self, queued: &Queued) {
        let depth = self.in_flight() as u64 + 1;
        let extrapolates = self.device.extrapolates(&queued.request, depth);
        self.usage.extrapolated += u64::from(extrapolates);
        self.usage.count(&queued.request);
    }

    fn begin(&mut self, now: Time, queued: Queued, begun: &mut Vec<Begun>) {
        self.begun += 1;
        let completes = self.device.read(now, &queued.request).max(now);
        begun.push(Begun { queued, completes });
    }

    /// Hands to the scheduler what it can take.
    fn schedule(&mut self) {
        while self.in_flight() + self.scheduled.len() < self.requests_max
            && let Some(queued) = self.before.pop_front()
        {
            let merged = self.scheduled.push(queued);
            self.usage.merged += merged.len() as u64;
            self.merged.extend(merged);
        }
    }

    fn waiting(&self) -> usize {
        self.before.len() + self.scheduled.len()
    }

    fn in_flight(&self) -> usize {
        self.held.len() + self.begun + self.unreported.len()
    }
}
