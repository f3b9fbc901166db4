//! When a read request completes.
//!
//! One model per file, all behind [`Device`], each built from named physical
//! parameters in TOML ([`DeviceFile`]). Presets are in [`presets`]. A request
//! reaches the model through a [`queue`]: scheduler, tags, then the device.
//!
//! Everything is deterministic. Times vary only where a file has a
//! `[variation]` table, and then by a seeded generator.

pub mod calibrated;
pub mod flash;
pub mod hdd;
pub mod network;
pub mod nvme;
mod pipe;
pub mod presets;
pub mod queue;
pub mod sata_ssd;
mod scheduler;
#[cfg(test)]
mod tests;
mod variation;
pub mod virtio;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use traces::units::Time;

pub use calibrated::{CalibratedParameters, SeenRange};
pub use queue::{QueueParameters, Scheduler};
pub use variation::VariationParameters;

use crate::block::Request;
use crate::run::CpuCosts;
use variation::Variation;

/// A device model.
pub trait Device: Send {
    /// When a request that the device takes up at `now` completes. Requests come in order of `now`.
    fn read(&mut self, now: Time, request: &Request) -> Time;

    /// Requests the device works on side by side. It holds the others that have a tag.
    fn served_at_once(&self) -> usize {
        usize::MAX
    }

    /// Which of the requests it holds the device takes up next. `held` is not empty.
    fn choose(&self, now: Time, held: &[Queued]) -> usize {
        let _ = (now, held);
        0
    }

    /// Whether completions are reported only when the device has nothing left to do.
    fn reports_together(&self) -> bool {
        false
    }

    /// Whether the model knows nothing about such a request as the `depth`th one in flight.
    fn extrapolates(&self, request: &Request, depth: u64) -> bool {
        let _ = (request, depth);
        false
    }
}

/// A request on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The request.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Time,
    /// When it got a tag; when it was submitted until then.
    pub issued: Time,
    /// What the submitter calls it.
    pub id: u32,
}

/// A model and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Parameters {
    /// An NVMe drive.
    Nvme(nvme::NvmeParameters),
    /// A SATA SSD.
    SataSsd(sata_ssd::SataSsdParameters),
    /// A hard disk.
    Hdd(hdd::HddParameters),
    /// A virtio-blk disk.
    Virtio(virtio::VirtioParameters),
    /// Storage behind a network.
    Network(network::NetworkParameters),
    /// A device fitted to captures.
    Calibrated(CalibratedParameters),
}

/// A device description: what `--device FILE` reads and `calibrate` writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    /// What it describes and where its numbers come from, for people.
    #[serde(default)]
    pub about: String,
    /// The queue in front of it.
    pub queue: QueueParameters,
    /// The device.
    pub device: Parameters,
    /// How the time of its media varies; left out, it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<VariationParameters>,
    /// What the CPU of the machine spends; left out, defaults hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuCosts>,
}

/// A device description that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It is neither a preset nor a file.
    #[error("device `{name}` is neither a file nor a preset; presets are {}", presets::names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, or has unknown or missing fields.
    #[error("{name} is not a device description: {source}")]
    Parse {
        /// The file.
        name: String,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// A parameter is too large to simulate.
    #[error("{name}: {parameter} = {value} is more than {max}")]
    TooLarge {
        /// The file.
        name: String,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: u64,
        /// The largest one.
        max: u64,
    },
}

impl DeviceFile {
    /// A preset by its name, else a file by its path.
    pub fn load(name_or_path: &str) -> Result<Self, DeviceError> {
        if let Some(text) = presets::text(name_or_path) {
            return Self::parse(text, name_or_path);
        }
        let path = Path::new(name_or_path);
        if !path.is_file() {
            return Err(DeviceError::Unknown { name: name_or_path.to_owned() });
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| DeviceError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, name_or_path)
    }

    /// Reads a description; `name` is for messages.
    pub fn parse(text: &str, name: &str) -> Result<Self, DeviceError> {
        let file: Self = toml::from_str(text).map_err(|source| DeviceError::Parse {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        file.check(name)?;
        Ok(file)
    }

    /// Name of the model, as the file spells it.
    pub fn model_name(&self) -> &'static str {
        match self.device {
            Parameters::Nvme(_) => "nvme",
            Parameters::SataSsd(_) => "sata-ssd",
            Parameters::Hdd(_) => "hdd",
            Parameters::Virtio(_) => "virtio",
            Parameters::Network(_) => "network",
            Parameters::Calibrated(_) => "calibrated",
        }
    }

    /// An idle device as described.
    pub fn build(&self) -> Box<dyn Device> {
        let variation = Variation::new(self.variation.as_ref());
        match &self.device {
            Parameters::Nvme(parameters) => Box::new(nvme::Nvme::new(parameters, variation)),
            Parameters::SataSsd(parameters) => {
                Box::new(sata_ssd::SataSsd::new(parameters, variation))
            }
            Parameters::Hdd(parameters) => Box::new(hdd::Hdd::new(parameters)),
            Parameters::Virtio(parameters) => Box::new(virtio::Virtio::new(parameters, variation)),
            Parameters::Network(parameters) => {
                Box::new(network::Network::new(parameters, variation))
            }
            Parameters::Calibrated(parameters) => {
                Box::new(calibrated::Calibrated::new(parameters, variation))
            }
        }
    }

    /// Refuses what would need more memory than the simulation of a device is worth, or whose
    /// products do not fit.
    fn check(&self, name: &str) -> Result<(), DeviceError> {
        const PARTS_MAX: u64 = 1 << 16;
        const SECTORS_MAX: u64 = 1 << 20;
        let limits: &[(&'static str, u64, u64)] = &match &self.device {
            Parameters::Nvme(nvme::NvmeParameters { flash, .. })
            | Parameters::SataSsd(sata_ssd::SataSsdParameters { flash, .. }) => {
                vec![("channels * dies_per_channel * planes_per_die", flash.planes(), PARTS_MAX)]
            }
            Parameters::Hdd(hdd) => vec![
                ("zones", hdd.zones.get(), PARTS_MAX),
                ("cylinders", hdd.cylinders.get(), 1 << 32),
                ("heads", hdd.heads.get(), 1 << 10),
                ("track_sectors_outer", hdd.track_sectors_outer.get(), SECTORS_MAX),
                ("track_sectors_inner", hdd.track_sectors_inner.get(), SECTORS_MAX),
                ("rotations_per_minute", hdd.rotations_per_minute.get(), 1_000_000),
                ("cache_segments", hdd.cache_segments, PARTS_MAX),
            ],
            Parameters::Virtio(virtio) => {
                vec![("backing_parallel", virtio.backing_parallel.get(), PARTS_MAX)]
            }
            Parameters::Network(network) => vec![
                ("slots", network.slots.get(), PARTS_MAX),
                ("server_threads", network.server_threads.get(), PARTS_MAX),
            ],
            Parameters::Calibrated(calibrated) => {
                vec![("parallel", calibrated.parallel.get(), PARTS_MAX)]
            }
        };
        match limits.iter().find(|(_, value, max)| value > max) {
            None => Ok(()),
            Some(&(parameter, value, max)) => {
                Err(DeviceError::TooLarge { name: name.to_owned(), parameter, value, max })
            }
        }
    }
}
