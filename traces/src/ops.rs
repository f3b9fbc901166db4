//! A plain list of accesses, one per line, as a test program or `strace` post-processing writes it.
//!
//! ```text
//! read 0 4096
//! pread 65536 16384 thread=1
//! touch 8192 1
//! fadvise_willneed 0 8388608
//! ```
//!
//! `OP POS COUNT [thread=N] [eof]`, positions and counts in bytes; `eof` says that it got nothing. Operations: `read` and `pread` (a
//! buffered read at a position), `touch` (a byte of a mapping), `fadvise_normal`, `fadvise_seq`,
//! `fadvise_rand`, `fadvise_willneed`, `fadvise_dontneed`, `readahead`. Empty lines and lines that
//! begin with `#` are skipped. All threads share one open file.

use crate::access::{Access, AccessKind, Fidelity, Open, Source};
use crate::units::{ByteOffset, Time};

/// A line that is not an access.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: `{text}` is not an access: {expected}")]
#[non_exhaustive]
pub struct OpsError {
    /// Line number, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// What was expected.
    pub expected: &'static str,
}

/// Replaces the accesses of a source by a list, on the file that most folios were recorded for.
pub fn replace_accesses(source: &mut Source, text: &str) -> Result<(), OpsError> {
    let file = busiest_file(source);
    source.opens = vec![Open::new(file)];
    source.accesses = parse(text, &mut source.threads)?;
    source.anchors.clear();
    source.fidelity = Fidelity::Exact;
    Ok(())
}

fn busiest_file(source: &Source) -> u32 {
    let mut folios = vec![0_u64; source.files.len()];
    for folio in source.recorded.iter().flat_map(|recorded| &recorded.folios) {
        folios[folio.file as usize] += 1;
    }
    let busiest = folios.iter().enumerate().max_by_key(|(_, folios)| **folios);
    busiest.map_or(0, |(file, _)| file as u32)
}

fn parse(text: &str, threads: &mut Vec<String>) -> Result<Vec<Access>, OpsError> {
    let mut accesses = Vec::new();
    threads.clear();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |expected| OpsError { line: number + 1, text: line.to_owned(), expected };
        let (kind, thread) = parse_line(line).map_err(error)?;
        while threads.len() <= thread as usize {
            threads.push(format!("thread {}", threads.len()));
        }
        let seq = accesses.len() as u64;
        accesses.push(Access { time: Time(0), seq, thread, open: 0, think_ns: 0, kind });
    }
    Ok(accesses)
}

fn parse_line(line: &str) -> Result<(AccessKind, u32), &'static str> {
    const SHAPE: &str = "expected `OP POS COUNT [thread=N]` with numbers in bytes";
    const THREADS_MAX: u32 = 1 << 16;
    let mut words = line.split_ascii_whitespace();
    let op = words.next().ok_or(SHAPE)?;
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok()).ok_or(SHAPE);
    let (pos, count) = (ByteOffset(number()?), number()?);
    let end = pos.0.checked_add(count).ok_or("position and count exceed 64 bits")?;
    let thread = match words.find(|word| *word != "eof").map(|word| word.strip_prefix("thread=")) {
        None => 0,
        Some(thread) => thread
            .and_then(|thread| thread.parse().ok())
            .filter(|thread| *thread < THREADS_MAX)
            .ok_or(SHAPE)?,
    };
    let kind = match op {
        "read" | "pread" => AccessKind::Read { pos, count },
        "touch" => AccessKind::Touch { page: pos.page() },
        "fadvise_normal" => AccessKind::AdviseNormal,
        "fadvise_seq" => AccessKind::AdviseSequential,
        "fadvise_rand" => AccessKind::AdviseRandom,
        "fadvise_willneed" | "readahead" => {
            let pages = ByteOffset(end).page_up() - pos.page();
            AccessKind::WillNeed { page: pos.page(), pages }
        }
        "fadvise_dontneed" => AccessKind::DontNeed { pos, count },
        _ => return Err("unknown operation"),
    };
    Ok((kind, thread))
}
