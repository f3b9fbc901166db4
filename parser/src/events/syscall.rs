//! System calls, as the syscall events and the old syscall tracer print them.

use memchr::memmem;
use traces::event::{EventKind, Syscall};

use super::Decoded;
use super::raw::signed_number;
use crate::text::scan::hex;

/// Which side of a system call an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// `sys_enter_*`.
    Enter(Syscall),
    /// `sys_exit_*`.
    Exit(Syscall),
}

impl Side {
    /// What the event called `name` is, if the model has its call.
    pub(crate) fn of_event(name: &[u8]) -> Option<Self> {
        let enter = name.strip_prefix(b"sys_enter_").and_then(call).map(Self::Enter);
        enter.or_else(|| name.strip_prefix(b"sys_exit_").and_then(call).map(Self::Exit))
    }

    /// The event with the fields of its record, without the number of the call.
    pub(crate) fn event(self, fields: impl IntoIterator<Item = u64>) -> Option<EventKind> {
        let mut fields = fields.into_iter();
        match self {
            Self::Enter(call) => {
                let mut args = [0; 6];
                args.iter_mut().zip(fields).for_each(|(arg, value)| *arg = value);
                Some(EventKind::SyscallEnter { call, args })
            }
            Self::Exit(call) => {
                let ret = fields.next()?.cast_signed();
                Some(EventKind::SyscallExit { call, ret })
            }
        }
    }
}

/// Whether a record's field is the number of the call, which its name says already.
pub(crate) fn is_call_number(field: &[u8]) -> bool {
    matches!(field, b"nr" | b"__syscall_nr")
}

/// The call behind a kernel name without its `sys_` or `sys_enter_`.
fn call(name: &[u8]) -> Option<Syscall> {
    Some(match name {
        b"read" => Syscall::Read,
        b"pread64" => Syscall::Pread64,
        b"readv" => Syscall::Readv,
        // preadv2 adds flags behind the same arguments.
        b"preadv" | b"preadv2" => Syscall::Preadv,
        b"openat" => Syscall::Openat,
        b"close" => Syscall::Close,
        b"lseek" => Syscall::Lseek,
        b"fadvise64" => Syscall::Fadvise64,
        b"readahead" => Syscall::Readahead,
        b"mmap" => Syscall::Mmap,
        b"madvise" => Syscall::Madvise,
        b"sendfile64" => Syscall::Sendfile64,
        b"dup" => Syscall::Dup,
        b"dup2" => Syscall::Dup2,
        b"dup3" => Syscall::Dup3,
        b"fcntl" => Syscall::Fcntl,
        _ => return None,
    })
}

/// `sys_enter_read: fd: 0x3, ...` and `sys_exit_read: 0x10`, as trace-cmd and perf print them.
pub(super) fn decode(name: &[u8], fields: &[u8]) -> Decoded {
    match Side::of_event(name) {
        Some(side) => decode_side(side, fields),
        None => Decoded::Unused,
    }
}

/// `sys_read(fd: 3, ...)`: a call by its name and the list of its arguments.
pub(crate) fn enter(name: &[u8], arguments: &[u8]) -> Decoded {
    call(name).map_or(Decoded::Unused, |call| decode_side(Side::Enter(call), arguments))
}

/// `sys_read -> 0x10`: a call's return by its name and value.
pub(crate) fn exit(name: &[u8], value: &[u8]) -> Decoded {
    call(name).map_or(Decoded::Unused, |call| decode_side(Side::Exit(call), value))
}

fn decode_side(side: Side, text: &[u8]) -> Decoded {
    let kind = match (raw_fields(text), side) {
        (Some(fields), _) => side.event(fields),
        (None, Side::Enter(_)) => arguments(text).and_then(|fields| side.event(fields)),
        (None, Side::Exit(_)) => hex(text).ok().and_then(|(_, ret)| side.event([ret])),
    };
    Decoded::fields(kind)
}

/// The fields of `__syscall_nr=0 fd=3 buf=0x7ffe count=16`, as raw reports print a record. None where
/// the text has another form.
fn raw_fields(text: &[u8]) -> Option<Vec<u64>> {
    let mut fields = Vec::new();
    for pair in text.split(|&b| b == b' ').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_at(memchr::memchr(b'=', pair)?);
        if !is_call_number(name) {
            fields.push(signed_number(&value[1..], false)?);
        }
    }
    (!fields.is_empty()).then_some(fields)
}

/// `fd: 3, buf: 0x7ffe0babea5f, count: 0x10000`: always hexadecimal. New kernels add what a pointer
/// points to, in quotes or brackets, behind its value.
fn arguments(mut list: &[u8]) -> Option<[u64; 6]> {
    let mut fields = [0; 6];
    for field in &mut fields {
        let Some(colon) = memmem::find(list, b": ") else {
            break;
        };
        let (rest, value) = hex(&list[colon + 2..]).ok()?;
        *field = value;
        list = next_argument(rest);
    }
    Some(fields)
}

/// What follows the next comma outside quotes and brackets.
fn next_argument(list: &[u8]) -> &[u8] {
    let (mut in_quotes, mut is_escaped, mut depth) = (false, false, 0_u32);
    for (at, &byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_quotes,
            b'"' => in_quotes = !in_quotes,
            _ if in_quotes => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return &list[at + 1..],
            _ => {}
        }
    }
    &[]
}
