//! The request queue in front of a device: scheduler, tags, what is in flight.
//!
//! A request waits in the scheduler until a tag is free (`depth` of them), is
//! then held by the device, and begins when the device takes it up. Without a
//! scheduler requests leave in order of arrival. `mq-deadline` sends reads in
//! order of sectors, in batches of 16, and begins a batch with the oldest read
//! once that has waited for half a second (`fifo_batch` and `read_expire` of
//! `block/mq-deadline.c`, at their defaults), so no read waits for ever.
//!
//! Not modelled: merges of new bios into requests that still wait in the
//! scheduler. Requests are built and merged in the plug ([`block`](crate::block)).

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use traces::units::{Sector, Time};

use super::{Device, Queued};
use crate::block::Request;

/// Reads that mq-deadline sends in order of sectors before it looks for expired ones.
const FIFO_BATCH: u32 = 16;
/// Age at which mq-deadline puts a read first.
const READ_EXPIRE_NS: u64 = 500_000_000;

/// The order in which waiting requests go to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The order of arrival.
    #[default]
    None,
    /// Mostly the order of sectors.
    MqDeadline,
}

/// The queue in front of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueParameters {
    /// Tags: most requests at the device (`nr_requests` of a device without a scheduler).
    pub depth: NonZeroU64,
    /// Which request gets the next free tag.
    pub scheduler: Scheduler,
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
    /// What the submitter called it.
    pub id: u32,
    /// When it completes.
    pub completes: Time,
}

/// A device and its queue.
pub struct DeviceQueue<'d> {
    device: &'d mut dyn Device,
    depth_max: usize,
    scheduled: Scheduled,
    /// At the device, not begun.
    held: Vec<Queued>,
    begun: usize,
    usage: QueueUse,
}

impl<'d> DeviceQueue<'d> {
    /// An idle device.
    pub fn new(device: &'d mut dyn Device, parameters: QueueParameters) -> Self {
        Self {
            device,
            depth_max: parameters.depth.get().try_into().unwrap_or(usize::MAX),
            scheduled: Scheduled::new(parameters.scheduler),
            held: Vec::new(),
            begun: 0,
            usage: QueueUse::default(),
        }
    }

    /// What was seen so far.
    pub fn into_use(self) -> QueueUse {
        self.usage
    }

    /// Hands in a request. Times never go backwards from one call to the next.
    pub fn submit(&mut self, now: Time, request: Request, id: u32) {
        self.scheduled.push(Queued { request, submitted: now, id });
    }

    /// A request that began has completed.
    pub fn complete(&mut self, now: Time) {
        let in_flight = self.in_flight();
        self.begun -= 1;
        self.usage.change(now, in_flight, in_flight - 1, self.scheduled.len());
    }

    /// Gives out tags and begins what the device can take up; appends what began to `begun`.
    pub fn dispatch(&mut self, now: Time, begun: &mut Vec<Begun>) {
        let in_flight = self.in_flight();
        while self.in_flight() < self.depth_max
            && let Some(queued) = self.scheduled.pop(now)
        {
            let depth = self.in_flight() as u64 + 1;
            let extrapolates = self.device.extrapolates(&queued.request, depth);
            self.usage.extrapolated += u64::from(extrapolates);
            self.held.push(queued);
        }
        while self.begun < self.device.served_at_once() && !self.held.is_empty() {
            let next = if self.held.len() == 1 { 0 } else { self.device.choose(now, &self.held) };
            let queued = self.held.remove(next);
            self.begun += 1;
            let completes = self.device.read(now, &queued.request).max(now);
            begun.push(Begun { id: queued.id, completes });
        }
        if self.in_flight() != in_flight || self.scheduled.len() > 0 {
            self.usage.change(now, in_flight, self.in_flight(), self.scheduled.len());
        }
    }

    fn in_flight(&self) -> usize {
        self.held.len() + self.begun
    }
}

/// Requests without a tag.
enum Scheduled {
    Fifo(VecDeque<Queued>),
    Deadline(Deadline),
}

impl Scheduled {
    fn new(scheduler: Scheduler) -> Self {
        match scheduler {
            Scheduler::None => Self::Fifo(VecDeque::new()),
            Scheduler::MqDeadline => Self::Deadline(Deadline::default()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.len(),
            Self::Deadline(deadline) => deadline.by_sector.len(),
        }
    }

    fn push(&mut self, queued: Queued) {
        match self {
            Self::Fifo(fifo) => fifo.push_back(queued),
            Self::Deadline(deadline) => deadline.push(queued),
        }
    }

    fn pop(&mut self, now: Time) -> Option<Queued> {
        match self {
            Self::Fifo(fifo) => fifo.pop_front(),
            Self::Deadline(deadline) => deadline.pop(now),
        }
    }
}

/// A request's place: by sector, the earlier of equal ones first.
type Place = (Sector, u64);

#[derive(Default)]
struct Deadline {
    by_sector: BTreeMap<Place, Queued>,
    /// By age; entries that are gone from `by_sector` have been sent.
    by_age: VecDeque<Place>,
    arrivals: u64,
    /// Where the batch goes on.
    next: Sector,
    batch_left: u32,
}

impl Deadline {
    fn push(&mut self, queued: Queued) {
        self.arrivals += 1;
        let place = (queued.request.sector, self.arrivals);
        self.by_sector.insert(place, queued);
        self.by_age.push_back(place);
    }

    fn pop(&mut self, now: Time) -> Option<Queued> {
        while self.by_age.front().is_some_and(|place| !self.by_sector.contains_key(place)) {
            self.by_age.pop_front();
        }
        let oldest = *self.by_age.front()?;
        let following = self.by_sector.range((self.next, 0)..).next().map(|(place, _)| *place);
        let place = match following {
            Some(place) if self.batch_left > 0 => place,
            _ => {
                self.batch_left = FIFO_BATCH;
                let expired = now - self.by_sector[&oldest].submitted >= READ_EXPIRE_NS;
                // At the end of the disk a batch begins again with the oldest one.
                following.filter(|_| !expired).unwrap_or(oldest)
            }
        };
        let queued = self.by_sector.remove(&place)?;
        self.batch_left -= 1;
        self.next = queued.request.sector + queued.request.sectors;
        Some(queued)
    }
}
