//! Captures to measure with: real ones and parts of them, again and again at later times.

use std::fmt::Write as _;

/// Reads of a run: each is one of these groups of lines.
const READS: u64 = 40_000;

/// A sequential reader as 6.18 traces it, some 32 MB.
pub(crate) fn text() -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for read in 0..READS {
        let (ns, pos) = (read * 150, read * 65536);
        let mut line = |delta: u64, body: std::fmt::Arguments<'_>| {
            let (s, us) = ((ns + delta) / 1_000_000, (ns + delta) % 1_000_000);
            writeln!(text, "          reader-516     [000] ..... {s:>5}.{us:06}: {body}")
                .expect("string");
        };
        let file = "dev 259:1 ino 0x83 disize 0x20000000";
        line(0, format_args!("xfs_file_buffered_read: {file} pos {pos:#x} bytecount 0x10000"));
        let ra = "order=2 size=32 async_size=32 ra_pages=32 mmap_miss=0";
        let index = pos >> 12;
        line(
            5,
            format_args!(
                "page_cache_async_ra: dev=259:1 ino=83 index={index} req_count=16 {ra} prev_pos={pos}"
            ),
        );
        for folio in 0..4 {
            let ofs = pos + folio * 16384;
            line(
                10 + folio,
                format_args!(
                    "mm_filemap_add_to_page_cache: dev 259:1 ino 83 pfn=0x1b5f9 ofs={ofs} order=2"
                ),
            );
        }
        let sector = pos >> 9;
        line(20, format_args!("block_rq_issue: 259,1 RA 65536 () {sector} + 128 be,0,4 [reader]"));
        line(90, format_args!("block_rq_complete: 259,1 RA () {sector} + 128 be,0,4 [0]"));
    }
    text
}

/// A fixture of the tests.
fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../parser/tests/fixtures")
        .join(name);
    std::fs::read(path).expect("fixture")
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Adds to the number at `at`.
fn add_at(bytes: &mut [u8], at: usize, more: u64) {
    let sum = u64_at(bytes, at) + more;
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// How often a fixture is repeated.
const TIMES: u64 = 5_000;
/// From one repetition to the next; no fixture takes as long.
const SPAN_NS: u64 = 10_000_000_000;

/// The fixture of blktrace again and again, a later one after the other.
pub(crate) fn blktrace_bytes() -> Vec<u8> {
    const HEADER_BYTES: usize = 48;
    let once = fixture("linux-6.12.blktrace.0");
    let mut bytes = Vec::new();
    let mut sequence = 0_u32;
    for turn in 0..TIMES {
        let mut copy = once.clone();
        let mut at = 0;
        while at + HEADER_BYTES <= copy.len() {
            let pdu_bytes = u16::from_le_bytes([copy[at + 46], copy[at + 47]]);
            // Notes have none.
            if copy[at + 4..at + 8] != [0; 4] {
                sequence += 1;
                copy[at + 4..at + 8].copy_from_slice(&sequence.to_le_bytes());
            }
            add_at(&mut copy, at + 8, turn * SPAN_NS);
            at += HEADER_BYTES + usize::from(pdu_bytes);
        }
        bytes.extend(copy);
    }
    bytes
}

/// The version 6 fixture with the pages of its only CPU again and again, later each time.
pub(crate) fn trace_dat_bytes() -> Vec<u8> {
    const PAGE_BYTES: usize = 4096;
    let mut bytes = fixture("linux-7.3.v6.trace.dat");
    let table = find(&bytes, b"flyrecord\0").expect("a table of CPUs") + 10;
    let (offset, length) = (u64_at(&bytes, table) as usize, u64_at(&bytes, table + 8));
    let pages = bytes[offset..offset + length as usize].to_vec();
    bytes.truncate(offset);
    bytes[table + 8..table + 16].copy_from_slice(&(length * TIMES).to_le_bytes());
    for turn in 0..TIMES {
        let mut copy = pages.clone();
        copy.chunks_mut(PAGE_BYTES).for_each(|page| add_at(page, 0, turn * SPAN_NS));
        bytes.extend(copy);
    }
    bytes
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
