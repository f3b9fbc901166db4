//! A chart with all that goes with it: legend, caption, words, figures as a table and as CSV.

use analysis::result::{ReplayReport, SettingView};
use analysis::verify::CaptureVerify;
use traces::access::Fidelity;

use super::canvas::{Canvas, Font};
use super::legend::Legend;
use super::png;
use super::style::{Ink, SMALL_PX, TITLE_PX, wrap};
use super::svg::{Meta, document};
use super::table::Table;
use crate::words;

pub(super) const PANEL_WIDTH: i32 = 440;
pub(super) const MARGIN: i32 = 16;
pub(super) const LINE_HEIGHT: i32 = 17;
/// Room for the title of a panel that is a document of its own.
const PART_TOP: i32 = 4;
/// Panels side by side in a document.
const COLUMNS: usize = 2;

/// A drawing [`PANEL_WIDTH`] wide.
pub(super) trait Panel {
    /// Its name.
    fn title(&self) -> &str;
    /// How high it is.
    fn height(&self) -> i32;
    /// Draws it with its top left corner at `at`.
    fn draw(&self, canvas: &Canvas<'_>, at: (i32, i32));
}

/// A chart.
pub struct Figure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) reading: &'static str,
    pub(super) description: String,
    pub(super) caption: String,
    pub(super) legend: Legend,
    pub(super) panels: Vec<Box<dyn Panel>>,
    pub(super) table: Table,
    pub(super) csv: String,
}

impl Figure {
    /// Its name in file names and on pages.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// Its name for people.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// How it is read.
    pub fn reading(&self) -> &'static str {
        self.reading
    }

    /// What it shows, for those who do not see it.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The data behind it.
    pub fn csv(&self) -> &str {
        &self.csv
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// All of it in one SVG document.
    pub fn svg(&self) -> String {
        let meta = Meta { id: self.id, title: &self.name(), description: &self.description };
        document(&meta, self.size(), |canvas| self.draw(canvas))
    }

    /// The same as a PNG image on light paper.
    pub fn png(&self) -> Vec<u8> {
        png::encode(self.size(), |canvas| self.draw(canvas))
    }

    /// Legend and panels as documents of their own, for pages that set them side by side or below
    /// each other. `page_id` is unique to the source on the page.
    pub(crate) fn parts(&self, page_id: &str) -> Parts {
        let panels = self.panels.iter().enumerate().map(|(n, panel)| {
            let id = format!("{page_id}{}-{n}", self.id);
            // It is said once.
            let (title, description) = match n {
                0 => (format!("{}: {}", self.title, panel.title()), self.description.as_str()),
                _ => (panel.title().to_owned(), self.reading),
            };
            let meta = Meta { id: &id, title: &title, description };
            let size = (PANEL_WIDTH, PART_TOP + panel.height());
            document(&meta, size, |canvas| panel.draw(canvas, (0, PART_TOP)))
        });
        let id = format!("{page_id}{}-legend", self.id);
        let description = self.legend.names().join(", ");
        let meta = Meta { id: &id, title: "Legend", description: &description };
        let legend = document(&meta, (PANEL_WIDTH, self.legend.height(PANEL_WIDTH)), |canvas| {
            self.legend.draw(canvas, (0, 0), PANEL_WIDTH);
        });
        Parts { legend, panels: panels.collect() }
    }

    fn name(&self) -> String {
        format!("{}: {}", self.title, self.caption.split(';').next().unwrap_or_default())
    }

    fn size(&self) -> (i32, i32) {
        let rows: i32 = self.rows().map(row_height).sum();
        let caption = self.caption_lines().len() as i32 * LINE_HEIGHT;
        (self.width(), self.top() + rows + caption + MARGIN)
    }

    fn width(&self) -> i32 {
        PANEL_WIDTH * self.panels.len().clamp(1, COLUMNS) as i32
    }

    fn rows(&self) -> impl Iterator<Item = &[Box<dyn Panel>]> {
        self.panels.chunks(COLUMNS)
    }

    /// Height of what is above the panels.
    fn top(&self) -> i32 {
        MARGIN + LINE_HEIGHT + self.legend.height(self.width()) + LINE_HEIGHT / 2
    }

    fn caption_lines(&self) -> Vec<String> {
        wrap(&self.caption, self.width() - 2 * MARGIN, SMALL_PX)
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        let title = Font::new(TITLE_PX + 2, Ink::Text).bold();
        canvas.text(self.title, (MARGIN, MARGIN + LINE_HEIGHT / 2), title);
        self.legend.draw(canvas, (0, MARGIN + LINE_HEIGHT), self.width());
        let mut top = self.top();
        for row in self.rows() {
            for (panel, left) in row.iter().zip((0..).step_by(PANEL_WIDTH as usize)) {
                panel.draw(canvas, (left, top));
            }
            top += row_height(row);
        }
        for (line, y) in self.caption_lines().iter().zip((top..).step_by(LINE_HEIGHT as usize)) {
            canvas.text(line, (MARGIN, y + LINE_HEIGHT / 2), Font::new(SMALL_PX, Ink::Muted));
        }
    }
}

fn row_height(row: &[Box<dyn Panel>]) -> i32 {
    row.iter().map(|panel| panel.height()).max().unwrap_or(0)
}

/// A figure in pieces.
pub(crate) struct Parts {
    pub(crate) legend: String,
    pub(crate) panels: Vec<String>,
}

/// What every chart of a source says below it: source, fidelity, settings.
pub(super) fn caption(report: &ReplayReport) -> String {
    origin(&report.source, report.fidelity, &report.settings, report.verify.as_ref())
}

/// The same from the parts of any report.
pub(super) fn origin(
    source: &str,
    fidelity: Fidelity,
    settings: &[SettingView],
    verify: Option<&CaptureVerify>,
) -> String {
    let shown = ["kernel", "fs", "read_ahead_kb", "max_sectors_kb"];
    let settings = settings.iter().filter(|setting| shown.contains(&setting.key));
    let settings: Vec<_> = settings.map(words::setting).collect();
    let checked = verify.map_or("not verified".to_owned(), words::verify);
    format!(
        "{}, {} stream; {}; {checked}",
        words::file_name(source),
        words::fidelity(fidelity),
        settings.join(", ")
    )
}

/// The same for charts of modelled time.
pub(super) fn timed_caption(report: &ReplayReport) -> String {
    format!("{}; time is modelled: {}", caption(report), report.device.model)
}

/// Names of the policies.
pub(super) fn policies(report: &ReplayReport) -> Vec<String> {
    report.results.iter().map(|result| result.policy.clone()).collect()
}
