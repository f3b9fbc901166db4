//! Access patterns, and the program that makes them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use clap::ValueEnum;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::device::FILE_BYTES;

/// Bytes that one device read of readahead has, by the `read_ahead_kb` that is calibrated under.
const WINDOW_BYTES: u64 = 128 << 10;
const SEED: u64 = 1;

/// An access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Random 4 KiB reads.
    Rand4k,
    /// Random 64 KiB reads.
    Rand64k,
    /// 64 KiB reads in order.
    Seq64k,
    /// Two threads, each reading half of the file in order.
    Threads,
    /// 1 MiB reads in order.
    Seq1m,
    /// 16 KiB of every 64 KiB.
    Stride,
    /// Random reads of 4 to 256 KiB.
    Randmix,
    /// 64 KiB reads from the end down.
    Backward,
}

impl Workload {
    pub(super) const ALL: [Self; 8] = [
        Self::Rand4k,
        Self::Rand64k,
        Self::Seq64k,
        Self::Threads,
        Self::Seq1m,
        Self::Stride,
        Self::Randmix,
        Self::Backward,
    ];

    /// Its name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }

    /// Whether the device is fitted to it.
    pub(super) fn is_calibrated_on(self) -> bool {
        matches!(self, Self::Rand4k | Self::Rand64k | Self::Seq64k | Self::Threads)
    }

    /// Reads `path` in this pattern, so much that the device gets about as many `reads`.
    pub(crate) fn run(self, reads: u64, path: &Path) -> anyhow::Result<()> {
        let file = File::open(path)?;
        let bytes = (reads * WINDOW_BYTES).min(FILE_BYTES);
        match self {
            Self::Rand4k => random(&file, reads, 4, 4),
            Self::Rand64k => random(&file, reads, 64, 64),
            Self::Randmix => random(&file, reads, 4, 256),
            Self::Seq64k => in_order(&file, 0..bytes, 64, 64),
            Self::Seq1m => in_order(&file, 0..bytes, 1024, 1024),
            Self::Stride => in_order(&file, 0..bytes / 2, 16, 64),
            Self::Backward => {
                let mut buffer = vec![0; 64 << 10];
                (1..=reads).try_for_each(|at| {
                    Ok(file.read_exact_at(&mut buffer, FILE_BYTES - at * (64 << 10))?)
                })
            }
            Self::Threads => std::thread::scope(|scope| {
                let part = |from: u64| in_order(&File::open(path)?, from..from + bytes / 2, 64, 64);
                let other = scope.spawn(move || part(FILE_BYTES / 2));
                part(0)?;
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
        }
    }
}

/// Reads `count_kb` of every `step_kb`.
fn in_order(
    file: &File,
    bytes: std::ops::Range<u64>,
    count_kb: u64,
    step_kb: u64,
) -> anyhow::Result<()> {
    let mut buffer = vec![0; (count_kb << 10) as usize];
    for pos in bytes.step_by((step_kb << 10) as usize) {
        file.read_exact_at(&mut buffer, pos)?;
    }
    Ok(())
}

/// Reads of random sizes, multiples of `min_kb` up to `max_kb`, at places that are multiples too.
fn random(file: &File, reads: u64, min_kb: u64, max_kb: u64) -> anyhow::Result<()> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut below = |n: u64| random.next_u64() % n;
    let mut buffer = vec![0; (max_kb << 10) as usize];
    for _ in 0..reads {
        let count = (below(max_kb / min_kb) + 1) * (min_kb << 10);
        let pos = below((FILE_BYTES - count) / (min_kb << 10)) * (min_kb << 10);
        file.read_exact_at(&mut buffer[..count as usize], pos)?;
    }
    Ok(())
}
