//! Device reads by size, in powers of two: how many, and their share of the bytes.

use std::collections::BTreeSet;

use analysis::result::{PolicyResult, ReplayReport};

use super::axis::{Scale, short_count, whole_percent};
use super::bars::{Bar, Bars, Row};
use super::frame::{figure, single};
use crate::figures::{SizeBuckets, size_buckets};
use crate::number::{count, percent, size_name};

/// One document with both panels side by side, and a caption.
pub fn sizes(report: &ReplayReport) -> String {
    let buckets = Buckets::new(report);
    figure(report, "sizes", &buckets.description(), &[&buckets.counts(), &buckets.shares()])
}

/// The panels as documents of their own.
pub(crate) fn panels(report: &ReplayReport) -> [String; 2] {
    let buckets = Buckets::new(report);
    let description = buckets.description();
    [
        single(report, "sizes-count", &description, &buckets.counts()),
        single(report, "sizes-share", &description, &buckets.shares()),
    ]
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
            title: "Device reads by size",
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
            title: "Bytes by size of the read",
            axis_title: "share of the bytes read",
            scale: Scale::Share,
            tick: whole_percent,
            rows: self.rows(|buckets, size| {
                let all = buckets.values().map(|bucket| bucket.bytes).sum::<u64>().max(1);
                let bytes = buckets.get(&size).map_or(0, |bucket| bucket.bytes);
                let value = bytes as f64 / all as f64;
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
}
