//! Folios by order, a bar per policy: how many on a logarithmic axis, and their share of the pages.

use analysis::result::{PolicyResult, ReplayReport};

use super::canvas::{Canvas, Font};
use super::style::{Ink, LABEL_PX, SMALL_PX, TITLE_PX, letters_in, text_width};
use super::svg::{Meta, document};
use crate::figures::{orders_shown, pages_by_order};
use crate::number::{count, percent};
use crate::words;

const PANEL_WIDTH: i32 = 460;
const MARGIN: i32 = 16;
/// Room for `order 10` and the size below it.
const NAMES_WIDTH: i32 = 74;
const BAR_HEIGHT: i32 = 14;
const BAR_GAP: i32 = 2;
const ROW_GAP: i32 = 12;
const LINE_HEIGHT: i32 = 17;
const AXIS_HEIGHT: i32 = 44;
/// A count of one has a bar: the logarithmic axis begins at a half.
const LOG_ORIGIN: f64 = 0.5;

/// What a panel shows of the folios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// Folios, on a logarithmic axis.
    Count,
    /// Share of all pages, on a linear axis.
    Share,
}

/// A mark of an axis: where, as a share of its length, and its label.
type Tick = (f64, String);

impl Measure {
    fn title(self) -> &'static str {
        match self {
            Self::Count => "Folios by order",
            Self::Share => "Pages by folio order",
        }
    }

    fn axis_title(self) -> &'static str {
        match self {
            Self::Count => "folios inserted, logarithmic",
            Self::Share => "share of the pages inserted",
        }
    }

    /// Its value for one order of a policy.
    fn value(self, result: &PolicyResult, order: usize) -> f64 {
        match self {
            Self::Count => result.folios.of(order) as f64,
            Self::Share => {
                let pages = pages_by_order(&result.folios);
                let all = pages.iter().sum::<u64>().max(1);
                pages.get(order).copied().unwrap_or(0) as f64 / all as f64
            }
        }
    }

    /// The value as it stands beside its bar.
    fn show(self, result: &PolicyResult, order: usize) -> String {
        match self {
            Self::Count => count(result.folios.of(order)),
            Self::Share => percent(self.value(result, order)),
        }
    }

    /// Where a value lies on the axis, 0 to 1, when the largest one is `largest`.
    fn place(self, value: f64, largest: u64) -> f64 {
        match self {
            Self::Share => value,
            Self::Count if value <= 0.0 => 0.0,
            Self::Count => {
                (value / LOG_ORIGIN).log10() / (top_of_log_axis(largest) / LOG_ORIGIN).log10()
            }
        }
    }

    fn ticks(self, largest: u64) -> Vec<Tick> {
        match self {
            Self::Share => {
                [0, 25, 50, 75, 100].map(|n| (f64::from(n) / 100.0, format!("{n}%"))).into()
            }
            Self::Count => {
                let top = top_of_log_axis(largest);
                let powers = (0..=19).map(|power| 10_u64.pow(power));
                let shown = powers.take_while(|value| *value as f64 <= top);
                shown.map(|value| (self.place(value as f64, largest), short(value))).collect()
            }
        }
    }
}

/// The power of ten at or above the largest count.
fn top_of_log_axis(largest: u64) -> f64 {
    10_f64.powf((largest.max(10) as f64).log10().ceil())
}

/// 1, 10, 100, 1k, 10k, ...
fn short(value: u64) -> String {
    match value {
        0..1000 => value.to_string(),
        1000..1_000_000 => format!("{}k", value / 1000),
        _ => format!("{}M", value / 1_000_000),
    }
}

/// One document with both panels side by side, and a caption.
pub fn orders(report: &ReplayReport) -> String {
    let panel = Panel::new(report);
    let width = 2 * PANEL_WIDTH;
    let caption = wrap(&caption(report), width - 2 * MARGIN, SMALL_PX);
    let legend = panel.legend_height();
    let height = legend + panel.height() + caption.len() as i32 * LINE_HEIGHT + MARGIN;
    let title = title(report);
    let description = description(report);
    let meta = Meta { id: "orders", title: &title, description: &description };
    document(&meta, (width, height), |canvas| {
        panel.draw_legend(canvas, width);
        panel.draw(canvas, (0, legend), Measure::Count);
        panel.draw(canvas, (PANEL_WIDTH, legend), Measure::Share);
        let top = legend + panel.height() + LINE_HEIGHT / 2;
        draw_lines(canvas, &caption, (MARGIN, top), Font::new(SMALL_PX, Ink::Muted));
    })
}

/// The panels as documents of their own, for pages that set them side by side or below each other.
pub(crate) fn panels(report: &ReplayReport) -> [String; 2] {
    let panel = Panel::new(report);
    let description = description(report);
    [(Measure::Count, "orders-count"), (Measure::Share, "orders-share")].map(|(measure, id)| {
        let title = format!("{}: {}", measure.title(), measure.axis_title());
        let meta = Meta { id, title: &title, description: &description };
        let legend = panel.legend_height();
        document(&meta, (PANEL_WIDTH, legend + panel.height()), |canvas| {
            panel.draw_legend(canvas, PANEL_WIDTH);
            panel.draw(canvas, (0, legend), measure);
        })
    })
}

fn title(report: &ReplayReport) -> String {
    format!("Folios by order, {}", words::stem(&report.source))
}

/// The figures in words.
fn description(report: &ReplayReport) -> String {
    let describe = |result: &PolicyResult| {
        let orders = result.folios.by_order.iter().enumerate().filter(|(_, n)| **n > 0);
        let orders: Vec<_> = orders.map(|(order, n)| format!("order {order}: {n}")).collect();
        format!("{}: {} folios ({}).", result.policy, result.folios.total, orders.join(", "))
    };
    report.results.iter().map(describe).collect::<Vec<_>>().join(" ")
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

fn draw_lines(canvas: &Canvas<'_>, lines: &[String], (x, y): (i32, i32), font: Font) {
    for (line, y) in lines.iter().zip((y..).step_by(LINE_HEIGHT as usize)) {
        canvas.text(line, (x, y), font);
    }
}

/// The rows that both panels have in common.
struct Panel<'a> {
    report: &'a ReplayReport,
    orders: usize,
    largest_count: u64,
}

impl<'a> Panel<'a> {
    fn new(report: &'a ReplayReport) -> Self {
        let counts = report.results.iter().flat_map(|result| &result.folios.by_order);
        let largest_count = counts.copied().max().unwrap_or(0);
        Self { report, orders: orders_shown(report), largest_count }
    }

    fn policies(&self) -> i32 {
        self.report.results.len() as i32
    }

    fn row_height(&self) -> i32 {
        self.policies() * (BAR_HEIGHT + BAR_GAP) + ROW_GAP
    }

    fn legend_height(&self) -> i32 {
        MARGIN + self.policies() * LINE_HEIGHT
    }

    fn height(&self) -> i32 {
        LINE_HEIGHT * 2 + self.orders as i32 * self.row_height() + AXIS_HEIGHT
    }

    fn draw_legend(&self, canvas: &Canvas<'_>, width: i32) {
        let fits = letters_in(width - 2 * MARGIN - 28, LABEL_PX);
        for (series, result) in self.report.results.iter().enumerate() {
            let y = MARGIN + series as i32 * LINE_HEIGHT + LINE_HEIGHT / 2;
            canvas.rect((MARGIN, y - 6), (MARGIN + 20, y + 6), Ink::Series(series));
            let name = shorten(&result.policy, fits);
            canvas.text(&name, (MARGIN + 28, y), Font::new(LABEL_PX, Ink::Text));
        }
    }

    /// One panel with its top left corner at `at`.
    fn draw(&self, canvas: &Canvas<'_>, at: (i32, i32), measure: Measure) {
        let (left, top) = at;
        let title_y = top + LINE_HEIGHT;
        let font = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(measure.title(), (left + MARGIN, title_y), font);

        let bars_top = top + 2 * LINE_HEIGHT + ROW_GAP / 2;
        let bars_bottom = bars_top + self.orders as i32 * self.row_height() - ROW_GAP / 2;
        let axis = Axis {
            left: left + MARGIN + NAMES_WIDTH,
            right: left + PANEL_WIDTH - MARGIN - self.value_room(measure),
        };
        self.draw_axis(canvas, &axis, (bars_top - ROW_GAP / 2, bars_bottom), measure);
        for order in 0..self.orders {
            let row_top = bars_top + order as i32 * self.row_height();
            self.draw_row(canvas, &axis, row_top, order, measure);
        }
        canvas.line((axis.left, bars_top - ROW_GAP / 2), (axis.left, bars_bottom), Ink::Axis);
    }

    /// Room for the value of a bar that ends at the right end of the axis.
    fn value_room(&self, measure: Measure) -> i32 {
        let widest = match measure {
            Measure::Count => count(self.largest_count),
            Measure::Share => "99.9%".to_owned(),
        };
        text_width(&widest, SMALL_PX) + 8
    }

    fn draw_axis(
        &self,
        canvas: &Canvas<'_>,
        axis: &Axis,
        (top, bottom): (i32, i32),
        measure: Measure,
    ) {
        let font = Font::new(SMALL_PX, Ink::Muted).centred();
        for (place, label) in measure.ticks(self.largest_count) {
            let x = axis.at(place);
            canvas.line((x, top), (x, bottom), Ink::Grid);
            canvas.text(&label, (x, bottom + 10), font);
        }
        let middle = i32::midpoint(axis.left, axis.right);
        canvas.text(measure.axis_title(), (middle, bottom + 10 + LINE_HEIGHT), font);
    }

    fn draw_row(&self, canvas: &Canvas<'_>, axis: &Axis, top: i32, order: usize, measure: Measure) {
        let bars_height = self.policies() * (BAR_HEIGHT + BAR_GAP) - BAR_GAP;
        let middle = top + bars_height / 2;
        let name_right = axis.left - 8;
        let name = Font::new(LABEL_PX, Ink::Text).right();
        if bars_height < 2 * SMALL_PX {
            canvas.text(&format!("{order}"), (name_right, middle), name);
        } else {
            canvas.text(&format!("order {order}"), (name_right, middle - 7), name);
            let size = Font::new(SMALL_PX, Ink::Muted).right();
            canvas.text(&folio_size(order), (name_right, middle + 7), size);
        }
        for (series, result) in self.report.results.iter().enumerate() {
            let value = measure.value(result, order);
            let y = top + series as i32 * (BAR_HEIGHT + BAR_GAP);
            let end = axis.at(measure.place(value, self.largest_count));
            if value > 0.0 {
                let end = end.max(axis.left + 1);
                canvas.rect((axis.left, y), (end, y + BAR_HEIGHT), Ink::Series(series));
            }
            let ink = if value > 0.0 { Ink::Text } else { Ink::Muted };
            let at = (end + 5, y + BAR_HEIGHT / 2);
            canvas.text(&measure.show(result, order), at, Font::new(SMALL_PX, ink));
        }
    }
}

/// Bytes in a folio.
fn folio_size(order: usize) -> String {
    let kib = 4_u64 << order;
    if kib < 1024 { format!("{kib} KiB") } else { format!("{} MiB", kib >> 10) }
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

/// A horizontal axis in pixels.
struct Axis {
    left: i32,
    right: i32,
}

impl Axis {
    /// Where a share of its length lies.
    fn at(&self, share: f64) -> i32 {
        self.left + (f64::from(self.right - self.left) * share).round() as i32
    }
}
