//! Exit codes: a contract that scripts rely on.

use std::process::ExitCode;

/// Everything asked for was done, and nothing checked failed.
pub(crate) const OK: u8 = 0;
/// A check failed: `verify` found a capture whose replay differs.
pub(crate) const DIFFERS: u8 = 10;
/// The input lost data and `--allow-loss` was not given.
pub(crate) const DATA_LOSS: u8 = 14;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// An input is not what it should be, or cannot be read.
pub(crate) const BAD_INPUT: u8 = 65;
/// A bug in this program.
pub(crate) const BUG: u8 = 70;

/// As the process's exit code.
pub(crate) fn code(code: u8) -> ExitCode {
    ExitCode::from(code)
}
