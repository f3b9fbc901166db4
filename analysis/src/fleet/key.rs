//! What identifies the input of a replay, and what was asked of it.

use std::path::Path;

use replay::policy::Policy;
use sha2::{Digest, Sha256};
use traces::sidecar;

use crate::gate::{GateError, MeasureOptions, digest_of, parts};

/// The content of a source and of everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Digest of the bytes, without the sidecar's, as baselines of the gate have it.
    pub digest: String,
    /// Hash of that, of how long each file is, and of the sidecar.
    pub hash: String,
    /// Bytes of the files.
    pub bytes: u64,
}

impl Content {
    /// Reads it in bounded memory.
    pub fn of(path: &Path) -> Result<Self, GateError> {
        let failed =
            |path: &Path, source| GateError::Io { action: "read", path: path.to_owned(), source };
        let files = parts(path)?;
        let digest = digest_of(&files)?;
        let mut hash = Framed::new();
        hash.add(&digest);
        let mut bytes = 0;
        for file in &files {
            let size = file.metadata().map_err(|source| failed(file, source))?.len();
            hash.add(size.to_le_bytes());
            bytes += size;
        }
        if let Some(beside) = sidecar::path_for(path) {
            let text = std::fs::read(&beside).map_err(|source| failed(&beside, source))?;
            hash.add(text);
        }
        Ok(Self { digest, hash: hash.finish(), bytes })
    }
}

/// The key of what a policy makes of a source: of all that its result depends on.
pub(super) fn key(content: &str, policy: &dyn Policy, options: &MeasureOptions) -> String {
    let mut hash = Framed::new();
    hash.add(super::SCHEMA);
    hash.add(env!("CARGO_PKG_VERSION"));
    hash.add(content);
    hash.add(policy.id());
    let load = &options.load;
    for (key, value) in &load.set {
        hash.add(key);
        hash.add(value);
    }
    hash.add(load.clock.as_deref().unwrap_or_default());
    hash.add([u8::from(load.allow_inferred), u8::from(options.allow_loss)]);
    let model = options.model.view();
    hash.add(model.model);
    for (name, value) in model.parameters {
        hash.add(name);
        hash.add(value.to_le_bytes());
    }
    hash.finish()
}

/// A hash of parts, which tells where each ends.
pub(super) struct Framed(Sha256);

impl Framed {
    pub(super) fn new() -> Self {
        Self(Sha256::new())
    }

    pub(super) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
