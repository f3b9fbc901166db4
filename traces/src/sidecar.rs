//! `NAME.meta.toml`: what a capture cannot say about itself.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::settings::{Origin, SettingError, Settings};

/// A sidecar file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sidecar {
    /// How the capture was made, for people.
    pub made: String,
    /// Settings, by their `--set` keys.
    pub settings: toml::Table,
    /// A list of accesses beside the sidecar, for kernels that record none
    /// (see [`ops`](crate::ops)).
    pub accesses: Option<String>,
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
    let name = capture.file_name()?.to_str()?;
    let dots = name.match_indices('.').map(|(at, _)| at).rev();
    std::iter::once(name.len())
        .chain(dots)
        .map(|end| capture.with_file_name(format!("{}.meta.toml", &name[..end])))
        .find(|path| path.is_file())
}

impl Sidecar {
    /// Reads a sidecar file.
    pub fn read(path: &Path) -> Result<Self, SidecarError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SidecarError::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|source| SidecarError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })
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
}
