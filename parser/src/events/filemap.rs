//! `filemap:*` and the read entry points of filesystems.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till};
use nom::character::complete::char;
use nom::combinator::{map_opt, opt};
use nom::error::{Error, ErrorKind};
use nom::sequence::preceded;
use nom::{IResult, Parser};
use traces::event::{EventKind, FileId};
use traces::units::{ByteOffset, Order, PageIndex};

use super::raw::buffered_read;
use crate::text::scan::{Scan, dec_i64, device, hex, number};

/// `KEY VALUE` or `KEY=VALUE` with one space in front: both appear, and within one event changed
/// between versions.
pub(super) fn field<'a, T>(
    key: &'static str,
    value: impl Fn(&'a [u8]) -> Scan<'a, T>,
) -> impl Fn(&'a [u8]) -> Scan<'a, T> {
    move |i| {
        let named = i.strip_prefix(b" ").unwrap_or(i).strip_prefix(key.as_bytes());
        match named {
            Some([b'=' | b' ', i @ ..]) => value(i),
            _ => Err(nom::Err::Error(Error::new(i, ErrorKind::Tag))),
        }
    }
}

/// `dev 8:1 ino 83`: the inode is hexadecimal, with `0x` only in some events.
pub(super) fn file(i: &[u8]) -> Scan<'_, FileId> {
    let (i, device) = field("dev", device)(i)?;
    let (i, inode) = field("ino", hex)(i)?;
    Ok((i, FileId { device, inode }))
}

/// A byte offset (`loff_t`), as the page it lies in.
fn page_of(i: &[u8]) -> Scan<'_, PageIndex> {
    // An index beyond 2^51 prints as a negative offset: the shift happened in 64 bits.
    let (i, offset) = dec_i64(i)?;
    Ok((i, ByteOffset(offset.cast_unsigned()).page()))
}

/// A folio order that a page cache can hold.
pub(crate) fn order(i: &[u8]) -> Scan<'_, Order> {
    let as_order = |order: u64| (order < Order::COUNT as u64).then_some(Order(order as u8));
    map_opt(number, as_order).parse(i)
}

struct Folio {
    file: FileId,
    index: PageIndex,
    order: Order,
    pfn: u64,
}

/// `dev 8:1 ino 83 [page=P] pfn=N ofs=B [order=O]`.
///
/// `page=` (until 5.16) is an address, hashed or not, or a frame number again: `pfn=` says all.
/// `order=` is there from 5.17 on.
fn folio(i: &[u8]) -> Scan<'_, Folio> {
    let (i, file) = file(i)?;
    let (i, _) = opt(preceded(tag(" page="), take_till(|b| b == b' '))).parse(i)?;
    let (i, pfn) = field("pfn", number)(i)?;
    let (i, index) = field("ofs", page_of)(i)?;
    let (i, order) = match i.strip_prefix(b" order=") {
        Some(i) => order(i)?,
        None => (i, Order(0)),
    };
    Ok((i, Folio { file, index, order, pfn }))
}

pub(super) fn add_to_page_cache(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, Folio { file, index, order, pfn }) = folio(i)?;
    Ok((i, EventKind::AddToPageCache { file, index, order, pfn }))
}

pub(super) fn delete_from_page_cache(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, Folio { file, index, order, .. }) = folio(i)?;
    Ok((i, EventKind::DeleteFromPageCache { file, index, order }))
}

/// `dev=8:1 ino=83 ofs=0-65535`: bytes, both ends inclusive. The form first posted to the list,
/// `dev 8:1 ino 83 ofs=0 max_ofs=65536`, has an exclusive end.
fn range(i: &[u8]) -> IResult<&[u8], (FileId, PageIndex, PageIndex)> {
    let (i, file) = file(i)?;
    let (i, index) = field("ofs", page_of)(i)?;
    let before = |end: i64| Some(ByteOffset(u64::try_from(end).ok()?.checked_sub(1)?).page());
    let exclusive = map_opt(field("max_ofs", dec_i64), before);
    let (i, last) = alt((preceded(char('-'), page_of), exclusive)).parse(i)?;
    Ok((i, (file, index, last)))
}

pub(super) fn get_pages(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (file, index, last)) = range(i)?;
    Ok((i, EventKind::GetPages { file, index, last }))
}

pub(super) fn map_pages(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, (file, index, last)) = range(i)?;
    Ok((i, EventKind::MapPages { file, index, last }))
}

pub(super) fn fault(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, file) = file(i)?;
    let (i, index) = field("ofs", page_of)(i)?;
    Ok((i, EventKind::Fault { file, index }))
}

/// `dev 8:1 ino 0x83 disize 0x1000 pos 0x0 bytecount 0x1000`; until 5.13 the last three were called
/// `size`, `offset` and `count`.
pub(super) fn xfs_buffered_read(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, file) = file(i)?;
    let (i, size_bytes) = alt((field("disize", number), field("size", number))).parse(i)?;
    let (i, pos) = alt((field("pos", number), field("offset", number))).parse(i)?;
    let count = alt((field("bytecount", number), field("count", number)));
    map_opt(count, |count| buffered_read(file, size_bytes, pos, count)).parse(i)
}
