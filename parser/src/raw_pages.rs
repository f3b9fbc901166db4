//! Pages of the ring buffer as tracefs gives them, in a directory laid out like tracefs itself.
//!
//! ```text
//! events/header_page              where the parts of a page stand
//! events/SYSTEM/EVENT/format      one for each event recorded
//! per_cpu/cpuN/trace_pipe_raw     the pages of a CPU
//! per_cpu/cpuN/stats              what the CPU lost (optional)
//! saved_cmdlines                  names of threads (optional)
//! trace_clock                     the clock of the time stamps (optional)
//! ```

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use traces::capture::LossKind;

use crate::Error;
use crate::assemble::Assembler;
use crate::bytes::Endian;
use crate::directory::list;
use crate::ring_buffer::format::Format;
use crate::ring_buffer::{ClockScale, Decoder, Layout, count_losses, merge};
use crate::source::Source;
use crate::trace_dat::{Compression, CpuData, CpuPages, selected_clock};

/// What makes a directory one, for error messages.
pub(crate) const EXPECTED: &str = "events/header_page and per_cpu/cpuN/trace_pipe_raw";

/// Largest `format`, `stats` or `saved_cmdlines` file read.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Whether `path` is laid out like tracefs, with pages.
pub(crate) fn recognise(path: &Path) -> bool {
    path.join("events/header_page").is_file() && path.join("per_cpu").is_dir()
}

/// Reads the pages in the directory `path`.
pub(crate) fn read(path: &Path, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    "raw ring-buffer pages".clone_into(&mut assembler.capture.header.format);
    let header_page = text(&path.join("events/header_page"))?;
    let cpus = cpus(path, assembler)?;
    let layout = layout(path, &header_page, &cpus)?;
    let clocks = text(&path.join("trace_clock")).unwrap_or_default();
    assembler.capture.header.clock = selected_clock(&clocks);
    let saved_cmdlines = text(&path.join("saved_cmdlines")).unwrap_or_default();
    let decoder = Decoder::new(
        layout,
        ClockScale::NANOSECONDS,
        &formats(&path.join("events"))?,
        &saved_cmdlines,
        assembler,
    );
    let page_bytes = layout.page_bytes() as u32;
    let pages = cpus.iter().map(|(cpu, source)| {
        let data = CpuData { cpu: *cpu, offset: 0, bytes: source.len() };
        CpuPages::new(source, Compression::None, data, page_bytes, layout.endian, cpus.len())
    });
    merge(pages.collect(), &decoder, assembler)
}

/// Opens the pages of every CPU; counts CPUs without, and what the `stats` say.
fn cpus(path: &Path, assembler: &mut Assembler<'_>) -> Result<Vec<(u32, Source)>, Error> {
    let mut directories = Vec::new();
    for entry in list(&path.join("per_cpu"))? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        let cpu: Option<u32> = name.strip_prefix("cpu").and_then(|cpu| cpu.parse().ok());
        directories.extend(cpu.map(|cpu| (cpu, entry)));
    }
    directories.sort();
    assembler.capture.header.cpus = Some(directories.len() as u32);
    let mut sources = Vec::new();
    for (cpu, directory) in directories {
        let losses = &mut assembler.capture.losses;
        if let Ok(stats) = text(&directory.join("stats")) {
            // The first counter of the file needs a line in front, as the others have.
            count_losses(&[b"\n", &stats[..]].concat(), &format!("CPU {cpu}"), losses);
        }
        let pages = directory.join("trace_pipe_raw");
        match fs::File::open(&pages) {
            Ok(file) => sources.push((cpu, Source::file(file, &pages.display().to_string())?)),
            Err(_) => losses.add(LossKind::MissingCpu, 1, || pages.display().to_string()),
        }
    }
    Ok(sources)
}

/// The layout of the pages. Their byte order is written nowhere: it is the one in which the first
/// page's records fit into the page.
fn layout(path: &Path, header_page: &[u8], cpus: &[(u32, Source)]) -> Result<Layout, Error> {
    let little = Layout::parse(header_page, Endian::Little);
    let Some(little) = little.filter(|layout| layout.page_bytes() <= TEXT_BYTES_MAX as usize)
    else {
        return Err(Error::NotACapture {
            name: path.join("events/header_page").display().to_string(),
            expected: "fields timestamp, commit and data".to_owned(),
            found: crate::text::excerpt(header_page),
        });
    };
    let mut big = little;
    big.endian = Endian::Big;
    for (_, source) in cpus {
        let page = source.read(0, little.page_bytes() as u64)?;
        match (little.fits(&page), big.fits(&page)) {
            (true, false) => return Ok(little),
            (false, true) => return Ok(big),
            _ => {}
        }
    }
    Ok(little)
}

/// All `format` files below `events`.
fn formats(events: &Path) -> Result<Vec<Format>, Error> {
    let mut formats = Vec::new();
    for system in directories(events)? {
        for event in directories(&system)? {
            let text = text(&event.join("format")).unwrap_or_default();
            formats.extend(Format::parse(&text));
        }
    }
    Ok(formats)
}

fn directories(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut directories = list(path)?;
    directories.retain(|entry| entry.is_dir());
    directories.sort();
    Ok(directories)
}

/// The content of a small file. Files of tracefs itself have no size, so it is read to its end.
fn text(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|source| Error::Io { name: path.display().to_string(), source })
}
