//! The part of a line in front of the event.

use nom::Parser;
use nom::bytes::complete::{take_while_m_n, take_while1};
use nom::character::complete::char;
use nom::combinator::map;
use traces::units::Time;

use super::latency;
use crate::text::scan::{Scan, byte, dec_u32, dec_u64, seconds, spaces, spaces1};
use crate::text::{Prefix, find_prefix};

/// Longest name a thread can have (`TASK_COMM_LEN` less its NUL).
const COMM_BYTES_MAX: usize = 15;

/// Splits a line into its prefix and the rest.
///
/// A comm may hold anything, also what looks like the rest of a prefix, so every dash is tried as the
/// one in front of the pid until all that must follow does follow.
pub(super) fn prefix(line: &[u8]) -> Option<(Prefix<'_>, &[u8])> {
    let (name, (pid, cpu, time), body) = find_prefix(line, b'-', after_comm)?;
    Some((Prefix { comm: comm(name), pid, cpu, time }, body))
}

/// The comm without its padding, and without the name of the buffer instance or file that
/// `trace-cmd report` puts in front (`instance: `) when it shows several.
fn comm(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii_start();
    if text.len() > COMM_BYTES_MAX
        && let Some(at) = memchr::memmem::rfind(text, b": ")
    {
        return text[at + 2..].trim_ascii_start();
    }
    text
}

/// What stands between the comm and the event.
fn after_comm(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    plain(i).or_else(|_| latency::after_comm(i))
}

/// `pid (tgid) [cpu] flags time: `.
fn plain(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    let (i, pid) = dec_u32(i)?;
    let (i, _) = spaces1(i)?;
    let (i, ()) = if i.first() == Some(&b'(') { thread_group(i)? } else { (i, ()) };
    let (i, ()) = byte(i, b'[')?;
    let (i, cpu) = dec_u32(i)?;
    let (i, ()) = byte(i, b']')?;
    let (i, _) = spaces1(i)?;
    let (i, time) = if i.first().is_some_and(u8::is_ascii_digit) {
        time(i).or_else(|_| flags_and_time(i))?
    } else {
        flags_and_time(i)?
    };
    Ok((i, (pid, cpu, time)))
}

/// `(  516) `, or dashes where the kernel does not know.
fn thread_group(i: &[u8]) -> Scan<'_, ()> {
    let inside = take_while1(|b: u8| b.is_ascii_digit() || matches!(b, b' ' | b'-'));
    map((char('('), inside, char(')'), spaces), |_| ()).parse(i)
}

/// `d..2. 123.456789:`.
fn flags_and_time(i: &[u8]) -> Scan<'_, Time> {
    let (i, _) = flags(i)?;
    let (i, _) = spaces1(i)?;
    time(i)
}

/// The columns for interrupts, rescheduling and preemption: 4 before 5.12, 5 with migrate-disable, up
/// to 8 with the lazy ones of real-time kernels.
pub(super) fn flags(i: &[u8]) -> Scan<'_, &[u8]> {
    take_while_m_n(4, 8, |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'#')).parse(i)
}

/// `123.456789: `, or ticks of a clock that does not count nanoseconds.
pub(super) fn time(i: &[u8]) -> Scan<'_, Time> {
    let (i, time) = seconds(i).or_else(|_| map(dec_u64, Time).parse(i))?;
    let (i, ()) = byte(i, b':')?;
    Ok((i, time))
}

/// Drops `(+59200) `, which `trace-cmd report --ts-diff` puts in front of the event.
pub(super) fn skip_time_difference(body: &[u8]) -> &[u8] {
    if body.first() != Some(&b'(') {
        return body;
    }
    let inside = take_while1(|b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b' '));
    match (char('('), inside, char(')'), spaces).parse(body) {
        Ok((rest, _)) => rest,
        Err(_) => body,
    }
}
