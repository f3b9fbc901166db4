//! The table of formats, and how a capture is recognised.

use crate::assemble::Assembler;
use crate::input::Input;
use crate::{Error, blk, ftrace, histogram, iolog, perf, systrace, text, trace_dat};

/// Bytes a recogniser may look at.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// One capture format.
pub(crate) struct Format {
    /// Name shown to people and kept in the capture's header.
    pub(crate) name: &'static str,
    /// Whether the first bytes of a capture (up to [`HEAD_BYTES`]) are this format.
    recognise: fn(&[u8]) -> bool,
    /// Reads a capture of this format.
    pub(crate) read: fn(&mut Input<'_>, &mut Assembler<'_>) -> Result<(), Error>,
}

/// Every format, the most particular first.
const FORMATS: &[Format] = &[
    Format { name: "trace.dat", recognise: trace_dat::recognise, read: trace_dat::read },
    Format { name: "fio iolog", recognise: iolog::recognise, read: iolog::read },
    Format { name: "blktrace", recognise: blk::binary::recognise, read: blk::binary::read },
    Format {
        name: "systrace HTML",
        recognise: systrace::recognise_html,
        read: systrace::read_html,
    },
    Format {
        name: "compressed atrace",
        recognise: systrace::recognise_atrace,
        read: systrace::read_atrace,
    },
    Format {
        name: "blkparse text",
        recognise: blk::text::recognise,
        read: |input, assembler| text::read(&blk::text::Blkparse, input, assembler),
    },
    Format {
        name: "ftrace text",
        recognise: ftrace::recognise,
        read: |input, assembler| text::read(&ftrace::Ftrace, input, assembler),
    },
    Format {
        name: "perf script text",
        recognise: perf::recognise,
        read: |input, assembler| text::read(&perf::Perf, input, assembler),
    },
];

/// Whether the first bytes of an input are a capture of some format.
pub(crate) fn is_capture(head: &[u8]) -> bool {
    FORMATS.iter().any(|format| (format.recognise)(head))
}

/// Names of all formats, for error messages.
fn expected() -> String {
    let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
    names.join(", ")
}

/// Finds the format of `input`, or says what stands there instead.
pub(crate) fn detect(input: &mut Input<'_>) -> Result<&'static Format, Error> {
    let name = input.name.clone();
    let head = input.peek(HEAD_BYTES)?;
    if let Some(format) = FORMATS.iter().find(|format| (format.recognise)(head)) {
        return Ok(format);
    }
    let found = describe(head);
    if let Some(damage) = input.damage() {
        return Err(Error::Damaged {
            name,
            offset: found.bytes as u64,
            compression: damage.compression,
            reason: damage.reason.clone(),
        });
    }
    if found.bytes == 0 {
        return Err(Error::Empty { name, expected: expected() });
    }
    Err(Error::NotACapture { name, expected: expected(), found: found.text })
}

/// What stands at the start of an input that is no capture.
struct Found {
    bytes: usize,
    text: String,
}

fn describe(head: &[u8]) -> Found {
    let bytes = head.len();
    if head.starts_with(b"PERFILE2") {
        let text = "a perf.data file, which `perf script` turns into text".to_owned();
        return Found { bytes, text };
    }
    if histogram::recognise(head) {
        let text = "a histogram, which has no events but can be compared with".to_owned();
        return Found { bytes, text };
    }
    let is_binary = |&b: &u8| b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c);
    if let Some(at) = head.iter().position(is_binary) {
        let near = &head[at..head.len().min(at + 8)];
        let hex: Vec<_> = near.iter().map(|b| format!("{b:02x}")).collect();
        return Found { bytes, text: format!("binary data at byte {at}: {}", hex.join(" ")) };
    }
    let lines = head.split(|&b| b == b'\n').enumerate();
    let first =
        lines.map(|(i, line)| (i + 1, line)).find(|(_, line)| !line.trim_ascii().is_empty());
    let text = match first {
        Some((number, line)) => format!("line {number}: {}", text::excerpt(line)),
        None => "only blank lines".to_owned(),
    };
    Found { bytes, text }
}
