//! The figures of one run, from a replay or from what a capture recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use traces::access::{Recorded, Source};
use traces::units::Order;

use super::{Metric, OrderChange};
use crate::result::PolicyResult;
use crate::stats::{Sample, mean_order};

/// Where figures come from. Modelled and measured time do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nature {
    /// Computed by a replay: the same every time.
    Replayed,
    /// Recorded on a real machine.
    Recorded,
    /// Orders of folios that another tool counted, and nothing else.
    Histogram,
}

impl Nature {
    /// Whether figures of both kinds may be compared. A histogram has counts only, which a replay
    /// and a recording count alike.
    pub fn compares_with(self, other: Self) -> bool {
        self == other || self == Self::Histogram || other == Self::Histogram
    }
}

/// The figures of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Folios inserted, by order.
    pub by_order: Vec<u64>,
    /// Every metric that the run has, but [`Metric::MeanOrder`], which follows from the orders.
    pub values: BTreeMap<Metric, u64>,
}

/// The runs of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Where they come from.
    pub nature: Nature,
    /// One or more.
    pub runs: Vec<Figures>,
}

impl From<&PolicyResult> for Figures {
    fn from(result: &PolicyResult) -> Self {
        let lock = &result.cache_lock;
        let values = [
            (Metric::Folios, result.folios.total),
            (Metric::DeviceReads, result.device_reads.count),
            (Metric::DeviceReadBytes, result.device_reads.bytes),
            (Metric::PagesInserted, result.pages.inserted),
            (Metric::PagesUnused, result.pages.unused),
            (Metric::Elapsed, result.elapsed_ns),
            (Metric::ReadWaitP50, result.read_wait_ns.p50),
            (Metric::ReadWaitP99, result.read_wait_ns.p99),
            (Metric::ReadWaitMax, result.read_wait_ns.max),
            (Metric::LockAcquisitions, lock.acquisitions),
            (Metric::LockContended, lock.contended),
            (Metric::InsertConflicts, lock.insert_conflicts),
            (Metric::Lookups, lock.lookups),
            (Metric::Windows, result.windows),
        ];
        Self { by_order: result.folios.by_order.clone(), values: values.into() }
    }
}

impl Figures {
    /// Only folios, by order.
    pub fn of_orders(by_order: Vec<u64>) -> Self {
        let pages = by_order.iter().enumerate().map(|(order, count)| count << order).sum();
        let values = [(Metric::Folios, by_order.iter().sum()), (Metric::PagesInserted, pages)];
        Self { by_order: trimmed(by_order), values: values.into() }
    }

    /// What a capture recorded; `None` for a workload description.
    pub fn recorded(source: &Source) -> Option<Self> {
        let recorded = source.recorded.as_ref()?;
        let mut by_order = vec![0; Order::COUNT];
        for folio in &recorded.folios {
            by_order[usize::from(folio.order.0)] += 1;
        }
        let mut figures = Self::of_orders(by_order);
        if let (Some(first), Some(last)) = (source.accesses.first(), source.accesses.last()) {
            figures.values.insert(Metric::Elapsed, last.time - first.time);
        }
        add_device_reads(recorded, &mut figures.values);
        Some(figures)
    }

    /// A metric of the run.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::MeanOrder => mean_order(&self.by_order),
            _ => self.values.get(&metric).map(|value| *value as f64),
        }
    }
}

/// Orders up to the largest one used.
pub(super) fn trimmed(mut by_order: Vec<u64>) -> Vec<u64> {
    let used = by_order.iter().rposition(|count| *count > 0).map_or(1, |order| order + 1);
    by_order.truncate(used);
    by_order
}

/// Reads of files with a stream, as everywhere else; nothing without block events.
fn add_device_reads(recorded: &Recorded, values: &mut BTreeMap<Metric, u64>) {
    if recorded.reads.is_empty() {
        return;
    }
    let reads = || recorded.reads.iter().filter(|read| read.target.is_some());
    values.insert(Metric::DeviceReads, reads().count() as u64);
    values.insert(Metric::DeviceReadBytes, reads().map(|read| read.sectors * 512).sum());
    let mut times_ns: Vec<u64> =
        reads().filter_map(|read| Some(read.completed? - read.issued)).collect();
    if times_ns.is_empty() {
        return;
    }
    times_ns.sort_unstable();
    // The smallest value that so many percent do not exceed.
    let percentile = |percent: usize| times_ns.get((times_ns.len() * percent).div_ceil(100) - 1);
    for (metric, percent) in [
        (Metric::DeviceReadTimeP50, 50),
        (Metric::DeviceReadTimeP99, 99),
        (Metric::DeviceReadTimeMax, 100),
    ] {
        values.extend(percentile(percent).map(|time_ns| (metric, *time_ns)));
    }
}

impl Measured {
    /// A replay.
    pub fn replayed(result: &PolicyResult) -> Self {
        Self { nature: Nature::Replayed, runs: vec![result.into()] }
    }

    /// A metric over the runs; `None` unless every run has it.
    pub fn sample(&self, metric: Metric) -> Option<Sample> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| run.value(metric)).collect();
        Sample::new(values?)
    }

    /// Folios by order, over all runs.
    pub fn total_by_order(&self) -> Vec<u64> {
        let mut total = Vec::new();
        for run in &self.runs {
            total.resize(total.len().max(run.by_order.len()), 0);
            for (sum, count) in total.iter_mut().zip(&run.by_order) {
                *sum += count;
            }
        }
        total
    }
}

/// What the other figures say about why a metric changed.
pub(super) fn evidence(
    metric: Metric,
    orders: &OrderChange,
    baseline: &Measured,
    candidate: &Measured,
) -> Option<String> {
    match metric {
        Metric::MeanOrder => moved_bytes(orders),
        Metric::Folios => {
            let mean = |side: &Measured| mean_folio_kib(&side.total_by_order());
            let (from, to) = (mean(baseline)?, mean(candidate)?);
            Some(format!("mean folio {from:.1} KiB to {to:.1} KiB"))
        }
        Metric::DeviceReads => {
            let mean = |side: &Measured| {
                let bytes = side.sample(Metric::DeviceReadBytes)?.median();
                Some(bytes / side.sample(Metric::DeviceReads)?.median() / 1024.0)
            };
            let (from, to) = (mean(baseline)?, mean(candidate)?);
            Some(format!("mean device read {from:.1} KiB to {to:.1} KiB"))
        }
        Metric::PagesUnused => {
            let share = |side: &Measured| {
                let inserted = side.sample(Metric::PagesInserted)?.median();
                Some(side.sample(Metric::PagesUnused)?.median() / inserted.max(1.0) * 100.0)
            };
            let (from, to) = (share(baseline)?, share(candidate)?);
            Some(format!("{from:.1} % of the pages inserted to {to:.1} %"))
        }
        _ => None,
    }
}

fn mean_folio_kib(by_order: &[u64]) -> Option<f64> {
    let pages: u64 = by_order.iter().enumerate().map(|(order, count)| count << order).sum();
    let folios: u64 = by_order.iter().sum();
    (folios > 0).then(|| pages as f64 * 4.0 / folios as f64)
}

/// The order that lost most bytes and the one that gained most.
fn moved_bytes(orders: &OrderChange) -> Option<String> {
    let gain = |at: usize| orders.by_order[at].candidate_share - orders.by_order[at].baseline_share;
    let by_gain = |a: &usize, b: &usize| gain(*a).total_cmp(&gain(*b));
    let lost = (0..orders.by_order.len()).min_by(by_gain)?;
    let gained = (0..orders.by_order.len()).max_by(by_gain)?;
    if gain(gained) < 0.0005 {
        return None;
    }
    let show = |at: usize| {
        let row = &orders.by_order[at];
        let (from, to) = (row.baseline_share * 100.0, row.candidate_share * 100.0);
        format!("order {}: {from:.1} % to {to:.1} %", row.order)
    };
    Some(format!("bytes in {}, {}", show(lost), show(gained)))
}
