//! System calls, as the syscall events and the old syscall tracer print them.

use memchr::memmem;
use traces::event::{EventKind, Syscall};

use super::Decoded;
use crate::text::scan::hex;

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
        _ => return None,
    })
}

/// `sys_enter_read: fd: 0x3, ...` and `sys_exit_read: 0x10`, as trace-cmd and perf print them.
pub(super) fn decode(name: &[u8], fields: &[u8]) -> Decoded {
    if let Some(name) = name.strip_prefix(b"sys_enter_") {
        enter(name, fields)
    } else if let Some(name) = name.strip_prefix(b"sys_exit_") {
        exit(name, fields)
    } else {
        Decoded::Unused
    }
}

/// A call by its name and the list of its arguments.
pub(crate) fn enter(name: &[u8], arguments: &[u8]) -> Decoded {
    let Some(call) = call(name) else {
        return Decoded::Unused;
    };
    match args(arguments) {
        Some(args) => Decoded::Event(EventKind::SyscallEnter { call, args }),
        None => Decoded::BadFields,
    }
}

/// A call's return by its name and value, which is hexadecimal.
pub(crate) fn exit(name: &[u8], value: &[u8]) -> Decoded {
    let Some(call) = call(name) else {
        return Decoded::Unused;
    };
    match hex(value) {
        Ok((_, ret)) => Decoded::Event(EventKind::SyscallExit {
            call,
            ret: ret.cast_signed(),
        }),
        Err(_) => Decoded::BadFields,
    }
}

/// `fd: 3, buf: 0x7ffe0babea5f, count: 0x10000`: always hexadecimal. New kernels add what a pointer
/// points to, in quotes or brackets, behind its value.
fn args(mut list: &[u8]) -> Option<[u64; 6]> {
    let mut args = [0; 6];
    for arg in &mut args {
        let Some(colon) = memmem::find(list, b": ") else {
            break;
        };
        let (rest, value) = hex(&list[colon + 2..]).ok()?;
        *arg = value;
        list = next_argument(rest);
    }
    Some(args)
}

/// What follows the next comma outside quotes.
fn next_argument(list: &[u8]) -> &[u8] {
    let mut in_quotes = false;
    let mut is_escaped = false;
    for (at, &byte) in list.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_quotes,
            b'"' => in_quotes = !in_quotes,
            b',' if !in_quotes => return &list[at + 1..],
            _ => {}
        }
    }
    &[]
}
