//! `readahead:*` (6.18).

use traces::event::{EventKind, FileId, RecordedRa};
use traces::units::PageIndex;

use super::filemap::{field, file};
use crate::text::scan::{Scan, dec_i64, dec_u32, dec_u64};

pub(super) fn ra_unbounded(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, file) = file(i)?;
    let (i, index) = field("index", dec_u64)(i)?;
    let (i, nr_to_read) = field("nr_to_read", dec_u64)(i)?;
    let (i, lookahead_size) = field("lookahead_size", dec_u64)(i)?;
    let index = PageIndex(index);
    Ok((i, EventKind::RaUnbounded { file, index, nr_to_read, lookahead_size }))
}

pub(super) fn ra_order(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, file) = file(i)?;
    let (i, index) = field("index", dec_u64)(i)?;
    let (i, order) = field("order", dec_u32)(i)?;
    let (i, size) = field("size", dec_u64)(i)?;
    let (i, async_size) = field("async_size", dec_u64)(i)?;
    let (i, ra_pages) = field("ra_pages", dec_u64)(i)?;
    let index = PageIndex(index);
    Ok((i, EventKind::RaOrder { file, index, order, size, async_size, ra_pages }))
}

struct Trigger {
    file: FileId,
    index: PageIndex,
    req_count: u64,
    ra: RecordedRa,
}

fn trigger(i: &[u8]) -> Scan<'_, Trigger> {
    let (i, file) = file(i)?;
    let (i, index) = field("index", dec_u64)(i)?;
    let (i, req_count) = field("req_count", dec_u64)(i)?;
    let (i, order) = field("order", dec_u32)(i)?;
    let (i, size) = field("size", dec_u64)(i)?;
    let (i, async_size) = field("async_size", dec_u64)(i)?;
    let (i, ra_pages) = field("ra_pages", dec_u64)(i)?;
    let (i, mmap_miss) = field("mmap_miss", dec_u32)(i)?;
    let (i, prev_pos) = field("prev_pos", dec_i64)(i)?;
    let ra = RecordedRa { order, size, async_size, ra_pages, mmap_miss, prev_pos };
    Ok((i, Trigger { file, index: PageIndex(index), req_count, ra }))
}

pub(super) fn sync_ra(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, Trigger { file, index, req_count, ra }) = trigger(i)?;
    Ok((i, EventKind::SyncRa { file, index, req_count, ra }))
}

pub(super) fn async_ra(i: &[u8]) -> Scan<'_, EventKind> {
    let (i, Trigger { file, index, req_count, ra }) = trigger(i)?;
    Ok((i, EventKind::AsyncRa { file, index, req_count, ra }))
}
