//! What the tables and descriptions of a page say, held against the JSON beside it.
//!
//! The expected cells are made from the JSON here, by other code than the report's own.

mod sweep;

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

/// The JSON of a page.
pub(super) enum Data {
    /// `report.json` of a page of one source.
    Replay(Value),
    /// Those of the sources of a page, in their order.
    Corpus(Vec<Value>),
    /// `sweep.json`.
    Sweep(Value),
}

fn read(path: &Path) -> anyhow::Result<Value> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

impl Data {
    pub(super) fn of_replay(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self::Replay(read(&folder.join("report.json"))?))
    }

    pub(super) fn of_sweep(folder: &Path) -> anyhow::Result<Self> {
        Ok(Self::Sweep(read(&folder.join("sweep.json"))?))
    }

    /// The gate's judgement names the sources.
    pub(super) fn of_corpus(folder: &Path) -> anyhow::Result<Self> {
        let gate = read(&folder.join("gate.json"))?;
        let names = list(&gate["sources"]).iter().map(|source| text(&source["source"]));
        let reports = names.map(|name| read(&folder.join(name).join("report.json")));
        Ok(Self::Corpus(reports.collect::<anyhow::Result<_>>()?))
    }

    /// How many charts the page has at least.
    fn charts(&self) -> usize {
        match self {
            Self::Replay(_) => 8,
            Self::Corpus(reports) => 1 + 8 * reports.len(),
            Self::Sweep(_) => 1,
        }
    }

    /// Rows of a chart's table without their names, and what its description says.
    fn expected(&self, id: &str) -> Option<(Vec<Vec<Cell>>, Vec<String>)> {
        match self {
            Self::Replay(report) => expected(id, report),
            Self::Corpus(reports) if id == "corpus" => Some(corpus(reports)),
            Self::Corpus(reports) => {
                let (source, id) = id.strip_prefix('s')?.split_once('-')?;
                expected(id, reports.get(source.parse::<usize>().ok()?)?)
            }
            Self::Sweep(report) if id == "sweep" => Some(sweep::curves(report)),
            Self::Sweep(report) if id == "grid" => Some(sweep::grid(report)),
            Self::Sweep(_) => None,
        }
    }
}

/// Every chart of the page.
pub(super) fn check(seen: &Value, data: &Data) -> anyhow::Result<()> {
    let charts = list(&seen["charts"]);
    ensure!(charts.len() >= data.charts(), "only {} charts", charts.len());
    for chart in charts {
        let id = chart["id"].as_str().context("a chart without a name")?;
        let description = chart["description"].as_str().unwrap_or_default();
        let (rows, words) = data.expected(id).with_context(|| format!("{id}: unknown chart"))?;
        for word in words {
            ensure!(description.contains(&word), "{id}: `{word}` is not in: {description}");
        }
        let shown = table(chart);
        ensure!(shown.len() == rows.len(), "{id}: {} rows, not {}", shown.len(), rows.len());
        for (shown, expected) in shown.iter().zip(&rows) {
            ensure!(shown.len() == expected.len() + 1, "{id}: row {shown:?} for {expected:?}");
            for (cell, expected) in shown[1..].iter().zip(expected) {
                ensure!(expected.fits(cell), "{id}: row {shown:?} has {cell:?} for {expected:?}");
            }
        }
    }
    Ok(())
}

fn table(chart: &Value) -> Vec<Vec<String>> {
    let cells = |row: &Value| list(row).iter().map(|cell| text(cell).to_owned()).collect();
    list(&chart["rows"]).iter().map(cells).collect()
}

/// What a cell has to say.
#[derive(Debug)]
enum Cell {
    /// This count.
    Count(u64),
    /// About this many nanoseconds.
    Nanoseconds(f64),
    /// About so many, in the unit of that many.
    NanosecondsOf(f64, f64),
    /// From one figure to another.
    Change(u64, u64),
    /// About this share.
    Share(f64),
    /// About this number.
    Number(f64),
    /// Nothing, as there is nothing.
    Empty,
}

impl Cell {
    fn fits(&self, shown: &str) -> bool {
        let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
        let near = |value: Option<f64>, expected: f64, rounding: f64| {
            value.is_some_and(|value| (value - expected).abs() <= rounding)
        };
        match self {
            Self::Count(count) => number(shown) == Some(*count as f64),
            Self::Number(expected) => near(number(shown), *expected, 0.0051),
            Self::Share(expected) => {
                let percent = shown.trim_start_matches(['<', '>']).trim_end_matches('%');
                near(number(percent), expected * 100.0, 0.11)
            }
            Self::Nanoseconds(expected) => near(nanoseconds(shown), *expected, expected * 0.006),
            Self::NanosecondsOf(expected, largest) => {
                near(nanoseconds(shown), *expected, largest * 0.006)
            }
            Self::Change(before, after) if before == after => shown == "=",
            Self::Change(0, after) => number(shown) == Some(*after as f64),
            Self::Change(before, after) => {
                let percent = (*after as f64 / *before as f64 - 1.0) * 100.0;
                let value = shown.replace('<', "").trim_end_matches('%').parse().ok();
                let sign_fits = shown.starts_with(if after > before { '+' } else { '-' });
                sign_fits && near(value, percent, 0.11)
            }
            Self::Empty => shown.is_empty() || shown == "-",
        }
    }
}

fn nanoseconds(shown: &str) -> Option<f64> {
    let (value, unit) = shown.split_once(' ')?;
    let size = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        _ => 1e9,
    };
    value.parse::<f64>().ok().map(|value| value * size)
}

/// The same for a chart of one source.
fn expected(id: &str, report: &Value) -> Option<(Vec<Vec<Cell>>, Vec<String>)> {
    let results = list(&report["results"]);
    let pictures = &report["pictures"];
    Some(match id {
        "orders" => orders(results),
        "sizes" => sizes(results),
        "waits" => waits(results),
        "waste" => waste(results),
        "map" => map(&pictures["map"]),
        "ramp" => ramp(&pictures["ramp"]),
        "raster" => raster(&pictures["raster"]),
        "heat" => heat(&pictures["waits"]),
        _ => return None,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn counts(value: &Value) -> Vec<u64> {
    list(value).iter().map(count).collect()
}

fn share(part: u64, whole: u64) -> Cell {
    Cell::Share(part as f64 / whole.max(1) as f64)
}

fn orders(results: &[Value]) -> (Vec<Vec<Cell>>, Vec<String>) {
    let by_order: Vec<_> = results.iter().map(|r| counts(&r["folios"]["by_order"])).collect();
    let orders = by_order.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |own: &Vec<u64>, order: usize| {
        let pages = |order: usize| own.get(order).map_or(0, |folios| folios << order);
        let all = (0..own.len()).map(pages).sum();
        [Cell::Count(own.get(order).copied().unwrap_or(0)), share(pages(order), all)]
    };
    let row = |order| by_order.iter().flat_map(|own| cells(own, order)).collect();
    let mut rows: Vec<Vec<Cell>> = (0..orders).map(row).collect();
    let total = |r: &Value| [Cell::Count(count(&r["folios"]["total"])), Cell::Share(1.0)];
    rows.push(results.iter().flat_map(total).collect());
    let words =
        results.iter().map(|r| format!("{}: {} folios", text(&r["policy"]), r["folios"]["total"]));
    (rows, words.collect())
}

fn sizes(results: &[Value]) -> (Vec<Vec<Cell>>, Vec<String>) {
    let of = |result: &Value, power: u32| {
        let own = list(&result["request_sizes"]).iter();
        let own = own.filter(|size| count(&size["bytes"]).next_power_of_two() == 1 << power);
        own.fold((0, 0), |(requests, bytes), size| {
            let n = count(&size["count"]);
            (requests + n, bytes + n * count(&size["bytes"]))
        })
    };
    let powers = (0..40).filter(|power| results.iter().any(|result| of(result, *power).0 > 0));
    let row = |power| {
        let cells = |result| {
            let (requests, bytes) = of(result, power);
            [Cell::Count(requests), share(bytes, count(&result["device_reads"]["bytes"]))]
        };
        results.iter().flat_map(cells).collect()
    };
    let words = results
        .iter()
        .map(|r| format!("{}: {} device reads", text(&r["policy"]), r["device_reads"]["count"]));
    (powers.map(row).collect(), words.collect())
}

fn waits(results: &[Value]) -> (Vec<Vec<Cell>>, Vec<String>) {
    let row = |percent: usize| {
        let quantile = |r: &Value| count(&r["read_wait_quantiles_ns"][percent]) as f64;
        results.iter().map(|result| Cell::Nanoseconds(quantile(result))).collect()
    };
    let words = results.iter().map(|r| format!("{}: median", text(&r["policy"])));
    ([25, 50, 75, 90, 95, 99, 100].map(row).into(), words.collect())
}

fn waste(results: &[Value]) -> (Vec<Vec<Cell>>, Vec<String>) {
    let row = |pages: fn(&Value) -> u64| {
        results.iter().map(|result| Cell::Count(pages(&result["pages"]))).collect()
    };
    let rows = vec![
        row(|pages| count(&pages["inserted"]) - count(&pages["unused"])),
        row(|pages| count(&pages["unused"])),
        row(|pages| count(&pages["inserted"])),
    ];
    (rows, results.iter().map(|r| text(&r["policy"]).to_owned()).collect())
}

fn map(map: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let policies = list(&map["by_policy"]);
    let parts = policies.first().map_or(0, |policy| list(&policy["parts"]).len());
    let shown = parts.min(8);
    let cells = |policy: &Value, n: usize| {
        let own = &list(&policy["parts"])[n * parts / shown..(n + 1) * parts / shown];
        let orders = own.iter().flat_map(|part| counts(part).into_iter().enumerate());
        let (pages, weighted) =
            orders.fold((0, 0), |(all, sum), (order, n)| (all + n, sum + order as u64 * n));
        let mean = Cell::Number(weighted as f64 / pages as f64);
        [Cell::Count(pages), if pages > 0 { mean } else { Cell::Empty }]
    };
    let row = |n| policies.iter().flat_map(|policy| cells(policy, n)).collect();
    ((0..shown).map(row).collect(), Vec::new())
}

fn ramp(ramp: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let policies = list(&ramp["by_policy"]);
    let windows = policies.iter().map(|policy| list(&policy["first"]).len()).max().unwrap_or(0);
    let cells = |policy: &Value, n: usize| match policy["first"].get(n) {
        Some(window) => ["start", "size", "async_size"].map(|key| Cell::Count(count(&window[key]))),
        None => [Cell::Empty, Cell::Empty, Cell::Empty],
    };
    let row = |n| policies.iter().flat_map(|policy| cells(policy, n)).collect();
    ((0..windows.min(12)).map(row).collect(), Vec::new())
}

fn raster(raster: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let slices = count(&raster["slices"]) / 8;
    let cells = |cells: &Value, n: u64| {
        let own = list(cells).iter().filter(|cell| count(&cell["slice"]) / slices == n);
        let (inserted, asked) = own.fold((0, 0), |(inserted, asked), cell| {
            (inserted + count(&cell["inserted"]), asked + count(&cell["asked"]))
        });
        [Cell::Count(inserted), Cell::Count(asked)]
    };
    let row = |n| list(&raster["by_policy"]).iter().flat_map(|own| cells(own, n)).collect();
    ((0..8).map(row).collect(), Vec::new())
}

fn heat(waits: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let bands = list(&waits["bands_ns"]).len();
    let sum =
        |slices: &Value, band: usize| list(slices).iter().map(|slice| count(&slice[band])).sum();
    let row = |band| {
        list(&waits["by_policy"]).iter().map(|slices| Cell::Count(sum(slices, band))).collect()
    };
    ((0..bands).map(row).collect(), Vec::new())
}

/// Sources by what they gain in device reads, then by name.
fn corpus(reports: &[Value]) -> (Vec<Vec<Cell>>, Vec<String>) {
    let pair = |report: &Value, path: &str| {
        let of = |n: usize| report["results"][n].pointer(path).map_or(0, count);
        (of(0), of(1))
    };
    let mut sorted: Vec<&Value> = reports.iter().collect();
    let name = |report: &Value| text(&report["source"]).rsplit('/').next().map(str::to_owned);
    sorted.sort_by(|a, b| {
        let gain = |report| {
            let (before, after) = pair(report, "/device_reads/count");
            after as f64 / before as f64
        };
        gain(a).total_cmp(&gain(b)).then_with(|| name(a).cmp(&name(b)))
    });
    let counts = ["/folios/total", "/device_reads/count", "/pages/unused"];
    let row = |report: &&Value| {
        let counted = |path| {
            let (before, after) = pair(report, path);
            [Cell::Count(before), Cell::Count(after), Cell::Change(before, after)]
        };
        let (before, after) = pair(report, "/elapsed_ns");
        let ns = |value: u64| Cell::NanosecondsOf(value as f64, before.max(after) as f64);
        let elapsed = [ns(before), ns(after), Cell::Change(before, after)];
        counts.into_iter().flat_map(counted).chain(elapsed).collect()
    };
    let less = |path| {
        let fewer = sorted.iter().map(|report| pair(report, path)).filter(|(a, b)| b < a);
        fewer.count()
    };
    let words = vec![
        format!("Folios: less for {},", less(counts[0])),
        format!("Device reads: less for {},", less(counts[1])),
    ];
    (sorted.iter().map(row).collect(), words)
}
