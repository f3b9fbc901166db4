//! Accesses per second of the native policies, per workload.

use std::path::Path;

use cpu_time::ThreadTime;

use replay::machine::Machine;
use replay::policy;
use traces::access::{Fidelity, File, Mapping, Open, Source};
use traces::event::FileId;
use traces::settings::Settings;
use traces::units::ByteOffset;

const FILE_BYTES: u64 = 4 << 30;

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
    fn for_each(self, size: u64, mut read: impl FnMut(u64)) -> u64 {
        let places = FILE_BYTES / size;
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
                    read(FILE_BYTES / 2 + n * size);
                }
            }
        }
        places
    }
}

pub(crate) fn run(tree: Option<&Path>) -> anyhow::Result<()> {
    anyhow::ensure!(tree.is_none(), "the kernel-tree policy is not measured yet");
    for &(name, pattern, size) in WORKLOADS {
        let (seconds, reads) = native(pattern, size, "linux-7.3")?;
        println!("{name:24} {:8.2} M reads/s", reads as f64 / seconds / 1e6);
    }
    Ok(())
}

/// Best of three: seconds and reads.
fn native(pattern: Pattern, size: u64, name: &str) -> anyhow::Result<(f64, u64)> {
    let policy = policy::parse(name)?;
    let mut best = f64::MAX;
    let mut reads = 0;
    for _ in 0..3 {
        let source = source();
        let mut machine = Machine::new(&*policy, &source, true, false);
        let begin = ThreadTime::now();
        reads = pattern.for_each(size, |pos| {
            machine.read(0, ByteOffset(pos), size);
            machine.submitted.clear();
        });
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok((best, reads))
}

fn source() -> Source {
    Source {
        name: "bench".to_owned(),
        fidelity: Fidelity::Exact,
        settings: Settings::default(),
        files: vec![File {
            id: FileId::default(),
            size_bytes: FILE_BYTES,
            cached: Vec::new(),
            extents: Vec::new(),
        }],
        opens: vec![Open {
            file: 0,
            ra_pages: None,
            random: false,
            windowless: false,
            mapping: Mapping::default(),
        }],
        threads: vec!["bench".to_owned()],
        accesses: Vec::new(),
        anchors: Vec::new(),
        implausible_events: 0,
        kernel_min: (0, 0),
        recorded: None,
    }
}
