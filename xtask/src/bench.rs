//! Reads per second of the native policies and of a kernel tree's own code, per workload.
//!
//! All decide the same folios. A worker's time is that of two processes, so what is measured is time
//! on the wall: on a machine that is busy with something else the figures mean nothing.

use std::sync::Arc;
use std::time::Instant;

use analysis::tree::{PREFIX, ReadPath, TreeOptions, build, generation_of, parse_policy};
use replay::machine::Machine;
use replay::policy::{self, Policy};
use traces::access::{File, Open, Source};
use traces::event::FileId;
use traces::settings::Settings;
use traces::units::ByteOffset;

const FILE_BYTES: u64 = 1 << 30;
/// Fewer take too little time to measure.
const READS_MIN: u64 = 1 << 14;

/// A stream of reads of one size.
#[derive(Clone, Copy)]
enum Pattern {
    /// The whole file in order.
    Sequential,
    /// Aligned places all over the file.
    Random,
    /// The halves of the file in turn, each in order.
    Interleaved,
}

/// Name, pattern and bytes per read.
const WORKLOADS: &[(&str, Pattern, u64)] = &[
    ("sequential 4 KiB", Pattern::Sequential, 4 << 10),
    ("sequential 64 KiB", Pattern::Sequential, 64 << 10),
    ("sequential 1 MiB", Pattern::Sequential, 1 << 20),
    ("random 4 KiB", Pattern::Random, 4 << 10),
    ("random 64 KiB", Pattern::Random, 64 << 10),
    ("two interleaved 64 KiB", Pattern::Interleaved, 64 << 10),
];

impl Pattern {
    /// Calls `read` with every position; returns how many there are.
    fn for_each(self, size: u64, file_bytes: u64, mut read: impl FnMut(u64)) -> u64 {
        let places = file_bytes / size;
        match self {
            Self::Sequential => (0..places).for_each(|n| read(n * size)),
            Self::Random => {
                let mut state = 0x9e37_79b9_7f4a_7c15_u64;
                for _ in 0..places {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    read(state % places * size);
                }
            }
            Self::Interleaved => {
                for n in 0..places / 2 {
                    read(n * size);
                    read(file_bytes / 2 + n * size);
                }
            }
        }
        places
    }
}

/// A way of getting decisions.
struct Column {
    name: &'static str,
    policy: Arc<dyn Policy>,
}

pub(crate) fn run(tree: Option<&str>) -> anyhow::Result<()> {
    let columns = columns(tree)?;
    println!("million reads per second, best of five, for {}", columns[0].policy.name());
    print!("{:24}", "workload");
    for column in &columns {
        print!(" {:>17}", column.name);
    }
    println!();
    for &(name, pattern, size) in WORKLOADS {
        print!("{name:24}");
        for column in &columns {
            let file_bytes = FILE_BYTES.max(READS_MIN * size);
            print!(" {:17.3}", reads_per_us(&*column.policy, pattern, size, file_bytes));
        }
        println!();
    }
    println!("natively, sequential 4 KiB, as the file and with it the number of reads grows");
    for reads in [1_000_000, 10_000_000, 100_000_000] {
        let native = &*columns[0].policy;
        let speed = reads_per_us(native, Pattern::Sequential, 4 << 10, reads * (4 << 10));
        println!("{:24} {speed:17.3}", format!("{} million reads", reads / 1_000_000));
    }
    Ok(())
}

/// The native policy, and the tree's code in this process and in a worker, with each read path.
fn columns(tree: Option<&str>) -> anyhow::Result<Vec<Column>> {
    let Some(tree) = tree else {
        return Ok(vec![Column { name: "native", policy: policy::parse("linux-7.3")? }]);
    };
    let spec = format!("{PREFIX}{tree}");
    let line = generation_of(&build(&spec, &TreeOptions::default())?);
    let mut columns = vec![Column { name: "native", policy: policy::parse(line)? }];
    for (name, in_process, read_path) in [
        ("tree, in process", true, ReadPath::Tree),
        ("tree, worker", false, ReadPath::Tree),
        ("readahead only, in", true, ReadPath::Native),
        ("the same, worker", false, ReadPath::Native),
    ] {
        let options = TreeOptions { in_process, read_path, ..TreeOptions::default() };
        columns.push(Column { name, policy: parse_policy(&spec, &options)? });
    }
    Ok(columns)
}

/// Reads per microsecond, of which the tree's code gets one at a time.
fn reads_per_us(policy: &dyn Policy, pattern: Pattern, size: u64, file_bytes: u64) -> f64 {
    let mut best = f64::MAX;
    let mut reads = 0;
    for _ in 0..5 {
        let source = one_file(file_bytes);
        let mut machine = Machine::new(policy, &source, true, false);
        let begin = Instant::now();
        reads = pattern.for_each(size, file_bytes, |pos| {
            machine.read(0, ByteOffset(pos), size);
            machine.submitted.clear();
        });
        machine.settle();
        best = best.min(begin.elapsed().as_secs_f64());
        assert_eq!((machine.failure.as_deref(), machine.repeat), (None, false));
    }
    reads as f64 / best / 1e6
}

/// A source of one file, one open and no accesses.
pub(crate) fn one_file(size_bytes: u64) -> Source {
    let mut source = Source::generated("generated", Settings::default());
    source.files.push(File {
        id: FileId::default(),
        path: None,
        size_bytes,
        cached: Vec::new(),
        extents: Vec::new(),
    });
    source.opens.push(Open::new(0));
    source.threads.push("thread".to_owned());
    source
}
