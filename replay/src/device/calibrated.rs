//! A device fitted to recorded issue-to-complete times.
//!
//! `parallel` servers each take `fixed_ns` for a request, `discontiguous_ns`
//! more for one that does not begin where the request before it ended, and
//! `byte_ps` for every byte; the bytes then cross a shared link, if there is
//! one. A request or a depth that the captures did not show is counted as
//! extrapolated, so that a report can say so.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Sector, Time};

use super::Device;
use super::pipe::{Pipe, Servers};
use super::variation::Variation;
use crate::block::Request;

/// Parameters of a fitted device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedParameters {
    /// Time of a request whatever its size.
    pub fixed_ns: u64,
    /// Added when it does not continue the request before it.
    pub discontiguous_ns: u64,
    /// Added per byte, in picoseconds.
    pub byte_ps: u64,
    /// Requests served side by side.
    pub parallel: NonZeroU64,
    /// Bandwidth of the link behind the servers; left out, data does not queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<NonZeroU64>,
    /// What the fit rests on.
    pub seen: SeenRange,
}

/// The requests a fit saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenRange {
    /// Smallest request.
    pub request_bytes_min: u64,
    /// Largest request.
    pub request_bytes_max: u64,
    /// Most requests in flight.
    pub depth_max: u64,
}

impl SeenRange {
    /// Whether the fit says nothing about such a request.
    pub fn is_beyond(&self, bytes: u64, depth: u64) -> bool {
        bytes < self.request_bytes_min || bytes > self.request_bytes_max || depth > self.depth_max
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Calibrated {
    parameters: CalibratedParameters,
    servers: Servers,
    link: Option<Pipe>,
    /// Where the request before ended.
    end: Option<Sector>,
    variation: Variation,
}

impl Calibrated {
    pub(super) fn new(parameters: &CalibratedParameters, variation: Variation) -> Self {
        Self {
            parameters: *parameters,
            servers: Servers::new(parameters.parallel.get()),
            link: parameters.link_bytes_per_s.map(|link| Pipe::new(link.get())),
            end: None,
            variation,
        }
    }
}

impl Device for Calibrated {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let bytes = request.sectors << SECTOR_SHIFT;
        let parameters = &self.parameters;
        let continues = self.end.replace(request.sector + request.sectors) == Some(request.sector);
        let apart_ns = if continues { 0 } else { parameters.discontiguous_ns };
        let bytes_ns = bytes.saturating_mul(parameters.byte_ps) / 1000;
        let service_ns = self.variation.draw(parameters.fixed_ns + apart_ns + bytes_ns);
        let served = self.servers.serve(now, service_ns);
        self.link.as_mut().map_or(served, |link| link.transfer(served, bytes))
    }

    fn extrapolates(&self, request: &Request, depth: u64) -> bool {
        self.parameters.seen.is_beyond(request.sectors << SECTOR_SHIFT, depth)
    }
}
