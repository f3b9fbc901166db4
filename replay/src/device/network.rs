//! Storage behind a network: a request becomes calls of at most `rsize_bytes`.
//!
//! Calls travel one way, wait for one of the server's threads, and their data
//! comes back over one wire. At most `slots` calls are outstanding (the session
//! slots of `NFSv4.1`, RFC 8881 section 2.10.6); more wait for the oldest.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Time};

use super::Device;
use super::pipe::{Pipe, Servers};
use super::variation::Variation;
use crate::block::Request;

/// Parameters of storage behind a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkParameters {
    /// There and back, without data.
    pub round_trip_ns: u64,
    /// Bandwidth of the wire back.
    pub bytes_per_s: NonZeroU64,
    /// Most bytes of one call (the mount's `rsize`).
    pub rsize_bytes: NonZeroU64,
    /// Most calls outstanding.
    pub slots: NonZeroU64,
    /// Time of the server for a call.
    pub server_read_ns: u64,
    /// Calls the server works on side by side.
    pub server_threads: NonZeroU64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Network {
    parameters: NetworkParameters,
    server: Servers,
    wire: Pipe,
    /// When the calls that hold slots return, oldest first.
    outstanding: VecDeque<Time>,
    variation: Variation,
}

impl Network {
    pub(super) fn new(parameters: &NetworkParameters, variation: Variation) -> Self {
        Self {
            parameters: *parameters,
            server: Servers::new(parameters.server_threads.get()),
            wire: Pipe::new(parameters.bytes_per_s.get()),
            outstanding: VecDeque::new(),
            variation,
        }
    }

    /// When a call has a slot.
    fn slot(&mut self, now: Time) -> Time {
        while self.outstanding.front().is_some_and(|returns| *returns <= now) {
            self.outstanding.pop_front();
        }
        if (self.outstanding.len() as u64) < self.parameters.slots.get() {
            return now;
        }
        self.outstanding.pop_front().map_or(now, |returns| returns.max(now))
    }
}

impl Device for Network {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let one_way_ns = self.parameters.round_trip_ns / 2;
        let mut left = request.sectors << SECTOR_SHIFT;
        let mut done = now;
        while left > 0 {
            let bytes = left.min(self.parameters.rsize_bytes.get());
            let sent = self.slot(now);
            let read_ns = self.variation.draw(self.parameters.server_read_ns);
            let read = self.server.serve(sent + one_way_ns, read_ns);
            done = self.wire.transfer(read, bytes) + one_way_ns;
            self.outstanding.push_back(done);
            left -= bytes;
        }
        done
    }
}
