//! `rareplay policy`

use std::fmt::Write;

use replay::policy::{self, ENTRIES};

use crate::cli::{PolicyArgs, PolicyCommand};
use crate::{exit, output};

pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<u8> {
    match &args.command {
        PolicyCommand::List => output::print(&list())?,
        PolicyCommand::Show { name } => output::print(&show(name)?)?,
    }
    Ok(exit::OK)
}

fn list() -> String {
    let width = ENTRIES.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in ENTRIES {
        let _ = writeln!(text, "{:width$}  {}", entry.name, entry.summary);
    }
    text.push_str("\nA change goes on top of a generation: linux-7.3+align-async-window-v2\n");
    text
}

fn show(name: &str) -> anyhow::Result<String> {
    let entry = policy::describe(name)?;
    let mut text = format!("{}\n  {}\n", entry.name, entry.summary);
    if let Some(base) = entry.base() {
        let _ = writeln!(text, "  on top of: {base} (by default)");
    }
    let _ = writeln!(text, "  follows: {}", entry.follows);
    let _ = writeln!(text, "  checked by: {}", entry.checked);
    Ok(text)
}
