//! What blkparse prints, and ftrace's `blk` tracer, which prints the same behind another prefix.
//!
//! ```text
//! 259,1    0        1     0.000000000   733  Q  RA 128 + 32 [reader]     blkparse
//! 259,1    0     0.000000000   733  Q  RA 128 + 32 [reader]              blk tracer, blk_classic
//!     0.000000000, 733, reader, Q, 128, 32, 16384                        blkparse -f, comma-separated
//! ```
//!
//! Times count from the start of the trace in what blkparse prints.

use memchr::{memchr, memmem, memrchr};
use nom::Parser;
use nom::bytes::complete::{take_till, take_till1};
use nom::character::complete::{char, i32 as dec_i32, one_of};
use nom::combinator::{map_opt, opt};
use nom::sequence::{delimited, preceded, terminated};
use traces::capture::LossKind;
use traces::event::{Device, EventKind, Extent, Rwbs};
use traces::units::Sector;

use super::Action;
use crate::assemble::COMM_UNKNOWN;
use crate::events::{bio_split, rwbs};
use crate::ftrace;
use crate::text::scan::{Scan, dec_u32, dec_u64, device, seconds, spaces, spaces1};
use crate::text::{Dialect, Part, Prefix, any_line_is_event};

/// The line formats described in the [module](self).
pub(crate) struct Blkparse;

/// Whether any of the first lines is an event.
pub(crate) fn recognise(head: &[u8]) -> bool {
    any_line_is_event(&Blkparse, head)
}

impl Dialect for Blkparse {
    fn line<'a>(&self, line: &'a [u8], part: &mut Part<'a>) {
        if line.starts_with(b"#") {
            return ftrace::comment(line, part);
        }
        let text = line.trim_ascii_start();
        match default_line(text).or_else(|_| comma_line(text)) {
            Ok((_, parsed)) => parsed.deliver(line, part),
            Err(_) => summary(line, part),
        }
    }
}

/// An event line taken apart.
struct Line<'a> {
    prefix: Prefix<'a>,
    action: Action,
    /// None where the fields could not be read.
    body: Option<Body<'a>>,
}

/// What an action happened to.
#[derive(Clone, Copy, Default)]
struct Body<'a> {
    extent: Extent,
    rwbs: Rwbs,
    letters: &'a [u8],
    /// The number behind the brackets or the slash: unplugged requests, or the sector of a split.
    number: u64,
    error: i32,
    comm: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    fn deliver(self, line: &'a [u8], part: &mut Part<'a>) {
        if let Action::Unused(name) = self.action {
            return part.unused(name.as_bytes());
        }
        let comm = self.body.and_then(|body| body.comm).unwrap_or(self.prefix.comm);
        match self.body.and_then(|body| body.event(self.action)) {
            Some(kind) => part.event(&Prefix { comm, ..self.prefix }, kind),
            None => part.loss(LossKind::BadFields, 1, line),
        }
    }
}

impl Body<'_> {
    fn event(&self, action: Action) -> Option<EventKind> {
        let Self { extent, rwbs, error, number, .. } = *self;
        Some(match action {
            Action::Queue => EventKind::BioQueue { extent, rwbs },
            Action::Merge => EventKind::BioMerge { extent, rwbs },
            Action::Issue => EventKind::RqIssue { extent, rwbs },
            Action::Complete => EventKind::RqComplete { extent, rwbs, error },
            Action::Unplug => EventKind::Unplug { requests: u32::try_from(number).ok()? },
            Action::Split => {
                let rest = widen_sector(number, extent.sector.0);
                bio_split(extent.device, extent.sector.0, rest, self.letters)?
            }
            Action::Unused(_) => return None,
        })
    }
}

/// The sector of the rest of a split bio, of which blkparse prints the low 32 bits.
fn widen_sector(rest: u64, sector: u64) -> u64 {
    const LOW: u64 = u32::MAX as u64;
    if rest >= sector || rest > LOW {
        return rest;
    }
    let same_high = (sector & !LOW) | rest;
    if same_high < sector { same_high.saturating_add(LOW + 1) } else { same_high }
}

/// Blkparse's own format, with or without the sequence number.
fn default_line(i: &[u8]) -> Scan<'_, Line<'_>> {
    let (i, device) = terminated(spaced_device, spaces1).parse(i)?;
    let (i, cpu) = terminated(dec_u32, spaces1).parse(i)?;
    let (i, _sequence) = opt(terminated(dec_u64, spaces1)).parse(i)?;
    let (i, time) = terminated(seconds, spaces1).parse(i)?;
    let (i, pid) = terminated(dec_u32, spaces1).parse(i)?;
    let (i, (action, body)) = action_line(device, i)?;
    let prefix = Prefix { comm: UNKNOWN_COMM, pid, cpu, time };
    Ok((i, Line { prefix, action, body }))
}

/// Where a line names no thread.
const UNKNOWN_COMM: &[u8] = COMM_UNKNOWN.as_bytes();

/// `  8,0   `: both numbers are padded.
fn spaced_device(i: &[u8]) -> Scan<'_, Device> {
    preceded(spaces, device).parse(i)
}

/// `Q  RA 128 + 32 [reader]`: the action, and what it was about.
fn action_line(device: Device, i: &[u8]) -> Scan<'_, (Action, Option<Body<'_>>)> {
    let (i, action) = map_opt(take_till1(|b| b == b' '), Action::from_text).parse(i)?;
    let (rest, _) = spaces(i)?;
    let body = match action {
        Action::Unused(_) => Some(Body::default()),
        _ => body(device, rest).ok().map(|(_, body)| body),
    };
    Ok((&[], (action, body)))
}

/// The body of the `blk` tracer's lines, `8,0  Q  RA 2048 + 8 [dd]`, with a cgroup between the device
/// and the action under its option `blk_cgroup`.
pub(crate) fn tracer_event<'a>(
    line: &'a [u8],
    prefix: &Prefix<'a>,
    body: &'a [u8],
    part: &mut Part<'a>,
) -> bool {
    let Ok((_, (action, body))) = tracer_body(body) else {
        return false;
    };
    // The comm of the prefix is the thread that was running; the one in brackets is the same.
    let body = body.map(|body| Body { comm: None, ..body });
    Line { prefix: *prefix, action, body }.deliver(line, part);
    true
}

fn tracer_body(i: &[u8]) -> Scan<'_, (Action, Option<Body<'_>>)> {
    let (i, device) = terminated(spaced_device, spaces1).parse(i)?;
    action_line(device, i).or_else(|_| {
        let (i, _cgroup) = terminated(take_till1(|b| b == b' '), spaces1).parse(i)?;
        action_line(device, i)
    })
}

/// What follows the action.
fn body(device: Device, i: &[u8]) -> Scan<'_, Body<'_>> {
    let (i, letters) = letters(i)?;
    let body = Body { rwbs: rwbs(letters), letters, ..Body::default() };
    let (i, body) = match extent(device, i) {
        Ok((i, (extent, number))) => (i, Body { extent, number, ..body }),
        Err(_) => (i, Body { extent: Extent { device, ..Extent::default() }, ..body }),
    };
    Ok((&[], body.brackets(i)))
}

/// The `rwbs` letters, which some vendors leave empty.
fn letters(i: &[u8]) -> Scan<'_, &[u8]> {
    terminated(take_till(|b: u8| !b.is_ascii_alphabetic()), spaces).parse(i)
}

/// `128 + 32 `, `128 / 160 ` or, in a format of blkparse's documentation, `128 32 16384 `.
fn extent(device: Device, i: &[u8]) -> Scan<'_, (Extent, u64)> {
    let (i, sector) = dec_u64(i)?;
    let separator = opt(terminated(one_of("+/"), char(' ')));
    let (i, separator) = preceded(char(' '), separator).parse(i)?;
    let (i, number) = dec_u64(i)?;
    let sectors = if separator == Some('/') { 0 } else { number };
    let (i, _bytes) = opt(preceded(char(' '), terminated(dec_u64, char(' ')))).parse(i)?;
    Ok((i, (Extent { device, sector: Sector(sector), sectors }, number)))
}

impl<'a> Body<'a> {
    /// Takes what ends a line: `[comm]`, `[comm] 3`, `[0]`, or a bare comm.
    fn brackets(self, i: &'a [u8]) -> Self {
        let (Some(open), Some(close)) = (memchr(b'[', i), memrchr(b']', i)) else {
            let comm = i.trim_ascii();
            return Self { comm: (!comm.is_empty()).then_some(comm), ..self };
        };
        let inside = i.get(open + 1..close).unwrap_or_default();
        let number = match dec_u64(i[close + 1..].trim_ascii()) {
            Ok((_, number)) => number,
            Err(_) => self.number,
        };
        match dec_i32::<_, nom::error::Error<_>>(inside) {
            Ok((b"", error)) => Self { error: as_errno(error), number, ..self },
            _ => Self { comm: Some(inside), number, ..self },
        }
    }
}

/// Blkparse prints the low 16 bits of a negative errno without their sign.
fn as_errno(error: i32) -> i32 {
    u16::try_from(error).map_or(error, |low| low.cast_signed().into())
}

/// `0.000000000, 276, kworker/0:1H, D, 983947432, 64, 32768`, from `blkparse -f "%5T.%9t, %p, %C, %a,
/// %S, %n, %N\n"`. It says neither device nor direction.
fn comma_line(i: &[u8]) -> Scan<'_, Line<'_>> {
    let comma = || (char(','), spaces);
    let (i, time) = terminated(seconds, comma()).parse(i)?;
    let (i, pid) = terminated(dec_u32, comma()).parse(i)?;
    let (i, comm) = terminated(take_till(|b| b == b','), comma()).parse(i)?;
    let word = take_till1(|b| b == b',' || b == b' ');
    let (i, action) = delimited(spaces, map_opt(word, Action::from_text), comma()).parse(i)?;
    let (i, sector) = terminated(dec_u64, comma()).parse(i)?;
    let (i, sectors) = dec_u64(i)?;
    let extent = Extent { sector: Sector(sector), sectors, ..Extent::default() };
    let body = Some(Body { extent, ..Body::default() });
    Ok((i, Line { prefix: Prefix { comm, pid, cpu: 0, time }, action, body }))
}

/// Starts of the lines that blkparse prints after the events.
const SUMMARY: &[&str] = &[
    "CPU",
    "Total (",
    "Throughput (",
    "Events (",
    "Input file ",
    " Reads Queued:",
    " Read Dispatches:",
    " Reads Requeued:",
    " Reads Completed:",
    " Read Merges:",
    " Read depth:",
    " PC Reads Queued:",
    " PC Read Disp.:",
    " PC Reads Req.:",
    " PC Reads Compl.:",
    " IO unplugs:",
];

/// Takes the lines behind the events. One of them counts events that blkparse did not see.
fn summary<'a>(line: &'a [u8], part: &mut Part<'a>) {
    if let Some(skips) = line.strip_prefix(b"Skips: ") {
        match skipped(skips) {
            Some(0) => {}
            Some(count) => part.loss(LossKind::LostEvents, count, line),
            None => part.unparsed(line),
        }
    } else if !line.trim_ascii().is_empty() && !is_summary(line) {
        part.unparsed(line);
    }
}

fn is_summary(line: &[u8]) -> bool {
    SUMMARY.iter().any(|start| line.starts_with(start.as_bytes()))
}

/// `2 forward (17 -   0.1%)`: gaps, and events missing in them.
fn skipped(text: &[u8]) -> Option<u64> {
    let open = memmem::find(text, b"(")?;
    let digits: Vec<u8> = text[open + 1..]
        .iter()
        .copied()
        .take_while(|&b| b != b' ')
        .filter(|&b| b != b',')
        .collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}
