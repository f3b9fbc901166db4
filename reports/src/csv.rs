//! CSV, one figure to a line, so that any tool can group and join it.

use analysis::explain::Explanation;
use analysis::fleet::{FleetReport, GroupReport};
use analysis::inspect::InspectReport;
use analysis::report::CorpusReport;
use analysis::result::ReplayReport;
use analysis::sweep::SweepReport;
use analysis::verify::CaptureVerify;

use crate::causes;
use crate::figures::sections;
use crate::sweep::remarks;
use crate::words::Outcome;

/// Lines of `source,policy,metric,unit,value`.
pub fn replay(report: &ReplayReport) -> String {
    let mut lines = Lines::new(FIGURES);
    add_figures(report, &mut lines);
    lines.finish()
}

/// The same for every source of a report.
pub fn corpus(report: &CorpusReport) -> String {
    let mut lines = Lines::new(FIGURES);
    for replay in report.sources.iter().filter_map(|source| source.replay.as_ref().ok()) {
        add_figures(replay, &mut lines);
    }
    lines.finish()
}

const FIGURES: [&str; 5] = ["source", "policy", "metric", "unit", "value"];

fn add_figures(report: &ReplayReport, lines: &mut Lines<5>) {
    let sections = sections(report);
    if let Some(verify) = &report.verify {
        let [recorded, predicted] =
            [verify.timing.elapsed.recorded_ns, verify.timing.elapsed.predicted_ns];
        for (metric, ns) in [("timing.recorded_ns", recorded), ("timing.predicted_ns", predicted)] {
            lines.push([&report.source, &verify.policy, metric, "ns", &ns.to_string()]);
        }
    }
    for (column, result) in report.results.iter().enumerate() {
        for row in sections.iter().flat_map(|section| &section.rows) {
            let value = row.values[column].to_string();
            lines.push([&report.source, &result.policy, &row.key, row.unit.name(), &value]);
        }
    }
}

/// Lines of `policy,GROUP,metric,unit,value`; the line of all sources calls its group `all`.
pub fn fleet(report: &FleetReport) -> String {
    let mut lines = Lines::new(["policy", report.by, "metric", "unit", "value"]);
    for tally in &report.policies {
        for group in std::iter::once(&tally.all).chain(&tally.groups) {
            for (metric, unit, value) in fleet_figures(group) {
                lines.push([&tally.policy, &group.name, metric, unit, &value.to_string()]);
            }
        }
    }
    lines.finish()
}

fn fleet_figures(group: &GroupReport) -> [(&'static str, &'static str, u64); 14] {
    [
        ("sources", "count", group.sources),
        ("failed", "count", group.failed),
        ("source_bytes", "bytes", group.source_bytes),
        ("accesses", "count", group.accesses),
        ("verified", "count", group.verified),
        ("exact", "count", group.exact),
        ("folios.total", "count", group.folios.total),
        ("device_reads.count", "count", group.device_reads.count),
        ("device_reads.bytes", "bytes", group.device_reads.bytes),
        ("pages.unused", "count", group.pages_unused),
        ("elapsed_ns", "ns", group.elapsed_ns),
        ("read_wait_ns.p50", "ns", group.read_wait_ns.p50),
        ("read_wait_ns.p99", "ns", group.read_wait_ns.p99),
        ("read_wait_ns.max", "ns", group.read_wait_ns.max),
    ]
}

/// One line per point and policy; where one setting is swept, that of the second is empty.
pub fn sweep(report: &SweepReport) -> String {
    let mut lines = Lines::new([
        "source",
        "policy",
        "key",
        "value",
        "second_key",
        "second_value",
        "elapsed_ns",
        "read_wait_ns_p50",
        "read_wait_ns_p99",
        "read_wait_ns_max",
        "device_reads",
        "device_bytes",
        "folios",
        "pages_inserted",
        "pages_unused",
        "device_busy",
        "queue_depth_mean",
        "remarks",
    ]);
    let key = |axis: usize| report.axes.get(axis).map_or("", |axis| &axis.key);
    for (place, point) in report.points.iter().enumerate() {
        let value = |axis: usize| point.values.get(axis).map_or("", String::as_str);
        for (policy, figures) in point.results.iter().enumerate() {
            lines.push([
                &report.source,
                &figures.policy,
                key(0),
                value(0),
                key(1),
                value(1),
                &figures.elapsed_ns.to_string(),
                &figures.read_wait_ns.p50.to_string(),
                &figures.read_wait_ns.p99.to_string(),
                &figures.read_wait_ns.max.to_string(),
                &figures.device_reads.count.to_string(),
                &figures.device_reads.bytes.to_string(),
                &figures.folios.total.to_string(),
                &figures.pages.inserted.to_string(),
                &figures.pages.unused.to_string(),
                &format!("{:.6}", figures.device_busy),
                &format!("{:.3}", figures.queue_depth_mean),
                &remarks(report, policy, place),
            ]);
        }
    }
    lines.finish()
}

/// One line per capture.
pub fn verify(captures: &[CaptureVerify]) -> String {
    let mut lines = Lines::new([
        "source",
        "policy",
        "stream",
        "folios_recorded",
        "folios_replayed",
        "folios_matched",
        "reads_recorded",
        "reads_replayed",
        "reads_matched",
        "reads_unrecorded",
        "result",
        "elapsed_recorded_ns",
        "elapsed_predicted_ns",
        "read_p50_recorded_ns",
        "read_p50_predicted_ns",
        "read_p99_recorded_ns",
        "read_p99_predicted_ns",
        "device_read_recorded_ns",
        "device_read_predicted_ns",
        "extrapolated",
    ]);
    for verify in captures {
        let (folios, reads) = (&verify.folios, &verify.device_reads);
        let timing = &verify.timing;
        lines.push([
            &verify.source,
            &verify.policy,
            crate::words::fidelity(verify.stream),
            &folios.recorded.to_string(),
            &folios.replayed.to_string(),
            &folios.matched.to_string(),
            &reads.recorded.to_string(),
            &reads.replayed.to_string(),
            &reads.matched.to_string(),
            &verify.unrecorded_reads.to_string(),
            Outcome::of(verify).words(),
            &timing.elapsed.recorded_ns.to_string(),
            &timing.elapsed.predicted_ns.to_string(),
            &timing.read_p50.recorded_ns.to_string(),
            &timing.read_p50.predicted_ns.to_string(),
            &timing.read_p99.recorded_ns.to_string(),
            &timing.read_p99.predicted_ns.to_string(),
            &timing.device_read.recorded_ns.to_string(),
            &timing.device_read.predicted_ns.to_string(),
            &timing.extrapolated.to_string(),
        ]);
    }
    lines.finish()
}

/// One line per policy and cause.
pub fn explain(explanation: &Explanation) -> String {
    let mut lines = Lines::new(["source", "policy", "cause", "pages"]);
    for row in causes::rows(explanation) {
        for (side, pages) in explanation.sides.iter().zip(row.pages) {
            lines.push([&explanation.source, &side.policy, &row.key, &pages.to_string()]);
        }
    }
    lines.finish()
}

/// One line per file.
pub fn inspect(report: &InspectReport) -> String {
    let mut lines = Lines::new([
        "source",
        "file",
        "size_bytes",
        "accesses",
        "forced",
        "asked_bytes",
        "folios",
        "pages_inserted",
        "pages_unused",
        "device_reads",
        "device_bytes",
        "sequential",
        "interleaved",
        "strided",
        "backward",
        "random",
    ]);
    for file in &report.files {
        let pattern = &file.pattern;
        lines.push([
            &report.source,
            &file.file,
            &file.size_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
            &file.accesses.to_string(),
            &file.forced.to_string(),
            &file.asked_bytes.to_string(),
            &file.folios.total.to_string(),
            &file.pages_inserted.to_string(),
            &file.pages_unused.to_string(),
            &file.device_reads.count.to_string(),
            &file.device_reads.bytes.to_string(),
            &pattern.sequential.to_string(),
            &pattern.interleaved.to_string(),
            &pattern.strided.to_string(),
            &pattern.backward.to_string(),
            &pattern.random.to_string(),
        ]);
    }
    lines.finish()
}

/// Lines of `N` fields.
pub(crate) struct Lines<const N: usize>(csv::Writer<Vec<u8>>);

impl<const N: usize> Lines<N> {
    pub(crate) fn new(heads: [&str; N]) -> Self {
        let mut lines = Self(csv::Writer::from_writer(Vec::new()));
        lines.push(heads);
        lines
    }

    pub(crate) fn push(&mut self, fields: [&str; N]) {
        self.0.write_record(fields).expect("every line has N fields and memory takes them all");
    }

    pub(crate) fn finish(self) -> String {
        let bytes = self.0.into_inner().expect("memory takes every line");
        String::from_utf8(bytes).expect("fields are UTF-8")
    }
}
