//! A figure over the values of a setting, one curve per policy, with the value to take.

use super::axis::{Scale, short_bytes, short_count, short_percent, short_time};
use super::canvas::{Canvas, Font};
use super::figure::{Figure, Panel};
use super::legend::{Legend, Mark};
use super::plot::{Axes, Plot, Plotted};
use super::style::{Ink, SMALL_PX, text_width};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{Unit, count, percent};

const PLOT_HEIGHT: i32 = 200;

/// What a sweep gave.
#[derive(Clone, Debug)]
pub struct Curves {
    /// The setting swept, such as `read_ahead_kb`.
    pub setting: String,
    /// Its values, smallest first.
    pub values: Vec<String>,
    /// Names of the curves: policies, or policies under the values of a second setting.
    pub names: Vec<String>,
    /// The place of the value to take on each curve, where there is one.
    pub chosen: Vec<Option<usize>>,
    /// The place on each curve from which on more gains little, where there is one.
    pub knees: Vec<Option<usize>>,
    /// The figures, each in a panel of its own.
    pub metrics: Vec<CurveMetric>,
    /// What is said below: source, fidelity, settings.
    pub caption: String,
}

/// A figure over the values.
#[derive(Clone, Debug)]
pub struct CurveMetric {
    /// Its name for people.
    pub title: String,
    /// Its name in data files.
    pub key: &'static str,
    /// What it is counted in.
    pub unit: CurveUnit,
    /// Per curve, a figure for each value.
    pub curves: Vec<Vec<f64>>,
}

/// What a figure of a sweep is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// A share, 0 to 1.
    Share,
}

impl CurveUnit {
    fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Share => "share",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Nanoseconds => Unit::Nanoseconds.show(value.round() as u64),
            Self::Bytes => Unit::Bytes.show(value.round() as u64),
            Self::Count => count(value.round() as u64),
            Self::Share => percent(value),
        }
    }

    /// An axis from nothing, so that heights compare.
    fn scale(self, largest: f64) -> Scale {
        match self {
            Self::Bytes => Scale::binary(0, largest.ceil() as u64, 4),
            Self::Share if largest > 0.5 => Scale::Share,
            _ if largest <= 0.0 => Scale::linear(0.0, 1.0, 2.0),
            _ => Scale::linear(0.0, largest * 1.02, 4.0),
        }
    }

    fn tick(self) -> fn(f64) -> String {
        match self {
            Self::Nanoseconds => short_time,
            Self::Bytes => short_bytes,
            Self::Count => short_count,
            Self::Share => short_percent,
        }
    }
}

/// The chart.
pub fn sweep(curves: &Curves) -> Figure {
    let panel = |metric: &CurveMetric| Box::new(Curve::new(curves, metric)) as Box<dyn Panel>;
    Figure {
        id: "sweep",
        title: "Over the values of a setting",
        reading: "Each point is a replay under one value of the setting. The ring marks the value \
                  to take: the smallest one about as good as the best. A line down to the axis marks \
                  the knee: from there on more gains little.",
        description: description(curves),
        caption: curves.caption.clone(),
        legend: Legend::Series(Mark::Line, curves.names.clone()),
        panels: curves.metrics.iter().map(panel).collect(),
        table: table(curves),
        csv: csv(curves),
    }
}

struct Curve {
    axes: Axes,
    scale: Scale,
    values: Vec<String>,
    chosen: Vec<Option<usize>>,
    knees: Vec<Option<usize>>,
    curves: Vec<Vec<f64>>,
}

impl Curve {
    fn new(curves: &Curves, metric: &CurveMetric) -> Self {
        let largest = metric.curves.iter().flatten().copied().fold(0.0, f64::max);
        let scale = metric.unit.scale(largest);
        let place = |n: usize| (n as f64 + 0.5) / curves.values.len() as f64;
        let axes = Axes {
            title: metric.title.clone(),
            up: String::new(),
            across: curves.setting.clone(),
            x: curves.values.iter().enumerate().map(|(n, v)| (place(n), v.clone())).collect(),
            y: scale.ticks(metric.unit.tick()),
            plot_height: PLOT_HEIGHT,
        };
        Self {
            axes,
            scale,
            values: curves.values.clone(),
            chosen: curves.chosen.clone(),
            knees: curves.knees.clone(),
            curves: metric.curves.clone(),
        }
    }

    /// The ring around the value to take, and its name.
    fn draw_choice(
        &self,
        canvas: &Canvas<'_>,
        plot: Plot,
        series: usize,
        at: (i32, i32),
        n: usize,
    ) {
        canvas.dot(at, 7, Ink::Series(series));
        canvas.dot(at, 5, Ink::Paper);
        canvas.dot(at, 3, Ink::Series(series));
        let name = &self.values[n];
        let half = text_width(name, SMALL_PX) / 2;
        let x = at.0.clamp(plot.x.from + half, plot.x.to - half);
        // Above the point, or below it where the plot ends.
        let y = if at.1 - 16 < plot.y.to { at.1 + 16 } else { at.1 - 16 };
        canvas.text(name, (x, y), Font::new(SMALL_PX, Ink::Text).bold().centred());
    }
}

impl Plotted for Curve {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        for (series, curve) in self.curves.iter().enumerate() {
            let place = |n: usize| (n as f64 + 0.5) / self.values.len() as f64;
            let points: Vec<(i32, i32)> = (curve.iter().enumerate())
                .map(|(n, y)| (plot.x.at(place(n)), plot.y.at(self.scale.place(*y))))
                .collect();
            if let Some(n) = place_of(&self.knees, series) {
                canvas.line(points[n], (points[n].0, plot.y.from), Ink::Axis);
            }
            canvas.path(&points, Ink::Series(series), 2);
            for point in &points {
                canvas.dot(*point, 3, Ink::Series(series));
            }
            if let Some(n) = place_of(&self.chosen, series) {
                self.draw_choice(canvas, plot, series, points[n], n);
            }
        }
    }
}

fn place_of(places: &[Option<usize>], series: usize) -> Option<usize> {
    places.get(series).copied().flatten()
}

fn description(curves: &Curves) -> String {
    let describe = |(series, name): (usize, &String)| {
        let chosen = place_of(&curves.chosen, series);
        let values = curves.metrics.iter().map(|metric| {
            let of = |n: usize| metric.unit.show(metric.curves[series][n]);
            let last = curves.values.len() - 1;
            let taken = chosen.map(|n| format!(", {} at the value to take", of(n)));
            format!("{} {} to {}{}", metric.title, of(0), of(last), taken.unwrap_or_default())
        });
        let take =
            chosen.map_or("no value to take".to_owned(), |n| format!("take {}", curves.values[n]));
        let knee = place_of(&curves.knees, series);
        let knee = knee.map(|n| format!(", knee at {}", curves.values[n])).unwrap_or_default();
        format!("{name}: {take}{knee}; {}.", values.collect::<Vec<_>>().join("; "))
    };
    let (first, last) = (curves.values.first(), curves.values.last());
    let range = first.zip(last).map(|(first, last)| format!("{first} to {last}"));
    let of_curves: Vec<_> = curves.names.iter().enumerate().map(describe).collect();
    format!("{} from {}. {}", curves.setting, range.unwrap_or_default(), of_curves.join(" "))
}

fn table(curves: &Curves) -> Table {
    let row = |(n, value): (usize, &String)| {
        let cells = (0..curves.names.len()).flat_map(|series| {
            curves.metrics.iter().map(move |metric| metric.unit.show(metric.curves[series][n]))
        });
        TableRow::new(value, cells.collect())
    };
    // Columns are named alike in every group, so their names have to be ours.
    let columns = curves.metrics.iter().map(|metric| metric.key).collect();
    Table {
        caption: format!("Figures under each value of {}", curves.setting),
        head: "Value",
        groups: curves.names.clone(),
        columns,
        rows: curves.values.iter().enumerate().map(row).collect(),
    }
}

fn csv(curves: &Curves) -> String {
    let mut lines = Lines::new(["curve", "setting", "value", "metric", "unit", "figure", "mark"]);
    for (series, name) in curves.names.iter().enumerate() {
        for (n, value) in curves.values.iter().enumerate() {
            for metric in &curves.metrics {
                let figure = metric.curves[series][n];
                lines.push([
                    name,
                    &curves.setting,
                    value,
                    metric.key,
                    metric.unit.name(),
                    &figure.to_string(),
                    mark(curves, series, n),
                ]);
            }
        }
    }
    lines.finish()
}

fn mark(curves: &Curves, series: usize, n: usize) -> &'static str {
    let is = |places: &[Option<usize>]| place_of(places, series) == Some(n);
    match (is(&curves.chosen), is(&curves.knees)) {
        (true, true) => "chosen, knee",
        (true, false) => "chosen",
        (false, true) => "knee",
        (false, false) => "",
    }
}
