//! Development tasks: `cargo xtask TASK`.

mod bench;
mod fidelity;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

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
    },
    /// Measure the native policies, and the same decisions made by a kernel tree's own code.
    Bench {
        /// A kernel tree to measure beside them.
        #[arg(long)]
        tree: Option<PathBuf>,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Fidelity { folders } => fidelity::run(&folders),
        Task::Bench { tree } => bench::run(tree.as_deref()),
    }
}
