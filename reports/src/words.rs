//! Sentences that several reports share.

use analysis::result::{DeviceView, ReplayReport, SettingView, StreamCounts};
use analysis::verify::{CaptureVerify, Difference, Matched, Pair, Timing};
use traces::access::Fidelity;

use crate::number::{Unit, count, counted, signed_percent};

/// What a verification found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The same folios and device reads in the same order.
    Exact,
    /// The same folios and device reads, but not in the same order.
    OtherOrder,
    /// Some are missing on one side.
    Differs,
}

impl Outcome {
    pub(crate) fn of(verify: &CaptureVerify) -> Self {
        // A capture without block events has no order of reads to keep.
        let reads_in_order = verify.device_reads.recorded == 0 || verify.device_reads.in_order;
        match (verify.exact, verify.folios.in_order && reads_in_order) {
            (true, true) => Self::Exact,
            (true, false) => Self::OtherOrder,
            (false, _) => Self::Differs,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::OtherOrder => "matched in another order",
            Self::Differs => "differs",
        }
    }
}

/// The level of a stream, as people write it.
pub(crate) fn fidelity(fidelity: Fidelity) -> &'static str {
    match fidelity {
        Fidelity::Exact => "exact",
        Fidelity::Page => "page",
        Fidelity::Trigger => "trigger",
        Fidelity::Insertions => "insertions",
        Fidelity::Device => "device",
    }
}

/// What a level means.
pub(crate) fn fidelity_meaning(fidelity: Fidelity) -> &'static str {
    match fidelity {
        Fidelity::Exact => "every read with its position and length",
        Fidelity::Page => "reads and faults to the page",
        Fidelity::Trigger => "inferred: only what triggered readahead",
        Fidelity::Insertions => "inferred: only what was put into the page cache",
        Fidelity::Device => "inferred: only what the device was asked for",
    }
}

/// `exact (...): 1 file, 1 open file, 1 thread, 514 accesses`.
pub(crate) fn streams(level: Fidelity, streams: &StreamCounts) -> String {
    format!(
        "{} ({}): {}, {}, {}, {}",
        fidelity(level),
        fidelity_meaning(level),
        counted(streams.files, "file", "files"),
        counted(streams.opens, "open file", "open files"),
        counted(streams.threads, "thread", "threads"),
        counted(streams.accesses, "access", "accesses"),
    )
}

/// `read_ahead_kb=128 (recorded)`.
pub(crate) fn setting(setting: &SettingView) -> String {
    format!("{}={} ({})", setting.key, setting.value, setting.origin)
}

/// All settings in a line.
pub(crate) fn settings(settings: &[SettingView]) -> String {
    settings.iter().map(setting).collect::<Vec<_>>().join(", ")
}

/// `basic: request_overhead_ns=60000, channels=8`.
pub(crate) fn device(device: &DeviceView) -> String {
    let parameters = device.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    format!("{}: {}", device.model, parameters.collect::<Vec<_>>().join(", "))
}

fn matched(matched: &Matched) -> String {
    format!(
        "{} recorded, {} replayed, {} matched",
        matched.recorded, matched.replayed, matched.matched
    )
}

/// The line that says how far a replay can be trusted.
pub(crate) fn verify(verify: &CaptureVerify) -> String {
    let reads = if verify.device_reads.recorded == 0 {
        "no device reads recorded".to_owned()
    } else {
        format!("device reads {}", matched(&verify.device_reads))
    };
    format!(
        "verify {}: folios {}; {reads}: {}",
        verify.policy,
        matched(&verify.folios),
        Outcome::of(verify).words()
    )
}

/// Why no verify line is there.
pub(crate) const NOT_VERIFIED: &str =
    "not verified: the source is a workload description, nothing was recorded";

/// Reads whose issue the capture misses, if there are any.
pub(crate) fn unrecorded_reads(verify: &CaptureVerify) -> Option<String> {
    (verify.unrecorded_reads > 0).then(|| {
        format!(
            "{} left out: the capture shows their bios queued, not issued",
            counted(verify.unrecorded_reads, "device read", "device reads")
        )
    })
}

/// Heads of a table of recorded and predicted times.
pub(crate) const TIME_HEADS: [&str; 13] = [
    "capture",
    "elapsed",
    "predicted",
    "error",
    "read p50",
    "predicted",
    "error",
    "read p99",
    "predicted",
    "error",
    "device read",
    "predicted",
    "error",
];

/// What stands below [`TIME_HEADS`], without the capture.
pub(crate) fn time_cells(timing: &Timing) -> Vec<String> {
    let mut cells = Vec::new();
    for pair in [timing.elapsed, timing.read_p50, timing.read_p99, timing.device_read] {
        if pair.recorded_ns == 0 {
            cells.extend([
                "-".to_owned(),
                Unit::Nanoseconds.show(pair.predicted_ns),
                "-".to_owned(),
            ]);
            continue;
        }
        cells.extend([pair.recorded_ns, pair.predicted_ns].map(|ns| Unit::Nanoseconds.show(ns)));
        cells.push(signed_percent(pair.error() * 100.0));
    }
    cells
}

/// How far predicted times are off, beside every one of them: `modelled; on the recording: elapsed
/// -12.0%, read p99 +3.1%`.
pub(crate) fn time_note(verify: Option<&CaptureVerify>) -> String {
    let timing = verify.map(|verify| verify.timing).unwrap_or_default();
    let error = |(what, pair): (&str, Pair)| {
        pair.is_known().then(|| format!("{what} {}", signed_percent(pair.error() * 100.0)))
    };
    let of_reads = [("elapsed", timing.elapsed), ("read p99", timing.read_p99)];
    let mut errors: Vec<String> = of_reads.into_iter().filter_map(error).collect();
    if errors.is_empty() {
        // Faults have no recorded time, but what they wait for has.
        errors.extend(error(("device read", timing.device_read)));
    }
    if errors.is_empty() {
        return "modelled, held against no recording".to_owned();
    }
    format!("modelled; on the recording: {}", errors.join(", "))
}

/// Recorded against predicted times in a sentence, if the capture has any.
pub(crate) fn time_errors(verify: &CaptureVerify) -> Option<String> {
    let timing = &verify.timing;
    let of = |what: &str, pair: Pair| {
        let scale = Unit::Nanoseconds.scale(pair.recorded_ns.max(pair.predicted_ns));
        let (recorded, predicted) = (scale.show(pair.recorded_ns), scale.show(pair.predicted_ns));
        let error = signed_percent(pair.error() * 100.0);
        format!("{what} {recorded} recorded, {predicted} predicted ({error})")
    };
    let pairs = [
        ("elapsed", timing.elapsed),
        ("read p50", timing.read_p50),
        ("read p99", timing.read_p99),
        ("device read", timing.device_read),
    ];
    let known = pairs.into_iter().filter(|(_, pair)| pair.is_known());
    let mut parts: Vec<String> = known.map(|(what, pair)| of(what, pair)).collect();
    if timing.extrapolated > 0 {
        let reads = counted(timing.extrapolated, "device read", "device reads");
        parts.push(format!("{reads} beyond what the model was fitted to"));
    }
    (!parts.is_empty()).then(|| format!("time: {}", parts.join("; ")))
}

/// The first difference in words.
pub(crate) fn difference(difference: &Difference) -> String {
    let Difference { file, position, recorded, replayed, state_before } = difference;
    let place = if recorded.starts_with("device read") || replayed.starts_with("device read") {
        format!("device read {}", count(*position))
    } else {
        format!("folio {}", count(*position))
    };
    let file = if file.is_empty() { String::new() } else { format!(" of {file}") };
    let before = match state_before.as_str() {
        "" => String::new(),
        state => format!("; before: {state}"),
    };
    format!("first difference at {place}{file}: recorded {recorded}, replayed {replayed}{before}")
}

/// The last component of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The file name without the endings that say how it is stored.
pub(crate) fn stem(path: &str) -> &str {
    let name = file_name(path);
    match name.find('.') {
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

/// What a source is, in the first words of its author, or else the name of its file.
pub(crate) fn about(report: &ReplayReport) -> String {
    let first = report.about.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut letters = first.chars();
    match (letters.next(), letters.next()) {
        (None, _) => stem(&report.source).to_owned(),
        // Names such as LMDB stay as they are.
        (Some(_), Some(second)) if second.is_uppercase() => first.to_owned(),
        (Some(letter), _) => format!("{}{}", letter.to_lowercase(), &first[letter.len_utf8()..]),
    }
}

/// One sentence: what changes between the first two policies.
pub(crate) fn headline(report: &ReplayReport) -> Option<String> {
    let [before, after] = &report.results[..] else { return None };
    if before.folios == after.folios && before.device_reads == after.device_reads {
        return Some(format!(
            "{} and {} give the same {} and {}.",
            before.policy,
            after.policy,
            counted(before.folios.total, "folio", "folios"),
            counted(before.device_reads.count, "device read", "device reads"),
        ));
    }
    let time = Unit::Nanoseconds.scale(before.elapsed_ns.max(after.elapsed_ns));
    Some(format!(
        "From {} to {}: {} folios become {}, {} device reads become {}, {} become {} ({}).",
        before.policy,
        after.policy,
        count(before.folios.total),
        count(after.folios.total),
        count(before.device_reads.count),
        count(after.device_reads.count),
        time.show(before.elapsed_ns),
        time.show(after.elapsed_ns),
        time_note(report.verify.as_ref()),
    ))
}
