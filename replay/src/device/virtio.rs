//! A virtio-blk disk: the way out of the guest, one I/O thread of the host, the host's storage.
//!
//! The guest kicks (`notify_ns`: the exit and the wake-up of the I/O thread).
//! The I/O thread handles one request at a time (`iothread_ns`). The storage
//! behind it serves `backing_parallel` requests side by side. The interrupt
//! takes `interrupt_ns` to reach the guest.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use traces::units::{SECTOR_SHIFT, Time};

use super::Device;
use super::pipe::{Pipe, Servers};
use super::variation::Variation;
use crate::block::Request;

/// Parameters of a virtio-blk disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtioParameters {
    /// From the guest's kick to the I/O thread.
    pub notify_ns: u64,
    /// Time of the I/O thread for a request.
    pub iothread_ns: u64,
    /// Latency of the host's storage.
    pub backing_read_ns: u64,
    /// Requests the host's storage serves side by side.
    pub backing_parallel: NonZeroU64,
    /// Bandwidth of the host's storage.
    pub backing_bytes_per_s: NonZeroU64,
    /// From the host's completion to the guest's.
    pub interrupt_ns: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Virtio {
    parameters: VirtioParameters,
    iothread: Pipe,
    backing: Servers,
    wire: Pipe,
    variation: Variation,
}

impl Virtio {
    pub(super) fn new(parameters: &VirtioParameters, variation: Variation) -> Self {
        Self {
            parameters: *parameters,
            iothread: Pipe::new(1),
            backing: Servers::new(parameters.backing_parallel.get()),
            wire: Pipe::new(parameters.backing_bytes_per_s.get()),
            variation,
        }
    }
}

impl Device for Virtio {
    fn read(&mut self, now: Time, request: &Request) -> Time {
        let Self { parameters, iothread, backing, wire, variation } = self;
        let handed_on = iothread.hold(now + parameters.notify_ns, parameters.iothread_ns);
        let ready = backing.serve(handed_on, variation.draw(parameters.backing_read_ns));
        wire.transfer(ready, request.sectors << SECTOR_SHIFT) + parameters.interrupt_ns
    }
}
