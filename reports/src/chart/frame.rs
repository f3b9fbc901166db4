//! What surrounds the panels of a chart: legend, caption, and how panels are put together.

use analysis::result::ReplayReport;

use super::canvas::{Canvas, Font};
use super::style::{Ink, LABEL_PX, SMALL_PX, letters_in};
use super::svg::{Meta, document};
use crate::words;

pub(super) const PANEL_WIDTH: i32 = 460;
pub(super) const MARGIN: i32 = 16;
pub(super) const LINE_HEIGHT: i32 = 17;

/// How a series is drawn, and so how the legend shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Bar,
    Line,
}

/// A drawing [`PANEL_WIDTH`] wide, one series per policy.
pub(super) trait Panel {
    /// Its name.
    fn title(&self) -> &'static str;
    /// How its series are drawn.
    fn mark(&self) -> Mark;
    /// How high it is.
    fn height(&self) -> i32;
    /// Draws it with its top left corner at `at`.
    fn draw(&self, canvas: &Canvas<'_>, at: (i32, i32));
}

/// All panels side by side in one document, with legend and caption.
pub(super) fn figure(
    report: &ReplayReport,
    id: &str,
    description: &str,
    panels: &[&dyn Panel],
) -> String {
    let titles: Vec<&str> = panels.iter().map(|panel| panel.title()).collect();
    let title = format!("{}: {}", words::stem(&report.source), titles.join("; "));
    let meta = Meta { id, title: &title, description };
    let width = PANEL_WIDTH * panels.len() as i32;
    let caption = wrap(&caption(report), width - 2 * MARGIN, SMALL_PX);
    let legend = legend_height(report);
    let panels_height = panels.iter().map(|panel| panel.height()).max().unwrap_or(0);
    let height = legend + panels_height + caption.len() as i32 * LINE_HEIGHT + MARGIN;
    document(&meta, (width, height), |canvas| {
        let mark = panels.first().map_or(Mark::Bar, |panel| panel.mark());
        draw_legend(canvas, report, mark, width);
        for (panel, left) in panels.iter().zip((0..).step_by(PANEL_WIDTH as usize)) {
            panel.draw(canvas, (left, legend));
        }
        let top = legend + panels_height + LINE_HEIGHT / 2;
        draw_lines(canvas, &caption, (MARGIN, top));
    })
}

/// One panel as a document of its own, for pages that have the caption already.
pub(super) fn single(
    report: &ReplayReport,
    id: &str,
    description: &str,
    panel: &dyn Panel,
) -> String {
    let meta = Meta { id, title: panel.title(), description };
    let legend = legend_height(report);
    document(&meta, (PANEL_WIDTH, legend + panel.height()), |canvas| {
        draw_legend(canvas, report, panel.mark(), PANEL_WIDTH);
        panel.draw(canvas, (0, legend));
    })
}

fn caption(report: &ReplayReport) -> String {
    let shown = ["kernel", "fs", "read_ahead_kb", "max_sectors_kb"];
    let settings = report.settings.iter().filter(|setting| shown.contains(&setting.key));
    let settings: Vec<_> = settings.map(words::setting).collect();
    let checked = report.verify.as_ref().map_or("not verified".to_owned(), words::verify);
    format!(
        "{}, {} stream; {}; {checked}",
        words::file_name(&report.source),
        words::fidelity(report.fidelity),
        settings.join(", ")
    )
}

fn wrap(text: &str, width: i32, px: i32) -> Vec<String> {
    let options = textwrap::Options::new(letters_in(width, px)).break_words(true);
    textwrap::wrap(text, options).into_iter().map(Into::into).collect()
}

fn draw_lines(canvas: &Canvas<'_>, lines: &[String], (x, y): (i32, i32)) {
    for (line, y) in lines.iter().zip((y..).step_by(LINE_HEIGHT as usize)) {
        canvas.text(line, (x, y), Font::new(SMALL_PX, Ink::Muted));
    }
}

fn legend_height(report: &ReplayReport) -> i32 {
    MARGIN + report.results.len() as i32 * LINE_HEIGHT
}

fn draw_legend(canvas: &Canvas<'_>, report: &ReplayReport, mark: Mark, width: i32) {
    let fits = letters_in(width - 2 * MARGIN - 36, LABEL_PX);
    for (series, result) in report.results.iter().enumerate() {
        let y = MARGIN + series as i32 * LINE_HEIGHT + LINE_HEIGHT / 2;
        let (left, right) = (MARGIN, MARGIN + 28);
        match mark {
            Mark::Bar => canvas.rect((left, y - 6), (right, y + 6), Ink::Series(series)),
            Mark::Line => canvas.path(vec![(left, y), (right, y)], Ink::Series(series), 2),
        }
        let name = shorten(&result.policy, fits);
        canvas.text(&name, (right + 8, y), Font::new(LABEL_PX, Ink::Text));
    }
}

/// A name cut in its middle, so that both ends can be told.
fn shorten(name: &str, letters: usize) -> String {
    let length = name.chars().count();
    if length <= letters {
        return name.to_owned();
    }
    let half = letters.saturating_sub(1) / 2;
    let first: String = name.chars().take(half).collect();
    let last: String = name.chars().skip(length - half).collect();
    format!("{first}\u{2026}{last}")
}
