//! One figure to a line.

use analysis::compare::Unit;
use analysis::gate::GateReport;

use crate::csv::Lines;

/// Both sides of every figure: folios by order, then the metrics. What a side does not have is empty.
pub fn csv(report: &GateReport) -> String {
    let heads = [
        "source",
        "metric",
        "unit",
        "baseline",
        "candidate",
        "change",
        "change_percent",
        "verdict",
    ];
    let mut lines = Lines::new(heads);
    for source in &report.sources {
        for row in &source.orders.by_order {
            lines.push([
                &source.source,
                &format!("folios.order_{}", row.order),
                "count",
                &row.baseline.to_string(),
                &row.candidate.to_string(),
                &(row.candidate - row.baseline).to_string(),
                &percent(row.baseline, row.candidate),
                "",
            ]);
        }
        for check in report.checks_of(&source.source) {
            let shown = |figure: Option<f64>| figure.map(|n| n.to_string()).unwrap_or_default();
            let change = check.change.as_ref();
            lines.push([
                &source.source,
                check.metric.key(),
                unit(check.metric.unit()),
                &shown(check.baseline),
                &shown(check.candidate),
                &shown(change.map(|change| change.absolute)),
                &shown(change.and_then(|change| change.percent)),
                check.verdict.name(),
            ]);
        }
    }
    lines.finish()
}

fn percent(before: f64, after: f64) -> String {
    if before == 0.0 { String::new() } else { ((after - before) / before * 100.0).to_string() }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
        Unit::Orders => "orders",
    }
}
