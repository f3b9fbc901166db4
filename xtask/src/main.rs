//! Development tasks: `cargo xtask TASK`.

mod bench;
mod bench_tables;
mod browser;
mod captures;
mod cost;
mod differential;
mod fidelity;
mod fuse_law;
mod gallery;
mod manual;
mod parquet_check;
mod peers;
mod program;
mod spark;
mod timing;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use fuse_law::TimingLawArgs;
use fuse_law::workload::Workload;

#[derive(Debug, Parser)]
#[command(about = "Development tasks")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Verify every capture below some folders and print the table of the corpus README.
    Fidelity {
        /// Folders of captures.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// Hold them against this policy, such as `tree:linux-source-6.12.tar.xz`, rather than the
        /// built-in one of the kernel that made them.
        #[arg(long)]
        policy: Option<String>,
        /// Run a kernel tree's code in this process.
        #[arg(long)]
        in_process: bool,
    },
    /// Hold predicted times against captures of workloads that were recorded twice.
    Timing {
        /// Folder of captures `NAME_r1` and `NAME_r2`.
        folder: PathBuf,
        /// Workloads whose first run is calibrated on; every other one if missing.
        #[arg(long, value_delimiter = ',')]
        calibrate_on: Vec<String>,
    },
    /// Hold calibration and predicted times against a device whose timing is known (as root).
    TimingLaw(TimingLawArgs),
    /// Read a file as one of the workloads of `timing-law` does.
    #[command(hide = true)]
    ReadWorkload {
        /// Which.
        workload: Workload,
        /// Device reads, about.
        reads: u64,
        /// The file.
        file: PathBuf,
    },
    /// Hold the native policies against kernel trees' own code on random accesses.
    Differential {
        /// Trees, as `tree:` policies name them.
        #[arg(required = true)]
        trees: Vec<String>,
        /// Accesses per tree.
        #[arg(long, default_value_t = 1_000_000)]
        accesses: u64,
        /// The native policy; that of the tree's version if missing.
        #[arg(long)]
        policy: Option<String>,
    },
    /// Run the queries of docs/parquet.md with `DuckDB` and polars over a converted capture.
    ParquetCheck {
        /// The capture.
        #[arg(default_value = "traces/corpus/linux-6.18/seq1m_after4k_ms512.ftrace.zst")]
        capture: PathBuf,
        /// A Python that has both.
        #[arg(long, default_value = "python3")]
        python: PathBuf,
    },
    /// Run `integrations/spark` on a cluster of this machine, kill a worker, and hold what comes out
    /// against a run without it.
    Spark {
        /// A Python that has pyspark.
        #[arg(long, default_value = "python3")]
        python: PathBuf,
        /// The program; the one of this checkout if missing.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Measure what captures of a fleet cost.
    Cost {
        /// The program; the one of this checkout if missing.
        #[arg(long)]
        program: Option<PathBuf>,
    },
    /// Write manual pages and shell completions.
    Manual {
        /// Where to.
        folder: PathBuf,
    },
    /// Measure captures as tables beside the captures.
    BenchTables {
        /// Captures.
        #[arg(required = true)]
        captures: Vec<PathBuf>,
    },
    /// Measure the native policies, and the same decisions made by a kernel tree's own code.
    Bench {
        /// A kernel tree to measure beside them.
        #[arg(long)]
        tree: Option<String>,
    },
    /// Draw docs/gallery again.
    Gallery,
    /// Look at reports in headless Chromium, where there is one.
    Browser {
        /// Keep screenshots in this folder.
        #[arg(long)]
        screenshots: Option<PathBuf>,
    },
    /// Measure the parsers beside trace-cmd, blkparse and wc, over the same files.
    Peers {
        /// Where to write these files; some 500 MB.
        #[arg(long, default_value_os_t = std::env::temp_dir())]
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    // The worker that a kernel tree's code runs in is this program, started again.
    if let Some(code) = kernel::run_if_asked() {
        return Ok(code);
    }
    match Cli::parse().task {
        Task::Fidelity { folders, policy, in_process } => {
            fidelity::run(&folders, policy.as_deref(), in_process)
        }
        Task::Timing { folder, calibrate_on } => timing::run(&folder, &calibrate_on),
        Task::TimingLaw(args) => fuse_law::run(&args),
        Task::ReadWorkload { workload, reads, file } => workload.run(reads, &file),
        Task::Differential { trees, accesses, policy } => {
            differential::run(&trees, accesses, policy.as_deref())
        }
        Task::BenchTables { captures } => bench_tables::run(&captures),
        Task::ParquetCheck { capture, python } => parquet_check::run(&capture, &python),
        Task::Spark { python, program } => spark::run(&python, program.as_deref()),
        Task::Cost { program } => cost::run(program.as_deref()),
        Task::Manual { folder } => manual::run(&folder),
        Task::Bench { tree } => bench::run(tree.as_deref()),
        Task::Gallery => gallery::run(),
        Task::Browser { screenshots } => browser::run(screenshots.as_deref()),
        Task::Peers { folder } => peers::run(&folder),
    }?;
    Ok(ExitCode::SUCCESS)
}
