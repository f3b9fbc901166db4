//! The table of `traces/corpus/README.md`: every capture below a folder, held against the kernel
//! that made it.
//!
//! Beside a capture without a sidecar, `NAME.meta.txt` (`key: value` lines) and the machine's
//! `env.txt` (queue limits) give the settings. `NAME.ops.txt` gives the accesses where the kernel
//! recorded none, or where the program gave advice, which only 6.18 and later let see.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::load::{LoadError, LoadOptions, Loaded, load};
use analysis::recover::recover;
use analysis::verify::{CaptureVerify, verify};
use anyhow::Context;
use replay::policy;
use traces::streams::StreamError;

/// Kernels whose readahead is not that of their release, by folder name.
const CHANGED: &[(&str, &str)] = &[
    ("linux-7.3-align", "linux-7.3+align-async-window-v2"),
    ("linux-7.3-syncra", "linux-7.3+randread-readahead-disabled"),
];

pub(crate) fn run(folders: &[PathBuf]) -> anyhow::Result<()> {
    let mut captures = Vec::new();
    for folder in folders {
        find(folder, &mut captures)?;
    }
    captures.sort();
    anyhow::ensure!(!captures.is_empty(), "no capture in {folders:?}");
    println!("| capture | policy | folios | matched | data reads | matched | in order |");
    println!("|---|---|---|---|---|---|---|");
    let (mut exact, mut failed) = (0, Vec::new());
    for capture in &captures {
        match check(capture) {
            Ok(result) => {
                exact += usize::from(result.exact);
                println!("{}", row(capture, &result));
            }
            Err(error) => failed.push(format!("{}: {error:#}", capture.display())),
        }
    }
    println!("\n{} captures, {exact} exact", captures.len());
    for error in &failed {
        println!("failed: {error}");
    }
    Ok(())
}

fn find(folder: &Path, captures: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, captures)?;
        } else if path.extension().is_some_and(|extension| extension == "zst")
            && !path.to_string_lossy().contains("blkparse")
        {
            captures.push(path);
        }
    }
    Ok(())
}

fn row(capture: &Path, result: &CaptureVerify) -> String {
    let folder = capture.parent().and_then(Path::file_name).unwrap_or_default();
    let in_order = match (result.folios.in_order, result.device_reads.in_order) {
        (true, true) => "yes",
        (true, false) => "folios",
        (false, _) => "no",
    };
    let unrecorded = match result.unrecorded_reads {
        0 => String::new(),
        reads => format!(" (+{reads} not recorded)"),
    };
    format!(
        "| {}/{} | {} | {} | {} | {}{unrecorded} | {} | {in_order} |",
        folder.to_string_lossy(),
        stem(capture),
        result.policy,
        result.folios.recorded,
        result.folios.matched,
        result.device_reads.recorded,
        result.device_reads.matched,
    )
}

fn stem(capture: &Path) -> String {
    let name = capture.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

fn check(capture: &Path) -> anyhow::Result<CaptureVerify> {
    let mut options = LoadOptions { set: settings(capture), ..LoadOptions::default() };
    let mut loaded = load(capture, &options);
    let list = capture.with_file_name(format!("{}.ops.txt", stem(capture)));
    if list.exists() && is_untold(&loaded, &list) {
        options.accesses = Some(list);
        loaded = load(capture, &options);
    }
    let mut source = loaded?.source;
    let of_release = recover(&mut source).context("no policy for its kernel")?;
    let folder = capture.parent().and_then(Path::file_name).unwrap_or_default();
    let changed = CHANGED.iter().find(|(name, _)| folder == *name);
    let policy = changed.map_or(Ok(of_release), |(_, name)| policy::parse(name))?;
    Ok(verify(&source, &*policy)?)
}

/// Whether the capture does not show what the program's own list says.
fn is_untold(loaded: &Result<Loaded, LoadError>, list: &Path) -> bool {
    match loaded {
        Err(LoadError::Stream(error)) => {
            matches!(error, StreamError::NoAccesses { .. } | StreamError::OnlyInferred { .. })
        }
        Err(_) => false,
        Ok(loaded) => {
            let advises =
                |text: String| text.contains("fadvise_seq") || text.contains("fadvise_rand");
            loaded.source.kernel_min < (6, 18) && std::fs::read_to_string(list).is_ok_and(advises)
        }
    }
}

/// Settings that notes beside the capture give, as `--set` values.
fn settings(capture: &Path) -> Vec<(String, String)> {
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
