//! The text of `perf script` over tracepoints.
//!
//! `comm pid/tid [cpu] time: period subsystem:event: fields`, of which the thread, the CPU and the
//! period are optional. The fields are those of the kernel's own text.

use memchr::{memmem, memrchr};
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::tag;
use nom::character::complete::char;
use nom::combinator::opt;
use nom::sequence::{delimited, preceded, terminated};
use traces::capture::LossKind;
use traces::units::Time;

use crate::events::{self, Decoded};
use crate::text::scan::{Scan, dec_u32, dec_u64, seconds, spaces, spaces1};
use crate::text::{Dialect, Note, Part, Prefix, any_line_is_event, find_prefix};

/// The line format described in the [module](self).
pub(crate) struct Perf;

/// Whether any of the first lines is an event.
pub(crate) fn recognise(head: &[u8]) -> bool {
    any_line_is_event(&Perf, head)
}

impl Dialect for Perf {
    fn line<'a>(&self, line: &'a [u8], part: &mut Part<'a>) {
        if let Some(comment) = line.strip_prefix(b"# ") {
            return header(comment, part);
        }
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return;
        }
        match prefix(line) {
            Some((prefix, body)) => event(line, &prefix, body, part),
            None if is_callchain(line) => {}
            None => part.unparsed(line),
        }
    }
}

/// Takes what `perf script --header` says.
fn header<'a>(comment: &'a [u8], part: &mut Part<'a>) {
    if let Some(release) = comment.strip_prefix(b"os release : ") {
        part.note(Note::Kernel(release.trim_ascii()));
    } else if let Some(cpus) = comment.strip_prefix(b"nrcpus online : ")
        && let Ok((_, cpus)) = dec_u32(cpus)
    {
        part.note(Note::Cpus(cpus));
    }
}

/// Splits a line into its prefix and the rest. A comm may hold spaces and numbers, so every number is
/// tried as the pid until all that must follow does follow.
fn prefix(line: &[u8]) -> Option<(Prefix<'_>, &[u8])> {
    let (name, (pid, cpu, time), body) = find_prefix(line, b' ', after_comm)?;
    Some((Prefix { comm: name.trim_ascii(), pid, cpu, time }, body))
}

/// `pid/tid [cpu] time: `. The model's pid is the thread.
fn after_comm(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    let (i, pid) = dec_u32(i)?;
    let (i, tid) = opt(preceded(char('/'), dec_u32)).parse(i)?;
    let (i, _) = spaces1(i)?;
    let (i, cpu) = opt(delimited(char('['), dec_u32, (char(']'), spaces1))).parse(i)?;
    let (i, time) = terminated(seconds, char(':')).parse(i)?;
    Ok((i, (tid.unwrap_or(pid), cpu.unwrap_or(0), time)))
}

/// Decodes `period subsystem:event: fields`.
fn event<'a>(line: &'a [u8], prefix: &Prefix<'a>, body: &'a [u8], part: &mut Part<'a>) {
    if let Some(count) = lost(body) {
        return part.loss(LossKind::LostEvents, count, line);
    }
    let Some((name, fields)) = split(body) else {
        return part.unparsed(line);
    };
    let event = memrchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
    match events::decode(event, fields) {
        Decoded::Event(kind) => part.event(prefix, kind),
        Decoded::Unused => part.unused(name),
        Decoded::BadFields => part.loss(LossKind::BadFields, 1, line),
    }
}

/// The name of the event with its subsystem, and its fields.
fn split(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let period = delimited(spaces, dec_u64, spaces1);
    let (body, _) = opt(period).parse(body).ok()?;
    let body = body.trim_ascii_start();
    let end = memchr::memchr(b' ', body).unwrap_or(body.len());
    let name = body[..end].strip_suffix(b":")?;
    (!name.is_empty()).then(|| (name, body[end..].trim_ascii_start()))
}

/// `PERF_RECORD_LOST lost 12`, shown with `--show-lost-events`.
fn lost(body: &[u8]) -> Option<u64> {
    let at = memmem::find(body, b"PERF_RECORD_LOST")?;
    let samples = memmem::find(&body[at..], b"lost ")?;
    let count = preceded(alt((tag("lost samples "), tag("lost "))), dec_u64);
    let (_, count) = { count }.parse(&body[at + samples..]).ok()?;
    Some(count)
}

/// `\tffffffff8104f45a vfs_read+0x10 ([kernel.kallsyms])`: the callchain of the event before.
fn is_callchain(line: &[u8]) -> bool {
    let frame = line.trim_ascii_start();
    let end = memchr::memchr(b' ', frame).unwrap_or(frame.len());
    frame.len() < line.len() && end > 0 && frame[..end].iter().all(u8::is_ascii_hexdigit)
}
