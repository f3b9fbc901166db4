//! Figures over the values of a setting, a curve per policy.

use analysis::sweep::{Advice, SweepReport};

use super::{
    BYTES, ELAPSED, Metric, READS, WAIT, WASTE, answers, caption, mark, metric_of, source,
};
use crate::chart::axis::Scale;
use crate::chart::canvas::{Canvas, Font};
use crate::chart::figure::{Figure, Panel};
use crate::chart::legend::{Legend, Mark};
use crate::chart::plot::{Axes, Plot, Plotted};
use crate::chart::style::{Ink, SMALL_PX, text_width};
use crate::chart::table::{Table, TableRow};
use crate::csv::Lines;

const PLOT_HEIGHT: i32 = 200;

/// The points under one value of what is given, or all of them.
struct Part<'a> {
    report: &'a SweepReport,
    /// The axis that the curves go along.
    across: usize,
    /// `hdd` or `memory 64M`, where that is given.
    given: Option<String>,
    /// Places of its points, in the order of the axis.
    points: Vec<usize>,
    /// The answer for each policy.
    advice: Vec<Option<&'a Advice>>,
}

fn parts(report: &SweepReport) -> Vec<Part<'_>> {
    let mut given: Vec<Option<(&str, &str)>> = Vec::new();
    for advice in &report.advice {
        let own = advice.given.as_ref().map(|given| (given.key.as_str(), given.value.as_str()));
        if !given.contains(&own) {
            given.push(own);
        }
    }
    given.into_iter().map(|given| Part::new(report, given)).collect()
}

impl<'a> Part<'a> {
    fn new(report: &'a SweepReport, given: Option<(&str, &str)>) -> Self {
        let fixed = given.and_then(|(key, value)| {
            let axis = report.axes.iter().position(|axis| axis.key == key)?;
            let place = report.axes[axis].values.iter().position(|own| own.text == value)?;
            Some((axis, place))
        });
        let belongs = |place: &usize| {
            fixed.is_none_or(|(axis, value)| report.points[*place].at[axis] == value)
        };
        let is_own = |advice: &&Advice| {
            let own = advice.given.as_ref();
            own.map(|given| (given.key.as_str(), given.value.as_str())) == given
        };
        let advice_for =
            |policy: &String| report.advice.iter().filter(is_own).find(|own| own.policy == *policy);
        Self {
            report,
            across: fixed.map_or(0, |(axis, _)| 1 - axis),
            given: given.map(|(key, value)| match key {
                analysis::sweep::DEVICE => value.to_owned(),
                _ => format!("{key} {value}"),
            }),
            points: (0..report.points.len()).filter(belongs).collect(),
            advice: report.policies.iter().map(advice_for).collect(),
        }
    }

    fn key(&self) -> &str {
        &self.report.axes[self.across].key
    }

    fn values(&self) -> impl Iterator<Item = &String> {
        self.points.iter().map(|place| &self.report.points[*place].values[self.across])
    }

    fn figure(&self, metric: Metric, policy: usize, n: usize) -> f64 {
        (metric.of)(&self.report.points[self.points[n]].results[policy])
    }

    /// Where on the curve of a policy a point of its answer lies.
    fn place(&self, policy: usize, point: fn(&Advice) -> Option<usize>) -> Option<usize> {
        let place = self.advice[policy].and_then(point)?;
        self.points.iter().position(|own| *own == place)
    }

    /// A name, with what is given.
    fn named(&self, name: &str) -> String {
        self.given.as_ref().map_or(name.to_owned(), |given| format!("{name}, {given}"))
    }
}

/// Panels of a part. What is given has few, as there are several of it.
fn metrics(report: &SweepReport, parts: &[Part<'_>]) -> Vec<Metric> {
    match parts {
        [_] => vec![ELAPSED, WAIT, READS, WASTE],
        _ => vec![metric_of(report.goal), WASTE],
    }
}

pub(super) fn figure(report: &SweepReport) -> Figure {
    let parts = parts(report);
    let metrics = metrics(report, &parts);
    let panels = parts.iter().flat_map(|part| {
        metrics.iter().map(|metric| Box::new(Curves::new(part, *metric)) as Box<dyn Panel>)
    });
    Figure {
        id: "sweep",
        title: "Over the values of a setting",
        reading: "Each point is a replay under one value of the setting. The ring marks the value \
                  to take: the smallest one about as good as the best. A line down to the axis marks \
                  the knee: from there on more gains little.",
        description: description(report, &parts),
        caption: caption(report),
        legend: Legend::Series(Mark::Line, report.policies.clone()),
        panels: panels.collect(),
        table: table(report, &parts, &metrics),
        csv: csv(report, &parts),
    }
}

struct Curves {
    axes: Axes,
    scale: Scale,
    /// Whether the values have a size, so that a line between them means something.
    is_sized: bool,
    values: Vec<String>,
    chosen: Vec<Option<usize>>,
    knees: Vec<Option<usize>>,
    by_series: Vec<Vec<f64>>,
}

impl Curves {
    fn new(part: &Part<'_>, metric: Metric) -> Self {
        let report = part.report;
        let policies = 0..report.policies.len();
        let values: Vec<String> = part.values().cloned().collect();
        let curve = |policy| (0..values.len()).map(|n| part.figure(metric, policy, n)).collect();
        let curves: Vec<Vec<f64>> = policies.clone().map(curve).collect();
        let largest = curves.iter().flatten().copied().fold(0.0, f64::max);
        let scale = metric.scale(largest);
        let place = |n: usize| (n as f64 + 0.5) / values.len() as f64;
        Self {
            axes: Axes {
                title: part.named(metric.title),
                up: String::new(),
                across: part.key().to_owned(),
                x: values.iter().enumerate().map(|(n, v)| (place(n), v.clone())).collect(),
                y: scale.ticks(metric.tick()),
                plot_height: PLOT_HEIGHT,
            },
            scale,
            is_sized: report.axes[part.across].is_sized(),
            chosen: policies.clone().map(|policy| part.place(policy, |own| own.point)).collect(),
            knees: policies.map(|policy| part.place(policy, |own| own.knee)).collect(),
            values,
            by_series: curves,
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
        // Curves that take the same value would write its name over each other.
        let is_named = self.chosen[..series].contains(&Some(n));
        if is_named {
            return;
        }
        let name = &self.values[n];
        let half = text_width(name, SMALL_PX) / 2;
        let x = at.0.clamp(plot.x.from + half, plot.x.to - half);
        // Above the point, or below it where the plot ends.
        let y = if at.1 - 16 < plot.y.to { at.1 + 16 } else { at.1 - 16 };
        // A curve that comes from above does not go through it.
        canvas.rect((x - half - 1, y - 6), (x + half + 1, y + 6), Ink::Paper);
        canvas.text(name, (x, y), Font::new(SMALL_PX, Ink::Text).bold().centred());
    }
}

impl Plotted for Curves {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        for (series, curve) in self.by_series.iter().enumerate() {
            let place = |n: usize| (n as f64 + 0.5) / self.values.len() as f64;
            let points: Vec<(i32, i32)> = (curve.iter().enumerate())
                .map(|(n, y)| (plot.x.at(place(n)), plot.y.at(self.scale.place(*y))))
                .collect();
            if let Some(n) = self.knees[series] {
                canvas.line(points[n], (points[n].0, plot.y.from), Ink::Axis);
            }
            if self.is_sized {
                canvas.path(&points, Ink::Series(series), 2);
            }
            for point in &points {
                canvas.dot(*point, 3, Ink::Series(series));
            }
            if let Some(n) = self.chosen[series] {
                self.draw_choice(canvas, plot, series, points[n], n);
            }
        }
    }
}

fn description(report: &SweepReport, parts: &[Part<'_>]) -> String {
    let values: Vec<&String> =
        parts.first().map(|part| part.values().collect()).unwrap_or_default();
    let range = match &values[..] {
        [first, .., last] => format!("from {first} to {last}"),
        _ => String::new(),
    };
    let key = parts.first().map(Part::key).unwrap_or_default();
    format!("{}: {key} {range}. {}", source(report), answers(report.advice.iter()))
}

fn table(report: &SweepReport, parts: &[Part<'_>], metrics: &[Metric]) -> Table {
    let groups = parts.iter().flat_map(|part| report.policies.iter().map(|name| part.named(name)));
    let cells = |n: usize| {
        parts.iter().flat_map(move |part| {
            (0..report.policies.len()).flat_map(move |policy| {
                metrics.iter().map(move |metric| metric.show(part.figure(*metric, policy, n)))
            })
        })
    };
    let values = parts.first().into_iter().flat_map(Part::values);
    let rows = values.enumerate().map(|(n, value)| TableRow::new(value, cells(n).collect()));
    Table {
        caption: "Figures under each value of the setting".to_owned(),
        head: "value",
        groups: groups.collect(),
        columns: metrics.iter().map(|metric| metric.key).collect(),
        rows: rows.collect(),
    }
}

fn csv(report: &SweepReport, parts: &[Part<'_>]) -> String {
    let heads = ["policy", "given", "setting", "value", "metric", "unit", "figure", "mark"];
    let mut lines = Lines::new(heads);
    for part in parts {
        for (policy, name) in report.policies.iter().enumerate() {
            for (n, value) in part.values().enumerate() {
                for metric in [ELAPSED, WAIT, READS, BYTES, WASTE] {
                    lines.push([
                        name,
                        part.given.as_deref().unwrap_or_default(),
                        part.key(),
                        value,
                        metric.key,
                        metric.unit(),
                        &part.figure(metric, policy, n).to_string(),
                        mark(part.advice[policy], part.points[n]),
                    ]);
                }
            }
        }
    }
    lines.finish()
}
