//! Events as values by field name, the way records and raw reports hold them.
//!
//! Field names are those of the kernel's `format` files, which differ from the ones in the text: what
//! `xfs_file_buffered_read` prints as `pos` is the field `offset`.

use traces::event::{Device, EventKind, Extent, FileId, RecordedRa};
use traces::units::{ByteOffset, Order, PageIndex, Sector};

use super::block::rwbs;

/// The values of one record, by position in [`Shape::names`].
pub(crate) trait Slots {
    /// A number, sign-extended where the field is signed.
    fn int(&self, slot: usize) -> Option<u64>;
    /// The bytes of a text field.
    fn text(&self, slot: usize) -> Option<&[u8]>;
}

/// Which fields make an event, and how.
pub(crate) struct Shape {
    /// Names of the fields; slots count from the first.
    pub(crate) names: &'static [&'static str],
    /// Builds the event. None where a field is missing or impossible.
    pub(crate) build: fn(&dyn Slots) -> Option<EventKind>,
}

/// The shape of the event called `name`, if it is in the model.
pub(crate) fn shape(name: &[u8]) -> Option<&'static Shape> {
    let (_, shape) = SHAPES.iter().find(|(known, _)| known.as_bytes() == name)?;
    Some(shape)
}

const FOLIO: &[&str] = &["s_dev", "i_ino", "index", "pfn", "order"];
const RANGE: &[&str] = &["s_dev", "i_ino", "index", "last_index"];
const TRIGGER: &[&str] = &[
    "s_dev",
    "i_ino",
    "index",
    "req_count",
    "order",
    "size",
    "async_size",
    "ra_pages",
    "mmap_miss",
    "prev_pos",
];
const BIO: &[&str] = &["dev", "rwbs", "sector", "nr_sector"];

const SHAPES: &[(&str, Shape)] = &[
    ("mm_filemap_add_to_page_cache", Shape { names: FOLIO, build: add_to_page_cache }),
    ("mm_filemap_delete_from_page_cache", Shape { names: FOLIO, build: delete_from_page_cache }),
    ("mm_filemap_get_pages", Shape { names: RANGE, build: get_pages }),
    ("mm_filemap_map_pages", Shape { names: RANGE, build: map_pages }),
    ("mm_filemap_fault", Shape { names: &["s_dev", "i_ino", "index"], build: fault }),
    (
        "xfs_file_buffered_read",
        Shape { names: &["dev", "ino", "size", "offset", "count"], build: xfs_buffered_read },
    ),
    (
        "page_cache_ra_unbounded",
        Shape {
            names: &["s_dev", "i_ino", "index", "nr_to_read", "lookahead_size"],
            build: ra_unbounded,
        },
    ),
    (
        "page_cache_ra_order",
        Shape {
            names: &["s_dev", "i_ino", "index", "order", "size", "async_size", "ra_pages"],
            build: ra_order,
        },
    ),
    ("page_cache_sync_ra", Shape { names: TRIGGER, build: sync_ra }),
    ("page_cache_async_ra", Shape { names: TRIGGER, build: async_ra }),
    ("block_bio_queue", Shape { names: BIO, build: bio_queue }),
    ("block_bio_backmerge", Shape { names: BIO, build: bio_merge }),
    ("block_bio_frontmerge", Shape { names: BIO, build: bio_merge }),
    ("block_split", Shape { names: &["dev", "rwbs", "sector", "new_sector"], build: split }),
    ("block_unplug", Shape { names: &["nr_rq"], build: unplug }),
    ("block_rq_issue", Shape { names: BIO, build: rq_issue }),
    (
        "block_rq_complete",
        Shape { names: &["dev", "rwbs", "sector", "nr_sector", "error"], build: rq_complete },
    ),
    ("task_newtask", Shape { names: &["pid", "clone_flags"], build: newtask }),
];

/// `dev_t` inside the kernel: 12 bits of major, 20 of minor.
fn device(dev: u64) -> Device {
    Device { major: (dev >> 20) as u32, minor: (dev & 0xf_ffff) as u32 }
}

fn file(slots: &dyn Slots) -> Option<FileId> {
    Some(FileId { device: device(slots.int(0)?), inode: slots.int(1)? })
}

fn index(slots: &dyn Slots) -> Option<PageIndex> {
    slots.int(2).map(PageIndex)
}

fn int32(slots: &dyn Slots, slot: usize) -> Option<u32> {
    slots.int(slot).map(|value| value as u32)
}

/// The order of a folio; records have it from 5.17 on.
fn order(slots: &dyn Slots) -> Option<Order> {
    let order = slots.int(4).unwrap_or(0);
    (order < Order::COUNT as u64).then_some(Order(order as u8))
}

fn add_to_page_cache(slots: &dyn Slots) -> Option<EventKind> {
    let (file, index, order) = (file(slots)?, index(slots)?, order(slots)?);
    Some(EventKind::AddToPageCache { file, index, order, pfn: slots.int(3).unwrap_or(0) })
}

fn delete_from_page_cache(slots: &dyn Slots) -> Option<EventKind> {
    let (file, index, order) = (file(slots)?, index(slots)?, order(slots)?);
    Some(EventKind::DeleteFromPageCache { file, index, order })
}

fn get_pages(slots: &dyn Slots) -> Option<EventKind> {
    let last = PageIndex(slots.int(3)?);
    Some(EventKind::GetPages { file: file(slots)?, index: index(slots)?, last })
}

fn map_pages(slots: &dyn Slots) -> Option<EventKind> {
    let last = PageIndex(slots.int(3)?);
    Some(EventKind::MapPages { file: file(slots)?, index: index(slots)?, last })
}

fn fault(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::Fault { file: file(slots)?, index: index(slots)? })
}

fn xfs_buffered_read(slots: &dyn Slots) -> Option<EventKind> {
    let (size_bytes, pos, count) = (slots.int(2)?, slots.int(3)?, slots.int(4)?);
    buffered_read(file(slots)?, size_bytes, pos, count)
}

/// A read entering XFS, from text or record.
pub(super) fn buffered_read(
    file: FileId,
    size_bytes: u64,
    pos: u64,
    count: u64,
) -> Option<EventKind> {
    i64::try_from(pos).ok()?;
    // Old kernels record a negative errno here when the request was refused: nothing was asked for.
    let count = if i64::try_from(count).is_ok() { count } else { 0 };
    Some(EventKind::BufferedRead { file, size_bytes, pos: ByteOffset(pos), count })
}

fn ra_unbounded(slots: &dyn Slots) -> Option<EventKind> {
    let (nr_to_read, lookahead_size) = (slots.int(3)?, slots.int(4)?);
    let (file, index) = (file(slots)?, index(slots)?);
    Some(EventKind::RaUnbounded { file, index, nr_to_read, lookahead_size })
}

fn ra_order(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::RaOrder {
        file: file(slots)?,
        index: index(slots)?,
        order: int32(slots, 3)?,
        size: slots.int(4)?,
        async_size: slots.int(5)?,
        ra_pages: slots.int(6)?,
    })
}

fn recorded_ra(slots: &dyn Slots) -> Option<RecordedRa> {
    Some(RecordedRa {
        order: int32(slots, 4)?,
        size: slots.int(5)?,
        async_size: slots.int(6)?,
        ra_pages: slots.int(7)?,
        mmap_miss: int32(slots, 8)?,
        prev_pos: slots.int(9)?.cast_signed(),
    })
}

fn sync_ra(slots: &dyn Slots) -> Option<EventKind> {
    let (file, index, ra) = (file(slots)?, index(slots)?, recorded_ra(slots)?);
    Some(EventKind::SyncRa { file, index, req_count: slots.int(3)?, ra })
}

fn async_ra(slots: &dyn Slots) -> Option<EventKind> {
    let (file, index, ra) = (file(slots)?, index(slots)?, recorded_ra(slots)?);
    Some(EventKind::AsyncRa { file, index, req_count: slots.int(3)?, ra })
}

fn extent(slots: &dyn Slots) -> Option<Extent> {
    let (device, sector) = (device(slots.int(0)?), Sector(slots.int(2)?));
    Some(Extent { device, sector, sectors: slots.int(3)? })
}

fn bio_queue(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::BioQueue { extent: extent(slots)?, rwbs: rwbs(slots.text(1)?) })
}

fn bio_merge(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::BioMerge { extent: extent(slots)?, rwbs: rwbs(slots.text(1)?) })
}

fn split(slots: &dyn Slots) -> Option<EventKind> {
    let (sector, rest) = (slots.int(2)?, slots.int(3)?);
    bio_split(device(slots.int(0)?), sector, rest, slots.text(1)?)
}

/// A split of the bio that starts at `sector`, cut at `rest`.
pub(crate) fn bio_split(
    device: Device,
    sector: u64,
    rest: u64,
    letters: &[u8],
) -> Option<EventKind> {
    let extent = Extent { device, sector: Sector(sector), sectors: rest.checked_sub(sector)? };
    Some(EventKind::BioSplit { extent, rest: Sector(rest), rwbs: rwbs(letters) })
}

fn newtask(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::NewTask { pid: int32(slots, 0)?, clone_flags: slots.int(1)? })
}

fn unplug(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::Unplug { requests: int32(slots, 0)? })
}

fn rq_issue(slots: &dyn Slots) -> Option<EventKind> {
    Some(EventKind::RqIssue { extent: extent(slots)?, rwbs: rwbs(slots.text(1)?) })
}

fn rq_complete(slots: &dyn Slots) -> Option<EventKind> {
    let error = slots.int(4)? as u32;
    let (extent, rwbs) = (extent(slots)?, rwbs(slots.text(1)?));
    Some(EventKind::RqComplete { extent, rwbs, error: error.cast_signed() })
}

/// Values written as `name=value`, as `trace-cmd report -R` and failed parses print them.
struct Pairs<'a> {
    names: &'static [&'static str],
    text: &'a [u8],
}

impl<'a> Pairs<'a> {
    fn value(&self, slot: usize) -> Option<&'a [u8]> {
        let name = self.names[slot].as_bytes();
        let mut pairs = self.text.split(|&b| b == b' ');
        pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
    }
}

impl Slots for Pairs<'_> {
    fn int(&self, slot: usize) -> Option<u64> {
        let value = self.value(slot)?;
        // Inode numbers follow the `%lx` of the event's own format, without 0x.
        let is_inode = self.names[slot].ends_with("ino");
        signed_number(value, is_inode)
    }

    fn text(&self, slot: usize) -> Option<&[u8]> {
        self.value(slot)
    }
}

pub(super) fn signed_number(value: &[u8], is_hex: bool) -> Option<u64> {
    if let Some(value) = value.strip_prefix(b"-") {
        return Some(signed_number(value, is_hex)?.wrapping_neg());
    }
    let parse = if is_hex { crate::text::scan::hex } else { crate::text::scan::number };
    let (rest, value) = parse(value).ok()?;
    rest.is_empty().then_some(value)
}

/// Builds the event of `shape` from `name=value` pairs.
pub(super) fn from_pairs(shape: &'static Shape, text: &[u8]) -> Option<EventKind> {
    (shape.build)(&Pairs { names: shape.names, text })
}
