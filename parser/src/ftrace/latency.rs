//! The latency format: the same events behind a shorter prefix.
//!
//! The trace option `latency-format`, the latency tracers and `trace-cmd report -l` print
//! `comm-pid cpuflags time: `, the time in microseconds since the start of the trace with a mark for
//! long gaps behind it, or as elsewhere. With the option `verbose` the columns are spelled out.

use memchr::memmem;
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_till1, take_until};
use nom::character::complete::{char, one_of};
use nom::combinator::{map, map_opt};
use nom::sequence::{delimited, preceded, terminated};
use traces::units::Time;

use super::header::Entries;
use super::prefix::{flags, time};
use crate::text::scan::{Scan, dec_u32, dec_u64, hex_digits, spaces, spaces1};
use crate::text::{Prefix, find_prefix};

/// `pid cpuflags time: `.
pub(super) fn after_comm(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    let (i, pid) = terminated(dec_u32, spaces1).parse(i)?;
    let (i, cpu) = terminated(dec_u32, flags).parse(i)?;
    let (i, time) = preceded(spaces1, alt((time, relative_time))).parse(i)?;
    Ok((i, (pid, cpu, time)))
}

/// `12us : `, the mark growing from `+` (over 10 us) to `$` (over a second).
fn relative_time(i: &[u8]) -> Scan<'_, Time> {
    let (i, time) = map_opt(dec_u64, microseconds).parse(i)?;
    let (i, _) = (tag("us"), one_of(" +!#*@$"), char(':')).parse(i)?;
    Ok((i, time))
}

fn microseconds(us: u64) -> Option<Time> {
    us.checked_mul(1000).map(Time)
}

/// Splits a line of the verbose form: `comm pid cpu flags count index [time] 1.234ms (+0.001ms): `,
/// where the time is in hexadecimal microseconds.
pub(super) fn verbose_prefix(line: &[u8]) -> Option<(Prefix<'_>, &[u8])> {
    memmem::find(line, b"ms (+")?;
    let (name, (pid, cpu, time), body) = find_prefix(line, b' ', verbose_columns)?;
    Some((Prefix { comm: name.trim_ascii(), pid, cpu, time }, body))
}

fn verbose_columns(i: &[u8]) -> Scan<'_, (u32, u32, Time)> {
    let (i, (pid, _, cpu, _)) = (dec_u32, spaces1, dec_u32, spaces1).parse(i)?;
    let (i, _) = (dec_u32, spaces1, hex_digits, spaces1, hex_digits, spaces1).parse(i)?;
    let (i, time) = map_opt(delimited(char('['), hex_digits, char(']')), microseconds).parse(i)?;
    let (i, _) = (take_until("ms (+"), tag("ms (+"), take_until("ms):"), tag("ms):")).parse(i)?;
    Ok((i, (pid, cpu, time)))
}

/// `# nop latency trace v1.1.5 on 6.1.0`: the tracer and the kernel.
pub(super) fn title(i: &[u8]) -> Scan<'_, (&[u8], &[u8])> {
    let word = take_till1(|b| b == b' ');
    let (i, tracer) = delimited(tag("# "), word, tag(" latency trace v")).parse(i)?;
    let (i, _) = (take_until(" on "), tag(" on ")).parse(i)?;
    map(take_till1(|b| b == b' '), move |kernel| (tracer, kernel)).parse(i)
}

/// `# latency: 0 us, #90/912, CPU#0 | (M:desktop VP:0, KP:0, SP:0 HP:0 #P:4)`.
pub(super) fn entries(i: &[u8]) -> Scan<'_, Entries> {
    let (i, _) = (tag("# latency: "), dec_u64, tag(" us, #")).parse(i)?;
    let (i, (held, _, written)) = (dec_u64, char('/'), dec_u64).parse(i)?;
    let (i, (_, _, _, cpus)) = (take_until("#P:"), tag("#P:"), spaces, dec_u32).parse(i)?;
    Ok((i, Entries { held, written, cpus }))
}
