//! Printing.

use std::io::Write;

use anstream::{AutoStream, ColorChoice};
use reports::text::Style;
use terminal_size::{Width, terminal_size_of};

/// How text looks on standard output: as wide as the terminal, with colour where it has some and
/// neither `NO_COLOR`, `CLICOLOR=0` nor `--color never` is against it.
pub(crate) fn style() -> Style {
    let stdout = std::io::stdout();
    let width = terminal_size_of(&stdout).map(|(Width(columns), _)| usize::from(columns));
    Style {
        colour: AutoStream::choice(&stdout) != ColorChoice::Never,
        width: width.unwrap_or(Style::default().width),
    }
}

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says on standard error what went wrong and why. Many messages quote their cause, which is not said
/// once more then.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    eprintln!("rareplay: {text}");
}
