//! What many sources gain or lose: a dumbbell per source, from the first policy to the second.

use std::cmp::Ordering;

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, Span, short_count, short_time};
use super::canvas::{Canvas, Font};
use super::figure::{Figure, LINE_HEIGHT, MARGIN, PANEL_WIDTH, Panel, policies};
use super::legend::{Legend, Mark, draw_end};
use super::plot::labels_below;
use super::style::{Ink, LABEL_PX, SMALL_PX, TITLE_PX, shorten, text_width};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{Unit, count, counted, percent_change, signed_percent};
use crate::words;

const ROW_HEIGHT: i32 = 18;
const TITLE_HEIGHT: i32 = LINE_HEIGHT + 10;
const AXIS_HEIGHT: i32 = 44;
const NAMES_WIDTH_MAX: i32 = 150;

/// What is compared.
struct Metric {
    key: &'static str,
    title: &'static str,
    axis_title: &'static str,
    unit: Unit,
    value: fn(&PolicyResult) -> u64,
}

const METRICS: [Metric; 4] = [
    Metric {
        key: "folios.total",
        title: "Folios",
        axis_title: "folios inserted, logarithmic",
        unit: Unit::Count,
        value: |result| result.folios.total,
    },
    Metric {
        key: "device_reads.count",
        title: "Device reads",
        axis_title: "requests, logarithmic",
        unit: Unit::Count,
        value: |result| result.device_reads.count,
    },
    Metric {
        key: "pages.unused",
        title: "Readahead in vain",
        axis_title: "pages never used, logarithmic",
        unit: Unit::Count,
        value: |result| result.pages.unused,
    },
    Metric {
        key: "elapsed_ns",
        title: "Time",
        axis_title: "elapsed, modelled, logarithmic",
        unit: Unit::Nanoseconds,
        value: |result| result.elapsed_ns,
    },
];

/// The chart of several sources, each replayed under at least the same two policies; `None` if there
/// is no such source.
pub fn corpus(reports: &[ReplayReport]) -> Option<Figure> {
    let first = reports.iter().find(|report| report.results.len() >= 2)?;
    let names = policies(first)[..2].to_vec();
    let mut sources: Vec<Source<'_>> = reports.iter().filter_map(Source::of).collect();
    sources.retain(|source| source.is_under(&names));
    name_apart(&mut sources);
    sources.sort_by(Source::by_gain);
    let panels =
        METRICS.iter().map(|metric| Box::new(Dumbbells::new(metric, &sources)) as Box<dyn Panel>);
    Some(Figure {
        id: "corpus",
        title: "From one policy to the other",
        reading: "A line per source, from the ring (the first policy) to the dot (the second). To \
                  the left is less; sources are in the order of what they gain in device reads.",
        description: description(&sources, &names),
        caption: format!(
            "{}; time is modelled",
            counted(sources.len() as u64, "source", "sources")
        ),
        legend: Legend::Series(Mark::End, names.clone()),
        panels: panels.collect(),
        table: table(&sources),
        csv: csv(&sources),
    })
}

/// Gives sources of one name the folder they lie in, too.
fn name_apart(sources: &mut [Source<'_>]) {
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    for source in sources {
        if names.iter().filter(|name| **name == source.name).count() > 1 {
            let folder = source.path.rsplit('/').nth(1).unwrap_or_default();
            source.name = format!("{folder}/{}", source.name);
        }
    }
}

/// A source under two policies.
struct Source<'a> {
    path: &'a str,
    name: String,
    base: &'a PolicyResult,
    candidate: &'a PolicyResult,
}

impl<'a> Source<'a> {
    fn of(report: &'a ReplayReport) -> Option<Self> {
        let [base, candidate, ..] = &report.results[..] else { return None };
        let name = words::stem(&report.source).to_owned();
        Some(Self { path: &report.source, name, base, candidate })
    }

    fn is_under(&self, policies: &[String]) -> bool {
        policies == [&*self.base.policy, &*self.candidate.policy]
    }

    fn pair(&self, metric: &Metric) -> (u64, u64) {
        ((metric.value)(self.base), (metric.value)(self.candidate))
    }

    fn gain(&self) -> f64 {
        let (before, after) = (self.base.device_reads.count, self.candidate.device_reads.count);
        after as f64 / before.max(1) as f64
    }

    fn by_gain(&self, other: &Self) -> Ordering {
        self.gain().total_cmp(&other.gain()).then_with(|| self.name.cmp(&other.name))
    }
}

struct Dumbbells {
    title: &'static str,
    axis_title: &'static str,
    unit: Unit,
    scale: Scale,
    rows: Vec<(String, u64, u64)>,
}

impl Dumbbells {
    fn new(metric: &Metric, sources: &[Source<'_>]) -> Self {
        let row = |source: &Source<'_>| {
            let (before, after) = source.pair(metric);
            (source.name.clone(), before, after)
        };
        let rows: Vec<_> = sources.iter().map(row).collect();
        let values = rows.iter().flat_map(|(_, before, after)| [*before, *after]);
        let largest = values.clone().max().unwrap_or(0);
        let scale = match metric.unit {
            Unit::Nanoseconds => Scale::between(values.min().unwrap_or(1), largest),
            _ => Scale::counts(largest),
        };
        let Metric { title, axis_title, unit, .. } = *metric;
        Self { title, axis_title, unit, scale, rows }
    }

    fn change(before: u64, after: u64) -> String {
        match percent_change(before, after) {
            _ if before == after => "=".to_owned(),
            Some(percent) => signed_percent(percent),
            None => format!("+{}", count(after)),
        }
    }

    fn draw_row(&self, canvas: &Canvas<'_>, axis: Span, y: i32, (before, after): (u64, u64)) {
        let at = |value: u64| axis.at(self.scale.place(value as f64));
        let (from, to) = (at(before), at(after));
        if from != to {
            canvas.path(&[(from, y), (to, y)], Ink::Faint, 3);
        }
        // A ring and a smaller dot: both are seen where they meet.
        draw_end(canvas, (from, y), 0);
        draw_end(canvas, (to, y), 1);
    }
}

impl Panel for Dumbbells {
    fn title(&self) -> &str {
        self.title
    }

    fn height(&self) -> i32 {
        TITLE_HEIGHT + self.rows.len() as i32 * ROW_HEIGHT + AXIS_HEIGHT
    }

    fn draw(&self, canvas: &Canvas<'_>, (left, top): (i32, i32)) {
        let bold = Font::new(TITLE_PX, Ink::Text).bold();
        canvas.text(self.title, (left + MARGIN, top + LINE_HEIGHT / 2), bold);
        let names = self.rows.iter().map(|(name, ..)| text_width(name, LABEL_PX)).max();
        let changes: Vec<_> = self.rows.iter().map(|(_, a, b)| Self::change(*a, *b)).collect();
        let changes_width = changes.iter().map(|change| text_width(change, SMALL_PX)).max();
        let names_width = names.unwrap_or(0).min(NAMES_WIDTH_MAX);
        let axis = Span {
            from: left + MARGIN + names_width + 14,
            to: left + PANEL_WIDTH - MARGIN - changes_width.unwrap_or(0) - 16,
        };
        let (rows_top, rows_bottom) = (top + TITLE_HEIGHT, top + self.height() - AXIS_HEIGHT);
        let muted = Font::new(SMALL_PX, Ink::Muted);
        let tick = if self.unit == Unit::Nanoseconds { short_time } else { short_count };
        let ticks = self.scale.ticks(tick);
        for (place, _) in &ticks {
            canvas.line((axis.at(*place), rows_top), (axis.at(*place), rows_bottom), Ink::Grid);
        }
        labels_below(canvas, axis, rows_bottom + 11, &ticks);
        canvas.text(
            self.axis_title,
            (axis.middle(), rows_bottom + 11 + LINE_HEIGHT),
            muted.centred(),
        );
        for ((n, (name, before, after)), change) in (0..).zip(&self.rows).zip(&changes) {
            let y = rows_top + n * ROW_HEIGHT + ROW_HEIGHT / 2;
            let name = shorten(name, names_width, LABEL_PX);
            canvas.text(&name, (axis.from - 12, y), Font::new(LABEL_PX, Ink::Text).right());
            self.draw_row(canvas, axis, y, (*before, *after));
            canvas.text(change, (left + PANEL_WIDTH - MARGIN, y), muted.right());
        }
    }
}

fn description(sources: &[Source<'_>], names: &[String]) -> String {
    let describe = |metric: &Metric| {
        let less = sources.iter().filter(|source| source.pair(metric).1 < source.pair(metric).0);
        let more = sources.iter().filter(|source| source.pair(metric).1 > source.pair(metric).0);
        format!("{}: less for {}, more for {}.", metric.title, less.count(), more.count())
    };
    let metrics: Vec<String> = METRICS.iter().map(describe).collect();
    let sources = counted(sources.len() as u64, "source", "sources");
    format!("{sources}, from {} to {}. {}", names[0], names[1], metrics.join(" "))
}

fn table(sources: &[Source<'_>]) -> Table {
    let cells = |source: &Source<'_>| {
        let cell = |metric: &Metric| {
            let (before, after) = source.pair(metric);
            let scale = metric.unit.scale(before.max(after));
            [scale.show(before), scale.show(after), Dumbbells::change(before, after)]
        };
        METRICS.iter().flat_map(cell).collect()
    };
    Table {
        caption: "Each source under the first policy and the second, and the change".to_owned(),
        head: "Source",
        groups: METRICS.iter().map(|metric| metric.title.to_owned()).collect(),
        columns: vec!["first", "second", "change"],
        rows: sources.iter().map(|source| TableRow::new(&source.name, cells(source))).collect(),
    }
}

fn csv(sources: &[Source<'_>]) -> String {
    let mut lines = Lines::new(["source", "policy", "metric", "unit", "value"]);
    for source in sources {
        for result in [source.base, source.candidate] {
            for metric in &METRICS {
                let value = (metric.value)(result).to_string();
                lines.push([&source.name, &result.policy, metric.key, metric.unit.name(), &value]);
            }
        }
    }
    lines.finish()
}
