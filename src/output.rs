//! Printing.

use std::io::{IsTerminal, Write};

use reports::text::Style;

/// How text looks on standard output: colour on a terminal unless `NO_COLOR` is set.
pub(crate) fn style() -> Style {
    let colour = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Style { colour, ..Style::default() }
}

/// Writes a result to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
