//! A program that is nothing but a worker, for this crate's tests and examples.

use std::process::ExitCode;

fn main() -> ExitCode {
    kernel::run_if_asked().unwrap_or(ExitCode::FAILURE)
}
