//! A panel of horizontal bars: one row per category, in it one bar per policy.

use super::axis::{Scale, Span};
use super::canvas::{Canvas, Font};
use super::figure::{LINE_HEIGHT, MARGIN, PANEL_WIDTH, Panel};
use super::plot::labels_below;
use super::style::{Ink, LABEL_PX, SMALL_PX, TITLE_PX, text_width};

const BAR_HEIGHT: i32 = 11;
const BAR_GAP: i32 = 2;
const ROW_GAP: i32 = 9;
const TITLE_HEIGHT: i32 = LINE_HEIGHT + 8;
const AXIS_HEIGHT: i32 = 48;

/// A bar: its length in the unit of the axis, and the value as it stands beside it.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    pub(super) value: f64,
    pub(super) label: String,
}

/// A category and its bars, one per policy.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) name: String,
    /// A second, smaller name; may be empty.
    pub(super) detail: String,
    pub(super) bars: Vec<Bar>,
}

/// The panel.
pub(super) struct Bars {
    pub(super) title: &'static str,
    pub(super) axis_title: &'static str,
    pub(super) scale: Scale,
    pub(super) tick: fn(f64) -> String,
    pub(super) rows: Vec<Row>,
}

impl Panel for Bars {
    fn title(&self) -> &str {
        self.title
    }

    fn height(&self) -> i32 {
        TITLE_HEIGHT + self.rows.len() as i32 * self.row_height() + AXIS_HEIGHT
    }

    fn draw(&self, canvas: &Canvas<'_>, (left, top): (i32, i32)) {
        let title = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(self.title, (left + MARGIN, top + LINE_HEIGHT / 2), title);
        let rows_top = top + TITLE_HEIGHT;
        let rows_bottom = rows_top + self.rows.len() as i32 * self.row_height();
        let axis = Span {
            from: left + MARGIN + self.names_width(),
            to: left + PANEL_WIDTH - MARGIN - self.label_width(),
        };
        self.draw_axis(canvas, axis, rows_top, rows_bottom);
        for (row, n) in self.rows.iter().zip(0..) {
            row.draw(canvas, axis, self.scale, rows_top + ROW_GAP / 2 + n * self.row_height());
        }
        canvas.line((axis.from, rows_top), (axis.from, rows_bottom), Ink::Axis);
    }
}

impl Bars {
    fn row_height(&self) -> i32 {
        self.rows.first().map_or(0, Row::height) + ROW_GAP
    }

    fn names_width(&self) -> i32 {
        let width =
            |row: &Row| text_width(&row.name, LABEL_PX).max(text_width(&row.detail, SMALL_PX));
        self.rows.iter().map(width).max().unwrap_or(0) + 8
    }

    /// Room for the label of a bar that ends at the right end of the axis.
    fn label_width(&self) -> i32 {
        let bars = self.rows.iter().flat_map(|row| &row.bars);
        bars.map(|bar| text_width(&bar.label, SMALL_PX)).max().unwrap_or(0) + 8
    }

    fn draw_axis(&self, canvas: &Canvas<'_>, axis: Span, top: i32, bottom: i32) {
        let ticks = self.scale.ticks(self.tick);
        for (place, _) in &ticks {
            canvas.line((axis.at(*place), top), (axis.at(*place), bottom), Ink::Grid);
        }
        labels_below(canvas, axis, bottom + 12, &ticks);
        let font = Font::new(SMALL_PX, Ink::Muted).centred();
        canvas.text(self.axis_title, (axis.middle(), bottom + 12 + LINE_HEIGHT), font);
    }
}

impl Row {
    fn bars_height(&self) -> i32 {
        self.bars.len() as i32 * (BAR_HEIGHT + BAR_GAP) - BAR_GAP
    }

    /// One bar is lower than the two names beside it.
    fn height(&self) -> i32 {
        self.bars_height().max(2 * LABEL_PX + 4)
    }

    fn draw(&self, canvas: &Canvas<'_>, axis: Span, scale: Scale, top: i32) {
        let middle = top + self.height() / 2;
        let right = axis.from - 8;
        let shift = if self.detail.is_empty() { 0 } else { 7 };
        let name = Font::new(LABEL_PX, Ink::Text).right();
        canvas.text(&self.name, (right, middle - shift), name);
        if !self.detail.is_empty() {
            let detail = Font::new(SMALL_PX, Ink::Muted).right();
            canvas.text(&self.detail, (right, middle + shift), detail);
        }
        let bars_top = middle - self.bars_height() / 2;
        for (series, bar) in self.bars.iter().enumerate() {
            bar.draw(canvas, axis, scale, bars_top, series);
        }
    }
}

impl Bar {
    fn draw(&self, canvas: &Canvas<'_>, axis: Span, scale: Scale, top: i32, series: usize) {
        let y = top + series as i32 * (BAR_HEIGHT + BAR_GAP);
        let mut end = axis.at(scale.place(self.value));
        if self.value > 0.0 {
            end = end.max(axis.from + 1);
            canvas.rect((axis.from, y), (end, y + BAR_HEIGHT), Ink::Series(series));
        }
        let ink = if self.value > 0.0 { Ink::Text } else { Ink::Muted };
        canvas.text(&self.label, (end + 5, y + BAR_HEIGHT / 2), Font::new(SMALL_PX, ink));
    }
}
