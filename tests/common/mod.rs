//! Runs of the program in the corpus.
#![allow(dead_code, reason = "each test binary uses a part")]

use assert_cmd::Command;
use serde_json::Value;

pub(crate) const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/corpus");

pub(crate) fn rareplay(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("rareplay").unwrap();
    command.current_dir(CORPUS).env("NO_COLOR", "1").args(args);
    command
}

pub(crate) fn stdout(args: &[&str]) -> String {
    let output = rareplay(args).assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// The document of a run that was asked for one.
pub(crate) fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// Exit code and standard error of a run that fails.
pub(crate) fn failure(args: &[&str]) -> (i32, String) {
    let output = rareplay(args).assert().failure().get_output().clone();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}
