//! `rareplay policy`

use std::fmt::Write;

use analysis::tree::{PREFIX, TreeOptions, build, generation_of};
use kernel::Built;
use replay::policy::{self, ENTRIES};

use crate::cli::{PolicyArgs, PolicyCommand, TableFormat};
use crate::{exit, output};

pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<u8> {
    match &args.command {
        PolicyCommand::List { format } => output::print(&list(*format))?,
        PolicyCommand::Show { name } => output::print(&show(name)?)?,
        PolicyCommand::Build { tree, patch, keep, run } => {
            let patch = patch.as_ref().map(|patch| format!(",patch={}", patch.display()));
            let spec = format!("{PREFIX}{tree}{}", patch.unwrap_or_default());
            let options = TreeOptions { keep: *keep, ..run.options() };
            output::print(&describe_build(&spec, &build(&spec, &options)?))?;
        }
    }
    Ok(exit::OK)
}

fn describe_build(spec: &str, built: &Built) -> String {
    let mut text = format!("{spec}\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name}: {value}");
    };
    line("tree", built.describe());
    line("version", built.version_guess().unwrap_or("unknown"));
    line("kernel line", generation_of(built));
    line("compiler", built.compiler());
    line("object", if built.is_from_cache() { "found built" } else { "built" });
    if let Some(folder) = built.folder() {
        line("folder", &folder.display().to_string());
    }
    for note in built.notes() {
        line("note", note);
    }
    for gap in Built::not_modelled() {
        line("not modelled", gap);
    }
    text
}

fn list(format: TableFormat) -> String {
    if format == TableFormat::Markdown {
        let rows = ENTRIES.iter().map(|entry| [entry.name, entry.summary]);
        return reports::markdown::table(&["policy", "what it is"], rows);
    }
    let width = ENTRIES.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for entry in ENTRIES {
        let _ = writeln!(text, "{:width$}  {}", entry.name, entry.summary);
    }
    text.push_str("\nA change goes on top of a generation: linux-7.3+align-async-window-v2\n");
    text
}

fn show(name: &str) -> anyhow::Result<String> {
    let entry = policy::describe(name).map_err(analysis::tree::TreeError::from)?;
    let mut text = format!("{}\n  {}\n", entry.name, entry.summary);
    if let Some(base) = entry.base() {
        let _ = writeln!(text, "  on top of: {base} (by default)");
    }
    let _ = writeln!(text, "  follows: {}", entry.follows);
    let _ = writeln!(text, "  checked by: {}", entry.checked);
    Ok(text)
}
