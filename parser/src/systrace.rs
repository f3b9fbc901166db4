//! Ftrace text inside what Android's tools write: systrace's HTML and atrace's compressed output.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use memchr::{memchr, memmem};

use crate::assemble::Assembler;
use crate::ftrace::Ftrace;
use crate::input::Input;
use crate::{Error, text};

/// Bytes of HTML read at a time.
const STEP_BYTES: usize = 64 << 10;
/// Longest line kept; the scripts of the page have longer ones, trace data does not.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Whether the input is an HTML page; whether it has a trace shows only further on.
pub(crate) fn recognise_html(head: &[u8]) -> bool {
    let start = &head.trim_ascii_start()[..head.trim_ascii_start().len().min(15)];
    start.eq_ignore_ascii_case(b"<!DOCTYPE html>")
}

/// Reads the trace inside an HTML page.
pub(crate) fn read_html(input: &mut Input<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let name = input.name.clone();
    let mut found = false;
    let page =
        HtmlText { input, found: &mut found, place: Place::Page, line: vec![], out: vec![], at: 0 };
    text::read(&Ftrace, &mut Input::open(page, &name)?, assembler)?;
    assembler.input_damage(input);
    if found {
        return Ok(());
    }
    let expected =
        "a script element of class trace-data, or linuxPerfData, with a trace".to_owned();
    Err(Error::NotACapture { name, expected, found: "an HTML page without one".to_owned() })
}

/// Where in the page a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside any data.
    Page,
    /// At the start of data that may be a trace or something else, such as a list of processes.
    DataStart,
    /// In data that is no trace.
    OtherData,
    /// In a trace.
    Trace,
}

/// The trace in a page: every other line is empty, so that line numbers stay those of the page.
struct HtmlText<'h, 'r> {
    input: &'h mut Input<'r>,
    found: &'h mut bool,
    place: Place,
    line: Vec<u8>,
    out: Vec<u8>,
    at: usize,
}

impl HtmlText<'_, '_> {
    /// Takes a whole line.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.place == Place::DataStart && !line.trim_ascii().is_empty() {
            // Trace data starts with its header; only there does a `#` start a line.
            self.place = if line.starts_with(b"#") { Place::Trace } else { Place::OtherData };
            *self.found |= self.place == Place::Trace;
        }
        if memmem::find(&line, b"</script>").is_some() {
            self.place = Place::Page;
        } else if self.place == Place::Page {
            self.place = data_start(&line);
        } else if self.place == Place::Trace {
            self.out.extend_from_slice(without_string_end(&line));
        }
        self.out.push(b'\n');
        self.line = line;
        self.line.clear();
    }

    /// Reads on until something comes out or the page ends.
    fn refill(&mut self) -> Result<(), Error> {
        self.out.clear();
        self.at = 0;
        while self.out.is_empty() {
            let step = self.input.take(STEP_BYTES)?.to_vec();
            if step.is_empty() {
                return Ok(());
            }
            let mut rest = &step[..];
            while let Some(end) = memchr(b'\n', rest) {
                self.keep(&rest[..end]);
                self.end_line();
                rest = &rest[end + 1..];
            }
            self.keep(rest);
        }
        Ok(())
    }

    fn keep(&mut self, part: &[u8]) {
        let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }
}

/// What begins behind a line of the page.
fn data_start(line: &[u8]) -> Place {
    let is_data = memmem::find(line, b"<script").is_some()
        && memmem::find(line, b"class=\"trace-data\"").is_some();
    let is_legacy = memmem::find(line, b"var linuxPerfData = \"\\").is_some();
    if is_data || is_legacy { Place::DataStart } else { Place::Page }
}

/// A line without the `\n\` that ends it inside a JavaScript string.
fn without_string_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.strip_suffix(b"\\n\\").unwrap_or(line)
}

impl Read for HtmlText<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.out.len() {
            self.refill().map_err(io::Error::other)?;
        }
        let count = buffer.len().min(self.out.len() - self.at);
        buffer[..count].copy_from_slice(&self.out[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// What stands in front of atrace's data.
const ATRACE_MARK: &[u8] = b"TRACE:\n";
/// Bytes of messages that may stand in front of the mark.
const ATRACE_MARK_WITHIN: usize = 4096;
/// First byte of a zlib stream as atrace writes it.
const ZLIB_FIRST: u8 = 0x78;

/// Where atrace's compressed data starts.
fn atrace_start(head: &[u8]) -> Option<usize> {
    let head = &head[..head.len().min(ATRACE_MARK_WITHIN)];
    let mark = memmem::find(head, ATRACE_MARK)?;
    let start = mark + ATRACE_MARK.len();
    let is_line = mark == 0 || head[mark - 1] == b'\n';
    (is_line && head.get(start) == Some(&ZLIB_FIRST)).then_some(start)
}

/// Whether the input is the compressed output of atrace.
pub(crate) fn recognise_atrace(head: &[u8]) -> bool {
    atrace_start(head).is_some()
}

/// Reads the compressed output of atrace.
pub(crate) fn read_atrace(
    input: &mut Input<'_>,
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let start = atrace_start(input.peek(ATRACE_MARK_WITHIN)?).unwrap_or(0);
    input.take(start)?;
    let name = input.name.clone();
    let mut unpacked = Input::unpacked(Box::new(ZlibDecoder::new(input)), &name, "zlib");
    text::read(&Ftrace, &mut unpacked, assembler)
}
