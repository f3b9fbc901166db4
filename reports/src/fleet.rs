//! A fleet's results as tables, which text, Markdown and HTML show alike.

use analysis::compare::Metric;
use analysis::fleet::{FleetReport, GroupReport, PolicyTally};

use crate::gate::side;
use crate::number::{Unit, count, counted, signed_percent};
use crate::words;

/// Names of columns, and rows whose first cell is a name.
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Metrics that have a column whatever groups are ranked by.
const SHOWN: [Metric; 8] = [
    Metric::MeanOrder,
    Metric::Folios,
    Metric::DeviceReads,
    Metric::DeviceReadBytes,
    Metric::PagesUnused,
    Metric::ReadWaitP50,
    Metric::ReadWaitP99,
    Metric::ReadWaitMax,
];

/// What all policies were replayed on: labels and texts.
pub(crate) fn overview(report: &FleetReport) -> Vec<(&'static str, String)> {
    let Some(PolicyTally { all, .. }) = report.policies.first() else { return Vec::new() };
    let sources = counted(all.sources, "source", "sources");
    let failed = match all.failed {
        0 => String::new(),
        failed => format!(", {} without figures", count(failed)),
    };
    let size = Unit::Bytes.show(all.source_bytes);
    let accesses = counted(all.accesses, "access", "accesses");
    let levels = all
        .fidelity
        .iter()
        .map(|(level, sources)| format!("{} {}", count(*sources), words::fidelity(*level)));
    let mut lines = vec![
        ("sources", format!("{sources} of {size} with {accesses}{failed}")),
        ("streams", levels.collect::<Vec<_>>().join(", ")),
        ("verified", format!("{} of {} captures exact", count(all.exact), count(all.verified))),
    ];
    let losses = all.losses.iter();
    lines.extend(
        losses.map(|(kind, lost)| ("lost", format!("{} {}", count(*lost), kind.describe()))),
    );
    lines
}

/// All sources, and the groups, the worst first.
pub(crate) fn groups(report: &FleetReport, tally: &PolicyTally) -> Table {
    let with_change = tally.all.worse_percent.is_some();
    let is_shown = SHOWN.contains(&report.metric);
    let mut heads =
        vec![report.by, "sources", "mean order", "folios", "device reads", "bytes read"];
    heads.extend(["pages unused", "read wait p50", "p99", "max"]);
    let mut heads: Vec<String> = heads.into_iter().map(str::to_owned).collect();
    heads.extend((!is_shown).then(|| report.metric.key().to_owned()));
    heads.extend(with_change.then(|| "worse".to_owned()));
    let columns = heads.len();
    let row = |group: &GroupReport| {
        let wait = |wait_ns| Unit::Nanoseconds.show(wait_ns);
        let sources = match group.failed {
            0 => count(group.sources),
            failed => format!("{} of {}", count(group.sources), count(group.sources + failed)),
        };
        let mut cells = vec![group.name.clone(), sources];
        if group.sources == 0 {
            cells.resize(columns, String::new());
            return cells;
        }
        cells.extend([
            side(Metric::MeanOrder, group.mean_order),
            count(group.folios.total),
            count(group.device_reads.count),
            Unit::Bytes.show(group.device_reads.bytes),
            count(group.pages_unused),
            wait(group.read_wait_ns.p50),
            wait(group.read_wait_ns.p99),
            wait(group.read_wait_ns.max),
        ]);
        cells.extend((!is_shown).then(|| side(report.metric, group.ranked_by)));
        let worse = group.worse_percent.map_or("none".to_owned(), signed_percent);
        cells.extend(with_change.then_some(worse));
        cells
    };
    Table { heads, rows: [&tally.all].into_iter().chain(&tally.groups).map(row).collect() }
}

/// How metrics are distributed over the sources.
pub(crate) fn distributions(tally: &PolicyTally) -> Option<Table> {
    let first = tally.distributions.first()?;
    let mut heads = vec!["over the sources".to_owned()];
    heads.extend(first.quantiles.iter().map(|quantile| format!("{} %", quantile.percent)));
    let rows = tally.distributions.iter().map(|distribution| {
        let values = distribution.quantiles.iter();
        let values = values.map(|quantile| side(distribution.metric, Some(quantile.value)));
        std::iter::once(distribution.metric.label().to_owned()).chain(values).collect()
    });
    Some(Table { heads, rows: rows.collect() })
}

/// How many groups are not shown.
pub(crate) fn left_out(report: &FleetReport) -> Option<String> {
    let more = report.left_out as u64;
    let left_out = || format!("and {} more by {}, which are better", count(more), report.by);
    (more > 0).then(left_out)
}
