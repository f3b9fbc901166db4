//! What is mounted where (`/proc/self/mountinfo`).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use traces::event::Device;

use crate::RecordError;
use crate::error::at;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// `s_dev` of the filesystem, as the filemap events print it. `stat` differs on btrfs.
    pub(crate) device: Device,
    /// Directory of the filesystem that is mounted.
    pub(crate) root: PathBuf,
    /// Where.
    pub(crate) point: PathBuf,
    /// Type of the filesystem.
    pub(crate) fs_type: String,
    /// What was mounted: a device, for those that have one.
    pub(crate) source: PathBuf,
}

/// All mounts, those on top of others last.
pub(crate) fn read() -> Result<Vec<Mount>, RecordError> {
    let text = fs::read(MOUNTINFO).map_err(at(Path::new(MOUNTINFO)))?;
    Ok(parse(&text))
}

fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /point options [optional...] - type source superblock-options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut words = line.split(|&b| b == b' ').skip(2);
    let device = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    let (root, point) = (unescape(words.next()?), unescape(words.next()?));
    let mut behind = words.skip_while(|word| *word != b"-").skip(1);
    let fs_type = String::from_utf8_lossy(behind.next()?).into_owned();
    let source = unescape(behind.next()?);
    Some(Mount { device, root, point, fs_type, source })
}

/// Spaces, tabs, newlines and backslashes are written as `\ooo`.
fn unescape(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut at = 0;
    while let Some(&byte) = word.get(at) {
        let octal = word.get(at + 1..at + 4).filter(|_| byte == b'\\');
        let code =
            octal.and_then(|octal| u8::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok());
        bytes.push(code.unwrap_or(byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The mount that `path`, an absolute path without links, lies on.
pub(crate) fn holding<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let over = mounts.iter().enumerate().filter(|(_, mount)| path.starts_with(&mount.point));
    over.max_by_key(|(at, mount)| (mount.point.as_os_str().len(), *at)).map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:20 / /sys/kernel/tracing rw - tracefs tracefs rw
41 22 7:3 /sub /mnt/a\\040b rw,noatime master:2 shared:3 - xfs /dev/loop3 rw,attr2
42 22 7:4 / /mnt/a\\040b rw - xfs /dev/loop4 rw
";

    #[test]
    fn lines_with_optional_fields_and_escapes_are_read() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[2].device, Device { major: 7, minor: 3 });
        assert_eq!(mounts[2].root, Path::new("/sub"));
        assert_eq!(mounts[2].point, Path::new("/mnt/a b"));
        assert_eq!((&*mounts[2].fs_type, &*mounts[2].source), ("xfs", Path::new("/dev/loop3")));
    }

    #[test]
    fn a_path_lies_on_the_innermost_and_topmost_mount() {
        let mounts = parse(TEXT);
        let device = |path: &str| holding(&mounts, Path::new(path)).map(|mount| mount.device.minor);
        assert_eq!(device("/mnt/a b/f"), Some(4));
        assert_eq!(device("/mnt/a bc"), Some(1));
        assert_eq!(device("/sys/kernel/tracing/x"), Some(20));
    }
}
