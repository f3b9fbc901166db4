//! Version 7: sections, found through lists of options.

use std::collections::BTreeSet;

use super::compression::Compression;
use super::{Buffer, CpuData, Meta, OPTION_BUFFER, check_cpus};
use crate::Error;
use crate::bytes::Endian;
use crate::source::{Cursor, Source};

const OPTION_DONE: u16 = 0;
const OPTION_HEADER_INFO: u16 = 16;
const OPTION_FTRACE_EVENTS: u16 = 17;
const OPTION_EVENT_FORMATS: u16 = 18;
const OPTION_CMDLINES: u16 = 21;

/// Set in a section's flags when it is compressed.
const SECTION_COMPRESSED: u16 = 1;
/// Lists of options followed before the file is taken to run in circles.
const OPTION_LISTS_MAX: u32 = 1024;

/// Reads everything in front of the pages.
pub(super) fn read(meta: &mut Meta, source: &Source, mut cursor: Cursor<'_>) -> Result<(), Error> {
    let name = cursor.string("the name of the compression")?;
    cursor.string("the version of the compression")?;
    meta.compression = match Compression::from_name(&name) {
        Some(compression) => compression,
        None => return Err(cursor.malformed("compression zstd, zlib or none", &name)),
    };
    let mut next = cursor.u64("the position of the options")?;
    let mut seen = BTreeSet::new();
    for _ in 0..OPTION_LISTS_MAX {
        if next == 0 {
            break;
        }
        next = options(meta, &mut seen, source, Cursor::new(source, next, cursor.endian))?;
    }
    Ok(())
}

/// Reads one list of options; returns where the next one stands, or 0.
fn options(
    meta: &mut Meta,
    seen: &mut BTreeSet<u16>,
    source: &Source,
    cursor: Cursor<'_>,
) -> Result<u64, Error> {
    let endian = cursor.endian;
    let list = section(meta, source, cursor)?;
    let mut cursor = Cursor::new(&list, 0, endian);
    loop {
        let id = cursor.u16("an option")?;
        let data = cursor.text(4, "the data of an option")?;
        let offset = endian.u64(&data, 0).unwrap_or(0);
        match id {
            OPTION_DONE => return Ok(offset),
            OPTION_BUFFER => {
                let buffer = buffer(meta, source, data, endian)?;
                meta.buffers.push(buffer);
            }
            OPTION_HEADER_INFO | OPTION_FTRACE_EVENTS | OPTION_EVENT_FORMATS | OPTION_CMDLINES => {
                // Later ones would say the same again.
                if seen.insert(id) {
                    part(meta, id, source, Cursor::new(source, offset, endian))?;
                }
            }
            _ => meta.option(id, &data, endian),
        }
    }
}

/// Reads the section of formats or names that option `id` points to.
fn part(meta: &mut Meta, id: u16, source: &Source, cursor: Cursor<'_>) -> Result<(), Error> {
    let endian = cursor.endian;
    let content = section(meta, source, cursor)?;
    let mut cursor = Cursor::new(&content, 0, endian);
    match id {
        OPTION_HEADER_INFO => meta.header_page(&mut cursor),
        OPTION_FTRACE_EVENTS => meta.ftrace_formats(&mut cursor),
        OPTION_EVENT_FORMATS => meta.event_formats(&mut cursor),
        _ => {
            meta.cmdlines = cursor.text(8, "the names of threads")?;
            Ok(())
        }
    }
}

/// The content of the section at `cursor`, unpacked.
fn section(meta: &Meta, source: &Source, mut cursor: Cursor<'_>) -> Result<Source, Error> {
    let start = cursor.at;
    let _id = cursor.u16("a section")?;
    let flags = cursor.u16("the flags of a section")?;
    let _description = cursor.u32("the description of a section")?;
    let bytes = cursor.u64("the size of a section")?;
    let name = format!("{}, section at byte {start}", source.name);
    let content = if flags & SECTION_COMPRESSED != 0 {
        meta.compression.chunk(&mut cursor)?
    } else {
        cursor.take(bytes, "the content of a section")?
    };
    Ok(Source::memory(content, &name))
}

/// The buffer that an option describes.
fn buffer(
    meta: &mut Meta,
    source: &Source,
    option: Vec<u8>,
    endian: Endian,
) -> Result<Buffer, Error> {
    let option = Source::memory(option, &format!("{}, option of a buffer", source.name));
    let mut cursor = Cursor::new(&option, 0, endian);
    let _section = cursor.u64("the position of a buffer")?;
    let _name = cursor.string("the name of a buffer")?;
    let clock = cursor.string("the clock of a buffer")?;
    let page_bytes = cursor.u32("the size of a page")?;
    let mut cpus = Vec::new();
    for _ in 0..check_cpus(&mut cursor)? {
        let cpu = cursor.u32("the number of a CPU")?;
        let offset = cursor.u64("the position of a CPU's data")?;
        let bytes = cursor.u64("the size of a CPU's data")?;
        cpus.push(CpuData { cpu, offset, bytes });
    }
    meta.clock.get_or_insert(clock);
    Ok(Buffer { page_bytes, cpus })
}
