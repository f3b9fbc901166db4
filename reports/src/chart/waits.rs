//! How long reads wait: the share of the reads that waited no longer, over the wait.

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, Span, short_time, whole_percent};
use super::canvas::{Canvas, Font};
use super::frame::{LINE_HEIGHT, MARGIN, Mark, PANEL_WIDTH, Panel, figure, single};
use super::style::{Ink, SMALL_PX, TITLE_PX};
use crate::number::Unit;

const PLOT_HEIGHT: i32 = 240;
const NAMES_WIDTH: i32 = 40;
/// Half a tick label, which stands below the right end of the axis.
const LABEL_ROOM: i32 = 20;
const AXIS_HEIGHT: i32 = 44;

/// The document, with a caption.
pub fn waits(report: &ReplayReport) -> String {
    figure(report, "waits", &description(report), &[&Waits::new(report)])
}

/// The chart without a caption.
pub(crate) fn panel(report: &ReplayReport) -> String {
    single(report, "waits-panel", &description(report), &Waits::new(report))
}

fn description(report: &ReplayReport) -> String {
    let describe = |result: &PolicyResult| {
        let [p50, p99, max] =
            [result.read_wait_ns.p50, result.read_wait_ns.p99, result.read_wait_ns.max]
                .map(|ns| Unit::Nanoseconds.show(ns));
        format!("{}: median {p50}, 99th percentile {p99}, longest {max}.", result.policy)
    };
    report.results.iter().map(describe).collect::<Vec<_>>().join(" ")
}

struct Waits<'a> {
    report: &'a ReplayReport,
    scale: Scale,
}

impl<'a> Waits<'a> {
    fn new(report: &'a ReplayReport) -> Self {
        let all = report.results.iter().flat_map(|result| &result.read_wait_quantiles_ns);
        let waited = all.copied().filter(|ns| *ns > 0);
        let smallest = waited.clone().min().unwrap_or(1000);
        let largest = waited.max().unwrap_or(10_000);
        Self { report, scale: Scale::between(smallest, largest) }
    }

    /// The steps of one policy: from each wait up to the share that waited no longer.
    fn steps(&self, quantiles_ns: &[u64], x: Span, y: Span) -> Vec<(i32, i32)> {
        let last = quantiles_ns.len().saturating_sub(1).max(1) as f64;
        let mut points = vec![(x.from, y.from)];
        for (n, ns) in quantiles_ns.iter().enumerate() {
            let at = x.at(self.scale.place(*ns as f64));
            let before = points[points.len() - 1].1;
            points.extend([(at, before), (at, y.at(n as f64 / last))]);
        }
        points.push((x.to, points[points.len() - 1].1));
        points.dedup();
        points
    }
}

impl Panel for Waits<'_> {
    fn title(&self) -> &'static str {
        "Read wait"
    }

    fn mark(&self) -> Mark {
        Mark::Line
    }

    fn height(&self) -> i32 {
        2 * LINE_HEIGHT + PLOT_HEIGHT + AXIS_HEIGHT
    }

    fn draw(&self, canvas: &Canvas<'_>, (left, top): (i32, i32)) {
        let title = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(self.title(), (left + MARGIN, top + LINE_HEIGHT), title);
        let plot_top = top + 2 * LINE_HEIGHT + 6;
        let y = Span { from: top + 2 * LINE_HEIGHT + PLOT_HEIGHT, to: plot_top };
        let x = Span {
            from: left + MARGIN + NAMES_WIDTH,
            to: left + PANEL_WIDTH - MARGIN - LABEL_ROOM,
        };
        let label = Font::new(SMALL_PX, Ink::Muted);
        for (place, text) in Scale::Share.ticks(whole_percent) {
            canvas.line((x.from, y.at(place)), (x.to, y.at(place)), Ink::Grid);
            canvas.text(&text, (x.from - 8, y.at(place)), label.right());
        }
        for (place, text) in self.scale.ticks(short_time) {
            canvas.line((x.at(place), y.from), (x.at(place), y.to), Ink::Grid);
            canvas.text(&text, (x.at(place), y.from + 12), label.centred());
        }
        canvas.line((x.from, y.from), (x.to, y.from), Ink::Axis);
        let axis_title = "wait, logarithmic; up: share of the reads that waited no longer";
        canvas.text(axis_title, (x.middle(), y.from + 12 + LINE_HEIGHT), label.centred());
        for (series, result) in self.report.results.iter().enumerate() {
            let steps = self.steps(&result.read_wait_quantiles_ns, x, y);
            canvas.path(steps, Ink::Series(series), 2);
        }
    }
}
