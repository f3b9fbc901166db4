//! Bytes of ftrace text and events of binary formats a second.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};
use traces::capture::Comms;
use traces::event::Event;

/// Reads of a run: each is one of these groups of lines.
const READS: u64 = 40_000;

/// A sequential reader as 6.18 traces it, some 32 MB.
fn text() -> String {
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

/// Events of a capture, without keeping them.
fn count_events(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut sink = |events: &[Event], _: &Comms| count += events.len();
    parser::stream(bytes, "bench", &mut sink).expect("parses");
    black_box(count)
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

fn ftrace(criterion: &mut Criterion) {
    let text = text();
    let mut group = criterion.benchmark_group("ftrace");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    for threads in [1, 2] {
        let pool = pool(threads);
        group.bench_function(BenchmarkId::new("stream", threads), |bencher| {
            bencher.iter(|| pool.install(|| count_events(text.as_bytes())));
        });
    }
    group.bench_function("read/1", |bencher| {
        let pool = pool(1);
        bencher.iter(|| pool.install(|| parser::read(text.as_bytes(), "bench").expect("parses")));
    });
    group.finish();
}

/// A fixture of the tests.
fn fixture(name: &str) -> Vec<u8> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(path).expect("fixture")
}

/// The fixture of blktrace again and again.
fn blktrace_bytes() -> Vec<u8> {
    fixture("linux-6.12.blktrace.0").repeat(5_000)
}

/// The version 6 fixture with the pages of its only CPU again and again.
fn trace_dat_bytes() -> Vec<u8> {
    const TIMES: u64 = 5_000;
    let mut bytes = fixture("linux-7.3.v6.trace.dat");
    let table = memchr::memmem::find(&bytes, b"flyrecord\0").expect("a table of CPUs") + 10;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let (offset, length) = (number(table) as usize, number(table + 8));
    let pages = bytes[offset..].repeat(TIMES as usize);
    bytes.truncate(offset);
    bytes[table + 8..table + 16].copy_from_slice(&(length * TIMES).to_le_bytes());
    bytes.extend(pages);
    bytes
}

fn binary(criterion: &mut Criterion) {
    for (name, bytes) in [("blktrace", blktrace_bytes()), ("trace_dat", trace_dat_bytes())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(count_events(&bytes) as u64)).sample_size(10);
        for threads in [1, 2] {
            let pool = pool(threads);
            group.bench_function(BenchmarkId::new("stream", threads), |bencher| {
                bencher.iter(|| pool.install(|| count_events(&bytes)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, ftrace, binary);
criterion_main!(benches);
