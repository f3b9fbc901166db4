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

use super::pipe::{Pipe, transfer_ns};
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
    /// The page that follows the last request, and its plane.
    next: (u64, usize),
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
            next: (0, 0),
            variation,
        }
    }

    /// Reads the pages of a request, which leave over `link` in logical order. Returns when the last
    /// one has.
    pub(super) fn read(&mut self, now: Time, request: &Request, link: &mut Pipe) -> Time {
        let at = (request.sector.0 & SECTORS_MASK) << SECTOR_SHIFT;
        let mut bytes = request.sectors << SECTOR_SHIFT;
        let mut done = now;
        self.next = self.place(at);
        let before = at - self.next.0 * self.page_bytes;
        if before > 0 {
            let part = bytes.min(self.page_bytes - before);
            done = self.read_part(now, part, link);
            // A request that ends within a page leaves the rest of it to the next one.
            self.skip(usize::from(before + part == self.page_bytes));
            bytes -= part;
        }
        let mut pages = (bytes / self.page_bytes) as usize;
        let rest = bytes % self.page_bytes;
        while pages > 0 {
            let together = pages.min(self.planes.len() - self.next.1);
            done = self.read_pages(now, together, (self.page_bytes, self.page_channel_ns), link);
            self.skip(together);
            pages -= together;
        }
        if rest > 0 {
            done = self.read_part(now, rest, link);
        }
        done
    }

    /// Reads `bytes` of the next page.
    fn read_part(&mut self, now: Time, bytes: u64, link: &mut Pipe) -> Time {
        let channel_ns = transfer_ns(bytes, self.channel_bytes_per_s);
        self.read_pages(now, 1, (bytes, channel_ns), link)
    }

    /// Reads pages from the next one on, at most up to the last plane: some bytes of each, with their
    /// time on the channel. Returns when they have left over `link`.
    fn read_pages(
        &mut self,
        now: Time,
        pages: usize,
        (bytes, channel_ns): (u64, u64),
        link: &mut Pipe,
    ) -> Time {
        let (_, plane) = self.next;
        let mut channel = plane % self.channels.len();
        let (mut done, link_ns) = (now, link.transfer_ns(bytes));
        let mut planes = &mut self.planes[plane..plane + pages];
        while !planes.is_empty() {
            let channels = &mut self.channels[channel..];
            let (row, rest) = planes.split_at_mut(channels.len().min(planes.len()));
            for (plane, channel) in row.iter_mut().zip(channels) {
                *plane = (*plane).max(now) + self.variation.draw(self.page_read_ns);
                *channel = (*channel).max(*plane) + channel_ns;
                done = link.hold(*channel, link_ns);
            }
            (planes, channel) = (rest, 0);
        }
        done
    }

    /// Goes on to a later page, no further than to the first plane.
    fn skip(&mut self, pages: usize) {
        let (page, plane) = &mut self.next;
        *page += pages as u64;
        *plane += pages;
        if *plane == self.planes.len() {
            *plane = 0;
        }
    }

    /// The page at a byte, and its plane.
    fn place(&self, at: u64) -> (u64, usize) {
        let (next, _) = self.next;
        if (next * self.page_bytes..(next + 1) * self.page_bytes).contains(&at) {
            return self.next;
        }
        let page = at / self.page_bytes;
        (page, (page % self.planes.len() as u64) as usize)
    }
}
