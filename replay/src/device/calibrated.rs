//! A device fitted to recorded issue-to-complete times.
//!
//! `parallel` servers each take `fixed_ns` for a request, `discontiguous_ns`
//! more for one that does not begin where the request before it ended,
//! `idle_ns` more for one that finds the device idle (what has to wake up
//! first), and `byte_ps` for every byte; the bytes then cross a shared link, if
//! there is one. With `together` the host hears of completions only when the
//! device has nothing left to do: a virtual disk whose thread takes all requests
//! it finds before it raises an interrupt, or interrupts that are held back. A
//! request or a depth that the captures did not show is counted as extrapolated,
//! so that a report can say so.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Sector, Time};

use super::Device;
use super::pipe::{Pipe, Servers};
use super::variation::Variation;
use crate::block::Request;

/// Parameters of a fitted device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibratedParameters {
    /// Time of a request whatever its size.
    pub fixed_ns: u64,
    /// Added when it does not continue the request before it.
    pub discontiguous_ns: u64,
    /// Added when the device has nothing else to do.
    #[serde(default)]
    pub idle_ns: u64,
    /// Added per byte, in picoseconds.
    pub byte_ps: u64,
    /// Requests served side by side.
    pub parallel: NonZeroU64,
    /// Bandwidth of the link behind the servers; left out, data does not queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_s: Option<NonZeroU64>,
    /// Whether completions are reported only when the device has nothing left to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// Where the time is not a straight line over the size: what the line is multiplied by, by
    /// size, interpolated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<CurvePoint>,
    /// Pauses of the machine that the captures show; left out, there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// What the fit rests on.
    pub seen: SeenRange,
}

/// Requests that take far longer than their like: a busy host, a garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// From one stall to the next.
    pub every_ns: NonZeroU64,
    /// How much longer the request it meets takes.
    pub stall_ns: u64,
}

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Size of the request.
    pub bytes: u64,
    /// Its time, in thousandths of the line's.
    pub permille: u64,
}

/// The factor at `bytes`, in thousandths. `curve` is sorted by size.
fn permille(curve: &[CurvePoint], bytes: u64) -> u64 {
    let after = curve.partition_point(|point| point.bytes <= bytes);
    match (after.checked_sub(1).map(|at| curve[at]), curve.get(after)) {
        (Some(from), Some(to)) => {
            let (before, behind) = (u128::from(bytes - from.bytes), u128::from(to.bytes - bytes));
            let sum = u128::from(from.permille) * behind + u128::from(to.permille) * before;
            (sum / (before + behind)) as u64
        }
        (Some(point), None) => point.permille,
        (None, Some(point)) => point.permille,
        (None, None) => 1000,
    }
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
    /// When the last request completes.
    busy_until: Time,
    /// When the machine stalls next.
    next_stall: Time,
    variation: Variation,
}

impl Calibrated {
    pub(super) fn new(parameters: &CalibratedParameters, variation: Variation) -> Self {
        Self {
            parameters: CalibratedParameters {
                curve: sorted(&parameters.curve),
                ..parameters.clone()
            },
            servers: Servers::new(parameters.parallel.get()),
            link: parameters.link_bytes_per_s.map(|link| Pipe::new(link.get())),
            end: None,
            busy_until: Time(0),
            next_stall: Time(parameters.stalls.map_or(0, |stalls| stalls.every_ns.get() / 2)),
            variation,
        }
    }
}

fn sorted(curve: &[CurvePoint]) -> Vec<CurvePoint> {
    let mut curve = curve.to_vec();
    curve.sort_by_key(|point| point.bytes);
    curve
}

impl Calibrated {
    /// What a stall adds to a request that begins at `now`.
    fn stall_ns(&mut self, now: Time) -> u64 {
        let Some(stalls) = self.parameters.stalls.filter(|_| now >= self.next_stall) else {
            return 0;
        };
        self.next_stall = now + stalls.every_ns.get();
        stalls.stall_ns
    }
}

impl Device for Calibrated {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let bytes = request.sectors << SECTOR_SHIFT;
        let stall_ns = self.stall_ns(now);
        let parameters = &self.parameters;
        let continues = self.end.replace(request.sector + request.sectors) == Some(request.sector);
        let apart_ns = if continues { 0 } else { parameters.discontiguous_ns };
        let idle_ns = if now >= self.busy_until { parameters.idle_ns } else { 0 };
        let bytes_ns = bytes.saturating_mul(parameters.byte_ps) / 1000;
        let line_ns = parameters.fixed_ns + apart_ns + idle_ns + bytes_ns;
        let mean_ns = line_ns.saturating_mul(permille(&parameters.curve, bytes)) / 1000;
        let served = self.servers.serve(now, self.variation.draw(mean_ns) + stall_ns);
        let done = self.link.as_mut().map_or(served, |link| link.transfer(served, bytes));
        self.busy_until = self.busy_until.max(done);
        done
    }

    fn reports_together(&self) -> bool {
        self.parameters.together
    }

    fn extrapolates(&self, request: &Request, depth: u64) -> bool {
        self.parameters.seen.is_beyond(request.sectors << SECTOR_SHIFT, depth)
    }
}
