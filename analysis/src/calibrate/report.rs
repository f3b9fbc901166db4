//! What `calibrate` prints: the fit, its errors, and what the captures could not tell.

use std::collections::BTreeMap;
use std::fmt;

use traces::access::Source;

use super::cpu::CpuFit;
use super::observation::{DEPTHS, Observation, Observations, Seen};
use super::regression::Law;

/// Share of the requests that must be of a kind for the fit to have seen it.
const SEEN_SHARE: f64 = 0.01;

/// Requests of one size class and depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitRow {
    /// Largest request of the class.
    pub bytes_max: u64,
    /// Requests in flight, from 1 to 3; 3 stands for more as well.
    pub depth: u64,
    /// Requests.
    pub requests: u64,
    /// Mean time from issue to completion.
    pub recorded_ns: u64,
    /// The same as the model predicts it from the recorded issues.
    pub predicted_ns: u64,
}

/// How well a device fits the captures.
#[derive(Clone, Debug)]
pub struct FitReport {
    /// Requests used.
    pub requests: u64,
    /// Requests kept apart as stalls of the machine.
    pub stalls: u64,
    /// What the stalls took, as a share of all request time.
    pub stall_share: f64,
    /// Mean difference between predicted and recorded time of a request, relative to the mean of
    /// its size and depth.
    pub error: f64,
    /// Share of the variance of relative times that the model explains.
    pub explained: f64,
    /// By size and depth.
    pub rows: Vec<FitRow>,
    /// CPU costs.
    pub cpu: Vec<CpuFit>,
    /// What the captures could not tell.
    pub unknown: Vec<String>,
    fitted: Law,
}

impl FitReport {
    pub(super) fn new(
        observations: &Observations,
        seen: &Seen,
        law: &Law,
        cpu: Vec<CpuFit>,
    ) -> Self {
        let predicted = observations.predicted(law);
        let requests = observations.used().count() as u64;
        let time = |stalled: bool| -> u64 {
            let all = observations.all().iter().filter(|o| o.stalled == stalled);
            all.map(Observation::latency_ns).sum()
        };
        let (stalled_ns, used_ns) = (time(true), time(false));
        let mut unknown = unknown(seen);
        for fit in cpu.iter().filter(|fit| fit.observations == 0) {
            unknown.push(format!("{}: {} ns kept, {}", fit.name, fit.ns, fit.needs));
        }
        Self {
            requests,
            stalls: observations.len() as u64 - requests,
            stall_share: stalled_ns as f64 / (stalled_ns + used_ns).max(1) as f64,
            error: observations.error(&predicted),
            explained: explained(observations, &predicted),
            rows: rows(observations, &predicted),
            cpu,
            unknown,
            fitted: law.clone(),
        }
    }

    /// The text the device file carries.
    pub(super) fn about(&self, sources: &[&Source]) -> String {
        let names: Vec<&str> = sources.iter().map(|source| file_name(&source.name)).collect();
        format!(
            "Fitted to {} requests of {}. Mean error of a request {:.0} %.",
            self.requests,
            names.join(", "),
            self.error * 100.0
        )
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn unknown(seen: &Seen) -> Vec<String> {
    let mut unknown = Vec::new();
    if seen.bytes_min == seen.bytes_max {
        unknown.push(format!(
            "cost per byte: all requests have {} bytes, so all of their time counts as fixed",
            seen.bytes_min
        ));
    } else {
        unknown.push(format!(
            "requests under {} or over {} bytes: none seen",
            seen.bytes_min, seen.bytes_max
        ));
    }
    if seen.depth_max == 1 {
        unknown.push(
            "parallelism: never more than one request in flight, so requests are served one by one"
                .to_owned(),
        );
    } else {
        unknown
            .push(format!("parallelism beyond {}: never more requests in flight", seen.depth_max));
    }
    let all = (seen.continuing + seen.apart) as f64;
    for (count, what) in [(seen.continuing, "continue"), (seen.apart, "do not continue")] {
        if (count as f64) < all * SEEN_SHARE {
            unknown.push(format!(
                "cost of a seek: only {count} requests {what} the request before them"
            ));
        }
    }
    unknown
}

fn explained(observations: &Observations, predicted: &[u64]) -> f64 {
    let used = || {
        let pairs = observations.all().iter().zip(predicted);
        pairs.filter(|(observation, _)| !observation.stalled)
    };
    let count = used().count().max(1) as f64;
    let mean = used().map(|(o, _)| o.latency_ns() as f64).sum::<f64>() / count;
    let total: f64 = used().map(|(o, _)| (o.latency_ns() as f64 - mean).powi(2)).sum();
    let left: f64 = used().map(|(o, p)| (o.latency_ns() as f64 - *p as f64).powi(2)).sum();
    if total > 0.0 { 1.0 - left / total } else { 1.0 }
}

fn rows(observations: &Observations, predicted: &[u64]) -> Vec<FitRow> {
    let mut sums: BTreeMap<(usize, u64), (u64, u64, u64)> = BTreeMap::new();
    for (observation, predicted) in observations.all().iter().zip(predicted) {
        if observation.stalled {
            continue;
        }
        let key = (observation.class(), observation.depth.min(DEPTHS as u64));
        let (count, recorded_ns, predicted_ns) = sums.entry(key).or_default();
        *count += 1;
        *recorded_ns += observation.latency_ns();
        *predicted_ns += predicted;
    }
    let rows =
        sums.into_iter().map(|((class, depth), (requests, recorded_ns, predicted_ns))| FitRow {
            bytes_max: 1 << class,
            depth,
            requests,
            recorded_ns: recorded_ns / requests,
            predicted_ns: predicted_ns / requests,
        });
    rows.collect()
}

impl FitReport {
    /// The device that was fitted, and how well, a line each.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = self.device();
        lines.push(format!(
            "fit: {} requests, mean error {:.1} %, {:.0} % of the variance explained",
            self.requests,
            self.error * 100.0,
            self.explained * 100.0
        ));
        if self.stalls > 0 {
            lines.push(format!(
                "kept apart: {} stalls, {:.1} % of the request time",
                self.stalls,
                self.stall_share * 100.0
            ));
        }
        lines
    }

    fn device(&self) -> Vec<String> {
        let Law { fixed_ns, apart_ns, idle_ns, byte_ps, parallel, link_share, curve, together } =
            &self.fitted;
        let mut lines = vec![format!(
            "device: {:.1} us per request, {:.1} us more if not contiguous, {:.1} us more if idle, \
             {:.3} us per KiB, {} side by side",
            fixed_ns / 1e3,
            apart_ns / 1e3,
            idle_ns / 1e3,
            byte_ps * 1.024e-3,
            parallel
        )];
        if *link_share > 0.0 {
            lines.push(format!(
                "  {:.0} % of the time per byte on a shared link",
                link_share * 100.0
            ));
        }
        if *together {
            let what = "  completions are reported when the device has nothing left to do";
            lines.push(what.to_owned());
        }
        if !curve.is_empty() {
            let points = curve.iter();
            let points =
                points.map(|(bytes, factor)| format!("{:.1} x{factor:.2}", *bytes as f64 / 1024.0));
            lines.push(format!("  bent by size (KiB): {}", points.collect::<Vec<_>>().join(", ")));
        }
        lines
    }
}

impl FitRow {
    /// The depth, `3+` for three and more.
    pub fn depth_name(&self) -> String {
        if self.depth == 3 { "3+".to_owned() } else { self.depth.to_string() }
    }

    /// How far the prediction is off, in percent.
    pub fn error_percent(&self) -> f64 {
        (self.predicted_ns as f64 / self.recorded_ns.max(1) as f64 - 1.0) * 100.0
    }
}

impl fmt::Display for FitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.summary() {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "  up to KiB  depth  requests  recorded us  predicted us   error")?;
        for row in &self.rows {
            writeln!(
                f,
                "  {:>9}  {:>5}  {:>8}  {:>11.1}  {:>12.1}  {:>+5.1} %",
                row.bytes_max >> 10,
                row.depth_name(),
                row.requests,
                row.recorded_ns as f64 / 1e3,
                row.predicted_ns as f64 / 1e3,
                row.error_percent()
            )?;
        }
        for fit in self.cpu.iter().filter(|fit| fit.observations > 0) {
            writeln!(f, "cpu: {} {} ns, from {} gaps", fit.name, fit.ns, fit.observations)?;
        }
        for unknown in &self.unknown {
            writeln!(f, "not known: {unknown}")?;
        }
        Ok(())
    }
}
