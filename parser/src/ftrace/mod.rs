//! Ftrace text as tracefs prints it (`trace`, `trace_pipe`), and as `trace-cmd report` does.
//!
//! A line is a prefix (`comm-pid (tgid) [cpu] flags time: `), of which the thread group and the
//! flags are optional, and an event: `name: fields`, or one of a few shapes without a name. Around
//! them stand comment lines, and marks where the tracer lost events.

mod header;
mod latency;
mod prefix;

use memchr::{memchr, memmem};
use traces::capture::LossKind;

use crate::blk;
use crate::events::{self, Decoded};
use crate::text::{Dialect, Part, Prefix, any_line_is_event};
use header::LostMark;

pub(crate) use header::comment;

/// The line format described in the [module](self).
pub(crate) struct Ftrace;

/// Whether any of the first lines is a tracefs header or an event.
pub(crate) fn recognise(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n');
    lines.any(|line| line.starts_with(b"# tracer: ")) || any_line_is_event(&Ftrace, head)
}

impl Dialect for Ftrace {
    fn line<'a>(&self, line: &'a [u8], part: &mut Part<'a>) {
        if line.first() == Some(&b'#') {
            return header::comment(line, part);
        }
        match prefix::prefix(line) {
            // A mark glued in front of the event reads as part of its comm.
            Some((prefix, body)) if !prefix.comm.starts_with(b"CPU:") => {
                event(line, &prefix, body, part);
            }
            _ => rare_line(line, part),
        }
    }
}

/// A line that does not start with the usual prefix.
fn rare_line<'a>(line: &'a [u8], part: &mut Part<'a>) {
    let line = match header::lost_mark(line) {
        Some((LostMark::Lost(count), rest)) => {
            part.loss(LossKind::LostEvents, count, line);
            rest
        }
        Some((LostMark::Start, rest)) => rest,
        None => line,
    };
    if line.trim_ascii().is_empty() {
        return;
    }
    match prefix::prefix(line).or_else(|| latency::verbose_prefix(line)) {
        Some((prefix, body)) => event(line, &prefix, body, part),
        None if header::report_line(line, part) || is_stack_entry(line) => {}
        None => part.unparsed(line),
    }
}

/// ` => vfs_read`: an entry of a stack trace, which belongs to the event before.
fn is_stack_entry(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"=> ")
}

/// Decodes the part of a line after its prefix.
fn event<'a>(line: &'a [u8], prefix: &Prefix<'a>, body: &'a [u8], part: &mut Part<'a>) {
    let body = body.trim_ascii_start();
    let is_device = body.first().is_some_and(u8::is_ascii_digit);
    if is_device && blk::text::tracer_event(line, prefix, body, part) {
        return;
    }
    let Some(body) = Body::split(body) else {
        return part.unparsed(line);
    };
    let decoded = match body {
        Body::Named(name, fields) => events::decode(name, fields),
        Body::SyscallEnter(name, arguments) => events::syscall_enter(&name[4..], arguments),
        Body::SyscallExit(name, value) => events::syscall_exit(&name[4..], value),
        Body::Other(_) => Decoded::Unused,
    };
    match decoded {
        Decoded::Event(kind) => part.event(prefix, kind),
        Decoded::Unused => part.unused(body.name()),
        Decoded::BadFields => part.loss(LossKind::BadFields, 1, line),
    }
}

/// The shapes of an event after its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body<'a> {
    /// `name: fields`.
    Named(&'a [u8], &'a [u8]),
    /// `sys_read(fd: 3, ...)`.
    SyscallEnter(&'a [u8], &'a [u8]),
    /// `sys_read -> 0x10`.
    SyscallExit(&'a [u8], &'a [u8]),
    /// A shape without a name that is never used, with a name for it.
    Other(&'static [u8]),
}

impl<'a> Body<'a> {
    fn split(body: &'a [u8]) -> Option<Self> {
        let body = prefix::skip_time_difference(body);
        let name_end = body.iter().position(|&b| !is_name_byte(b)).unwrap_or(body.len());
        let (name, rest) = body.split_at(name_end);
        match rest {
            [b':', fields @ ..] if !name.is_empty() => {
                Some(Self::Named(name, fields.trim_ascii_start()))
            }
            [b'(', arguments @ ..] if name.starts_with(b"sys_") => {
                Some(Self::SyscallEnter(name, arguments))
            }
            [b' ', b'-', b'>', b' ', value @ ..] if name.starts_with(b"sys_") => {
                Some(Self::SyscallExit(name, value))
            }
            _ => Self::other(body),
        }
    }

    fn other(body: &[u8]) -> Option<Self> {
        if body.starts_with(b"<stack trace>") || body.starts_with(b"<user stack trace>") {
            Some(Self::Other(b"<stack trace>"))
        } else if memmem::find(body, b" <-").is_some() {
            Some(Self::Other(b"function"))
        } else {
            memchr(b':', body).map(|_| Self::Other(b"(text)"))
        }
    }

    fn name(self) -> &'a [u8] {
        match self {
            Self::Named(name, _)
            | Self::SyscallEnter(name, _)
            | Self::SyscallExit(name, _)
            | Self::Other(name) => name,
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
