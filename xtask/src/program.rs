//! The program that a task runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The one named, or the one beside this task, built as this one was.
pub(crate) fn built(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = named.map_or_else(|| own.with_file_name("rareplay"), Path::to_owned);
    if named.is_none() {
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--workspace", "--bin", "rareplay"]);
        if own.parent().is_some_and(|folder| folder.ends_with("release")) {
            command.arg("--release");
        }
        ensure!(command.status()?.success(), "rareplay does not build");
    }
    program.canonicalize().with_context(|| program.display().to_string())
}
