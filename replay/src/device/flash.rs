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

use super::pipe::transfer_ns;
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
    channel_bytes_per_s: u64,
    /// Time a whole page takes to cross a channel.
    page_channel_ns: u64,
    /// When each plane and each channel is free.
    planes: Vec<Time>,
    channels: Vec<Time>,
    /// The page that follows the last request, with its plane and its channel: reads in order need
    /// no division.
    next: (u64, usize, usize),
    variation: Variation,
}

impl Flash {
    pub(super) fn new(parameters: &FlashParameters, variation: Variation) -> Self {
        let page_bytes = parameters.page_bytes.get();
        let channel_bytes_per_s = parameters.channel_bytes_per_s.get();
        Self {
            page_bytes,
            page_read_ns: parameters.page_read_ns,
            channel_bytes_per_s,
            page_channel_ns: transfer_ns(page_bytes, channel_bytes_per_s),
            planes: vec![Time(0); parameters.planes() as usize],
            channels: vec![Time(0); parameters.channels.get() as usize],
            next: (0, 0, 0),
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
        self.next = self.place(at);
        while at < end {
            let page_end = (self.next.0 + 1) * self.page_bytes;
            let part = end.min(page_end) - at;
            if part < self.page_bytes {
                let channel_ns = transfer_ns(part, self.channel_bytes_per_s);
                self.read_pages(now, 1, channel_ns, |crossed| arrived(crossed, part));
                at += part;
                // A request that ends within a page leaves the rest of it to the next one.
                self.skip(u64::from(at == page_end));
                continue;
            }
            let (_, plane, channel) = self.next;
            let in_a_row = (self.planes.len() - plane).min(self.channels.len() - channel) as u64;
            let pages = in_a_row.min((end - at) / self.page_bytes);
            let page_bytes = self.page_bytes;
            self.read_pages(now, pages, self.page_channel_ns, |crossed| {
                arrived(crossed, page_bytes);
            });
            at += pages * self.page_bytes;
            self.skip(pages);
        }
    }

    /// Reads pages from the next one on, at most up to the last plane or channel.
    fn read_pages(
        &mut self,
        now: Time,
        pages: u64,
        channel_ns: u64,
        mut crossed: impl FnMut(Time),
    ) {
        let (_, plane, channel) = self.next;
        let planes = self.planes[plane..].iter_mut();
        let channels = self.channels[channel..].iter_mut();
        for (plane, channel) in planes.zip(channels).take(pages as usize) {
            *plane = (*plane).max(now) + self.variation.draw(self.page_read_ns);
            *channel = (*channel).max(*plane) + channel_ns;
            crossed(*channel);
        }
    }

    /// Goes on to a later page, no further than to the first plane or channel.
    fn skip(&mut self, pages: u64) {
        let (page, plane, channel) = &mut self.next;
        let on = |at: usize, count: usize| {
            let next = at + pages as usize;
            if next == count { 0 } else { next }
        };
        *page += pages;
        *plane = on(*plane, self.planes.len());
        *channel = on(*channel, self.channels.len());
    }

    /// The page at a byte, its plane and its channel.
    fn place(&self, at: u64) -> (u64, usize, usize) {
        let (next, _, _) = self.next;
        if (next * self.page_bytes..(next + 1) * self.page_bytes).contains(&at) {
            return self.next;
        }
        let page = at / self.page_bytes;
        let plane = (page % self.planes.len() as u64) as usize;
        (page, plane, plane % self.channels.len())
    }
}
