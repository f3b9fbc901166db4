//! Line-oriented formats: whole-line blocks parsed in parallel and put together in order.

mod part;
pub(crate) mod scan;

use memchr::memchr_iter;
use traces::capture::LossKind;

use crate::Error;
use crate::assemble::Assembler;
use crate::input::Input;

pub(crate) use part::{Note, Part, Prefix, find_prefix};

/// Bytes a block is filled up to: small enough for a core's cache, large enough that a block of
/// lines costs more than handing it over. Also the longest line that is taken as one.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks in flight per thread.
const BLOCKS_PER_THREAD: usize = 4;
/// Blocks in flight on any machine: these bound the memory that reading a text takes.
const BLOCKS_MAX: usize = 64;
/// Bytes of a line shown in messages.
const EXCERPT_BYTES: usize = 120;

/// A line format. Lines are independent of each other, so that blocks can be parsed in parallel.
pub(crate) trait Dialect: Sync {
    /// Parses one line, without its newline, into `part`.
    fn line<'a>(&self, line: &'a [u8], part: &mut Part<'a>);
}

/// Lines looked at to recognise a format.
const RECOGNISE_LINES: usize = 512;

/// Whether any of the first lines is an event of `dialect`.
pub(crate) fn any_line_is_event(dialect: &dyn Dialect, head: &[u8]) -> bool {
    head.split(|&b| b == b'\n').take(RECOGNISE_LINES).any(|line| {
        let mut part = Part::default();
        part.begin_line();
        dialect.line(trim_return(line), &mut part);
        part.has_events()
    })
}

/// Reads all lines of `input` as `dialect`.
pub(crate) fn read(
    dialect: &dyn Dialect,
    input: &mut Input<'_>,
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let mut blocks = Blocks::default();
    let mut line = 1;
    let mut spare = Vec::new();
    let mut batch = blocks.next_batch(input)?;
    while !batch.is_empty() {
        let mut parts: Vec<Part<'_>> =
            batch.iter().map(|_| Part::new(spare.pop().unwrap_or_default())).collect();
        let mut next = Ok(Vec::new());
        rayon::in_place_scope(|scope| {
            for (block, part) in batch.iter().zip(&mut parts) {
                scope.spawn(move |_| parse_block(dialect, block, part));
            }
            next = blocks.next_batch(input);
        });
        for part in parts {
            let events;
            (line, events) = part.deliver(line, assembler);
            spare.push(events);
        }
        blocks.recycle(batch);
        batch = next?;
    }
    assembler.input_damage(input);
    Ok(())
}

/// Parses every line of a block.
fn parse_block<'a>(dialect: &dyn Dialect, block: &'a Block, part: &mut Part<'a>) {
    let bytes = block.bytes();
    let mut start = 0;
    for end in memchr_iter(b'\n', bytes) {
        part.begin_line();
        dialect.line(trim_return(&bytes[start..end]), part);
        start = end + 1;
    }
    let rest = &bytes[start..];
    match block.end {
        BlockEnd::Input if !rest.is_empty() => {
            part.begin_line();
            last_line(dialect, rest, part);
        }
        BlockEnd::LongLine => part.unparsed_piece(rest),
        BlockEnd::Input | BlockEnd::Newline => {}
    }
}

/// Parses a last line that has no newline.
///
/// It may be cut in the middle of a number that still reads as one. Only where the text closes a
/// bracket, as block events do, is it known to be whole.
fn last_line<'a>(dialect: &dyn Dialect, line: &'a [u8], part: &mut Part<'a>) {
    let is_whole = line.starts_with(b"#") || line.ends_with(b"]") || line.ends_with(b")");
    if is_whole {
        dialect.line(line, part);
    } else {
        part.loss(LossKind::Truncated, 1, line);
    }
}

fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Why a block ends where it does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockEnd {
    /// With its last line.
    Newline,
    /// In a line longer than a block.
    LongLine,
    /// With the input.
    Input,
}

/// Some lines of the input, at the start of a buffer.
struct Block {
    buffer: Vec<u8>,
    bytes: usize,
    end: BlockEnd,
}

impl Block {
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

/// Cuts an input into blocks.
#[derive(Default)]
struct Blocks {
    /// Start of a line whose end is not read yet.
    rest: Vec<u8>,
    is_done: bool,
    /// Buffers of blocks that are done with.
    spare: Vec<Vec<u8>>,
}

impl Blocks {
    fn next_batch(&mut self, input: &mut Input<'_>) -> Result<Vec<Block>, Error> {
        let wanted = BLOCKS_MAX.min(BLOCKS_PER_THREAD * rayon::current_num_threads());
        let mut batch = Vec::with_capacity(wanted);
        while batch.len() < wanted {
            match self.next(input)? {
                Some(block) => batch.push(block),
                None => break,
            }
        }
        Ok(batch)
    }

    fn next(&mut self, input: &mut Input<'_>) -> Result<Option<Block>, Error> {
        if self.is_done {
            return Ok(None);
        }
        let mut buffer = self.spare.pop().unwrap_or_else(|| vec![0; BLOCK_BYTES]);
        let start = self.rest.len();
        buffer[..start].copy_from_slice(&self.rest);
        self.rest.clear();
        let filled = start + input.read_full(&mut buffer[start..])?;
        if filled < buffer.len() {
            self.is_done = true;
            let block = Block { buffer, bytes: filled, end: BlockEnd::Input };
            return Ok((filled > 0).then_some(block));
        }
        let Some(newline) = memchr::memrchr(b'\n', &buffer) else {
            return Ok(Some(Block { buffer, bytes: filled, end: BlockEnd::LongLine }));
        };
        self.rest.extend_from_slice(&buffer[newline + 1..]);
        Ok(Some(Block { buffer, bytes: newline + 1, end: BlockEnd::Newline }))
    }

    /// Takes back the buffers of blocks that are done with.
    fn recycle(&mut self, batch: Vec<Block>) {
        self.spare.extend(batch.into_iter().map(|block| block.buffer));
    }
}

/// The start of a line, for messages.
pub(crate) fn excerpt(line: &[u8]) -> String {
    let shown = &line[..line.len().min(EXCERPT_BYTES)];
    let text: String = String::from_utf8_lossy(shown)
        .trim()
        .chars()
        .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
        .collect();
    if line.len() > EXCERPT_BYTES { format!("{text}...") } else { text }
}
