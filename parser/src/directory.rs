//! Captures that are a directory: the per-CPU files of one run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use traces::capture::LossKind;

use crate::assemble::Assembler;
use crate::input::Input;
use crate::{Error, blk, raw_pages};

/// What stands between the name of a run or device and the number of the CPU.
const BLKTRACE_MARK: &str = ".blktrace.";

/// Whether the directory `path` is a capture.
pub(crate) fn recognise(path: &Path) -> bool {
    raw_pages::recognise(path) || blktrace_files(path).is_ok_and(|runs| !runs.is_empty())
}

/// Reads the capture in the directory `path`.
pub(crate) fn read(path: &Path, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    if raw_pages::recognise(path) {
        return raw_pages::read(path, assembler);
    }
    let runs = blktrace_files(path)?;
    if runs.is_empty() {
        return Err(Error::NotACapture {
            name: path.display().to_string(),
            expected: format!("files called NAME{BLKTRACE_MARK}CPU, or {}", raw_pages::EXPECTED),
            found: "neither in this directory".to_owned(),
        });
    }
    "blktrace".clone_into(&mut assembler.capture.header.format);
    assembler.capture.header.cpus = runs.values().map(|cpus| cpus.len() as u32).max();
    for (name, cpus) in &runs {
        count_missing(name, cpus, assembler);
    }
    let mut inputs = Vec::new();
    for (name, cpus) in runs {
        for cpu in cpus {
            inputs.push(open(&path.join(format!("{name}{BLKTRACE_MARK}{cpu}")))?);
        }
    }
    blk::binary::read_merged(&mut inputs, assembler)
}

/// Opens one file; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Input<'static>, Error> {
    if path == Path::new("-") {
        return Input::open(std::io::stdin(), "standard input");
    }
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Input::open_file(file, &name),
        Err(source) => Err(Error::Io { name, source }),
    }
}

/// The CPUs of every run or device in a directory, by its name.
fn blktrace_files(path: &Path) -> Result<BTreeMap<String, BTreeSet<u32>>, Error> {
    let mut runs: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for entry in list(path)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        if let Some((run, cpu)) = name.rsplit_once(BLKTRACE_MARK)
            && let Ok(cpu) = cpu.parse()
        {
            runs.entry(run.to_owned()).or_default().insert(cpu);
        }
    }
    Ok(runs)
}

/// The entries of a directory.
pub(crate) fn list(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |source| Error::Io { name: path.display().to_string(), source };
    let entries = path.read_dir().map_err(fail)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(fail)).collect()
}

/// Counts the CPUs below the last that have no file. Blktrace writes one for every CPU, if an empty
/// one, so a gap is a file that did not make it here.
fn count_missing(name: &str, cpus: &BTreeSet<u32>, assembler: &mut Assembler<'_>) {
    let last = cpus.last().copied().unwrap_or(0);
    let missing = u64::from(last) + 1 - cpus.len() as u64;
    if missing == 0 {
        return;
    }
    assembler.capture.losses.add(LossKind::MissingCpu, missing, || {
        let first = (0..last).find(|cpu| !cpus.contains(cpu)).unwrap_or(last);
        format!("{name}{BLKTRACE_MARK}{first}")
    });
}
