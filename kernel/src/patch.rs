//! A patch applied to the files that are read, never to the tree.
//!
//! Patches for kernel lists are made against trees that nobody has checked out, so they need the
//! fuzz and the offsets that GNU `patch` knows how to find; it is run in a folder of its own on
//! copies, and whatever it had to bend is handed on. It never drops all context, as it would with
//! the largest fuzz: that is how a line ends up in another structure. [`crate::rehang`] does better.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::diff::{self, Section};
use crate::error::{Error, Result};
use crate::rehang::rehang;
use crate::tree::{Files, Tree};

/// A unified diff, one section per file; the letter around it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    file: PathBuf,
    sections: Vec<Section>,
    /// It was quoted in a letter, which rarely keeps the white space.
    quoted: bool,
}

impl Patch {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file)
            .map_err(|source| Error::Io { what: file.display().to_string(), source })?;
        let text = crate::tree::text(bytes);
        let mut sections = diff::sections(&text);
        let quoted = sections.is_empty();
        if quoted {
            sections = diff::sections(&diff::unquoted(&text));
        }
        if sections.is_empty() {
            return Err(Error::EmptyPatch { patch: file.to_owned() });
        }
        Ok(Self { file: file.to_owned(), sections, quoted })
    }

    /// The files it changes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|s| s.path.as_str())
    }

    /// The text of every file of `files` after the patch, and what had to be bent.
    pub(crate) fn apply(&self, tree: &Tree, files: &Files) -> Result<(Files, Vec<String>)> {
        let mut after = files.clone();
        let mut notes = Vec::new();
        for section in &self.sections {
            let Some(text) = after.get(&section.path) else { continue };
            let (text, said) = self.apply_section(tree, section, text.as_deref())?;
            notes.extend(said.into_iter().map(|note| format!("{}: {note}", section.path)));
            after.insert(section.path.clone(), Some(text));
        }
        Ok((after, notes))
    }

    fn apply_section(
        &self,
        tree: &Tree,
        section: &Section,
        text: Option<&str>,
    ) -> Result<(String, Vec<String>)> {
        let failed = |said: &str| Error::PatchFailed {
            patch: self.file.clone(),
            tree: tree.to_string(),
            message: format!("{}: {said}", section.path),
        };
        let first = match self.run(&section.text, text)? {
            Ok((text, said)) => return Ok((text, bent(&said))),
            Err(said) => said,
        };
        let (diff, mut notes) =
            text.and_then(|t| rehang(&section.text, t)).ok_or_else(|| failed(&first))?;
        let (text, said) = self.run(&diff, text)?.map_err(|_| failed(&first))?;
        notes.extend(bent(&said));
        Ok((text, notes))
    }

    /// The new text and what `patch` said, or only that when the diff does not apply.
    fn run(&self, diff: &str, text: Option<&str>) -> Result<Applied> {
        let io = |source| Error::Io { what: "patch".to_owned(), source };
        let folder = tempfile::tempdir().map_err(io)?;
        let file = folder.path().join("file");
        if let Some(text) = text {
            std::fs::write(&file, text).map_err(io)?;
        }
        std::fs::write(folder.path().join("diff"), diff).map_err(io)?;
        let out = Command::new("patch")
            .args(["--unified", "--batch", "--forward", "--fuzz=2", "--no-backup-if-mismatch"])
            .args(self.quoted.then_some("--ignore-whitespace"))
            .args(["--reject-file=-", "--input=diff", "file"])
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(io)?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        if !out.status.success() {
            let said = format!("{said}{}", String::from_utf8_lossy(&out.stderr));
            return Ok(Err(said.replace("patching file file\n", "").trim().to_owned()));
        }
        Ok(Ok((crate::tree::text(std::fs::read(&file).map_err(io)?), said)))
    }
}

type Applied = std::result::Result<(String, String), String>;

/// `Hunk #1 succeeded at 1398 with fuzz 2 (offset -15 lines)`
fn bent(said: &str) -> Vec<String> {
    let hunks = said.lines().filter(|line| line.starts_with("Hunk ") && line.contains("succeeded"));
    hunks.map(|line| line.trim_end_matches('.').to_owned()).collect()
}
