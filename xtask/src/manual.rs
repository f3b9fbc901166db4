//! Manual pages and shell completions of the command line, for packagers.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

#[path = "../../src/cli.rs"]
mod cli;

pub(crate) fn run(folder: &Path) -> anyhow::Result<()> {
    if folder.is_file() {
        let text = format!("{} is a file, not a folder", folder.display());
        return Err(cli::UsageError(text).into());
    }
    std::fs::create_dir_all(folder)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let path = clap_complete::generate_to(shell, &mut command(), "rareplay", folder)?;
        println!("{}", path.display());
    }
    clap_mangen::generate_to(command(), folder)?;
    println!("{}", folder.join("rareplay.1").display());
    Ok(())
}

fn command() -> clap::Command {
    cli::Cli::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_command_has_a_manual_page_and_completions() {
        let folder = tempfile::tempdir().unwrap();
        super::run(folder.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        for command in super::command().get_subcommands() {
            let page = read(&format!("rareplay-{}.1", command.get_name()));
            assert!(page.contains(".SH SYNOPSIS"), "{page}");
            for completions in ["rareplay.bash", "rareplay.fish", "_rareplay"] {
                assert!(read(completions).contains(command.get_name()), "{completions}");
            }
        }
    }
}
