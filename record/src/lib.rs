//! Makes captures: runs a program and records, through tracefs, what it reads.
//!
//! [`record`] does it all: it finds tracefs or mounts it where nobody else sees it, makes an instance of
//! its own, chooses the events that this kernel and filesystem have ([`events`]), filters them to the
//! target ([`target`]), runs the program while the events stream to the output, and puts everything back
//! the way it was, however it ends: the instance and the mount vanish even on a signal or an error.
//! [`facts::sidecar`] then writes down what a capture cannot say of itself.
//!
//! It needs Linux 5.4 or later and the rights to use tracefs, which is root's.

mod cached;
mod command;
mod error;
pub mod events;
pub mod facts;
mod mounts;
mod pump;
mod session;
mod stats;
mod sysfs;
pub mod target;
mod tracefs;

pub use error::RecordError;
pub use session::{Format, Recording, Request, record};
pub use stats::CpuLoss;
