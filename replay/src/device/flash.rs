//! The flash behind an SSD: planes that read pages, channels that carry them to the controller.
//!
//! Consecutive flash pages of the logical address space lie on different
//! channels, then on different dies, then on different planes, as the allocation
//! schemes of SSD simulators place data that was written in order (`CWDP` of
//! `MQSim`: Tavakkol and others, FAST 2018, section 4.3). A plane reads
//! one page at a time; pages then cross the channel one at a time, only the
//! bytes that were asked for.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Time};

use super::pipe::{Pipe, Servers};
use super::variation::Variation;
use crate::block::Request;

/// Geometry and timing of flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashParameters {
    /// Channels between controller and flash.
    pub channels: NonZeroU64,
    /// Dies on a channel.
    pub dies_per_channel: NonZeroU64,
    /// Planes of a die that read independently of each other.
    pub planes_per_die: NonZeroU64,
    /// Bytes that a plane reads at once.
    pub page_bytes: NonZeroU64,
    /// Time a plane needs to read a page into its register (tR).
    pub page_read_ns: u64,
    /// Bandwidth of one channel.
    pub channel_bytes_per_s: NonZeroU64,
}

impl FlashParameters {
    /// Planes of the whole device.
    pub fn planes(&self) -> u64 {
        self.channels
            .get()
            .saturating_mul(self.dies_per_channel.get())
            .saturating_mul(self.planes_per_die.get())
    }
}

/// Sectors whose byte position fits, with room to spare.
const SECTORS_MASK: u64 = u64::MAX >> (2 * SECTOR_SHIFT);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Flash {
    page_bytes: u64,
    page_read_ns: u64,
    planes: Servers,
    channels: Vec<Pipe>,
    variation: Variation,
}

impl Flash {
    pub(super) fn new(parameters: &FlashParameters, variation: Variation) -> Self {
        let channel = Pipe::new(parameters.channel_bytes_per_s.get());
        Self {
            page_bytes: parameters.page_bytes.get(),
            page_read_ns: parameters.page_read_ns,
            planes: Servers::new(parameters.planes()),
            channels: vec![channel; parameters.channels.get() as usize],
            variation,
        }
    }

    /// Reads the pages of a request; hands each part that has arrived at the controller to
    /// `arrived`, in logical order, with its size.
    pub(super) fn read(
        &mut self,
        now: Time,
        request: &Request,
        mut arrived: impl FnMut(Time, u64),
    ) {
        let mut at = (request.sector.0 & SECTORS_MASK) << SECTOR_SHIFT;
        let end = at + (request.sectors << SECTOR_SHIFT);
        let page = at / self.page_bytes;
        let mut page_end = (page + 1) * self.page_bytes;
        let mut plane = (page % self.planes.count()) as usize;
        let mut channel = (page % self.channels.len() as u64) as usize;
        while at < end {
            let part_end = end.min(page_end);
            let read_ns = self.variation.draw(self.page_read_ns);
            let read = self.planes.serve_on(plane, now, read_ns);
            arrived(self.channels[channel].transfer(read, part_end - at), part_end - at);
            at = part_end;
            page_end += self.page_bytes;
            plane = if plane + 1 == self.planes.count() as usize { 0 } else { plane + 1 };
            channel = if channel + 1 == self.channels.len() { 0 } else { channel + 1 };
        }
    }
}
