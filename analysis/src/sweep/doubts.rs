//! What limits the answers of a sweep, whatever the policy.

use traces::access::{AccessKind, Source};
use traces::settings::Origin;

use super::{Doubt, DoubtKind, SweepFigures, SweepReport};

/// Error of the predicted time from which it is worth a warning: two recordings of one workload on
/// one machine differ by about as much.
const TIMING_ERROR: f64 = 0.2;

/// Waste from which it matters that memory is not modelled.
const WASTE_SHARE: f64 = 0.01;

/// Limits that bound each other, so that one that was assumed decides what a sweep of the other says.
const BOUND_BY: [(&str, &str); 3] = [
    ("read_ahead_kb", "max_sectors_kb"),
    ("max_sectors_kb", "read_ahead_kb"),
    ("memory", "read_ahead_kb"),
];

pub(super) fn of(report: &SweepReport, source: &Source) -> Vec<Doubt> {
    let checks = [
        (DoubtKind::StreamInferred, inferred(report)),
        (DoubtKind::NotExact, not_exact(report)),
        (DoubtKind::Losses, losses(report)),
        (DoubtKind::Uncalibrated, uncalibrated(report)),
        (DoubtKind::TimingError, timing(report)),
        (DoubtKind::MemoryNotModelled, memory(report, source)),
        (DoubtKind::SettingAssumed, assumed(report)),
    ];
    let found = checks.into_iter().filter_map(|(kind, text)| Some(Doubt { kind, text: text? }));
    found.collect()
}

fn inferred(report: &SweepReport) -> Option<String> {
    (!report.fidelity.is_replayable()).then(|| {
        "the streams are inferred: they show what the old readahead did, so that no setting can \
         read less than that"
            .to_owned()
    })
}

fn not_exact(report: &SweepReport) -> Option<String> {
    let verify = report.verify.as_ref().filter(|verify| !verify.exact)?;
    Some(format!(
        "the replay under {} gives {} of the {} recorded folios: its figures are as good",
        verify.policy, verify.folios.matched, verify.folios.recorded
    ))
}

fn losses(report: &SweepReport) -> Option<String> {
    let lost = report.losses.severity()? >= traces::capture::Severity::Warning;
    lost.then(|| "the capture is not complete: see its losses".to_owned())
}

fn uncalibrated(report: &SweepReport) -> Option<String> {
    let device = report.device.as_ref().filter(|device| device.model != "calibrated")?;
    Some(format!(
        "times are those of the device model {}, not of the machine of the capture: `calibrate` \
         fits one; counts do not depend on it",
        device.model
    ))
}

fn timing(report: &SweepReport) -> Option<String> {
    report.device.as_ref()?;
    let error = report.verify.as_ref()?.timing.elapsed.error();
    if error.abs() <= TIMING_ERROR {
        return None;
    }
    let direction = if error > 0.0 { "more" } else { "less" };
    Some(format!(
        "the model takes {:.0} % {direction} time for the capture than was recorded: trust the order \
         of the values more than the times",
        error.abs() * 100.0
    ))
}

fn memory(report: &SweepReport, source: &Source) -> Option<String> {
    let is_unlimited = source.settings.memory_pages.value.is_none();
    if !is_unlimited || report.axes.iter().any(|axis| axis.key == "memory") {
        return None;
    }
    let evicts = source.accesses.iter().any(|a| matches!(a.kind, AccessKind::Evict { .. }));
    let results = || report.points.iter().flat_map(|point| &point.results);
    let wastes = results().map(SweepFigures::waste).fold(0.0, f64::max) >= WASTE_SHARE;
    match (evicts, wastes) {
        (true, _) => Some(
            "folios leave the cache as recorded, whatever is read ahead: `--set memory=SIZE` lets \
             the replay evict"
                .to_owned(),
        ),
        (false, true) => Some(
            "memory is unlimited in the replay, so pages read in vain push out none that are used: \
             `--set memory=SIZE` limits it"
                .to_owned(),
        ),
        (false, false) => None,
    }
}

fn assumed(report: &SweepReport) -> Option<String> {
    let is_swept = |key: &str| report.axes.iter().any(|axis| axis.key == key);
    let bounds = BOUND_BY.iter().filter(|(swept, bound)| is_swept(swept) && !is_swept(bound));
    let mut bounds = bounds.filter_map(|(_, bound)| {
        let view = report.settings.iter().find(|view| view.key == *bound)?;
        (view.origin == Origin::Assumed).then(|| format!("{}={}", view.key, view.value))
    });
    let bound = bounds.next()?;
    Some(format!(
        "{bound} is assumed and bounds what is swept: `--set` or a sidecar says otherwise"
    ))
}
