//! How long reads wait: the share of the reads that waited no longer, over the wait; and between
//! two policies, how much longer each share waits.

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, Span, short_percent, short_time};
use super::canvas::Canvas;
use super::figure::{Figure, Panel, policies, timed_caption};
use super::legend::{Legend, Mark};
use super::plot::{Axes, Plot, Plotted, nothing};
use super::style::Ink;
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::Unit;

const PLOT_HEIGHT: i32 = 210;
/// Shares of the reads whose wait the table shows.
const PERCENTS_SHOWN: [usize; 7] = [25, 50, 75, 90, 95, 99, 100];

/// The chart.
pub(super) fn figure(report: &ReplayReport) -> Figure {
    let mut panels: Vec<Box<dyn Panel>> = vec![Box::new(Distribution::new(report))];
    if let [base, candidate] = &report.results[..] {
        panels.push(Box::new(Difference::new(base, candidate)));
    }
    Figure {
        id: "waits",
        title: "Read wait",
        reading: "The curves give, for each wait, the share of the reads that waited no longer: \
                  further to the left is better. With two policies, the bars give how much longer \
                  (up) or shorter (down) each share of the reads waits under the second.",
        description: description(report),
        caption: timed_caption(report),
        legend: Legend::Series(Mark::Line, policies(report)),
        panels,
        table: table(report),
        csv: csv(report),
    }
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

/// Empirical distribution functions.
struct Distribution {
    axes: Axes,
    scale: Scale,
    by_policy: Vec<Vec<u64>>,
}

impl Distribution {
    fn new(report: &ReplayReport) -> Self {
        let by_policy: Vec<Vec<u64>> =
            report.results.iter().map(|result| result.read_wait_quantiles_ns.clone()).collect();
        let waited = by_policy.iter().flatten().copied().filter(|ns| *ns > 0);
        let smallest = waited.clone().min().unwrap_or(1000);
        let largest = waited.max().unwrap_or(10_000);
        let scale = Scale::between(smallest, largest);
        let axes = Axes {
            title: "Distribution".to_owned(),
            up: "share of the reads that waited no longer".to_owned(),
            across: "wait, logarithmic".to_owned(),
            x: scale.ticks(short_time),
            y: Scale::Share.ticks(short_percent),
            plot_height: PLOT_HEIGHT,
        };
        Self { axes, scale, by_policy }
    }

    /// The steps of one policy: from each wait up to the share that waited no longer.
    fn steps(&self, quantiles_ns: &[u64], Plot { x, y }: Plot) -> Vec<(i32, i32)> {
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

impl Plotted for Distribution {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        for (series, quantiles_ns) in self.by_policy.iter().enumerate() {
            canvas.path(&self.steps(quantiles_ns, plot), Ink::Series(series), 2);
        }
    }
}

/// How much longer the same share of the reads waits under the second policy.
struct Difference {
    axes: Axes,
    scale: Scale,
    /// For 0, 1, 2, ... percent of the reads.
    longer_ns: Vec<f64>,
}

impl Difference {
    fn new(base: &PolicyResult, candidate: &PolicyResult) -> Self {
        let both = base.read_wait_quantiles_ns.iter().zip(&candidate.read_wait_quantiles_ns);
        let longer_ns: Vec<f64> = both.map(|(base, other)| *other as f64 - *base as f64).collect();
        let least = longer_ns.iter().copied().fold(0.0, f64::min);
        let most = longer_ns.iter().copied().fold(0.0, f64::max);
        // Nothing differs: still an axis, of a microsecond to either side.
        let (least, most) = if least < most { (least, most) } else { (-1000.0, 1000.0) };
        let room = (most - least) * 0.05;
        let scale = Scale::linear(least - room, most + room, 5.0);
        let axes = Axes {
            title: "Difference".to_owned(),
            up: format!("wait under {} less that under {}", candidate.policy, base.policy),
            across: "share of the reads, those that wait least first".to_owned(),
            x: Scale::Share.ticks(short_percent),
            y: scale.ticks(short_time),
            plot_height: PLOT_HEIGHT,
        };
        Self { axes, scale, longer_ns }
    }
}

impl Plotted for Difference {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, Plot { x, y }: Plot) {
        let zero = y.at(self.scale.place(0.0));
        let bar = |(n, longer_ns): (usize, &f64)| {
            let end = y.at(self.scale.place(*longer_ns));
            let ink = if *longer_ns > 0.0 { Ink::SecondMore(2) } else { Ink::FirstMore(2) };
            let (from, to) = (x.part(n, self.longer_ns.len()), x.part(n + 1, self.longer_ns.len()));
            ((from, end.min(zero)), (to, end.max(zero)), ink)
        };
        let bars = self.longer_ns.iter().enumerate().map(bar);
        canvas.cells(bars.filter(|(from, to, _)| from.1 < to.1).collect());
        canvas.line((x.from, zero), (x.to, zero), Ink::Axis);
        if self.longer_ns.iter().all(|longer_ns| *longer_ns == 0.0) {
            nothing(
                canvas,
                Plot { x, y: Span { from: zero, to: zero + 28 } },
                "the same under both",
            );
        }
    }
}

fn table(report: &ReplayReport) -> Table {
    let wait = |result: &PolicyResult, percent: usize| {
        let ns = result.read_wait_quantiles_ns.get(percent);
        ns.map_or("-".to_owned(), |ns| Unit::Nanoseconds.show(*ns))
    };
    let row = |percent: usize| {
        let cells = report.results.iter().map(|result| wait(result, percent)).collect();
        TableRow::new(format!("{percent}%"), cells)
    };
    Table {
        caption: "Longest wait of that share of the reads".to_owned(),
        head: "Reads",
        groups: policies(report),
        columns: vec!["wait"],
        rows: PERCENTS_SHOWN.into_iter().map(row).collect(),
    }
}

/// `policy,percent_of_reads,wait_ns`.
fn csv(report: &ReplayReport) -> String {
    let mut lines = Lines::new(["policy", "percent_of_reads", "wait_ns"]);
    for result in &report.results {
        for (percent, ns) in result.read_wait_quantiles_ns.iter().enumerate() {
            lines.push([&result.policy, &percent.to_string(), &ns.to_string()]);
        }
    }
    lines.finish()
}
