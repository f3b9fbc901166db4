//! The order in which waiting requests go to the device, and what becomes one request meanwhile.
//!
//! Without a scheduler requests leave in order of arrival. `mq-deadline` sends
//! reads in order of sectors, in batches of 16, and begins a batch with the
//! oldest read once that has waited for half a second (`fifo_batch` and
//! `read_expire` of `block/mq-deadline.c`, at their defaults), so no read waits
//! for ever. A request that arrives merges behind or before one that waits, and
//! so may close the gap between two (`elv_merge` and `blk_attempt_req_merge` of
//! `block/elevator.c` and `block/blk-merge.c`); the request keeps the age of the
//! oldest.

use std::collections::{BTreeMap, VecDeque};

use traces::settings::Scheduler;
use traces::units::{Sector, Time};

use super::Queued;
use crate::block::{QueueLimits, Request};

/// Reads that mq-deadline sends in order of sectors before it looks for expired ones.
const FIFO_BATCH: u32 = 16;
/// Age at which mq-deadline puts a read first.
const READ_EXPIRE_NS: u64 = 500_000_000;

/// Requests without a tag.
pub(super) enum Scheduled {
    Fifo(VecDeque<Queued>),
    Deadline(Deadline),
}

/// The ids of a request and of one that was merged into it.
pub(super) type Merged = (u32, u32);

impl Scheduled {
    pub(super) fn new(scheduler: Scheduler, limits: QueueLimits) -> Self {
        match scheduler {
            Scheduler::None => Self::Fifo(VecDeque::new()),
            Scheduler::MqDeadline => Self::Deadline(Deadline::new(limits)),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Fifo(fifo) => fifo.len(),
            Self::Deadline(deadline) => deadline.by_sector.len(),
        }
    }

    /// Takes a request; returns what became one request with another.
    pub(super) fn push(&mut self, queued: Queued) -> Vec<Merged> {
        match self {
            Self::Fifo(fifo) => {
                fifo.push_back(queued);
                Vec::new()
            }
            Self::Deadline(deadline) => deadline.push(queued),
        }
    }

    /// A request goes to the device at once, as none waits.
    pub(super) fn pass(&mut self, request: &Request) {
        if let Self::Deadline(deadline) = self {
            let follows = deadline.next <= request.sector && deadline.batch_left > 0;
            deadline.send(request, follows);
        }
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Queued> {
        match self {
            Self::Fifo(fifo) => fifo.pop_front(),
            Self::Deadline(deadline) => deadline.pop(now),
        }
    }
}

/// A request's place: by sector, the earlier of equal ones first.
type Place = (Sector, u64);

pub(super) struct Deadline {
    limits: QueueLimits,
    by_sector: BTreeMap<Place, Queued>,
    /// By age; entries that are gone from `by_sector` have been sent or merged.
    by_age: VecDeque<Place>,
    arrivals: u64,
    /// Where the batch goes on.
    next: Sector,
    batch_left: u32,
}

impl Deadline {
    fn new(limits: QueueLimits) -> Self {
        Self {
            limits,
            by_sector: BTreeMap::new(),
            by_age: VecDeque::new(),
            arrivals: 0,
            next: Sector(0),
            batch_left: 0,
        }
    }

    fn push(&mut self, queued: Queued) -> Vec<Merged> {
        self.arrivals += 1;
        let mut place = (queued.request.sector, self.arrivals);
        let mut queued = queued;
        let mut merged = Vec::new();
        for neighbour in [self.before(&queued), self.after(&queued)].into_iter().flatten() {
            let other = self.by_sector[&neighbour];
            let Some(request) = queued.request.merged(&other.request, &self.limits) else {
                continue;
            };
            self.by_sector.remove(&neighbour);
            let (host, guest) =
                if neighbour.1 < place.1 { (other, queued) } else { (queued, other) };
            merged.push((host.id, guest.id));
            place = (request.sector, place.1.min(neighbour.1));
            queued = Queued { request, ..host };
        }
        let at = self.by_age.partition_point(|(_, arrival)| *arrival < place.1);
        self.by_age.insert(at, place);
        self.by_sector.insert(place, queued);
        merged
    }

    /// The request that ends where this one begins.
    fn before(&self, queued: &Queued) -> Option<Place> {
        let (place, other) = self.by_sector.range(..(queued.request.sector, 0)).next_back()?;
        let touches = other.request.sector + other.request.sectors == queued.request.sector;
        touches.then_some(*place)
    }

    /// The request that begins where this one ends.
    fn after(&self, queued: &Queued) -> Option<Place> {
        let end = queued.request.sector + queued.request.sectors;
        let (place, _) = self.by_sector.range((end, 0)..).next()?;
        (place.0 == end).then_some(*place)
    }

    fn pop(&mut self, now: Time) -> Option<Queued> {
        while self.by_age.front().is_some_and(|place| !self.by_sector.contains_key(place)) {
            self.by_age.pop_front();
        }
        let oldest = *self.by_age.front()?;
        let following = self.by_sector.range((self.next, 0)..).next().map(|(place, _)| *place);
        let in_batch = following.filter(|_| self.batch_left > 0);
        let place = in_batch.unwrap_or_else(|| {
            let expired = now - self.by_sector[&oldest].submitted >= READ_EXPIRE_NS;
            // At the end of the disk a batch begins again with the oldest one.
            following.filter(|_| !expired).unwrap_or(oldest)
        });
        let queued = self.by_sector.remove(&place)?;
        self.send(&queued.request, in_batch.is_some());
        Some(queued)
    }

    /// A request goes to the device, as the next of a batch or as the first of another.
    fn send(&mut self, request: &Request, in_batch: bool) {
        let left = if in_batch { self.batch_left } else { FIFO_BATCH };
        self.batch_left = left - 1;
        self.next = request.sector + request.sectors;
    }
}
