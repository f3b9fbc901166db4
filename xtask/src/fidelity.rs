//! The table of `traces/corpus/README.md`: every capture below a folder, held against the kernel
//! that made it.
//!
//! `NAME.ops.txt` beside a capture gives the accesses where the kernel
//! recorded none, or where the program gave advice, which only 6.18 and later let see.

use std::path::{Path, PathBuf};

use analysis::load::{LoadError, LoadOptions, Loaded, load};
use analysis::recover::recover;
use analysis::tree::{TreeOptions, parse_policy};
use analysis::verify::{CaptureVerify, verify};
use anyhow::Context;
use replay::policy::{self, Policy};
use traces::streams::StreamError;

use crate::captures::{self, settings, stem};

/// Kernels whose readahead is not that of their release, by folder name.
const CHANGED: &[(&str, &str)] = &[
    ("linux-7.3-align", "linux-7.3+align-async-window-v2"),
    ("linux-7.3-syncra", "linux-7.3+randread-readahead-disabled"),
];

pub(crate) fn run(
    folders: &[PathBuf],
    policy: Option<&str>,
    in_process: bool,
) -> anyhow::Result<()> {
    let options = TreeOptions { in_process, ..TreeOptions::default() };
    let policy = policy.map(|spec| parse_policy(spec, &options)).transpose()?;
    let captures = captures::find(folders)?;
    println!("| capture | policy | folios | matched | data reads | matched | in order |");
    println!("|---|---|---|---|---|---|---|");
    let (mut exact, mut failed) = (0, Vec::new());
    for capture in &captures {
        match check(capture, policy.as_deref()) {
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
        short(&result.policy),
        result.folios.recorded,
        result.folios.matched,
        result.device_reads.recorded,
        result.device_reads.matched,
    )
}

/// A policy without the folders of a tree and its patch.
fn short(policy: &str) -> String {
    let names = policy.split(',').map(|part| {
        let (key, path) = part.split_once(['=', ':']).map_or(("", part), |(key, path)| (key, path));
        let name = path.rsplit('/').next().unwrap_or_default();
        if key.is_empty() { name.to_owned() } else { format!("{key}:{name}") }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn check(capture: &Path, named: Option<&dyn Policy>) -> anyhow::Result<CaptureVerify> {
    let mut options = LoadOptions { noted: settings(capture), ..LoadOptions::default() };
    let mut loaded = load(capture, &options);
    let list = capture.with_file_name(format!("{}.ops.txt", stem(capture)));
    if list.exists() && is_untold(&loaded, &list) {
        options.accesses = Some(list);
        loaded = load(capture, &options);
    }
    let mut source = loaded?.source;
    let of_release = recover(&mut source).context("no policy for its kernel")?;
    if let Some(policy) = named {
        return Ok(verify(&source, policy)?);
    }
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
