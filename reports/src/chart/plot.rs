//! The frame of a panel with two axes.

use super::axis::{Span, Tick};
use super::canvas::{Canvas, Font};
use super::figure::{LINE_HEIGHT, MARGIN, PANEL_WIDTH, Panel};
use super::style::{Ink, SMALL_PX, TITLE_PX, shorten, text_width};

/// Above the plot: title and a line on the vertical axis.
const HEAD_HEIGHT: i32 = 2 * LINE_HEIGHT + 10;
/// Below the plot: labels and title of the horizontal axis.
const FOOT_HEIGHT: i32 = 2 * LINE_HEIGHT + 12;
const LABEL_GAP: i32 = 6;

/// Labels of a horizontal axis, in a line at `y`. One that would run into the one before it is left
/// out.
pub(super) fn labels_below(canvas: &Canvas<'_>, axis: Span, y: i32, ticks: &[Tick]) {
    let font = Font::new(SMALL_PX, Ink::Muted).centred();
    let mut free = i32::MIN;
    for (place, text) in ticks {
        let x = axis.at(*place);
        let half = text_width(text, SMALL_PX) / 2;
        if x - half > free {
            canvas.text(text, (x, y), font);
            free = x + half + LABEL_GAP;
        }
    }
}

/// Words in the middle of a plot that has nothing to show.
pub(super) fn nothing(canvas: &Canvas<'_>, plot: Plot, words: &str) {
    let font = Font::new(SMALL_PX, Ink::Muted).centred();
    canvas.text(words, (plot.x.middle(), plot.y.middle()), font);
}

/// Title and axes.
pub(super) struct Axes {
    pub(super) title: String,
    /// What is upwards.
    pub(super) up: String,
    /// What is to the right.
    pub(super) across: String,
    pub(super) x: Vec<Tick>,
    pub(super) y: Vec<Tick>,
    pub(super) plot_height: i32,
}

/// Where the data goes.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    /// From left to right.
    pub(super) x: Span,
    /// From bottom to top.
    pub(super) y: Span,
}

/// A panel that is data within axes.
pub(super) trait Plotted {
    /// The axes.
    fn axes(&self) -> &Axes;
    /// Draws the data.
    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot);
}

impl<P: Plotted> Panel for P {
    fn title(&self) -> &str {
        &self.axes().title
    }

    fn height(&self) -> i32 {
        self.axes().height()
    }

    fn draw(&self, canvas: &Canvas<'_>, at: (i32, i32)) {
        let plot = self.axes().draw(canvas, at);
        self.draw_data(canvas, plot);
    }
}

impl Axes {
    pub(super) fn height(&self) -> i32 {
        HEAD_HEIGHT + self.plot_height + FOOT_HEIGHT
    }

    fn plot(&self, (left, top): (i32, i32)) -> Plot {
        let widest = |ticks: &[Tick]| {
            ticks.iter().map(|(_, label)| text_width(label, SMALL_PX)).max().unwrap_or(0)
        };
        // Half a label stands out at either end.
        let half = widest(&self.x) / 2;
        let names = (widest(&self.y) + LABEL_GAP).max(half);
        let plot_top = top + HEAD_HEIGHT;
        Plot {
            x: Span { from: left + MARGIN + names, to: left + PANEL_WIDTH - MARGIN.max(half + 2) },
            y: Span { from: plot_top + self.plot_height, to: plot_top },
        }
    }

    /// Draws the frame; the data goes into what is returned.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, at: (i32, i32)) -> Plot {
        let plot = self.plot(at);
        self.draw_words(canvas, at, plot);
        let label = Font::new(SMALL_PX, Ink::Muted);
        for (place, text) in &self.y {
            let y = plot.y.at(*place);
            canvas.line((plot.x.from, y), (plot.x.to, y), Ink::Grid);
            canvas.text(text, (plot.x.from - LABEL_GAP, y), label.right());
        }
        for (place, _) in &self.x {
            let x = plot.x.at(*place);
            canvas.line((x, plot.y.from), (x, plot.y.from + 4), Ink::Axis);
        }
        labels_below(canvas, plot.x, plot.y.from + 13, &self.x);
        canvas.line((plot.x.from, plot.y.from), (plot.x.to, plot.y.from), Ink::Axis);
        plot
    }

    fn draw_words(&self, canvas: &Canvas<'_>, (left, top): (i32, i32), plot: Plot) {
        let width = PANEL_WIDTH - 2 * MARGIN;
        let title = shorten(&self.title, width, TITLE_PX);
        let bold = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(&title, (left + MARGIN, top + LINE_HEIGHT / 2), bold);
        let muted = Font::new(SMALL_PX, Ink::Muted);
        let up = shorten(&self.up, width, SMALL_PX);
        canvas.text(&up, (left + MARGIN, top + LINE_HEIGHT + LINE_HEIGHT / 2), muted);
        let across = shorten(&self.across, width, SMALL_PX);
        // Centred below the plot, or where there is room for it.
        let half = text_width(&across, SMALL_PX) / 2;
        let x = plot.x.middle().min(left + PANEL_WIDTH - MARGIN - half).max(left + MARGIN + half);
        canvas.text(&across, (x, plot.y.from + 13 + LINE_HEIGHT), muted.centred());
    }
}
