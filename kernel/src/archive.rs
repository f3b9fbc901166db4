//! Source packages: a `.tar`, compressed or not, or a Debian `linux-source-*.deb` around one.
//!
//! A kernel's source package takes a processor a quarter of a minute to unpack, so the small part
//! that readahead could ever need is unpacked once, into the cache.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// Written last.
const COMPLETE: &str = ".complete";

/// The folder that holds the package's files, unpacked now or before.
pub(crate) fn unpacked(archive: &Path, cache: &Path) -> Result<PathBuf> {
    let io = |source| Error::Io { what: archive.display().to_string(), source };
    let home = cache.join("packages");
    let folder = home.join(key(archive).map_err(io)?);
    if folder.join(COMPLETE).is_file() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&home).map_err(io)?;
    let work = tempfile::Builder::new().prefix("unpack-").tempdir_in(&home).map_err(io)?;
    let mut file = BufReader::new(File::open(archive).map_err(io)?);
    let found = unpack(&mut file, work.path()).map_err(io)?;
    if !found {
        return Err(Error::NoTree { spec: archive.display().to_string() });
    }
    std::fs::write(work.path().join(COMPLETE), "").map_err(io)?;
    // Another process may have been faster; what it left is the same.
    if std::fs::rename(work.path(), &folder).is_ok() {
        _ = work.keep();
    }
    Ok(folder)
}

/// Name, size and time stand for the content: reading 150 MB to hash them takes longer than it saves.
fn key(archive: &Path) -> std::io::Result<String> {
    let path = archive.canonicalize()?;
    let metadata = path.metadata()?;
    let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = format!("{}\0{}\0{}", path.display(), metadata.len(), modified.as_nanos());
    let hash = Sha256::digest(text);
    Ok(hash.iter().take(16).fold(String::new(), |id, byte| format!("{id}{byte:02x}")))
}

/// Whether there was a kernel tree in it. A package is up to three containers deep.
fn unpack(reader: &mut dyn Read, to: &Path) -> std::io::Result<bool> {
    let mut reader = Peeked::new(reader)?;
    match reader.start {
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', b'\n'] => unpack_deb(&mut reader, to),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            unpack_tar(&mut liblzma::read::XzDecoder::new(reader), to)
        }
        [0x1f, 0x8b, ..] => unpack_tar(&mut flate2::read::GzDecoder::new(reader), to),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => unpack_tar(&mut zstd::Decoder::new(reader)?, to),
        _ => unpack_tar(&mut reader, to),
    }
}

/// The package's data member holds the source package.
fn unpack_deb(reader: &mut dyn Read, to: &Path) -> std::io::Result<bool> {
    let mut members = ar::Archive::new(reader);
    while let Some(member) = members.next_entry() {
        let mut member = member?;
        if member.header().identifier().starts_with(b"data.tar") {
            return unpack(&mut member, to);
        }
    }
    Ok(false)
}

fn unpack_tar(reader: &mut dyn Read, to: &Path) -> std::io::Result<bool> {
    let mut archive = tar::Archive::new(reader);
    let mut found = false;
    for entry in archive.entries()? {
        let mut entry = entry?;
        let is_file = entry.header().entry_type().is_file();
        let path = entry.path()?.into_owned();
        if is_file && is_package(&path) {
            return unpack(&mut entry, to);
        }
        let Some(inside) = within_tree(&path) else { continue };
        if found && is_past(&inside) {
            break;
        }
        if is_file && is_needed(&inside) {
            found |= inside == Path::new(crate::folder::READAHEAD);
            let full = to.join(&inside);
            std::fs::create_dir_all(full.parent().unwrap_or(to))?;
            std::io::copy(&mut entry, &mut File::create(full)?)?;
        }
    }
    Ok(found)
}

/// `usr/src/linux-source-6.1.tar.xz` in a binary package's data.
fn is_package(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    name.starts_with("linux-source-") && name.contains(".tar")
}

/// Without the folder the package puts around the tree; nothing that could lead out of it.
fn within_tree(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir).skip(1);
    let inside: PathBuf = parts.clone().collect();
    parts.all(|part| matches!(part, Component::Normal(_))).then_some(inside)
}

/// The part of a tree that is read, or would be if a patch included it.
fn is_needed(path: &Path) -> bool {
    let of = |folder: &str| path.parent() == Some(Path::new(folder));
    path == Path::new("Makefile")
        || path == Path::new("lib/xarray.c")
        || ["mm", "include/linux", "include/trace/events"].iter().any(|f| of(f))
}

/// Packages are sorted, and `mm` is the last folder needed.
fn is_past(path: &Path) -> bool {
    path.components().next().is_some_and(|first| first.as_os_str() > "mm")
}

/// A reader whose first bytes have been looked at.
struct Peeked<'r> {
    start: [u8; 8],
    len: usize,
    at: usize,
    rest: &'r mut dyn Read,
}

impl<'r> Peeked<'r> {
    fn new(rest: &'r mut dyn Read) -> std::io::Result<Self> {
        let mut start = [0; 8];
        let mut len = 0;
        while len < start.len() {
            match rest.read(&mut start[len..])? {
                0 => break,
                n => len += n,
            }
        }
        Ok(Self { start, len, at: 0, rest })
    }
}

impl Read for Peeked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = &self.start[self.at..self.len];
        if left.is_empty() {
            return self.rest.read(buffer);
        }
        let n = left.len().min(buffer.len());
        buffer[..n].copy_from_slice(&left[..n]);
        self.at += n;
        Ok(n)
    }
}
