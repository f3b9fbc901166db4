//! How long reads wait in the course of a run: one map per policy, and between two their
//! difference.

use analysis::picture::{Pictures, WaitMap};
use analysis::result::ReplayReport;

use super::axis::{Scale, Tick, short_percent, short_time};
use super::canvas::Canvas;
use super::figure::{Figure, Panel, policies, timed_caption};
use super::legend::Legend;
use super::plot::{Axes, Plot, Plotted, nothing};
use super::style::{DIFFERENCES, Ink, LEVELS};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::number::{count, counted};

const BAND_HEIGHT: i32 = 13;

/// The chart; `None` where nothing was read.
pub(super) fn figure(report: &ReplayReport, pictures: &Pictures) -> Option<Figure> {
    let map = &pictures.waits;
    if map.accesses == 0 {
        return None;
    }
    let names = policies(report);
    let most = map.by_policy.iter().flatten().flatten().copied().max().unwrap_or(1);
    let of_policy = |(counts, name): (&Vec<Vec<u64>>, &String)| {
        let ink = |slice: usize, band: usize| level(counts[slice][band], most);
        Box::new(Heat::new(map, name.clone(), ink)) as Box<dyn Panel>
    };
    let mut panels: Vec<_> = map.by_policy.iter().zip(&names).map(of_policy).collect();
    let mut keys = level_keys(most);
    if let [base, candidate] = &map.by_policy[..] {
        let ink = |slice: usize, band: usize| difference(base, candidate, (slice, band), most);
        panels.push(Box::new(Heat::new(map, "difference".to_owned(), ink)));
        keys.push((Ink::FirstMore(DIFFERENCES - 1), format!("more under {}", names[0])));
        keys.push((Ink::SecondMore(DIFFERENCES - 1), format!("more under {}", names[1])));
    }
    Some(Figure {
        id: "heat",
        title: "Read waits in the course of the run",
        reading: "To the right are the reads in the order they came, upwards how long they \
                  waited; the stronger the colour of a cell, the more reads. The same column holds the same reads \
                  under both policies, so the difference shows where waits became longer or \
                  shorter.",
        description: description(report, map),
        caption: timed_caption(report),
        legend: Legend::Keys("reads in a cell", keys),
        panels,
        table: table(map, names),
        csv: csv(report, map),
    })
}

/// Steps of a logarithmic scale from 1 to `most`, as (first count, last count).
fn steps(most: u64) -> Vec<(u64, u64)> {
    let begins = |level: usize| {
        let share = level as f64 / LEVELS as f64;
        (most as f64 + 1.0).powf(share).ceil() as u64
    };
    let ends = |level: usize| begins(level + 1) - 1;
    (0..LEVELS).map(|level| (begins(level), ends(level))).collect()
}

fn level(reads: u64, most: u64) -> Option<Ink> {
    steps(most).iter().rposition(|(first, last)| reads >= *first && first <= last).map(Ink::Level)
}

fn level_keys(most: u64) -> Vec<(Ink, String)> {
    let shown = steps(most).into_iter().enumerate().filter(|(_, (first, last))| first <= last);
    let name = |(first, last): (u64, u64)| {
        if first == last {
            count(first)
        } else {
            format!("{}\u{2013}{}", count(first), count(last))
        }
    };
    shown.map(|(level, step)| (Ink::Level(level), name(step))).collect()
}

/// The ink of a cell in which one policy has more reads than the other, by the logarithm of how
/// many.
fn difference(
    base: &[Vec<u64>],
    candidate: &[Vec<u64>],
    (slice, band): (usize, usize),
    most: u64,
) -> Option<Ink> {
    let (before, after) = (base[slice][band], candidate[slice][band]);
    let level = |reads: u64| {
        let share = (reads as f64).ln_1p() / (most as f64).ln_1p();
        ((share * DIFFERENCES as f64).ceil() as usize).clamp(1, DIFFERENCES) - 1
    };
    match after.abs_diff(before) {
        0 => None,
        more if before > after => Some(Ink::FirstMore(level(more))),
        more => Some(Ink::SecondMore(level(more))),
    }
}

struct Heat {
    axes: Axes,
    slices: usize,
    bands: usize,
    cells: Vec<(usize, usize, Ink)>,
}

impl Heat {
    fn new(map: &WaitMap, title: String, ink: impl Fn(usize, usize) -> Option<Ink>) -> Self {
        let bands = map.bands_ns.len();
        let places = (0..map.slices).flat_map(|slice| (0..bands).map(move |band| (slice, band)));
        let cells = places.filter_map(|(slice, band)| Some((slice, band, ink(slice, band)?)));
        let axes = Axes {
            title,
            up: "wait, logarithmic; at the bottom those that did not wait".to_owned(),
            across: format!("{} in order", counted(map.accesses, "read", "reads")),
            x: Scale::Share.ticks(short_percent),
            y: band_ticks(&map.bands_ns),
            plot_height: bands.max(4) as i32 * BAND_HEIGHT,
        };
        let cells = cells.collect();
        Self { axes, slices: map.slices, bands, cells }
    }
}

/// "none" beside the lowest band, and where every other band begins.
fn band_ticks(bands_ns: &[u64]) -> Vec<Tick> {
    let place = |band: usize| band as f64 / bands_ns.len() as f64;
    let none = (0.5 / bands_ns.len() as f64, "none".to_owned());
    let marked = bands_ns.iter().enumerate().skip(2).step_by(2);
    let marks = marked.map(|(band, begins)| (place(band), short_time(*begins as f64)));
    std::iter::once(none).chain(marks).collect()
}

impl Plotted for Heat {
    fn axes(&self) -> &Axes {
        &self.axes
    }

    fn draw_data(&self, canvas: &Canvas<'_>, plot: Plot) {
        let cell = |(slice, band, ink): &(usize, usize, Ink)| {
            let from = (plot.x.part(*slice, self.slices), plot.y.part(band + 1, self.bands));
            let to = (plot.x.part(slice + 1, self.slices), plot.y.part(*band, self.bands));
            (from, to, *ink)
        };
        canvas.cells(self.cells.iter().map(cell).collect());
        if self.cells.is_empty() {
            nothing(canvas, plot, "the same under both");
        }
    }
}

/// Reads of every slice by band.
fn by_band(counts: &[Vec<u64>], bands: usize) -> Vec<u64> {
    let mut sums = vec![0; bands];
    for slice in counts {
        for (sum, own) in sums.iter_mut().zip(slice) {
            *sum += own;
        }
    }
    sums
}

fn band_name(map: &WaitMap, band: usize) -> String {
    let to = map.bands_ns.get(band + 1).map(|ns| short_time(*ns as f64));
    match (band, to) {
        (0, _) => "no wait".to_owned(),
        (1, Some(to)) => format!("up to {to}"),
        (_, Some(to)) => format!("{} to {to}", short_time(map.bands_ns[band] as f64)),
        (_, None) => format!("from {}", short_time(map.bands_ns[band] as f64)),
    }
}

fn description(report: &ReplayReport, map: &WaitMap) -> String {
    let bands = map.bands_ns.len();
    let describe = |(result, counts): (&analysis::result::PolicyResult, &Vec<Vec<u64>>)| {
        let sums = by_band(counts, bands);
        let used = sums.iter().enumerate().filter(|(_, reads)| **reads > 0);
        let named: Vec<_> = used
            .map(|(band, reads)| format!("{}: {}", band_name(map, band), count(*reads)))
            .collect();
        format!("{}: {}.", result.policy, named.join(", "))
    };
    let of_policies: Vec<_> = report.results.iter().zip(&map.by_policy).map(describe).collect();
    format!("{} by their wait. {}", counted(map.accesses, "read", "reads"), of_policies.join(" "))
}

fn table(map: &WaitMap, groups: Vec<String>) -> Table {
    let sums: Vec<Vec<u64>> =
        map.by_policy.iter().map(|counts| by_band(counts, map.bands_ns.len())).collect();
    let row = |band: usize| {
        TableRow::new(band_name(map, band), sums.iter().map(|sums| count(sums[band])).collect())
    };
    Table {
        caption: "Reads by their wait".to_owned(),
        head: "Wait",
        groups,
        columns: vec!["reads"],
        rows: (0..map.bands_ns.len()).map(row).collect(),
    }
}

fn csv(report: &ReplayReport, map: &WaitMap) -> String {
    let mut lines = Lines::new(["policy", "slice", "slices", "wait_from_ns", "reads"]);
    for (result, counts) in report.results.iter().zip(&map.by_policy) {
        for (slice, bands) in counts.iter().enumerate() {
            for (begins, reads) in map.bands_ns.iter().zip(bands).filter(|(_, reads)| **reads > 0) {
                lines.push([
                    &result.policy,
                    &slice.to_string(),
                    &map.slices.to_string(),
                    &begins.to_string(),
                    &reads.to_string(),
                ]);
            }
        }
    }
    lines.finish()
}
