//! An NVMe drive: commands through queue pairs, flash, one `PCIe` link.
//!
//! A command costs `command_ns` of latency that overlaps with that of others
//! (doorbell, fetch of the entry, translation, completion entry and interrupt),
//! and `command_interval_ns` of the controller, which takes one command at a
//! time and so bounds the commands per second. The data then leaves over the
//! link, in the order in which it arrives from the flash.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::Time;

use super::Device;
use super::flash::{Flash, FlashParameters};
use super::pipe::Pipe;
use super::variation::Variation;
use crate::block::Request;

/// Parameters of an NVMe drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvmeParameters {
    /// Latency of a command outside flash and link.
    pub command_ns: u64,
    /// Shortest time from one command to the next: the reciprocal of the highest IOPS.
    pub command_interval_ns: u64,
    /// Bandwidth of the `PCIe` link for data.
    pub link_bytes_per_s: NonZeroU64,
    /// What stores the data.
    pub flash: FlashParameters,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Nvme {
    parameters: NvmeParameters,
    controller: Pipe,
    flash: Flash,
    link: Pipe,
}

impl Nvme {
    pub(super) fn new(parameters: &NvmeParameters, variation: Variation) -> Self {
        Self {
            parameters: *parameters,
            controller: Pipe::new(1),
            flash: Flash::new(&parameters.flash, variation),
            link: Pipe::new(parameters.link_bytes_per_s.get()),
        }
    }
}

impl Device for Nvme {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let taken = self.controller.hold(now, self.parameters.command_interval_ns);
        self.flash.read(taken, request, &mut self.link) + self.parameters.command_ns
    }
}
