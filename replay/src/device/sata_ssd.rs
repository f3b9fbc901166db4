//! A SATA SSD: flash behind one half-duplex link that carries commands and data.
//!
//! At most 32 commands are outstanding (native command queuing), so the preset
//! has a queue of that depth. Every command also holds the link for the frames
//! that set it up and end it.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::Time;

use super::Device;
use super::flash::{Flash, FlashParameters};
use super::pipe::Pipe;
use super::variation::Variation;
use crate::block::Request;

/// Parameters of a SATA SSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SataSsdParameters {
    /// Latency of a command outside flash and link.
    pub command_ns: u64,
    /// Time a command's own frames hold the link.
    pub link_command_ns: u64,
    /// Bandwidth of the link for data.
    pub link_bytes_per_s: NonZeroU64,
    /// What stores the data.
    pub flash: FlashParameters,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct SataSsd {
    parameters: SataSsdParameters,
    flash: Flash,
    link: Pipe,
}

impl SataSsd {
    pub(super) fn new(parameters: &SataSsdParameters, variation: Variation) -> Self {
        Self {
            parameters: *parameters,
            flash: Flash::new(&parameters.flash, variation),
            link: Pipe::new(parameters.link_bytes_per_s.get()),
        }
    }
}

impl Device for SataSsd {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let begun = now + self.parameters.command_ns;
        let done = self.flash.read(begun, request, &mut self.link);
        self.link.hold(done, self.parameters.link_command_ns)
    }
}
