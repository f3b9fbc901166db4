//! A patch applied to the files that are read, never to the tree.
//!
//! Patches for kernel lists are made against trees that nobody has checked out, so they need the
//! fuzz and the offsets that GNU `patch` knows how to find; it is run in a folder of its own on
//! copies, and whatever it had to bend is handed on.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::tree::{Files, Tree};

/// A unified diff, one section per file; the letter around it is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    file: PathBuf,
    sections: Vec<Section>,
    /// It was quoted in a letter, which rarely keeps the white space.
    quoted: bool,
}

#[derive(Clone, Debug)]
struct Section {
    /// Path within the tree.
    path: String,
    /// From `---` to the last line of the last hunk.
    text: String,
}

impl Patch {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file)
            .map_err(|source| Error::Io { what: file.display().to_string(), source })?;
        let text = crate::tree::text(bytes);
        let mut found = sections(&text);
        let quoted = found.is_empty();
        if quoted {
            found = sections(&unquoted(&text));
        }
        if found.is_empty() {
            return Err(Error::EmptyPatch { patch: file.to_owned() });
        }
        Ok(Self { file: file.to_owned(), sections: found, quoted })
    }

    /// The files it changes.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().map(|s| s.path.as_str())
    }

    /// The text of every file of `files` after the patch, and what had to be bent or left out.
    pub(crate) fn apply(&self, tree: &Tree, files: &Files) -> Result<(Files, Vec<String>)> {
        let mut after = files.clone();
        let mut notes = Vec::new();
        for section in &self.sections {
            let Some(text) = files.get(&section.path) else {
                continue;
            };
            let (text, said) = self.apply_section(tree, section, text.as_deref())?;
            notes.extend(bent(&section.path, &said));
            after.insert(section.path.clone(), Some(text));
        }
        Ok((after, notes))
    }

    fn apply_section(
        &self,
        tree: &Tree,
        section: &Section,
        text: Option<&str>,
    ) -> Result<(String, String)> {
        let io = |source| Error::Io { what: "patch".to_owned(), source };
        let folder = tempfile::tempdir().map_err(io)?;
        let (file, diff) = (folder.path().join("file"), folder.path().join("diff"));
        if let Some(text) = text {
            std::fs::write(&file, text).map_err(io)?;
        }
        std::fs::write(&diff, &section.text).map_err(io)?;
        let out = Command::new("patch")
            .args([
                "--unified",
                "--batch",
                "--forward",
                "--fuzz=3",
                "--reject-file=-",
                "--no-backup-if-mismatch",
            ])
            .args(self.quoted.then_some("--ignore-whitespace"))
            .args(["--input=diff", "file"])
            .current_dir(folder.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(io)?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        if !out.status.success() {
            let message = format!(
                "{}: {}{}",
                section.path,
                said.trim(),
                String::from_utf8_lossy(&out.stderr).trim()
            );
            return Err(Error::PatchFailed {
                patch: self.file.clone(),
                tree: tree.to_string(),
                message,
            });
        }
        Ok((crate::tree::text(std::fs::read(&file).map_err(io)?), said))
    }
}

/// `Hunk #1 succeeded at 1398 with fuzz 2 (offset -15 lines).`
fn bent(path: &str, said: &str) -> Vec<String> {
    let hunks = said.lines().filter(|line| line.starts_with("Hunk ") && line.contains("succeeded"));
    hunks.map(|line| format!("{path}: {}", line.trim_end_matches('.'))).collect()
}

/// The text of a letter without its quotation marks, and with the spaces that mailers make no-break
/// ones.
fn unquoted(text: &str) -> String {
    let text = text.replace('\u{a0}', " ");
    let unquote = |line: &str| {
        let marks = line.bytes().take_while(|c| matches!(c, b'>' | b' ')).collect::<Vec<u8>>();
        let end = marks.iter().rposition(|c| *c == b'>').map_or(0, |last| last + 1);
        let rest = &line[end..];
        format!("{}\n", rest.strip_prefix(' ').filter(|_| end > 0).unwrap_or(rest))
    };
    text.lines().map(unquote).collect()
}

fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut lines = text.lines().peekable();
    // Lines that the hunk being read still has to have, before and after.
    let mut open = (0u64, 0u64);
    while let Some(line) = lines.next() {
        if open != (0, 0) {
            // No line of a hunk: the end of its heading, which a mailer wrapped.
            if !line.is_empty() && !line.starts_with(['+', '-', ' ', '\\', '\t']) {
                continue;
            }
            if let Some(section) = sections.last_mut() {
                push(section, line);
            }
            open = match line.as_bytes().first() {
                Some(b'-') => (open.0.saturating_sub(1), open.1),
                Some(b'+') => (open.0, open.1.saturating_sub(1)),
                Some(b'\\') => open,
                _ => (open.0.saturating_sub(1), open.1.saturating_sub(1)),
            };
        } else if let Some(old) = line.strip_prefix("--- ") {
            let Some(new) = lines.peek().and_then(|next| next.strip_prefix("+++ ")) else {
                continue;
            };
            sections.extend(
                section_path(old, new)
                    .map(|path| Section { path, text: format!("{line}\n+++ {new}\n") }),
            );
            lines.next();
        } else if let (Some(size), Some(section)) = (hunk_size(line), sections.last_mut()) {
            push(section, line);
            open = size;
        }
    }
    sections
}

fn push(section: &mut Section, line: &str) {
    section.text.push_str(line);
    section.text.push('\n');
}

/// The path after `a/` or `b/`; of the two the one that is not `/dev/null`. A deleted file has none.
fn section_path(old: &str, new: &str) -> Option<String> {
    let path = |name: &str| {
        name.split(['\t', ' '])
            .next()
            .unwrap_or_default()
            .split_once('/')
            .map(|(_, p)| p.to_owned())
    };
    let inside = |p: &String| !p.split('/').any(|part| part == ".." || part.is_empty());
    match new.starts_with("/dev/null") {
        true => path(old),
        false => path(new),
    }
    .filter(inside)
}

/// `@@ -1413,6 +1413,7 @@`: the lines before and after.
fn hunk_size(line: &str) -> Option<(u64, u64)> {
    let ranges = line.strip_prefix("@@ -")?.split(" @@").next()?;
    let (before, after) = ranges.split_once(" +")?;
    let size = |range: &str| match range.split_once(',') {
        Some((_, n)) => n.parse().ok(),
        None => Some(1),
    };
    Some((size(before)?, size(after)?))
}
