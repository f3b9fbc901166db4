//! The charts of `sweep.json`.

use serde_json::Value;

use super::{Cell, count, list, text};

fn waste(result: &Value) -> Cell {
    let pages = &result["pages"];
    Cell::Share(count(&pages["unused"]) as f64 / count(&pages["inserted"]).max(1) as f64)
}

fn elapsed(result: &Value) -> Cell {
    Cell::Nanoseconds(count(&result["elapsed_ns"]) as f64)
}

fn reads(result: &Value) -> Cell {
    Cell::Count(count(&result["device_reads"]["count"]))
}

/// Every sentence of every answer is in the description.
fn words(report: &Value) -> Vec<String> {
    let reasons = list(&report["advice"]).iter().flat_map(|advice| list(&advice["reason"]));
    reasons.map(|reason| text(reason).to_owned()).collect()
}

/// The chosen figure and the waste for each value of what is given, or four figures.
pub(super) fn curves(report: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let points = list(&report["points"]);
    let given = &report["advice"][0]["given"]["key"];
    let axes = list(&report["axes"]);
    let Some(fixed) = axes.iter().position(|axis| axis["key"] == *given) else {
        let cells = |result: &Value| {
            let wait = Cell::Nanoseconds(count(&result["read_wait_ns"]["p99"]) as f64);
            [elapsed(result), wait, reads(result), waste(result)]
        };
        let row = |point: &Value| list(&point["results"]).iter().flat_map(cells).collect();
        return (points.iter().map(row).collect(), words(report));
    };
    let rows = list(&axes[1 - fixed]["values"]).len();
    let row = |n: usize| {
        let own = points.iter().filter(|point| point["at"][1 - fixed] == n);
        let results = own.flat_map(|point| list(&point["results"]));
        results.flat_map(|result| [elapsed(result), waste(result)]).collect()
    };
    ((0..rows).map(row).collect(), words(report))
}

/// A row for each pair of values.
pub(super) fn grid(report: &Value) -> (Vec<Vec<Cell>>, Vec<String>) {
    let cells = |result: &Value| [elapsed(result), reads(result), waste(result)];
    let row = |point: &Value| list(&point["results"]).iter().flat_map(cells).collect();
    (list(&report["points"]).iter().map(row).collect(), words(report))
}
