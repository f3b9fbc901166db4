//! The part of a line in front of the event.

use nom::branch::alt;
use nom::bytes::complete::{take_while_m_n, take_while1};
use nom::character::complete::{char, u32 as dec_u32, u64 as dec_u64};
use nom::combinator::{map, opt};
use nom::sequence::{delimited, preceded, terminated};
use nom::{Parser, error};
use traces::units::Time;

use super::latency;
use crate::text::scan::{Scan, seconds, spaces, spaces1};
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
    alt((plain, latency::after_comm)).parse(i)
}

/// `pid (tgid) [cpu] flags time: `.
fn plain(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    let (i, pid) = terminated(dec_u32, spaces1).parse(i)?;
    let (i, _) = opt(terminated(thread_group, spaces)).parse(i)?;
    let (i, cpu) = delimited(char('['), dec_u32, char(']')).parse(i)?;
    let (i, _) = spaces1(i)?;
    let (i, time) = alt((time, preceded(terminated(flags, spaces1), time))).parse(i)?;
    Ok((i, (pid, cpu, time)))
}

/// `(  516)`, or dashes where the kernel does not know.
fn thread_group(i: &[u8]) -> Scan<'_, ()> {
    let inside = take_while1(|b: u8| b.is_ascii_digit() || matches!(b, b' ' | b'-'));
    map(delimited(char('('), inside, char(')')), |_| ()).parse(i)
}

/// The columns for interrupts, rescheduling and preemption: 4 before 5.12, 5 with migrate-disable, up
/// to 8 with the lazy ones of real-time kernels.
pub(super) fn flags(i: &[u8]) -> Scan<'_, &[u8]> {
    take_while_m_n(4, 8, |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'#')).parse(i)
}

/// `123.456789: `, or ticks of a clock that does not count nanoseconds.
pub(super) fn time(i: &[u8]) -> Scan<'_, Time> {
    let time = alt((seconds, map(dec_u64::<_, error::Error<_>>, Time)));
    terminated(time, char(':')).parse(i)
}

/// Drops `(+59200) `, which `trace-cmd report --ts-diff` puts in front of the event.
pub(super) fn skip_time_difference(body: &[u8]) -> &[u8] {
    let difference = delimited(
        char::<_, error::Error<&[u8]>>('('),
        take_while1(|b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b' ')),
        char(')'),
    );
    match terminated(difference, spaces).parse(body) {
        Ok((rest, _)) => rest,
        Err(_) => body,
    }
}
