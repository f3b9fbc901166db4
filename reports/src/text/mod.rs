//! Terminal output. Pure functions: the caller prints.

mod explain;
mod fleet;
mod inspect;
mod replay;
mod sweep;
mod verify;

use analysis::result::SettingView;
use anstyle::{AnsiColor, Style as Ansi};
use traces::capture::{Losses, Severity};
use traces::settings::Origin;

use crate::figures::Trend;
use crate::grid::paint;
use crate::words;

pub use explain::explain;
pub use fleet::fleet;
pub use inspect::inspect;
pub(crate) use inspect::inspect_head;
use replay::checked;
pub use replay::replay;
pub use sweep::sweep;
pub use verify::verify;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours.
    pub colour: bool,
    /// Columns to fit into, where names allow it.
    pub width: usize,
}

impl Default for Style {
    /// A file or a pipe.
    fn default() -> Self {
        Self { colour: false, width: 100 }
    }
}

const PLAIN: Ansi = Ansi::new();
const BOLD: Ansi = Ansi::new().bold();
const DIM: Ansi = Ansi::new().dimmed();
const GOOD: Ansi = AnsiColor::Green.on_default();
const BAD: Ansi = AnsiColor::Red.on_default();
const CARE: Ansi = AnsiColor::Yellow.on_default();

fn of_trend(trend: Trend) -> Ansi {
    match trend {
        Trend::Better => GOOD,
        Trend::Worse => BAD,
        Trend::Neutral => PLAIN,
    }
}

/// Width of the names in front of wrapped lines.
const LABEL_WIDTH: usize = 13;

impl Style {
    fn paint(self, text: &str, ansi: Ansi) -> String {
        paint(text, ansi, self.colour)
    }

    /// A line with a name in front, wrapped with the name's width as indent.
    fn labelled(self, label: &str, text: &str) -> String {
        let indent = " ".repeat(LABEL_WIDTH);
        let first = format!("  {label:<width$}", width = LABEL_WIDTH - 2);
        let options = textwrap::Options::new(self.width.max(40))
            .initial_indent(&first)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        let mut wrapped = textwrap::fill(text, options);
        if self.colour {
            let painted = self.paint(label, DIM);
            wrapped.replace_range(2..2 + label.len(), &painted);
        }
        wrapped + "\n"
    }

    /// Settings with their origins, so that what was assumed stands out.
    fn settings(self, settings: &[SettingView]) -> String {
        let text = self.labelled("settings", &words::settings(settings));
        if self.colour {
            let assumed = format!("({})", Origin::Assumed);
            return text.replace(&assumed, &self.paint(&assumed, CARE));
        }
        text
    }
}

/// The losses of a capture, worst last; nothing if there are none.
fn losses(losses: &Losses, style: Style) -> String {
    let mut out = String::new();
    for (kind, loss) in &losses.0 {
        let (name, ansi) = match kind.severity() {
            Severity::Info => ("note", PLAIN),
            Severity::Warning => ("warning", CARE),
            Severity::DataLoss => ("data loss", BAD),
        };
        let text = format!("{}: {} (first: {})", kind.describe(), loss.count, loss.first);
        let line = style.labelled(name, &text);
        out.push_str(&style.paint(line.trim_end_matches('\n'), ansi));
        out.push('\n');
    }
    out
}
