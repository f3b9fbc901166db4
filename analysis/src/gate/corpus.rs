//! From paths to named sources, and what identifies their content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use traces::sidecar::{self, Sidecar};
use traces::workload::is_workload;

use super::GateError;

/// A source and the name that it has in reports and baselines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path below the folder that was named, or its file name. Always with `/`.
    pub key: String,
    /// Where it is.
    pub path: PathBuf,
}

/// Captures and workload descriptions: those named, and those in the folders named, by name.
///
/// Names do not depend on where the corpus lies, so that a baseline made in one checkout is good in
/// another.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<SourceFile>, GateError> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in paths {
        let files = files(path)?;
        let folder = if path.is_dir() && files != [path.clone()] { Some(path) } else { None };
        for file in files {
            let key = key(folder.map(PathBuf::as_path), &file);
            if let Some(first) = found.insert(key.clone(), file.clone())
                && first != file
            {
                return Err(GateError::SameName { key, first, second: file });
            }
        }
    }
    if found.is_empty() {
        let given: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(GateError::NoSource { given: given.join(", ") });
    }
    Ok(found.into_iter().map(|(key, path)| SourceFile { key, path }).collect())
}

/// The sources that `path` stands for: itself, or those in the folder, by name.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, GateError> {
    if !path.is_dir() || parser::is_capture_directory(path) {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    collect(path, &mut files)?;
    let joined: BTreeSet<PathBuf> = files.iter().flat_map(|file| joined_to(file)).collect();
    files.retain(|file| !joined.contains(file));
    files.sort();
    Ok(files)
}

/// Files that the sidecar of a capture joins to it, which are no sources of their own.
fn joined_to(capture: &Path) -> Vec<PathBuf> {
    let sidecar = sidecar::path_for(capture).and_then(|path| Sidecar::read(&path).ok());
    sidecar.map(|sidecar| sidecar.joined(capture)).unwrap_or_default()
}

fn key(folder: Option<&Path>, file: &Path) -> String {
    let below = folder.and_then(|folder| file.strip_prefix(folder).ok());
    let named = below.unwrap_or_else(|| file.file_name().map_or(file, Path::new));
    let parts = named.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.collect::<Vec<_>>().join("/")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), GateError> {
    for path in entries(folder)? {
        if path.is_dir() && !parser::is_capture_directory(&path) {
            collect(&path, files)?;
        } else if path.is_dir() || is_source_name(&path) {
            files.push(path);
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, GateError> {
    let read = |source| GateError::Io { action: "read", path: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).map_err(read)?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| Ok(entry?.path())).collect();
    paths.map_err(read)
}

/// Whether a file found in a folder may be a source: notes, settings and tables beside one are not.
fn is_source_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = [".md", ".toml", ".tsv", ".csv", ".json", ".html", ".meta.txt", ".ops.txt"];
    is_workload(path)
        || !(name.starts_with('.')
            || name == "env.txt"
            || beside.iter().any(|suffix| name.ends_with(suffix)))
}

/// The files whose bytes a source is: its own, those its sidecar joins to it, its list of accesses.
pub(crate) fn parts(path: &Path) -> Result<Vec<PathBuf>, GateError> {
    let mut files = Vec::new();
    for part in [vec![path.to_owned()], joined_to(path)].concat() {
        let before = files.len();
        if part.is_dir() {
            collect_all(&part, &mut files)?;
            files[before..].sort();
        } else {
            files.push(part);
        }
    }
    let sidecar = sidecar::path_for(path).and_then(|path| Some((Sidecar::read(&path).ok()?, path)));
    if let Some((Sidecar { accesses: Some(list), .. }, beside)) = sidecar {
        files.push(beside.with_file_name(list));
    }
    Ok(files)
}

/// Digest of the bytes of a source and of the files that its sidecar names.
///
/// Settings are left out: they are compared on their own, by name.
pub(super) fn digest(path: &Path) -> Result<String, GateError> {
    digest_of(&parts(path)?)
}

/// Digest of the bytes of some files.
pub(crate) fn digest_of(files: &[PathBuf]) -> Result<String, GateError> {
    let mut hash = Sha256::new();
    for file in files {
        update(&mut hash, file).map_err(|source| GateError::Io {
            action: "read",
            path: file.clone(),
            source,
        })?;
    }
    let mut text = "sha256:".to_owned();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

fn collect_all(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), GateError> {
    for path in entries(folder)? {
        if path.is_dir() {
            collect_all(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn update(hash: &mut Sha256, path: &Path) -> std::io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => hash.update(&buffer[..read]),
        }
    }
}
