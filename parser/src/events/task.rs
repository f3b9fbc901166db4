//! `task:*`.

use memchr::memmem;
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take};
use nom::combinator::{eof, map_opt, peek, rest};
use nom::sequence::preceded;
use traces::event::EventKind;

use crate::text::scan::{Scan, dec_u32, hex_digits};

/// `pid=7 comm=a b clone_flags=3d0f00 oom_score_adj=0`. The name may hold anything.
pub(super) fn newtask(i: &[u8]) -> Scan<'_, EventKind> {
    const FLAGS: &[u8] = b" clone_flags=";
    let (i, pid) = preceded(tag("pid="), dec_u32).parse(i)?;
    let behind_name = |text: &'_ [u8]| memmem::rfind(text, FLAGS).map(|at| at + FLAGS.len());
    let (i, start) = map_opt(peek(rest), behind_name).parse(i)?;
    let (i, clone_flags) = preceded(take(start), hex_digits).parse(i)?;
    // Reports of raw fields may have a 0x in front.
    let (i, _) = alt((eof, tag(" "))).parse(i)?;
    Ok((i, EventKind::NewTask { pid, clone_flags }))
}
