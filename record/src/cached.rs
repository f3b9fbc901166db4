//! How much of a file is in the page cache.
#![expect(unsafe_code, reason = "mincore(2) has no safe wrapper")]

use std::fs::File;
use std::io;
use std::path::Path;

/// Bytes of a file that are mapped at a time.
const STEP_BYTES: u64 = 1 << 30;

/// Pages of `path` that are in the page cache. Asking reads nothing.
pub(crate) fn pages(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut pages = 0;
    for start in (0..size).step_by(STEP_BYTES as usize) {
        pages += resident(&file, start, STEP_BYTES.min(size - start) as usize)?;
    }
    Ok(pages)
}

fn resident(file: &File, start: u64, length: usize) -> io::Result<u64> {
    // SAFETY: nothing reads the memory of the mapping, so nobody minds that the file may change.
    let map = unsafe { memmap2::MmapOptions::new().offset(start).len(length).map(file)? };
    let mut states = vec![0_u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: the range is that of a mapping which lives until the end of this function, and `states`
    // has a byte for each of its pages.
    let failed =
        unsafe { libc::mincore(map.as_ptr().cast_mut().cast(), length, states.as_mut_ptr()) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(states.iter().filter(|state| *state & 1 != 0).count() as u64)
}
