//! The command line. One file per subcommand; what they share is in [`sources`] and [`output`].

mod calibrate;
mod cli;
mod compare;
mod convert;
mod exit;
mod explain;
mod fleet;
mod gate;
mod inspect;
mod output;
mod policy;
mod progress;
mod record;
#[cfg(feature = "remote")]
mod remote;
#[cfg(not(feature = "remote"))]
#[path = "no_remote.rs"]
mod remote;
mod replay;
mod report;
mod sources;
mod sweep;
mod verify;

use std::process::ExitCode;

use anstream::ColorChoice;
use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    // The worker that a kernel tree's code runs in is this program, started again.
    if let Some(code) = kernel::run_if_asked() {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // --help and --version come this way too, and are no errors.
            let _ = error.print();
            return exit::code(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    ColorChoice::from(cli.color).write_global();
    match std::panic::catch_unwind(|| run(&cli)) {
        Ok(Ok(code)) => exit::code(code),
        Ok(Err(error)) => fail(&error),
        // The panic message is on stderr already.
        Err(_) => exit::code(exit::BUG),
    }
}

fn run(cli: &Cli) -> anyhow::Result<u8> {
    match &cli.command {
        Command::Inspect(args) => inspect::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Merge(args) => fleet::merge(args),
        Command::Compare(args) => compare::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Report(args) => report::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::Gate(args) => gate::run(args),
        Command::Convert(args) => convert::run(args),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Record(args) => record::run(args),
        Command::Policy(args) => policy::run(args),
    }
}

/// Says what went wrong. A reader that went away (`| head`) is nothing to talk about.
fn fail(error: &anyhow::Error) -> ExitCode {
    let broken_pipe = error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        return exit::code(exit::OK);
    }
    output::complain(error);
    exit::code(exit::of_error(error))
}
