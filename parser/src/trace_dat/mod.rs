//! `trace.dat` files, as `trace-cmd record` writes them, versions 6 and 7.
//!
//! A file holds the format of every event, the names of threads, and the ring-buffer pages of each
//! CPU. Version 6 has them one after the other; version 7 in sections behind a list of options, each
//! of which may be compressed.

mod compression;
mod pages;
mod v6;
mod v7;

use memchr::memchr;
use traces::units::PAGE_SIZE;

use crate::Error;
use crate::assemble::Assembler;
use crate::bytes::Endian;
use crate::input::Input;
use crate::ring_buffer::format::Format;
use crate::ring_buffer::{ClockScale, Decoder, Layout, count_losses, merge};
use crate::source::{Cursor, Source};
pub(crate) use compression::Compression;

pub(crate) use pages::CpuPages;

/// First bytes of every version.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// Most CPUs a file may name.
const CPUS_MAX: u32 = 8192;

/// Sizes a page of a buffer can have.
const BUFFER_PAGE_BYTES: std::ops::RangeInclusive<u32> = 64..=16 << 20;

/// Options of both versions.
const OPTION_CPUSTAT: u16 = 2;
const OPTION_BUFFER: u16 = 3;
const OPTION_TRACECLOCK: u16 = 4;
const OPTION_UNAME: u16 = 5;
const OPTION_CPUCOUNT: u16 = 8;
const OPTION_TSC2NSEC: u16 = 14;

/// Whether the input starts as a `trace.dat` does.
pub(crate) fn recognise(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Where the data of one CPU stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuData {
    pub(crate) cpu: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// One trace buffer: the main one, or that of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Buffer {
    page_bytes: u32,
    cpus: Vec<CpuData>,
}

/// What a file says in front of its pages.
#[derive(Default)]
struct Meta {
    long_bytes: usize,
    page_bytes: u32,
    header_page: Vec<u8>,
    formats: Vec<Format>,
    cmdlines: Vec<u8>,
    cpus: Option<u32>,
    kernel: Option<String>,
    /// Text of each CPU's `stats` file.
    cpu_stats: Vec<Vec<u8>>,
    clock: Option<String>,
    clock_scale: Option<ClockScale>,
    compression: Compression,
    buffers: Vec<Buffer>,
}

/// Reads a whole file.
pub(crate) fn read(input: &mut Input<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let source = input.random_access()?;
    assembler.input_damage(input);
    let meta = Meta::read(&source)?;
    if u64::from(meta.page_bytes) != PAGE_SIZE {
        return Err(Error::PageSize { name: source.name, bytes: meta.page_bytes });
    }
    meta.describe(assembler);
    let endian = endian(&source)?;
    let layout = Layout::parse(&meta.header_page, endian)
        .unwrap_or_else(|| Layout::usual(endian, meta.long_bytes, meta.page_bytes as usize));
    let decoder = Decoder::new(
        layout,
        meta.clock_scale.unwrap_or(ClockScale::NANOSECONDS),
        &meta.formats,
        &meta.cmdlines,
        assembler,
    );
    let all: Vec<(CpuData, u32)> = meta.data().collect();
    check_overlap(&all, &source)?;
    check_page_bytes(&all, &source)?;
    let pages = |&(data, page_bytes): &(CpuData, u32)| {
        CpuPages::new(&source, meta.compression, data, page_bytes, endian, all.len())
    };
    merge(all.iter().map(pages).collect(), &decoder, assembler)
}

/// Fails where CPUs share data: no writer does that, and reading it many times would take forever.
fn check_overlap(all: &[(CpuData, u32)], source: &Source) -> Result<(), Error> {
    let mut areas: Vec<(u64, u64)> =
        all.iter().map(|(data, _)| (data.offset, data.bytes)).filter(|area| area.1 > 0).collect();
    areas.sort_unstable();
    let overlap = areas.windows(2).find(|pair| pair[0].0.saturating_add(pair[0].1) > pair[1].0);
    match overlap {
        None => Ok(()),
        Some(pair) => Err(Error::Malformed {
            name: source.name.clone(),
            offset: pair[1].0,
            expected: "each CPU's data in a place of its own".to_owned(),
            found: format!("that {} bytes from byte {} reach into it", pair[0].1, pair[0].0),
        }),
    }
}

/// Fails where a page of a buffer has a size that no kernel allows.
fn check_page_bytes(all: &[(CpuData, u32)], source: &Source) -> Result<(), Error> {
    match all.iter().find(|(_, bytes)| !BUFFER_PAGE_BYTES.contains(bytes)) {
        None => Ok(()),
        Some((data, bytes)) => Err(Error::Malformed {
            name: source.name.clone(),
            offset: data.offset,
            expected: "data in pages of 64 bytes to 16 MiB".to_owned(),
            found: format!("pages of {bytes} bytes"),
        }),
    }
}

/// The byte order of the machine traced stands behind magic and version.
fn endian(source: &Source) -> Result<Endian, Error> {
    let mut cursor = Cursor::new(source, MAGIC.len() as u64, Endian::Little);
    cursor.string("the version of trace.dat")?;
    match cursor.uint(1, "a byte order")? {
        0 => Ok(Endian::Little),
        1 => Ok(Endian::Big),
        other => Err(cursor.malformed("byte order 0 or 1", &other.to_string())),
    }
}

/// Reads the number of CPUs, which no kernel lets be larger than 8192.
fn check_cpus(cursor: &mut Cursor<'_>) -> Result<u32, Error> {
    let cpus = cursor.u32("the number of CPUs")?;
    if cpus > CPUS_MAX {
        return Err(cursor.malformed("at most 8192 CPUs", &cpus.to_string()));
    }
    Ok(cpus)
}

impl Meta {
    fn read(source: &Source) -> Result<Self, Error> {
        let mut cursor = Cursor::new(source, MAGIC.len() as u64, endian(source)?);
        let version = cursor.string("the version of trace.dat")?;
        cursor.skip(1);
        let mut meta = Self {
            long_bytes: cursor.uint(1, "the size of a long")? as usize,
            page_bytes: cursor.u32("the size of a page")?,
            ..Self::default()
        };
        match version.as_str() {
            "6" => v6::read(&mut meta, source, cursor)?,
            "7" => v7::read(&mut meta, source, cursor)?,
            other => {
                let found = format!("version {other:?}");
                return Err(cursor.malformed("trace.dat version 6 or 7", &found));
            }
        }
        Ok(meta)
    }

    /// Takes an option that both versions have.
    fn option(&mut self, id: u16, data: &[u8], endian: Endian) {
        match id {
            OPTION_CPUSTAT => self.cpu_stats.push(data.to_vec()),
            OPTION_CPUCOUNT => self.cpus = endian.u32(data, 0),
            OPTION_TRACECLOCK => self.clock = selected_clock(data),
            OPTION_UNAME => {
                let uname = String::from_utf8_lossy(data);
                self.kernel = uname.split_whitespace().nth(2).map(str::to_owned);
            }
            OPTION_TSC2NSEC => {
                if let (Some(mult), Some(shift)) = (endian.u32(data, 0), endian.u32(data, 4)) {
                    self.clock_scale = Some(ClockScale { mult, shift });
                }
            }
            _ => {}
        }
    }

    /// The data of all CPUs of all buffers, with the bytes in a page.
    fn data(&self) -> impl Iterator<Item = (CpuData, u32)> {
        let of_buffer = |buffer: &Buffer| {
            let page_bytes = buffer.page_bytes;
            buffer.cpus.iter().map(move |data| (*data, page_bytes)).collect::<Vec<_>>()
        };
        self.buffers.iter().flat_map(of_buffer)
    }

    fn header_page(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Error> {
        cursor.expect(b"header_page\0", "the word header_page")?;
        self.header_page = cursor.text(8, "the layout of a page")?;
        cursor.expect(b"header_event\0", "the word header_event")?;
        cursor.text(8, "the layout of a record").map(drop)
    }

    /// The formats of the tracers' own events.
    fn ftrace_formats(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Error> {
        for _ in 0..cursor.u32("the number of ftrace events")? {
            let text = cursor.text(8, "the format of an event")?;
            self.formats.extend(Format::parse(&text));
        }
        Ok(())
    }

    /// The formats of all other events, by subsystem.
    fn event_formats(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Error> {
        for _ in 0..cursor.u32("the number of subsystems")? {
            cursor.string("the name of a subsystem")?;
            self.ftrace_formats(cursor)?;
        }
        Ok(())
    }

    /// Puts header fields and what the buffers lost into the capture.
    fn describe(&self, assembler: &mut Assembler<'_>) {
        let header = &mut assembler.capture.header;
        header.kernel.clone_from(&self.kernel);
        header.cpus = self.cpus;
        header.clock.clone_from(&self.clock);
        for stats in &self.cpu_stats {
            // The first line says which CPU it is.
            let cpu = stats.split(|&b| b == b'\n').next().unwrap_or_default();
            let losses = &mut assembler.capture.losses;
            count_losses(stats, &String::from_utf8_lossy(cpu), losses);
        }
    }
}

/// The clock in brackets of what `trace_clock` holds: `local global [mono] boot`.
pub(crate) fn selected_clock(text: &[u8]) -> Option<String> {
    let open = memchr(b'[', text)? + 1;
    let name = text[open..].split(|&b| b == b']').next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}
