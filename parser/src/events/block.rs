//! `block:*`.

use memchr::memrchr;
use nom::bytes::complete::{tag, take_till};
use nom::character::complete::{char, i32 as dec_i32};
use nom::combinator::{map_opt, peek, rest};
use nom::sequence::{delimited, terminated};
use nom::{IResult, Parser};
use traces::event::{Device, EventKind, Extent, Rwbs};
use traces::units::Sector;

use super::raw::bio_split;
use crate::text::scan::{Scan, dec_u32, dec_u64, device};

/// The letters of an `rwbs` field: one operation (R, W, D, F, N; F also in front of another), then
/// flags. Some vendors add letters of their own, and some leave the field empty. Operations on zones
/// are a Z and a letter or two that means something else than elsewhere; ZA, an append, is a write.
pub(crate) fn rwbs(letters: &[u8]) -> Rwbs {
    let has = |letter| letters.contains(&letter);
    if has(b'Z') {
        return Rwbs { write: letters.starts_with(b"ZA"), ..Rwbs::default() };
    }
    Rwbs { read: has(b'R'), write: has(b'W'), ahead: has(b'A'), meta: has(b'M') }
}

/// `8,0 RA `.
fn operation(i: &[u8]) -> Scan<'_, (Device, &[u8])> {
    let letters = terminated(take_till(|b| b == b' '), char(' '));
    (terminated(device, char(' ')), letters).parse(i)
}

/// `2048 + 8`.
fn extent(device: Device) -> impl Fn(&[u8]) -> Scan<'_, Extent> {
    move |i| {
        let (i, (sector, _, sectors)) = (dec_u64, tag(" + "), dec_u64).parse(i)?;
        Ok((i, Extent { device, sector: Sector(sector), sectors }))
    }
}

/// `(12 00 00 24)`: the SCSI command of a passthrough request, else empty.
fn command(i: &[u8]) -> Scan<'_, &[u8]> {
    delimited(char('('), take_till(|b| b == b')'), tag(") ")).parse(i)
}

fn bio(i: &[u8]) -> IResult<&[u8], (Extent, Rwbs)> {
    let (i, (device, letters)) = operation(i)?;
    let (i, extent) = extent(device)(i)?;
    Ok((i, (extent, rwbs(letters))))
}

pub(super) fn bio_queue(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (extent, rwbs)) = bio(i)?;
    Ok((i, EventKind::BioQueue { extent, rwbs }))
}

pub(super) fn bio_merge(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (extent, rwbs)) = bio(i)?;
    Ok((i, EventKind::BioMerge { extent, rwbs }))
}

/// `8,0 RA 2048 / 3072 [comm]`: the bio starts at the first sector, and is cut at the second.
pub(super) fn split(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (device, letters)) = operation(i)?;
    map_opt((dec_u64, tag(" / "), dec_u64), |(sector, _, rest)| {
        bio_split(device, sector, rest, letters)
    })
    .parse(i)
}

/// `[comm] 3`.
pub(super) fn unplug(i: &[u8]) -> Scan<'_, EventKind> {
    let after_name = |text: &'_ [u8]| memrchr(b' ', text).map(|at| at + 1);
    let (i, start) = map_opt(peek(rest), after_name).parse(i)?;
    let (i, requests) = dec_u32(&i[start..])?;
    Ok((i, EventKind::Unplug { requests }))
}

/// `8,0 RA 4096 () 2048 + 8 [comm]`, with `none,0,0` for the I/O priority before `[` in new kernels.
pub(super) fn rq_issue(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (device, letters)) = operation(i)?;
    let (i, _bytes) = terminated(dec_u64, char(' ')).parse(i)?;
    let (i, _) = command(i)?;
    let (i, extent) = extent(device)(i)?;
    Ok((i, EventKind::RqIssue { extent, rwbs: rwbs(letters) }))
}

/// `8,0 RA () 2048 + 8 [0]`, with the I/O priority before `[` in new kernels.
pub(super) fn rq_complete(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (device, letters)) = operation(i)?;
    let (i, _) = command(i)?;
    let (i, extent) = extent(device)(i)?;
    let (i, _priority) = take_till(|b| b == b'[')(i)?;
    let (i, error) = delimited(char('['), dec_i32, char(']')).parse(i)?;
    Ok((i, EventKind::RqComplete { extent, rwbs: rwbs(letters), error }))
}
