//! Reads per second of the native policies and of a kernel tree's own code, per workload.
//!
//! Both decide the same folios; the tree's code also logs every decision, as its C interface does.

use std::path::Path;

use anyhow::Context;

use cpu_time::ThreadTime;

use kernel::{Access, Built, InstanceSettings, Isolation, Options, Session, Tree};
use replay::machine::Machine;
use replay::policy;
use traces::access::{File, Mapping, Open, Source};
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

pub(crate) fn run(tree: Option<&Path>) -> anyhow::Result<()> {
    let built = tree.map(build).transpose()?;
    let policy = policy_of(built.as_ref())?;
    println!("million reads per second of CPU time, best of three, under {policy}");
    println!("{:24} {:>10} {:>12} {:>8}", "workload", "native", "kernel code", "ratio");
    for &(name, pattern, size) in WORKLOADS {
        let native = native(pattern, size, FILE_BYTES, policy)?;
        let tree = built.as_ref().map(|built| kernel_code(built, pattern, size)).transpose()?;
        let tree = tree.map_or(String::new(), |tree| format!("{tree:12.2} {:8.2}", native / tree));
        println!("{name:24} {native:10.2} {tree}");
    }
    println!("the same, sequential 4 KiB, as the file and with it the number of reads grows");
    for reads in [1_000_000, 10_000_000, 100_000_000] {
        let native = native(Pattern::Sequential, 4 << 10, reads * (4 << 10), policy)?;
        println!("{:24} {native:10.2}", format!("{} million reads", reads / 1_000_000));
    }
    Ok(())
}

fn build(tree: &Path) -> anyhow::Result<Built> {
    let tree = Tree::parse(&tree.display().to_string())?;
    let options = Options { isolation: Isolation::InProcess, ..Options::default() };
    Ok(Built::new(&tree, &options)?)
}

/// The generation of the tree, or the newest one.
fn policy_of(built: Option<&Built>) -> anyhow::Result<&'static str> {
    let Some(built) = built else { return Ok("linux-7.3") };
    let version = built.version_guess().unwrap_or("unknown");
    policy::for_kernel(version).with_context(|| format!("no policy for kernel {version}"))
}

/// The tree's own `mm/readahead.c` and read path, in this process.
fn kernel_code(built: &Built, pattern: Pattern, size: u64) -> anyhow::Result<f64> {
    const BLOCK: usize = 1 << 16;
    let session = Session::start(built, &Isolation::InProcess)?;
    let mut best = f64::MAX;
    let mut reads = 0;
    for _ in 0..3 {
        let settings = InstanceSettings { i_size: FILE_BYTES, ..InstanceSettings::default() };
        let mut instance = session.instance(settings)?;
        let open = instance.open()?;
        let mut accesses = Vec::new();
        reads = pattern.for_each(size, FILE_BYTES, |pos| {
            accesses.push(Access::read(open, ByteOffset(pos), size));
        });
        let begin = ThreadTime::now();
        for block in accesses.chunks(BLOCK) {
            instance.replay(block)?;
        }
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok(reads as f64 / best / 1e6)
}

/// The native policy.
fn native(pattern: Pattern, size: u64, file_bytes: u64, name: &str) -> anyhow::Result<f64> {
    let policy = policy::parse(name)?;
    let mut best = f64::MAX;
    let mut reads = 0;
    for _ in 0..3 {
        let source = one_file(file_bytes);
        let mut machine = Machine::new(&*policy, &source, true, false);
        let begin = ThreadTime::now();
        reads = pattern.for_each(size, file_bytes, |pos| {
            machine.read(0, ByteOffset(pos), size);
            machine.submitted.clear();
        });
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok(reads as f64 / best / 1e6)
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
    source.opens.push(Open {
        file: 0,
        ra_pages: None,
        random: false,
        windowless: false,
        mapping: Mapping::default(),
    });
    source.threads.push("thread".to_owned());
    source
}
