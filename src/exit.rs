//! Exit codes: a contract that scripts rely on.

use std::process::ExitCode;

/// Everything asked for was done, and nothing checked failed.
pub(crate) const OK: u8 = 0;
/// A check failed: `verify` found a capture whose replay differs, `gate` a regression.
pub(crate) const DIFFERS: u8 = 10;
/// The runs do not tell whether anything is worse.
pub(crate) const INCONCLUSIVE: u8 = 11;
/// There is no baseline to compare with.
pub(crate) const BASELINE_MISSING: u8 = 12;
/// The sides differ in more than what is being compared.
pub(crate) const NOT_COMPARABLE: u8 = 13;
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

/// The exit code of an error.
pub(crate) fn of_error(error: &anyhow::Error) -> u8 {
    let unknown_policy = matches!(
        error.downcast_ref(),
        Some(analysis::tree::TreeError::Policy(_) | analysis::tree::TreeError::BadOption { .. })
    );
    let cannot_record = error.downcast_ref().is_some_and(record::RecordError::is_usage);
    if unknown_policy || cannot_record || error.is::<crate::cli::UsageError>() {
        USAGE
    } else if error.is::<crate::sources::DataLoss>() {
        DATA_LOSS
    } else {
        BAD_INPUT
    }
}
