//! Holds calibration and prediction against a device whose timing is known.
//!
//! A file served through FUSE by a stated [law](law::Law) lies below a loop device with XFS
//! ([`device`]). Some workloads recorded on it are calibrated on; the fitted model has to have the
//! law's parameters, and has to predict the elapsed time of workloads that it has not seen, and of all
//! of them under another `read_ahead_kb` from what was recorded under the first one.
//!
//! `chrt -f 50 target/debug/xtask timing-law`, as root, keeps other programs from delaying the law.

mod device;
mod law;
pub(crate) mod workload;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use analysis::calibrate::{Calibration, Recording, calibrate};
use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::Model;
use analysis::timing::predict;
use analysis::verify::Pair;
use anyhow::Context;
use clap::Args;
use record::facts::{self, PagesRead};
use record::target::TargetSpec;
use record::{Format, Request};
use replay::device::{CalibratedParameters, Parameters};
use replay::policy::Policy;
use traces::access::Source;
use traces::sidecar;

use device::SlowDevice;
use law::Law;
use workload::Workload;

/// Largest error of a parameter or of an elapsed time.
const TOLERANCE: f64 = 0.05;
/// Readahead the calibration and its workloads are recorded under.
const READ_AHEAD_KB: u64 = 128;

#[derive(Debug, Args)]
pub(crate) struct TimingLawArgs {
    /// Microseconds that a request takes whatever its size. A request waits for a CPU besides: some
    /// tens of microseconds on an idle machine, a millisecond on a busy one, which a fast law is lost in.
    #[arg(long, default_value_t = 30_000)]
    fixed_us: u64,
    /// Nanoseconds per byte.
    #[arg(long, default_value_t = 200)]
    byte_ns: u64,
    /// Device reads of each workload, about.
    #[arg(long, default_value_t = 100)]
    reads: u64,
    /// Requests served side by side.
    #[arg(long, default_value_t = 2)]
    parallel: usize,
    /// The other `read_ahead_kb`.
    #[arg(long, default_value_t = 512)]
    other_read_ahead_kb: u64,
    /// Keep the captures and the fitted device in this folder.
    #[arg(long)]
    keep: Option<PathBuf>,
}

pub(crate) fn run(args: &TimingLawArgs) -> anyhow::Result<()> {
    let law = Law {
        fixed: Duration::from_micros(args.fixed_us),
        byte: Duration::from_nanos(args.byte_ns),
        parallel: args.parallel,
    };
    let scratch = tempfile::tempdir()?;
    let captures = args.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(captures)?;
    let device = SlowDevice::new(scratch.path(), law)?;
    let first = record_all(&device, args.reads, captures, READ_AHEAD_KB)?;
    let other = record_all(&device, args.reads, captures, args.other_read_ahead_kb)?;
    let (median, worst) = device.late();
    println!("the device answered {median:.1?} late in the median, {worst:.1?} at worst\n");
    drop(device);

    let calibrated_on: Vec<Recording<'_>> = first
        .iter()
        .filter(|recorded| recorded.workload.is_calibrated_on())
        .map(|recorded| Recording { source: &recorded.source, policy: Some(&*recorded.policy) })
        .collect();
    let calibration = calibrate(&calibrated_on)?;
    std::fs::write(captures.join("device.toml"), calibration.to_toml()?)?;
    let mut worst = compare_law(law, &calibration)?;
    let model = Model::new("calibrated", calibration.device.clone());
    println!(
        "\n{:<22} {:>5} {:>8} {:>10} {:>10} {:>8}",
        "workload", "ra_kb", "by", "recorded", "predicted", "error"
    );
    for recorded in &first {
        let pair = predict(&recorded.source, &*recorded.policy, &model).elapsed;
        let by = if recorded.workload.is_calibrated_on() { "itself" } else { "unseen" };
        worst = worst.max(show(recorded.workload, READ_AHEAD_KB, by, pair));
    }
    for (from, to) in first.iter().zip(&other) {
        let (source, policy) = ready(&from.capture, Some(args.other_read_ahead_kb))?;
        let predicted_ns = predict(&source, &*policy, &model).elapsed.predicted_ns;
        let recorded_ns = predict(&to.source, &*to.policy, &model).elapsed.recorded_ns;
        let pair = Pair { recorded_ns, predicted_ns };
        worst = worst.max(show(to.workload, args.other_read_ahead_kb, "other ra", pair));
    }
    anyhow::ensure!(
        worst <= TOLERANCE,
        "the worst error, {:.1} %, is over {:.0} %",
        worst * 100.0,
        TOLERANCE * 100.0
    );
    Ok(())
}

/// A workload as it was recorded.
struct Recorded {
    workload: Workload,
    capture: PathBuf,
    source: Source,
    policy: Arc<dyn Policy>,
}

/// Records every workload from a cold cache.
fn record_all(
    device: &SlowDevice,
    reads: u64,
    folder: &Path,
    read_ahead_kb: u64,
) -> anyhow::Result<Vec<Recorded>> {
    let one = |workload: &Workload| {
        device.make_cold(read_ahead_kb)?;
        let capture = folder.join(format!("{}_ra{read_ahead_kb}.pages", workload.name()));
        record(device, *workload, reads, &capture)?;
        let (source, policy) = ready(&capture, None)?;
        Ok(Recorded { workload: *workload, capture, source, policy })
    };
    Workload::ALL.iter().map(one).collect()
}

fn record(
    device: &SlowDevice,
    workload: Workload,
    reads: u64,
    capture: &Path,
) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let file = device.file();
    let arguments: [OsString; 4] = [
        "read-workload".into(),
        workload.name().into(),
        reads.to_string().into(),
        file.clone().into_os_string(),
    ];
    let recording = record::record(&Request {
        target: TargetSpec::Files(vec![file]),
        // Text has microseconds only.
        format: Format::Raw,
        output: capture.to_owned(),
        command: std::iter::once(program.into_os_string()).chain(arguments).collect(),
        buffer_bytes: None,
        drop_caches: false,
    })?;
    anyhow::ensure!(recording.status.success(), "{} failed", workload.name());
    anyhow::ensure!(recording.losses.is_empty(), "events were lost: {:?}", recording.losses);
    let read: PagesRead = recording.target.files.iter().map(|file| (file.id, 1)).collect();
    let sidecar = facts::sidecar("cargo xtask timing-law", &recording.target, &read)?;
    std::fs::write(sidecar::path_beside(capture), sidecar.to_toml()?)?;
    Ok(())
}

fn ready(capture: &Path, read_ahead_kb: Option<u64>) -> anyhow::Result<(Source, Arc<dyn Policy>)> {
    let set = read_ahead_kb.map(|kb| ("read_ahead_kb".to_owned(), kb.to_string()));
    let options = LoadOptions { set: set.into_iter().collect(), ..LoadOptions::default() };
    let mut source = load(capture, &options)?.source;
    let policy = recover(&mut source).context("no policy for this kernel")?;
    Ok((source, policy))
}

/// Prints the law beside the fitted one; returns the largest error.
fn compare_law(law: Law, calibration: &Calibration) -> anyhow::Result<f64> {
    let Parameters::Calibrated(fitted) = &calibration.device.device else {
        anyhow::bail!("the fitted device is none");
    };
    println!("{}", calibration.report);
    println!("{:<22} {:>10} {:>10} {:>8}", "parameter", "law", "fitted", "error");
    let mut worst = parameter("fixed us", law.fixed.as_secs_f64() * 1e6, fixed_us(fitted));
    worst =
        worst.max(parameter("byte ns", law.byte.as_secs_f64() * 1e9, fitted.byte_ps as f64 / 1e3));
    Ok(worst.max(parameter("parallel", law.parallel as f64, fitted.parallel.get() as f64)))
}

/// What a request takes whatever its size, on the idle device that the law's first cost is stated for.
fn fixed_us(fitted: &CalibratedParameters) -> f64 {
    (fitted.fixed_ns + fitted.idle_ns) as f64 / 1e3
}

fn parameter(name: &str, law: f64, fitted: f64) -> f64 {
    let error = fitted / law - 1.0;
    println!("{name:<22} {law:>10.2} {fitted:>10.2} {:>+6.1} %", error * 100.0);
    error.abs()
}

fn show(workload: Workload, read_ahead_kb: u64, by: &str, pair: Pair) -> f64 {
    let (recorded_ms, predicted_ms) =
        (pair.recorded_ns as f64 / 1e6, pair.predicted_ns as f64 / 1e6);
    println!(
        "{:<22} {read_ahead_kb:>5} {by:>8} {recorded_ms:>7.1} ms {predicted_ms:>7.1} ms {:>+6.1} %",
        workload.name(),
        pair.error() * 100.0
    );
    pair.error().abs()
}
