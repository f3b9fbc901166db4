//! Captures in folders, and the notes beside them.
//!
//! Beside a capture without a sidecar, `NAME.meta.txt` (`key: value` lines) and the machine's
//! `env.txt` (queue limits) give the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// All captures below some folders, sorted.
pub(crate) fn find(folders: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut captures = Vec::new();
    for folder in folders {
        find_below(folder, &mut captures)?;
    }
    captures.sort();
    anyhow::ensure!(!captures.is_empty(), "no capture in {folders:?}");
    Ok(captures)
}

fn find_below(folder: &Path, captures: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            find_below(&path, captures)?;
        } else if path.extension().is_some_and(|extension| extension == "zst")
            && !path.to_string_lossy().contains("blkparse")
        {
            captures.push(path);
        }
    }
    Ok(())
}

/// The file name up to the first dot.
pub(crate) fn stem(capture: &Path) -> String {
    let name = capture.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Settings of the recording that notes beside the capture give, by their `--set` keys.
pub(crate) fn settings(capture: &Path) -> Vec<(String, String)> {
    let mut notes = BTreeMap::new();
    let folder = capture.parent().unwrap_or(Path::new("."));
    let own = folder.join("env.txt");
    // A second set of captures of the same machine shares its notes.
    let of_machine = folder.to_string_lossy().trim_end_matches("-smp2").to_owned() + "/env.txt";
    let env = if own.exists() { own } else { PathBuf::from(of_machine) };
    for path in [env, capture.with_file_name(format!("{}.meta.txt", stem(capture)))] {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for line in text.lines() {
            if let Some((key, value)) = line.split_once(": ") {
                notes.insert(key.to_owned(), value.trim().to_owned());
            }
        }
    }
    // `linux-6.12-smp2` was recorded on a 6.12.
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if let Some(version) = name.strip_prefix("linux-").and_then(|rest| rest.split('-').next()) {
        notes.entry("kernel".to_owned()).or_insert_with(|| version.to_owned());
    }
    let wanted = ["kernel", "read_ahead_kb", "max_sectors_kb", "max_segments", "max_segment_size"];
    let known = wanted.iter().filter_map(|key| Some(((*key).to_owned(), notes.remove(*key)?)));
    known.collect()
}
