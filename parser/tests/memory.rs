//! Memory that streaming takes. A process of its own, so that nothing else counts.

use std::fmt::Write as _;
use std::io::{self, Read};

use traces::capture::Comms;
use traces::event::Event;

/// Text handed to the parser.
const TEXT_BYTES: u64 = 48 << 20;
/// What it may take beyond what the process has before: blocks in flight, and the allocator's slack.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// A text again and again.
struct Repeated {
    text: String,
    at: usize,
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at = (self.at + count) % self.text.len();
        Ok(count)
    }
}

/// Most memory the process had so far.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

#[test]
fn streaming_takes_bounded_memory() {
    let mut text = String::new();
    for i in 0..1000 {
        writeln!(
            text,
            "  less-901 [005] ..... 72.{i:06}: mm_filemap_fault: dev=8:1 ino=83 ofs={i}"
        )
        .expect("write to string");
    }
    let before = peak_bytes();
    let reader = Repeated { text, at: 0 }.take(TEXT_BYTES);
    let mut count = 0;
    let mut sink = |events: &[Event], _: &Comms| count += events.len();
    // As many blocks are in flight as there are threads for, up to a limit above this test's.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    pool.install(|| parser::stream(reader, "test", &mut sink)).expect("parses");
    assert!(count > 500_000, "{count} events");
    let growth = peak_bytes() - before;
    assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes for {count} events");
}
