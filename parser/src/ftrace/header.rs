//! Lines that are not events: comments, marks of lost events, and the head of a report.

use memchr::memmem;
use nom::bytes::complete::tag;
use nom::character::complete::char;
use nom::combinator::opt;
use nom::{Parser, branch::alt};
use traces::capture::LossKind;

use super::latency;
use crate::text::scan::{Scan, dec_u32, dec_u64, spaces};
use crate::text::{Note, Part};

/// What a mark in front of or between events says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostMark {
    /// So many events were lost, at least one where the tracer does not know.
    Lost(u64),
    /// A ring-buffer page starts here: nothing is lost. Printed without a newline behind it.
    Start,
}

/// `CPU:1 [LOST 5 EVENTS]`, `CPU:1 [5 EVENTS DROPPED]` or `CPU:1 [SUBBUFFER START]`, and what
/// follows on the same line.
pub(super) fn lost_mark(line: &[u8]) -> Option<(LostMark, &[u8])> {
    let line = line.trim_ascii_start();
    line.starts_with(b"CPU:").then(|| mark(line).ok()).flatten().map(|(rest, mark)| (mark, rest))
}

fn mark(i: &[u8]) -> Scan<'_, LostMark> {
    let (i, _) = (tag("CPU:"), spaces, dec_u32, tag(" [")).parse(i)?;
    alt((lost, dropped, start)).parse(i)
}

fn lost(i: &[u8]) -> Scan<'_, LostMark> {
    let (i, (_, count, _)) = (tag("LOST "), opt((dec_u64, char(' '))), tag("EVENTS]")).parse(i)?;
    Ok((i, LostMark::Lost(count.map_or(1, |(count, _)| count))))
}

fn dropped(i: &[u8]) -> Scan<'_, LostMark> {
    let (i, (count, _)) = (opt((dec_u64, char(' '))), tag("EVENTS DROPPED]")).parse(i)?;
    Ok((i, LostMark::Lost(count.map_or(1, |(count, _)| count))))
}

fn start(i: &[u8]) -> Scan<'_, LostMark> {
    let (i, _) = tag("SUBBUFFER START]")(i)?;
    Ok((i, LostMark::Start))
}

/// Takes what a `#` line says; most are legends for people.
pub(crate) fn comment<'a>(line: &'a [u8], part: &mut Part<'a>) {
    if let Some(tracer) = line.strip_prefix(b"# tracer: ") {
        part.note(Note::Tracer(tracer.trim_ascii()));
    } else if let Ok((_, (tracer, kernel))) = latency::title(line) {
        part.note(Note::Tracer(tracer));
        part.note(Note::Kernel(kernel));
    } else if let Ok((_, Entries { held, written, cpus })) =
        alt((entries, latency::entries)).parse(line)
    {
        part.note(Note::Cpus(cpus));
        if let Some(missing) = written.checked_sub(held).filter(|&missing| missing > 0) {
            part.loss(LossKind::Overwritten, missing, line);
        }
    }
}

/// How full the trace buffer was.
pub(super) struct Entries {
    /// Entries in the buffer.
    pub(super) held: u64,
    /// Entries written to it.
    pub(super) written: u64,
    /// CPUs of the machine.
    pub(super) cpus: u32,
}

/// `# entries-in-buffer/entries-written: 89484/912978   #P:2`.
fn entries(i: &[u8]) -> Scan<'_, Entries> {
    let (i, _) = (tag("# entries-in-buffer/entries-written:"), spaces).parse(i)?;
    let (i, (held, _, written)) = (dec_u64, char('/'), dec_u64).parse(i)?;
    let (i, (_, _, cpus)) = (spaces, tag("#P:"), dec_u32).parse(i)?;
    Ok((i, Entries { held, written, cpus }))
}

/// Whether the line belongs to the head of a `trace-cmd report` (`version = 6`, `cpus=6`,
/// `CPU 3 is empty`) or stands in front of what atrace prints.
pub(super) fn report_line<'a>(line: &'a [u8], part: &mut Part<'a>) -> bool {
    if let Some(cpus) = line.strip_prefix(b"cpus=") {
        if let Ok((_, cpus)) = dec_u32(cpus) {
            part.note(Note::Cpus(cpus));
        }
        return true;
    }
    line.starts_with(b"version = ")
        || line == b"TRACE:"
        || line.starts_with(b"capturing trace...")
        || (line.starts_with(b"CPU ") && memmem::find(line, b" is empty").is_some())
}
