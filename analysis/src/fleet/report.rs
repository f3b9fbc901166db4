//! What a fleet's results come to, by host, kernel or workload.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use traces::access::Fidelity;
use traces::capture::LossKind;

use super::{Group, Row, Tally};
use crate::compare::{Better, Figures, Metric, optional_number};
use crate::result::{DeviceReads, FolioCounts, WaitPercentiles};

/// Name of the JSON schema.
const SCHEMA: &str = "rareplay.fleet/1";

/// Shares of the sources, in percent, whose figures a distribution shows.
const PERCENTS: [u64; 7] = [0, 10, 50, 90, 95, 99, 100];

/// Metrics whose distribution is shown.
const DISTRIBUTED: [Metric; 7] = [
    Metric::MeanOrder,
    Metric::Folios,
    Metric::DeviceReads,
    Metric::DeviceReadBytes,
    Metric::PagesUnused,
    Metric::Elapsed,
    Metric::ReadWaitP99,
];

/// How to look at results.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// What rows are put together by.
    pub by: Group,
    /// What the worst are worst by.
    pub metric: Metric,
    /// The policy that the others are held against; the first by name if there is none.
    pub first: Option<String>,
}

/// A group of rows under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// The host, kernel or workload; `all` for all of them.
    pub name: String,
    /// Sources with figures.
    pub sources: u64,
    /// Sources without.
    pub failed: u64,
    /// Bytes of the sources.
    pub source_bytes: u64,
    /// Accesses.
    pub accesses: u64,
    /// Sources by the level of their streams.
    pub fidelity: BTreeMap<Fidelity, u64>,
    /// Captures that were verified.
    pub verified: u64,
    /// Of these, matching completely.
    pub exact: u64,
    /// What the captures lost.
    pub losses: BTreeMap<LossKind, u64>,
    /// Folios inserted.
    pub folios: FolioCounts,
    /// Mean order of the folio that a byte is in.
    #[serde(serialize_with = "optional_number")]
    pub mean_order: Option<f64>,
    /// Device reads.
    pub device_reads: DeviceReads,
    /// Pages inserted and never used.
    pub pages_unused: u64,
    /// Virtual time of all replays.
    pub elapsed_ns: u64,
    /// Waits of all reads.
    pub read_wait_ns: WaitPercentiles,
    /// The metric that groups are ranked by.
    #[serde(serialize_with = "optional_number")]
    pub ranked_by: Option<f64>,
    /// How much worse that is than under the first policy, in percent.
    #[serde(serialize_with = "optional_number")]
    pub worse_percent: Option<f64>,
}

/// A share of the sources, and the value they do not exceed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// Percent of the sources.
    pub percent: u64,
    /// The value.
    #[serde(serialize_with = "crate::compare::number")]
    pub value: f64,
}

/// How a metric is distributed over the sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// The metric.
    pub metric: Metric,
    /// From the smallest value to the largest.
    pub quantiles: Vec<Quantile>,
}

/// A policy over the fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyTally {
    /// The policy.
    pub policy: String,
    /// All rows.
    pub all: GroupReport,
    /// Every group, the worst first.
    pub groups: Vec<GroupReport>,
    /// How metrics are distributed over the sources.
    pub distributions: Vec<Distribution>,
}

/// A source without figures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FailedSource {
    /// Its name.
    pub source: String,
    /// `bad-input`, `data-loss` or `bug`.
    pub kind: String,
    /// Why.
    pub reason: String,
}

/// What a fleet's results come to: `rareplay.fleet/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetReport {
    /// `rareplay.fleet/1`.
    pub schema: &'static str,
    /// Where the results are.
    pub results: String,
    /// What groups are: `host`, `kernel` or `workload`.
    pub by: &'static str,
    /// What groups are ranked by.
    pub metric: Metric,
    /// Each policy, the one that the others are held against first, then by name.
    pub policies: Vec<PolicyTally>,
    /// Sources without figures, by name.
    pub failed: Vec<FailedSource>,
    /// Groups that are not the worst and were left out.
    pub left_out: usize,
}

/// What is gathered of one policy.
#[derive(Default)]
struct Gathered {
    groups: BTreeMap<String, Tally>,
    values: BTreeMap<Metric, Vec<f64>>,
}

impl FleetReport {
    /// Of some rows, each of which is held only while it is added.
    pub fn new(results: &str, rows: impl Iterator<Item = Row>, options: &FleetOptions) -> Self {
        let mut policies: BTreeMap<String, Gathered> = BTreeMap::new();
        let mut failed = BTreeSet::new();
        for row in rows {
            if let Some(reason) = &row.error {
                let kind = row.error_kind.clone().unwrap_or_default();
                failed.insert(FailedSource { source: row.name(), kind, reason: reason.clone() });
            }
            let gathered = policies.entry(row.policy.clone()).or_default();
            gathered.add(row, options.by);
        }
        let mut first: Option<BTreeMap<String, Option<f64>>> = None;
        let mut shown = Vec::new();
        let mut policies: Vec<(String, Gathered)> = policies.into_iter().collect();
        policies.sort_by_key(|(policy, _)| Some(policy) != options.first.as_ref());
        for (policy, gathered) in policies {
            let tally = gathered.show(policy, options.metric, first.as_ref());
            let ranked = |group: &GroupReport| (group.name.clone(), group.ranked_by);
            first.get_or_insert_with(|| {
                tally.groups.iter().chain([&tally.all]).map(ranked).collect()
            });
            shown.push(tally);
        }
        Self {
            schema: SCHEMA,
            results: results.to_owned(),
            by: options.by.name(),
            metric: options.metric,
            policies: shown,
            failed: failed.into_iter().collect(),
            left_out: 0,
        }
    }

    /// Keeps only the worst groups of each policy, so many.
    pub fn keep_worst(&mut self, count: usize) {
        self.left_out = self.policies.iter().map(|policy| policy.groups.len()).max().unwrap_or(0);
        self.left_out = self.left_out.saturating_sub(count);
        self.policies.iter_mut().for_each(|policy| policy.groups.truncate(count));
    }
}

impl Gathered {
    fn add(&mut self, mut row: Row, by: Group) {
        if row.error.is_none() {
            let by_order = row.folios_by_order.iter().map(|count| count.cast_unsigned()).collect();
            let figures = Figures { by_order, values: row.values() };
            for metric in DISTRIBUTED {
                self.values.entry(metric).or_default().extend(figures.value(metric));
            }
        }
        let label = by.label(&row).to_owned();
        self.groups.entry(label).or_default().merge(Tally::of(row));
    }

    fn show(
        mut self,
        policy: String,
        metric: Metric,
        first: Option<&BTreeMap<String, Option<f64>>>,
    ) -> PolicyTally {
        let mut total = Tally::default();
        self.groups.values().for_each(|tally| total.merge(tally.clone()));
        let report = |name: &str, tally: &Tally| {
            let of_first = first.and_then(|first| *first.get(name)?);
            GroupReport::new(name, tally, metric, of_first)
        };
        let mut groups: Vec<GroupReport> =
            self.groups.iter().map(|(name, tally)| report(name, tally)).collect();
        let badness = |group: &GroupReport| {
            let of = group.worse_percent.or(group.ranked_by).unwrap_or(f64::NEG_INFINITY);
            let is_value = group.worse_percent.is_none();
            if is_value && metric.better() == Better::More { -of } else { of }
        };
        // The names decide between equals, since they are in order.
        groups.sort_by(|a, b| badness(b).total_cmp(&badness(a)));
        let distributions = DISTRIBUTED
            .into_iter()
            .filter_map(|metric| Distribution::of(metric, self.values.remove(&metric)?))
            .collect();
        PolicyTally { policy, all: report("all", &total), groups, distributions }
    }
}

impl Distribution {
    fn of(metric: Metric, mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |percent: u64| (values.len() as u64 * percent).div_ceil(100) as usize;
        let quantile = |percent| {
            let at = at(percent).saturating_sub(1).min(last);
            Quantile { percent, value: values[at] }
        };
        Some(Self { metric, quantiles: PERCENTS.map(quantile).into() })
    }
}

impl GroupReport {
    fn new(name: &str, tally: &Tally, metric: Metric, of_first: Option<f64>) -> Self {
        let figures = tally.figures();
        let value = |metric| figures.values.get(&metric).copied().unwrap_or(0);
        let ranked_by = figures.value(metric);
        let sign = if metric.better() == Better::More { -100.0 } else { 100.0 };
        let worse = |(first, now): (f64, f64)| (first != 0.0).then(|| sign * (now - first) / first);
        let used =
            figures.by_order.iter().rposition(|count| *count > 0).map_or(1, |order| order + 1);
        let by_order: Vec<u64> = figures.by_order.iter().take(used).copied().collect();
        Self {
            name: name.to_owned(),
            sources: tally.sources,
            failed: tally.failed,
            source_bytes: tally.source_bytes,
            accesses: tally.accesses,
            fidelity: tally.fidelity.clone(),
            verified: tally.verified,
            exact: tally.exact,
            losses: tally.losses.clone(),
            mean_order: figures.value(Metric::MeanOrder),
            folios: FolioCounts { total: by_order.iter().sum(), by_order },
            device_reads: DeviceReads {
                count: value(Metric::DeviceReads),
                bytes: value(Metric::DeviceReadBytes),
            },
            pages_unused: value(Metric::PagesUnused),
            elapsed_ns: value(Metric::Elapsed),
            read_wait_ns: WaitPercentiles {
                p50: value(Metric::ReadWaitP50),
                p99: value(Metric::ReadWaitP99),
                max: value(Metric::ReadWaitMax),
            },
            ranked_by,
            worse_percent: of_first.zip(ranked_by).and_then(worse),
        }
    }
}
