//! Version 6: everything in a row.

use super::{Buffer, CpuData, Meta, OPTION_BUFFER, check_cpus};
use crate::Error;
use crate::ring_buffer::Layout;
use crate::source::{Cursor, Source};

/// Bytes of the words that announce a part.
const WORD_BYTES: u64 = 10;

/// Reads everything in front of the pages.
pub(super) fn read(meta: &mut Meta, source: &Source, mut cursor: Cursor<'_>) -> Result<(), Error> {
    meta.header_page(&mut cursor)?;
    meta.ftrace_formats(&mut cursor)?;
    meta.event_formats(&mut cursor)?;
    let kallsyms_bytes = cursor.u32("the size of the symbol table")?;
    cursor.skip(kallsyms_bytes.into());
    let printk_bytes = cursor.u32("the size of the printk formats")?;
    cursor.skip(printk_bytes.into());
    meta.cmdlines = cursor.text(8, "the names of threads")?;
    let cpus = check_cpus(&mut cursor)?;
    meta.cpus = Some(cpus);

    let mut instances = Vec::new();
    let mut word = cursor.take(WORD_BYTES, "options or data")?;
    if word == b"options  \0" {
        instances = options(meta, &mut cursor)?;
        word = cursor.take(WORD_BYTES, "data")?;
    }
    if word != b"flyrecord\0" {
        cursor.at -= WORD_BYTES;
        let found = String::from_utf8_lossy(&word).into_owned();
        return Err(cursor.malformed("flyrecord data", &format!("{found:?}")));
    }
    let main = buffer(meta, &mut cursor, cpus)?;
    meta.buffers.push(main);
    for offset in instances {
        let mut cursor = Cursor::new(source, offset, cursor.endian);
        cursor.expect(b"flyrecord\0", "flyrecord data of an instance")?;
        let instance = buffer(meta, &mut cursor, cpus)?;
        meta.buffers.push(instance);
    }
    Ok(())
}

/// Reads the options; returns where the buffers of instances stand.
fn options(meta: &mut Meta, cursor: &mut Cursor<'_>) -> Result<Vec<u64>, Error> {
    let mut instances = Vec::new();
    loop {
        let id = cursor.u16("an option")?;
        if id == 0 {
            return Ok(instances);
        }
        let data = cursor.text(4, "the data of an option")?;
        if id == OPTION_BUFFER {
            instances.extend(cursor.endian.u64(&data, 0));
        } else {
            meta.option(id, &data, cursor.endian);
        }
    }
}

fn buffer(meta: &Meta, cursor: &mut Cursor<'_>, cpus: u32) -> Result<Buffer, Error> {
    let mut data = Vec::new();
    for cpu in 0..cpus {
        let offset = cursor.u64("the position of a CPU's data")?;
        let bytes = cursor.u64("the size of a CPU's data")?;
        data.push(CpuData { cpu, offset, bytes });
    }
    // A page of the buffer can be larger than one of memory.
    let layout = Layout::parse(&meta.header_page, cursor.endian);
    let page_bytes = layout.map_or(meta.page_bytes, |layout| layout.page_bytes() as u32);
    Ok(Buffer { page_bytes, cpus: data })
}
