//! Iologs of fio, versions 2 and 3, as `--write_iolog` writes and `--read_iolog` replays them.
//!
//! ```text
//! fio version 3 iolog
//! 30 /data/file add
//! 262 /data/file open
//! 267 /data/file read 49152 16384      version 2 has no time in front
//! ```
//!
//! Times of version 3 are microseconds since the job began. Version 2 has `FILE wait TIME 0`
//! instead, of which fio's manual says microseconds since the wait before; what fio does (3.33 and
//! its source as of 2024) is to wait until TIME milliseconds after the job began, and so does this.
//! Version 3 has no waits: fio passes over them.

use std::io::{BufRead, BufReader, Read};

use rustc_hash::FxHashMap;
use traces::capture::LossKind;
use traces::iolog::{Action, ActionKind, Iolog, LoggedFile};
use traces::units::{ByteOffset, Time};

use crate::Error;
use crate::assemble::Assembler;
use crate::input::Input;
use crate::text::excerpt;
use crate::text::scan::dec_u64;

/// What a log starts with, in front of its version.
const TITLE: &[u8] = b"fio version ";
/// What follows the version.
const TITLE_END: &[u8] = b" iolog";
/// Longest line taken as one; fio reads 4095 bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Files kept apart. A job opens fewer.
const FILES_MAX: usize = 1 << 20;
/// End of the largest file a replay takes: 256 TiB.
const END_MAX: u64 = 1 << 48;
/// fio reads lengths into 32 bits.
const COUNT_MAX: u64 = u32::MAX as u64;

const NS_PER_US: u64 = 1_000;
const NS_PER_MS: u64 = 1_000_000;

/// Whether the input starts like a log of any version.
pub(crate) fn recognise(head: &[u8]) -> bool {
    version(head.split(|&b| b == b'\n').next().unwrap_or_default()).is_some()
}

/// The version in a title line.
fn version(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii_end().strip_prefix(TITLE)?.strip_suffix(TITLE_END)
}

/// Reads a log.
pub(crate) fn read(input: &mut Input<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let name = input.name.clone();
    let mut lines = Lines { reader: BufReader::new(input), line: Vec::new() };
    lines.next(&name)?;
    let timing = match version(&lines.line) {
        Some(b"2") => Timing::Waits,
        Some(b"3") => Timing::Stamps,
        _ => {
            let expected = "`fio version 2 iolog` or `fio version 3 iolog`".to_owned();
            let found = format!("line 1: {}", excerpt(&lines.line));
            return Err(Error::NotACapture { name, expected, found });
        }
    };
    assembler.capture.header.format = format!("fio iolog v{}", timing.version());
    let mut log = Log { timing, clock: Time(0), number: 1, files: FxHashMap::default(), assembler };
    let mut iolog = Iolog::default();
    while lines.next(&name)? {
        log.number += 1;
        log.line(&lines.line, &mut iolog);
    }
    assembler.capture.iolog = Some(iolog);
    assembler.input_damage(lines.reader.into_inner());
    Ok(())
}

/// The lines of an input, with their ends, in bounded memory.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    /// Reads the next line; false at the end.
    fn next(&mut self, name: &str) -> Result<bool, Error> {
        self.line.clear();
        let read = self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| Error::Io { name: name.to_owned(), source })?;
        Ok(read > 0)
    }
}

/// How a version tells time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// Lines that wait.
    Waits,
    /// A time in front of every line.
    Stamps,
}

impl Timing {
    fn version(self) -> u32 {
        match self {
            Self::Waits => 2,
            Self::Stamps => 3,
        }
    }
}

/// What a line asks for; names are the log's.
#[derive(Clone, Copy, Debug)]
enum Ask<'a> {
    Action(ActionKind),
    Add,
    /// A write or trim, and where it ends.
    Change(&'a [u8], ByteOffset),
    /// A sync or datasync, which no reader notices.
    Sync(&'a [u8]),
    /// Until so many milliseconds after the start.
    Wait(u64),
}

/// A log as far as it is read.
struct Log<'a, 's> {
    timing: Timing,
    clock: Time,
    /// Number of the line.
    number: u64,
    files: FxHashMap<String, u32>,
    assembler: &'a mut Assembler<'s>,
}

impl Log<'_, '_> {
    fn line(&mut self, line: &[u8], iolog: &mut Iolog) {
        // A last line without an end may be cut in the middle of a number.
        if !line.ends_with(b"\n") {
            return self.lose(LossKind::Truncated, line);
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let Some((time, path, ask)) = parse(line, self.timing) else {
            return self.lose(LossKind::Unparsed, line);
        };
        if let Some(time) = time {
            self.tick(time, line);
        }
        let Some(file) = self.file(path, iolog) else {
            return self.lose(LossKind::BadFields, line);
        };
        self.take(file, ask, line, iolog);
    }

    fn tick(&mut self, time: Time, line: &[u8]) {
        if time < self.clock {
            self.lose(LossKind::OutOfOrder, line);
        }
        self.clock = self.clock.max(time);
    }

    fn take(&mut self, file: u32, ask: Ask<'_>, line: &[u8], iolog: &mut Iolog) {
        let end = &mut iolog.files[file as usize].end;
        match ask {
            Ask::Action(kind) => {
                if let ActionKind::Read { pos, count } = kind {
                    *end = (*end).max(pos + count);
                }
                iolog.actions.push(Action { time: self.clock, file, kind });
            }
            Ask::Change(action, to) => {
                *end = (*end).max(to);
                self.assembler.unused(action, 1);
                self.lose(LossKind::NotReplayed, line);
            }
            Ask::Wait(ms) if self.timing == Timing::Waits => {
                self.clock = self.clock.max(Time(ms.saturating_mul(NS_PER_MS)));
            }
            Ask::Wait(_) => self.lose(LossKind::Unparsed, line),
            Ask::Sync(action) => self.assembler.unused(action, 1),
            Ask::Add => {}
        }
    }

    fn file(&mut self, path: &[u8], iolog: &mut Iolog) -> Option<u32> {
        let path = String::from_utf8_lossy(path);
        if let Some(&file) = self.files.get(&*path) {
            return Some(file);
        }
        let file = iolog.files.len();
        if file == FILES_MAX {
            return None;
        }
        iolog.files.push(LoggedFile { path: path.clone().into_owned(), end: ByteOffset(0) });
        self.files.insert(path.into_owned(), file as u32);
        Some(file as u32)
    }

    fn lose(&mut self, kind: LossKind, line: &[u8]) {
        let number = self.number;
        let place = || format!("line {number}: {}", excerpt(line));
        self.assembler.capture.losses.add(kind, 1, place);
    }
}

/// The last word of a line, and what stands in front of it. Paths may hold spaces, so lines are read
/// from their end.
fn split_last(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    (line[..start].trim_ascii_end(), &line[start..])
}

/// Takes a line apart: its time, the path and what is asked for.
fn parse(line: &[u8], timing: Timing) -> Option<(Option<Time>, &[u8], Ask<'_>)> {
    let (time, line) = match timing {
        Timing::Waits => (None, line),
        Timing::Stamps => {
            let (rest, us) = dec_u64(line).ok()?;
            let separated = rest.first().is_some_and(u8::is_ascii_whitespace);
            let time = Time(us.checked_mul(NS_PER_US).filter(|_| separated)?);
            (Some(time), rest.trim_ascii_start())
        }
    };
    let (path, ask) = file_action(line).or_else(|| io_action(line))?;
    (!path.is_empty()).then_some((time, path, ask))
}

/// `FILE add`, `FILE open` or `FILE close`.
fn file_action(line: &[u8]) -> Option<(&[u8], Ask<'_>)> {
    let (path, action) = split_last(line);
    let ask = match action {
        b"add" => Ask::Add,
        b"open" => Ask::Action(ActionKind::Open),
        b"close" => Ask::Action(ActionKind::Close),
        _ => return None,
    };
    Some((path, ask))
}

/// `FILE ACTION OFFSET LENGTH`.
fn io_action(line: &[u8]) -> Option<(&[u8], Ask<'_>)> {
    let (line, count) = split_last(line);
    let (line, pos) = split_last(line);
    let (path, action) = split_last(line);
    let (pos, count) = (whole_number(pos)?, whole_number(count)?);
    let end = || {
        let end = pos.checked_add(count).filter(|end| *end <= END_MAX && count <= COUNT_MAX)?;
        Some(ByteOffset(end))
    };
    let ask = match action {
        b"read" => end().map(|_| Ask::Action(ActionKind::Read { pos: ByteOffset(pos), count }))?,
        b"write" | b"trim" => Ask::Change(action, end()?),
        b"sync" | b"datasync" | b"sync_file_range" => Ask::Sync(action),
        b"wait" => Ask::Wait(pos),
        _ => return None,
    };
    Some((path, ask))
}

fn whole_number(word: &[u8]) -> Option<u64> {
    dec_u64(word).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, number)| number)
}
