//! Device reads by size, in powers of two: how many, and their share of the bytes.

use std::collections::BTreeSet;

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, short_count, short_percent};
use super::bars::{Bar, Bars, Row};
use super::figure::{Figure, caption, policies};
use super::legend::{Legend, Mark};
use super::table::{Table, TableRow};
use crate::csv::Lines;
use crate::figures::{SizeBucket, SizeBuckets, size_buckets};
use crate::number::{count, percent, size_name};

/// The chart.
pub(super) fn figure(report: &ReplayReport) -> Figure {
    let buckets = Buckets::new(report);
    Figure {
        id: "sizes",
        title: "Device reads by size",
        reading: "Requests as the device gets them, after splits and merges, summed up by powers \
                  of two. Fewer and larger requests are cheaper.",
        description: buckets.description(),
        caption: caption(report),
        legend: Legend::Series(Mark::Bar, policies(report)),
        panels: vec![Box::new(buckets.counts()), Box::new(buckets.shares())],
        table: buckets.table(policies(report)),
        csv: csv(report),
    }
}

/// Requests of every policy by size.
struct Buckets<'a> {
    results: &'a [PolicyResult],
    by_policy: Vec<SizeBuckets>,
}

impl<'a> Buckets<'a> {
    fn new(report: &'a ReplayReport) -> Self {
        let by_policy = report.results.iter().map(|result| size_buckets(&result.request_sizes));
        Self { results: &report.results, by_policy: by_policy.collect() }
    }

    /// Every size that some policy has, smallest first.
    fn sizes(&self) -> BTreeSet<u64> {
        self.by_policy.iter().flat_map(|buckets| buckets.keys().copied()).collect()
    }

    fn rows(&self, bar: impl Fn(&SizeBuckets, u64) -> Bar) -> Vec<Row> {
        let row = |size| Row {
            name: format!("to {}", size_name(size)),
            detail: String::new(),
            bars: self.by_policy.iter().map(|buckets| bar(buckets, size)).collect(),
        };
        self.sizes().into_iter().map(row).collect()
    }

    fn counts(&self) -> Bars {
        let all = self.by_policy.iter().flat_map(|buckets| buckets.values());
        let largest = all.map(|bucket| bucket.requests).max().unwrap_or(0);
        Bars {
            title: "Number of requests",
            axis_title: "requests, logarithmic",
            scale: Scale::counts(largest),
            tick: short_count,
            rows: self.rows(|buckets, size| {
                let requests = buckets.get(&size).map_or(0, |bucket| bucket.requests);
                Bar { value: requests as f64, label: count(requests) }
            }),
        }
    }

    fn shares(&self) -> Bars {
        Bars {
            title: "Share of the bytes",
            axis_title: "share of the bytes read",
            scale: Scale::Share,
            tick: short_percent,
            rows: self.rows(|buckets, size| {
                let value = share_of_bytes(buckets, size);
                Bar { value, label: percent(value) }
            }),
        }
    }

    fn description(&self) -> String {
        let describe = |(result, buckets): (&PolicyResult, &SizeBuckets)| {
            let sizes = buckets.iter();
            let sizes =
                sizes.map(|(size, bucket)| format!("to {}: {}", size_name(*size), bucket.requests));
            format!(
                "{}: {} device reads ({}).",
                result.policy,
                result.device_reads.count,
                sizes.collect::<Vec<_>>().join(", ")
            )
        };
        self.results.iter().zip(&self.by_policy).map(describe).collect::<Vec<_>>().join(" ")
    }

    fn table(&self, groups: Vec<String>) -> Table {
        let cells = |buckets: &SizeBuckets, size: u64| {
            let bucket = buckets.get(&size).copied().unwrap_or_default();
            [count(bucket.requests), percent(share_of_bytes(buckets, size))]
        };
        let row = |size: u64| {
            let cells = self.by_policy.iter().flat_map(|buckets| cells(buckets, size)).collect();
            TableRow::new(format!("to {}", size_name(size)), cells)
        };
        Table {
            caption: "Requests, and share of the bytes they read".to_owned(),
            head: "Size",
            groups,
            columns: vec!["requests", "bytes"],
            rows: self.sizes().into_iter().map(row).collect(),
        }
    }
}

fn share_of_bytes(buckets: &SizeBuckets, size: u64) -> f64 {
    let all: u64 = buckets.values().map(|bucket: &SizeBucket| bucket.bytes).sum();
    buckets.get(&size).map_or(0, |bucket| bucket.bytes) as f64 / all.max(1) as f64
}

/// Not summed up: `policy,bytes,requests`.
fn csv(report: &ReplayReport) -> String {
    let mut lines = Lines::new(["policy", "bytes", "requests"]);
    for result in &report.results {
        for size in &result.request_sizes {
            lines.push([&result.policy, &size.bytes.to_string(), &size.count.to_string()]);
        }
    }
    lines.finish()
}
