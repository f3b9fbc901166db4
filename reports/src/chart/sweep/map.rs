//! Two settings at once: a map per policy, its colour the stronger the worse.

use analysis::sweep::{Advice, SweepReport};

use super::{ELAPSED, Metric, READS, WASTE, answers, caption, mark, metric_of, name_of, source};
use crate::chart::axis::Tick;
use crate::chart::canvas::Canvas;
use crate::chart::figure::{Figure, Panel};
use crate::chart::legend::Legend;
use crate::chart::plot::{Axes, Plot, Plotted};
use crate::chart::style::{Ink, LEVELS};
use crate::chart::table::{Table, TableRow};
use crate::csv::Lines;

const ROW_HEIGHT: i32 = 24;

/// How much more than the best a step of the scale goes up to, in percent; the last one has no end.
const STEPS: [f64; LEVELS - 1] = [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0];

pub(super) fn figure(report: &SweepReport) -> Figure {
    let policies = 0..report.policies.len();
    let panels = policies.map(|policy| Box::new(Map::new(report, policy)) as Box<dyn Panel>);
    Figure {
        id: "grid",
        title: "Over the values of two settings",
        reading: "Each cell is a replay under a pair of values; the stronger its colour, the \
                  worse than the best pair. The ring marks the pair to take: the smallest one about as good as \
                  the best.",
        description: format!("{}: {}", source(report), answers(report.advice.iter())),
        caption: caption(report),
        legend: Legend::Keys("more than the best", keys()),
        panels: panels.collect(),
        table: table(report),
        csv: csv(report),
    }
}

fn keys() -> Vec<(Ink, String)> {
    let names = STEPS.iter().map(|percent| format!("up to {percent}%"));
    let last = format!("over {}%", STEPS[STEPS.len() - 1]);
    names.chain([last]).enumerate().map(|(level, name)| (Ink::Level(level), name)).collect()
}

fn level(figure: f64, best: f64) -> usize {
    // From nothing, anything is infinitely more.
    let percent = if figure <= best { 0.0 } else { (figure / best - 1.0) * 100.0 };
    STEPS.iter().take_while(|step| percent > **step).count()
}

fn advice_of(report: &SweepReport, policy: usize) -> Option<&Advice> {
    report.advice.iter().find(|advice| advice.policy == report.policies[policy])
}

struct Map {
    axes: Axes,
    columns: usize,
    rows: usize,
    /// Column, row and level.
    cells: Vec<(usize, usize, usize)>,
    chosen: Option<(usize, usize)>,
}

impl Map {
    fn new(report: &SweepReport, policy: usize) -> Self {
        let goal = metric_of(report.goal);
        let figure = |place: usize| (goal.of)(&report.points[place].results[policy]);
        let places = 0..report.points.len();
        let best = places.clone().map(figure).fold(f64::INFINITY, f64::min);
        let at = |place: usize| (report.points[place].at[0], report.points[place].at[1]);
        let cell = |place: usize| (at(place).0, at(place).1, level(figure(place), best));
        let [across, up] = [0, 1].map(|axis| &report.axes[axis]);
        let ticks = |axis: usize| -> Vec<Tick> {
            let values = &report.axes[axis].values;
            let place = |n: usize| (n as f64 + 0.5) / values.len() as f64;
            values.iter().enumerate().map(|(n, value)| (place(n), value.text.clone())).collect()
        };
        Self {
            axes: Axes {
                title: format!("{}: {}", goal.title, report.policies[policy]),
                up: up.key.clone(),
                across: across.key.clone(),
                x: ticks(0),
                y: ticks(1),
                plot_height: up.values.len().max(3) as i32 * ROW_HEIGHT,
            },
            columns: across.values.len(),
            rows: up.values.len(),
            cells: places.map(cell).collect(),
            chosen: advice_of(report, policy).and_then(|advice| advice.point).map(at),
        }
    }
}

impl Plotted for Map {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        let corners = |column: usize, row: usize| {
            let from = (plot.x.part(column, self.columns), plot.y.part(row + 1, self.rows));
            let to = (plot.x.part(column + 1, self.columns), plot.y.part(row, self.rows));
            (from, to)
        };
        let cell = |(column, row, level): &(usize, usize, usize)| {
            let (from, to) = corners(*column, *row);
            (from, to, Ink::Level(*level))
        };
        canvas.cells(self.cells.iter().map(cell).collect());
        if let Some((column, row)) = self.chosen {
            let (from, to) = corners(column, row);
            let centre = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
            for (radius, ink) in [(8, Ink::Paper), (7, Ink::Text), (5, Ink::Paper), (3, Ink::Text)]
            {
                canvas.dot(centre, radius, ink);
            }
        }
    }
}

fn metrics(report: &SweepReport) -> Vec<Metric> {
    let goal = metric_of(report.goal);
    let others = [ELAPSED, READS, WASTE].into_iter().filter(|metric| metric.key != goal.key);
    [goal].into_iter().chain(others).collect()
}

fn table(report: &SweepReport) -> Table {
    let metrics = metrics(report);
    let row = |place: usize| {
        let results = report.points[place].results.iter();
        let cells = results
            .flat_map(|result| metrics.iter().map(move |metric| metric.show((metric.of)(result))));
        TableRow::new(name_of(report, place), cells.collect())
    };
    Table {
        caption: "Figures under each pair of values".to_owned(),
        head: "values",
        groups: report.policies.clone(),
        columns: metrics.iter().map(|metric| metric.key).collect(),
        rows: (0..report.points.len()).map(row).collect(),
    }
}

fn csv(report: &SweepReport) -> String {
    let heads = [
        "policy",
        "key",
        "value",
        "second_key",
        "second_value",
        "metric",
        "unit",
        "figure",
        "mark",
    ];
    let mut lines = Lines::new(heads);
    let [first, second] = [0, 1].map(|axis| &report.axes[axis].key);
    for (policy, name) in report.policies.iter().enumerate() {
        let advice = advice_of(report, policy);
        for (place, point) in report.points.iter().enumerate() {
            for metric in metrics(report) {
                lines.push([
                    name,
                    first,
                    &point.values[0],
                    second,
                    &point.values[1],
                    metric.key,
                    metric.unit(),
                    &(metric.of)(&point.results[policy]).to_string(),
                    mark(advice, place),
                ]);
            }
        }
    }
    lines.finish()
}
