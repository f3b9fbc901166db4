//! When a read request completes.

use serde::{Deserialize, Serialize};
use traces::units::{SECTOR_SHIFT, Time};

use crate::block::Request;

/// A device model.
pub trait Device: Send {
    /// When a request issued at `now` completes. Requests come in order of `now`.
    fn read(&mut self, now: Time, request: &Request) -> Time;
}

/// A device of a few channels behind one link.
///
/// A request occupies a channel for a fixed overhead (command and media), then
/// its data crosses the link, one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicParameters {
    /// Command and media time of a request.
    pub request_overhead_ns: u64,
    /// Bandwidth of the link.
    pub bandwidth_bytes_per_s: u64,
    /// Requests served side by side.
    pub channels: u64,
}

impl Default for BasicParameters {
    /// A mid-range NVMe drive.
    fn default() -> Self {
        Self { request_overhead_ns: 60_000, bandwidth_bytes_per_s: 3_200_000_000, channels: 8 }
    }
}

/// See [`BasicParameters`].
#[derive(Debug)]
pub struct Basic {
    parameters: BasicParameters,
    channel_free: Vec<Time>,
    link_free: Time,
}

impl Basic {
    /// An idle device.
    pub fn new(parameters: BasicParameters) -> Self {
        let channels = parameters.channels.clamp(1, 1 << 16) as usize;
        Self { parameters, channel_free: vec![Time(0); channels], link_free: Time(0) }
    }
}

impl Device for Basic {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let (channel, free) = self
            .channel_free
            .iter()
            .copied()
            .enumerate()
            .min_by_key(|(_, free)| *free)
            .unwrap_or((0, now));
        let ready = free.max(now) + self.parameters.request_overhead_ns;
        let bytes = u128::from(request.sectors << SECTOR_SHIFT);
        let bandwidth = u128::from(self.parameters.bandwidth_bytes_per_s.max(1));
        let transfer_ns = (bytes * 1_000_000_000 / bandwidth) as u64;
        let done = ready.max(self.link_free) + transfer_ns;
        self.link_free = done;
        self.channel_free[channel] = done;
        done
    }
}
