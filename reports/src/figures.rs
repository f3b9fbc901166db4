//! The figures of a replay in the order in which every report shows them.

use std::collections::BTreeMap;

use analysis::result::{FolioCounts, PolicyResult, ReplayReport, SizeCount};

use crate::number::{Scale, Unit, percent_change};
use crate::words;

/// One figure under every policy.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Name in data files.
    pub(crate) key: String,
    /// Name for people.
    pub(crate) label: String,
    /// What it counts.
    pub(crate) unit: Unit,
    /// One value per policy.
    pub(crate) values: Vec<u64>,
    /// Whether less of it is better; some figures are neither good nor bad.
    pub(crate) less_is_better: bool,
}

/// How a figure changed from the first of two policies to the second.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// `None` where nothing was before.
    pub(crate) percent: Option<f64>,
}

impl Row {
    /// The scale its values share.
    pub(crate) fn scale(&self) -> Scale {
        self.unit.scale(self.values.iter().copied().max().unwrap_or(0))
    }

    /// The change, where there are exactly two policies.
    pub(crate) fn change(&self) -> Option<Change> {
        let [before, after] = self.values[..] else { return None };
        Some(Change { before, after, percent: percent_change(before, after) })
    }

    /// Whether it got better, worse or neither.
    pub(crate) fn trend(&self) -> Trend {
        match self.change() {
            Some(change) if self.less_is_better && change.after < change.before => Trend::Better,
            Some(change) if self.less_is_better && change.after > change.before => Trend::Worse,
            _ => Trend::Neutral,
        }
    }
}

/// Direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trend {
    Better,
    Worse,
    Neutral,
}

/// Figures that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

/// Orders that reports show: 0 to the largest one that any policy used.
pub(crate) fn orders_shown(report: &ReplayReport) -> usize {
    report.results.iter().map(|result| result.folios.by_order.len()).max().unwrap_or(0).max(1)
}

/// Pages in folios of each order.
pub(crate) fn pages_by_order(folios: &FolioCounts) -> Vec<u64> {
    folios.by_order.iter().enumerate().map(|(order, count)| count << order).collect()
}

/// Requests of about one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SizeBucket {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

/// Requests by the power of two of bytes that their size does not exceed.
pub(crate) type SizeBuckets = BTreeMap<u64, SizeBucket>;

/// Sums up sizes by powers of two.
pub(crate) fn size_buckets(sizes: &[SizeCount]) -> SizeBuckets {
    let mut buckets = SizeBuckets::new();
    for size in sizes {
        let bucket = buckets.entry(size.bytes.max(1).next_power_of_two()).or_default();
        bucket.requests += size.count;
        bucket.bytes += size.bytes * size.count;
    }
    buckets
}

/// All sections of a report.
pub(crate) fn sections(report: &ReplayReport) -> Vec<Section> {
    vec![folios(report), device_reads(report), pages(report), time(report), cache_lock(report)]
}

fn folios(report: &ReplayReport) -> Section {
    let order_row = |order: usize| {
        let values = report.results.iter().map(|result| result.folios.of(order));
        Row {
            key: format!("folios.order_{order}"),
            label: format!("order {order}"),
            unit: Unit::Count,
            values: values.collect(),
            less_is_better: false,
        }
    };
    let mut rows: Vec<Row> = (0..orders_shown(report)).map(order_row).collect();
    let values = report.results.iter().map(|result| result.folios.total);
    rows.push(Row {
        key: "folios.total".to_owned(),
        label: "total".to_owned(),
        unit: Unit::Count,
        values: values.collect(),
        less_is_better: true,
    });
    Section { title: "Folios inserted".to_owned(), rows }
}

/// Shorthand for the rows below.
fn row(
    report: &ReplayReport,
    (key, label): (&str, &str),
    unit: Unit,
    less_is_better: bool,
    value: impl Fn(&PolicyResult) -> u64,
) -> Row {
    let values = report.results.iter().map(value).collect();
    Row { key: key.to_owned(), label: label.to_owned(), unit, values, less_is_better }
}

fn device_reads(report: &ReplayReport) -> Section {
    let rows = vec![
        row(report, ("device_reads.count", "requests"), Unit::Count, true, |result| {
            result.device_reads.count
        }),
        row(report, ("device_reads.bytes", "bytes"), Unit::Bytes, true, |result| {
            result.device_reads.bytes
        }),
    ];
    Section { title: "Device reads".to_owned(), rows }
}

fn pages(report: &ReplayReport) -> Section {
    let rows = vec![
        row(report, ("pages.inserted", "inserted"), Unit::Count, false, |result| {
            result.pages.inserted
        }),
        row(report, ("pages.read", "read"), Unit::Count, true, |result| result.pages.read),
        row(report, ("pages.unused", "unused"), Unit::Count, true, |result| result.pages.unused),
        row(report, ("windows", "windows filled"), Unit::Count, false, |result| result.windows),
    ];
    Section { title: "Pages".to_owned(), rows }
}

fn time(report: &ReplayReport) -> Section {
    let time = |key, label, value: fn(&PolicyResult) -> u64| {
        row(report, (key, label), Unit::Nanoseconds, true, value)
    };
    let count = |key, label, less_is_better, value: fn(&PolicyResult) -> u64| {
        row(report, (key, label), Unit::Count, less_is_better, value)
    };
    let mut rows = vec![
        time("elapsed_ns", "elapsed", |result| result.elapsed_ns),
        time("read_wait_ns.p50", "read wait p50", |result| result.read_wait_ns.p50),
        time("read_wait_ns.p99", "read wait p99", |result| result.read_wait_ns.p99),
        time("read_wait_ns.max", "read wait max", |result| result.read_wait_ns.max),
        row(report, ("device_use.busy_ns", "device busy"), Unit::Nanoseconds, false, |result| {
            result.device_use.busy_ns
        }),
        time("device_use.request_ns", "device read", |result| result.device_use.request_ns),
        count("device_use.depth_max", "in flight, max", false, |result| {
            result.device_use.depth_max
        }),
        count("device_use.merged", "merged", false, |result| result.device_use.merged),
        count("device_use.extrapolated", "extrapolated", true, |result| {
            result.device_use.extrapolated
        }),
    ];
    let is_rare = |row: &Row| row.key.ends_with("merged") || row.key.ends_with("extrapolated");
    rows.retain(|row| !is_rare(row) || row.values.iter().any(|value| *value > 0));
    rows.extend(stream_waits(report));
    Section { title: format!("Time ({})", words::time_note(report.verify.as_ref())), rows }
}

/// Waits per open file, where there are a few.
fn stream_waits(report: &ReplayReport) -> Vec<Row> {
    const STREAMS_MAX: usize = 8;
    let streams = report.results.first().map_or(0, |result| result.device_use.streams.len());
    if !(2..=STREAMS_MAX).contains(&streams) {
        return Vec::new();
    }
    let of = |stream: usize| Row {
        key: format!("device_use.streams.{stream}.read_wait_ns.p99"),
        label: format!("p99, open file {}", stream + 1),
        unit: Unit::Nanoseconds,
        values: report
            .results
            .iter()
            .map(|result| result.device_use.streams.get(stream).map_or(0, |s| s.read_wait_ns.p99))
            .collect(),
        less_is_better: true,
    };
    (0..streams).map(of).collect()
}

/// Lock acquisitions always; what only forced and concurrent readahead has, where there is some.
fn cache_lock(report: &ReplayReport) -> Section {
    let count = |key, label, less_is_better, value: fn(&replay::log::CacheLock) -> u64| {
        row(report, (key, label), Unit::Count, less_is_better, |result| value(&result.cache_lock))
    };
    let mut rows = vec![
        count("cache_lock.acquisitions", "acquisitions", true, |lock| lock.acquisitions),
        count("cache_lock.contended", "contended", true, |lock| lock.contended),
        count("cache_lock.insert_conflicts", "failed inserts", true, |lock| lock.insert_conflicts),
        count("cache_lock.lookups", "lookups", true, |lock| lock.lookups),
        count("cache_lock.found", "lookups that found a page", true, |lock| lock.found),
        count("cache_lock.forced_calls", "forced readahead calls", false, |lock| lock.forced_calls),
        count("cache_lock.forced_pages", "pages these asked for", false, |lock| lock.forced_pages),
        count("cache_lock.forced_covered", "calls fully cached", false, |lock| lock.forced_covered),
        count("cache_lock.forced_skipped", "calls skipped", false, |lock| lock.forced_skipped),
    ];
    let all_zero = |row: &Row| row.values.iter().all(|value| *value == 0);
    rows.retain(|row| row.key == "cache_lock.acquisitions" || !all_zero(row));
    Section { title: "Page cache lock".to_owned(), rows }
}
