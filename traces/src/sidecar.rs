//! `NAME.meta.toml`: what a capture cannot say about itself.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::access::FileExtent;
use crate::event::{Device, FileId};
use crate::settings::{Origin, SettingError, Settings};

/// A sidecar file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sidecar {
    /// How the capture was made, for people.
    pub made: String,
    /// A list of accesses beside the sidecar, for kernels that record none
    /// (see [`ops`](crate::ops)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses: Option<String>,
    /// Further files of the run, beside the sidecar (see [`join`](crate::join)).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub join: Vec<String>,
    /// Clock of the capture's time stamps, where it does not say, by the name tracefs gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// Settings, by their `--set` keys.
    pub settings: toml::Table,
    /// The machine, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineFacts>,
    /// Queues of the disks read from, for people: what a replay needs of them is in the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueFacts>,
    /// Files read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileFacts>,
}

/// The machine a capture was made on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineFacts {
    /// `uname -m`.
    pub arch: String,
    /// `uname -v`: what tells two builds of one release apart.
    pub kernel_version: String,
    /// Bytes in a page.
    pub page_size: u64,
    /// CPUs online.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// What sysfs says of a disk and its queue, under its own names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "the names are sysfs's")]
pub struct QueueFacts {
    #[serde(with = "as_text")]
    pub device: Device,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sectors_kb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hw_sectors_kb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segments: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_segment_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_sectors: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logical_block_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_block_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
}

/// What the filesystem says of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileFacts {
    /// `s_dev` of its filesystem.
    #[serde(with = "as_text")]
    pub device: Device,
    /// Its inode number.
    pub inode: u64,
    /// Its name.
    pub path: String,
    /// `i_size`.
    pub size_bytes: u64,
    /// Where its pages lie on the device that block events name; holes are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extents: Vec<FileExtent>,
}

impl FileFacts {
    /// Which file it is.
    pub fn id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }
}

/// `MAJOR:MINOR`.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::event::Device;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
    pub(super) fn serialize<S: Serializer>(device: &Device, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(device)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Device, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A sidecar that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a sidecar.
    #[error("{path} is not a capture's meta.toml: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<toml::de::Error>,
    },
    /// One of its settings is wrong.
    #[error("{path}: {source}")]
    Setting {
        /// The file.
        path: PathBuf,
        /// Why.
        source: SettingError,
    },
}

/// The sidecar that belongs to a capture: its name up to one of its dots, plus `.meta.toml`.
pub fn path_for(capture: &Path) -> Option<PathBuf> {
    let names = names_for(capture.file_name()?.to_str()?);
    names.map(|name| capture.with_file_name(name)).find(|path| path.is_file())
}

/// The names that the sidecar of a capture called `name` can have; the first that is there is it.
pub fn names_for(name: &str) -> impl Iterator<Item = String> {
    let dots = name.match_indices('.').map(|(at, _)| at).rev();
    std::iter::once(name.len()).chain(dots).map(|end| format!("{}.meta.toml", &name[..end]))
}

/// The sidecar that a new capture gets: its name, uncompressed, plus `.meta.toml`.
pub fn path_beside(capture: &Path) -> PathBuf {
    let name = capture.file_name().unwrap_or_default().to_string_lossy();
    let packed = [".zst", ".gz", ".xz"].iter().find_map(|suffix| name.strip_suffix(suffix));
    capture.with_file_name(format!("{}.meta.toml", packed.unwrap_or(&name)))
}

impl Sidecar {
    /// The files it joins to `capture`: none where that is one of them.
    pub fn joined(&self, capture: &Path) -> Vec<PathBuf> {
        let files: Vec<PathBuf> =
            self.join.iter().map(|name| capture.with_file_name(name)).collect();
        if files.iter().any(|file| file == capture) { Vec::new() } else { files }
    }

    /// Reads a sidecar file.
    pub fn read(path: &Path) -> Result<Self, SidecarError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SidecarError::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|source| SidecarError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })
    }

    /// Reads the text of one.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Puts its settings into `settings`.
    pub fn apply(&self, path: &Path, settings: &mut Settings) -> Result<(), SidecarError> {
        for (key, value) in &self.settings {
            let text = match value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            settings
                .set(key, &text, Origin::Sidecar)
                .map_err(|source| SidecarError::Setting { path: path.to_owned(), source })?;
        }
        Ok(())
    }

    /// The text of the file.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{PageIndex, Sector};

    #[test]
    fn what_is_written_is_read_back() {
        let settings = [("fs".to_owned(), "xfs".into()), ("read_ahead_kb".to_owned(), 128.into())];
        let device = Device { major: 7, minor: 3 };
        let written = Sidecar {
            made: "by hand".to_owned(),
            settings: settings.into_iter().collect(),
            machine: Some(MachineFacts { page_size: 4096, ..MachineFacts::default() }),
            queues: vec![QueueFacts { device, nr_requests: Some(128), ..QueueFacts::default() }],
            files: vec![FileFacts {
                device,
                inode: 131,
                path: "/mnt/f".to_owned(),
                size_bytes: 8192,
                extents: vec![FileExtent { page: PageIndex(0), pages: 2, sector: Sector(80) }],
            }],
            ..Sidecar::default()
        };
        let text = written.to_toml().expect("it is plain data");
        assert_eq!(toml::from_str::<Sidecar>(&text).expect("it was written just now"), written);
    }

    #[test]
    fn a_capture_finds_the_sidecar_written_beside_it() {
        let folder = std::env::temp_dir().join(format!("rareplay-sidecar-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
        for name in ["run", "run.ftrace.zst", ".hidden.ftrace"] {
            let capture = folder.join(name);
            let sidecar = path_beside(&capture);
            std::fs::write(&sidecar, "").expect("the temporary folder is writable");
            assert_eq!(path_for(&capture), Some(sidecar), "{name}");
        }
        std::fs::remove_dir_all(&folder).expect("it was made just now");
    }
}
