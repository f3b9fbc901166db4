//! How the readahead window grows.

use analysis::picture::{Pictures, PolicyRamp, Ramp, RampWindow};
use analysis::result::ReplayReport;
use traces::units::PAGE_SIZE;

use super::axis::{Scale, Span, short_bytes, short_count};
use super::canvas::Canvas;
use super::figure::{Figure, Panel, caption, policies};
use super::legend::Legend;
use super::plot::{Axes, Plot, Plotted};
use super::style::Ink;
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{count, counted};

const PLOT_HEIGHT: i32 = 150;
const WINDOWS_IN_TABLE: usize = 12;

const BEFORE_MARK: Ink = Ink::Level(5);
const AFTER_MARK: Ink = Ink::Level(2);

/// The chart; `None` where no policy opened a window.
pub(super) fn figure(report: &ReplayReport, pictures: &Pictures) -> Option<Figure> {
    let ramp = &pictures.ramp;
    let shown = ramp.by_policy.iter().map(|policy| policy.first.len()).max().filter(|n| *n > 0)?;
    let windows = ramp.by_policy.iter().flat_map(|policy| &policy.first);
    let largest = windows.map(|window| window.size).max().unwrap_or(1);
    let names = policies(report);
    let panel = |(policy, name): (&PolicyRamp, &String)| {
        Box::new(Windows::new(policy, name, shown, largest)) as Box<dyn Panel>
    };
    Some(Figure {
        id: "ramp",
        title: "Readahead windows",
        reading: "Each bar is a window, in the order they were opened, as high as the window is \
                  large. The pale part lies after the readahead mark: when the reader comes to \
                  it, the next window is opened.",
        description: description(report, ramp),
        caption: format!("the first windows of one open file; {}", caption(report)),
        legend: Legend::Keys(
            "",
            vec![
                (BEFORE_MARK, "before the mark".to_owned()),
                (AFTER_MARK, "after the mark".to_owned()),
            ],
        ),
        panels: ramp.by_policy.iter().zip(&names).map(panel).collect(),
        table: table(ramp, names),
        csv: csv(report, ramp),
    })
}

struct Windows {
    axes: Axes,
    scale: Scale,
    first: Vec<RampWindow>,
    shown: usize,
}

impl Windows {
    fn new(policy: &PolicyRamp, name: &str, shown: usize, largest: u64) -> Self {
        let scale = Scale::binary(0, largest * PAGE_SIZE, 4);
        let axes = Axes {
            title: name.to_owned(),
            up: "size of the window".to_owned(),
            across: format!("window, of {}", count(policy.windows)),
            x: number_ticks(shown),
            y: scale.ticks(short_bytes),
            plot_height: PLOT_HEIGHT,
        };
        Self { axes, scale, first: policy.first.clone(), shown }
    }
}

/// Numbers below the middle of their bars, from 1.
fn number_ticks(shown: usize) -> Vec<(f64, String)> {
    let step = if shown > 16 { 4 } else { 1 };
    let numbers = (1..=shown).filter(|n| *n == 1 || n.is_multiple_of(step));
    let place = |n: usize| (n as f64 - 0.5) / shown as f64;
    numbers.map(|n| (place(n), short_count(n as f64))).collect()
}

impl Plotted for Windows {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        let height = |pages: u64| plot.y.at(self.scale.place((pages * PAGE_SIZE) as f64));
        let mut cells = Vec::new();
        for (n, window) in self.first.iter().enumerate() {
            let own = Span {
                from: plot.x.part(n, self.shown) + 1,
                to: plot.x.part(n + 1, self.shown) - 1,
            };
            let (mark, end) = (height(window.size - window.async_size), height(window.size));
            cells.push(((own.from, mark), (own.to, plot.y.from), BEFORE_MARK));
            cells.push(((own.from, end), (own.to, mark), AFTER_MARK));
        }
        cells.retain(|(from, to, _)| from.1 < to.1);
        canvas.cells(cells);
    }
}

fn description(report: &ReplayReport, ramp: &Ramp) -> String {
    let describe = |(result, policy): (&analysis::result::PolicyResult, &PolicyRamp)| {
        let sizes = policy.first.iter().take(WINDOWS_IN_TABLE);
        let sizes: Vec<_> = sizes.map(|window| window.size.to_string()).collect();
        format!(
            "{}: {}, the first ones of {} pages.",
            result.policy,
            counted(policy.windows, "window", "windows"),
            sizes.join(", ")
        )
    };
    report.results.iter().zip(&ramp.by_policy).map(describe).collect::<Vec<_>>().join(" ")
}

fn table(ramp: &Ramp, groups: Vec<String>) -> Table {
    let shown = ramp.by_policy.iter().map(|policy| policy.first.len()).max().unwrap_or(0);
    let cells = |policy: &PolicyRamp, n: usize| match policy.first.get(n) {
        Some(window) => [window.start, window.size, window.async_size].map(count),
        None => [const { String::new() }; 3],
    };
    let row = |n: usize| {
        let cells = ramp.by_policy.iter().flat_map(|policy| cells(policy, n)).collect();
        TableRow::new((n + 1).to_string(), cells)
    };
    Table {
        caption: "The first windows, in pages".to_owned(),
        head: "Window",
        groups,
        columns: vec!["start", "size", "after mark"],
        rows: (0..shown.min(WINDOWS_IN_TABLE)).map(row).collect(),
    }
}

fn csv(report: &ReplayReport, ramp: &Ramp) -> String {
    let mut lines =
        Lines::new(["policy", "window", "start_page", "size_pages", "async_size_pages", "order"]);
    for (result, policy) in report.results.iter().zip(&ramp.by_policy) {
        for (n, window) in policy.first.iter().enumerate() {
            lines.push([
                &result.policy,
                &(n + 1).to_string(),
                &window.start.to_string(),
                &window.size.to_string(),
                &window.async_size.to_string(),
                &window.order.to_string(),
            ]);
        }
    }
    lines.finish()
}
