//! Where the kernel's text comes from: `PATH[@REV]`.
//!
//! A directory is read as it is. A revision is read through `git cat-file --batch`, which checks
//! nothing out and understands every repository git does (worktrees, packs, partial clones, both
//! hashes); git is where the revision came from, so it is there. A source package is read up to
//! the last file needed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::archive;
use crate::error::{Error, Result, harmless};

/// Text of files by their path within the tree; `None` for a file the tree does not have.
pub(crate) type Files = BTreeMap<String, Option<String>>;

/// A kernel source tree, or a revision of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    spec: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Directory(PathBuf),
    Revision { repository: PathBuf, revision: String },
    Archive(PathBuf),
}

impl Tree {
    /// Reads a tree specification: a directory, `REPOSITORY@REVISION`, a `.tar` (`.xz`, `.gz`,
    /// `.zst`) source package or a Debian `linux-source-*.deb`.
    ///
    /// Says so at once when there is no such place; what is in it is read when it is built.
    pub fn parse(spec: &str) -> Result<Self> {
        let source = Self::source(spec)?;
        Ok(Self { spec: spec.to_owned(), source })
    }

    fn source(spec: &str) -> Result<Source> {
        let path = Path::new(spec);
        if path.is_dir() {
            return Ok(Source::Directory(path.to_owned()));
        }
        if path.is_file() {
            return Ok(Source::Archive(path.to_owned()));
        }
        let no_tree = || Error::NoTree { spec: spec.to_owned() };
        let (path, revision) = spec.rsplit_once('@').ok_or_else(no_tree)?;
        if !Path::new(path).is_dir() {
            return Err(no_tree());
        }
        if revision.is_empty() || revision.starts_with('-') || revision.contains(['\n', ':']) {
            return Err(Error::BadRevision { revision: revision.to_owned() });
        }
        Ok(Source::Revision { repository: path.into(), revision: revision.to_owned() })
    }

    /// Reads `paths`; a file the tree does not have is `None`.
    /// Packages are unpacked below `cache`.
    pub(crate) fn read(&self, paths: &[String], cache: &Path) -> Result<Files> {
        match &self.source {
            Source::Directory(root) => read_directory(root, paths),
            Source::Revision { repository, revision } => read_revision(repository, revision, paths),
            Source::Archive(file) => read_directory(&archive::unpacked(file, cache)?, paths),
        }
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

fn read_directory(root: &Path, paths: &[String]) -> Result<Files> {
    let io = |path: &Path| {
        let what = path.display().to_string();
        move |source| Error::Io { what, source }
    };
    let root = root.canonicalize().map_err(io(root))?;
    let mut files = Files::new();
    for path in paths {
        let full = match root.join(path).canonicalize() {
            Ok(full) => full,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                files.insert(path.clone(), None);
                continue;
            }
            Err(e) => return Err(io(&root.join(path))(e)),
        };
        if !full.starts_with(&root) {
            let source = std::io::Error::other("a symbolic link out of the tree");
            return Err(io(&root.join(path))(source));
        }
        files.insert(path.clone(), Some(text(std::fs::read(&full).map_err(io(&full))?)));
    }
    Ok(files)
}

/// Kernel files are UTF-8; a stray byte of another encoding in a comment changes nothing.
pub(crate) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn read_revision(repository: &Path, revision: &str, paths: &[String]) -> Result<Files> {
    let commit = resolve(repository, revision)?;
    let mut git = git(repository)
        .args(["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| Error::Io { what: "git".to_owned(), source })?;
    let io =
        |source| Error::Io { what: format!("git cat-file in {}", repository.display()), source };
    let (Some(mut stdin), Some(stdout)) = (git.stdin.take(), git.stdout.take()) else {
        unreachable!("both are piped")
    };
    let mut answers = BufReader::new(stdout);
    let mut files = Files::new();
    for path in paths {
        // One question at a time: git answers in order and neither side's pipe can fill up.
        stdin.write_all(format!("{commit}:{path}\n").as_bytes()).map_err(io)?;
        files.insert(path.clone(), read_object(&mut answers).map_err(io)?);
    }
    drop(stdin);
    git.wait().map_err(io)?;
    Ok(files)
}

/// One answer of `git cat-file --batch`: `HASH blob SIZE`, the bytes, a newline.
fn read_object(answers: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut header = String::new();
    answers.read_line(&mut header)?;
    let mut words = header.trim_end().rsplitn(3, ' ');
    let (size, kind) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let Ok(size) = size.parse::<usize>() else { return Ok(None) };
    let mut bytes = vec![0; size + 1];
    answers.read_exact(&mut bytes)?;
    bytes.pop();
    Ok((kind == "blob").then(|| text(bytes)))
}

fn resolve(repository: &Path, revision: &str) -> Result<String> {
    let out = git(repository)
        .args(["rev-parse", "--verify", "--end-of-options"])
        .arg(format!("{revision}^{{commit}}"))
        .output()
        .map_err(|source| Error::Io { what: "git".to_owned(), source })?;
    if !out.status.success() {
        return Err(Error::NoRevision {
            repository: repository.to_owned(),
            revision: revision.to_owned(),
            message: harmless(String::from_utf8_lossy(&out.stderr).trim()),
        });
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// git without hooks, optional locks or a pager, so that reading stays reading.
fn git(repository: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["--no-optional-locks", "-c", "core.fsmonitor=false"]);
    git
}
