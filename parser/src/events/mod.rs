//! What the fields of an event say, whichever format they came in.

mod block;
mod filemap;
mod raw;
mod readahead;
mod syscall;
mod task;

use traces::event::EventKind;

use crate::text::scan::Scan;

pub(crate) use block::rwbs;
pub(crate) use raw::{Shape, Slots, bio_split, shape};
pub(crate) use syscall::{Side, enter as syscall_enter, exit as syscall_exit, is_call_number};

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decoded {
    /// It is in the model.
    Event(EventKind),
    /// It is not one this program uses.
    Unused,
    /// It is, but its fields could not be read.
    BadFields,
}

impl Decoded {
    /// What reading an event's fields came to.
    pub(crate) fn fields(kind: Option<EventKind>) -> Self {
        kind.map_or(Self::BadFields, Self::Event)
    }
}

/// Decodes the text behind an event's name.
pub(crate) fn decode(name: &[u8], fields: &[u8]) -> Decoded {
    let Some(parse) = text_parser(name) else {
        return syscall::decode(name, fields);
    };
    match parse(fields) {
        Ok((_, kind)) => Decoded::Event(kind),
        Err(_) => {
            Decoded::fields(raw::shape(name).and_then(|shape| raw::from_pairs(shape, fields)))
        }
    }
}

/// Reads the text of one event.
type TextParser = fn(&[u8]) -> Scan<'_, EventKind>;

/// The parser of an event's text, if the event is in the model.
fn text_parser(name: &[u8]) -> Option<TextParser> {
    let parse: TextParser = match name {
        b"mm_filemap_add_to_page_cache" => filemap::add_to_page_cache,
        b"mm_filemap_delete_from_page_cache" => filemap::delete_from_page_cache,
        b"mm_filemap_get_pages" => filemap::get_pages,
        b"mm_filemap_map_pages" => filemap::map_pages,
        b"mm_filemap_fault" => filemap::fault,
        b"xfs_file_buffered_read" => filemap::xfs_buffered_read,
        b"page_cache_ra_unbounded" => readahead::ra_unbounded,
        b"page_cache_ra_order" => readahead::ra_order,
        b"page_cache_sync_ra" => readahead::sync_ra,
        b"page_cache_async_ra" => readahead::async_ra,
        b"block_bio_queue" => block::bio_queue,
        b"block_bio_backmerge" | b"block_bio_frontmerge" => block::bio_merge,
        b"block_split" => block::split,
        b"block_unplug" => block::unplug,
        b"block_rq_issue" => block::rq_issue,
        b"block_rq_complete" => block::rq_complete,
        b"task_newtask" => task::newtask,
        _ => return None,
    };
    Some(parse)
}
