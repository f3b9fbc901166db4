//! What the footer says of a capture as a whole.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use traces::capture::{Header, Losses};
use traces::join::Join;
use traces::settings::{Origin, Settings};
use traces::sidecar::Sidecar;

use crate::load::LoadError;

/// Footer key of the [`Notes`], as JSON.
pub(super) const KEY_CAPTURE: &str = "rareplay.capture";
/// Footer key of the list of accesses that stands for the capture's own.
pub(super) const KEY_ACCESSES: &str = "rareplay.accesses";

/// What a capture says of itself, and what was stated of it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) header: Header,
    pub(super) losses: Losses,
    pub(super) unused_events: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) joins: Vec<Join>,
    pub(super) sidecar: Sidecar,
    pub(super) given: Vec<(String, String)>,
}

/// What a sidecar and the command line said of a capture when it was converted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// The sidecar, without the names of other files.
    pub sidecar: Sidecar,
    /// `--set` values.
    pub given: Vec<(String, String)>,
    /// A list of accesses that stands for the capture's own (see [`traces::ops`]).
    pub accesses: Option<String>,
}

impl Stated {
    /// Adds what a sidecar beside the capture says, which is newer.
    pub(super) fn add(&mut self, newer: Sidecar) {
        let older = std::mem::take(&mut self.sidecar);
        let mut settings = older.settings;
        settings.extend(newer.settings);
        let files = if newer.files.is_empty() { older.files } else { newer.files };
        self.sidecar = Sidecar { settings, files, accesses: None, join: Vec::new(), ..newer };
    }

    /// The settings over the kernel's defaults. Errors call the table `path`.
    pub(crate) fn settings(&self, path: &Path) -> Result<Settings, LoadError> {
        let mut settings = Settings::default();
        self.sidecar.apply(path, &mut settings)?;
        for (key, value) in &self.given {
            settings.set(key, value, Origin::Given)?;
        }
        Ok(settings)
    }
}
