//! A device model fitted to captures.
//!
//! [`calibrate`] takes the issue-to-complete times of one or more captures and
//! fits a [`calibrated`](replay::device::calibrated) device: servers side by
//! side, a fixed cost and a cost per byte. It fits what the CPU spends from the
//! gaps between the events of the readers (`cpu`). What the captures do not
//! show keeps a default and is listed; the range of sizes and depths that was
//! seen goes into the file, so that a replay counts the requests it had to
//! extrapolate.
//!
//! One parameter set is fitted to all requests of all captures together. Per
//! candidate number of servers, the time a request spent in a server follows
//! from the recorded completions (it begins when fewer than that many earlier
//! requests are in flight) and is regressed on size. Of the candidates the one
//! is taken that is least wrong about two things: the times of the requests,
//! given when they were issued, and the elapsed times of replays of the captures.
//! The first alone prefers laws whose errors add up in a closed loop, where a
//! request is issued when the one before it lets the reader go on. A law with more
//! to it (servers, a shared link, a curve instead of a straight line, completions
//! that are reported together) has to be clearly better than the simpler one.
//!
//! A request that took twenty times the median of its size is a stall of the
//! machine. Stalls are kept out of the fit and described apart, as one in so
//! much time.

mod cpu;
mod held_out;
mod observation;
mod regression;
mod report;

use replay::device::queue::{QueueParameters, Scheduler};
use replay::device::{
    CalibratedParameters, DeviceFile, Parameters, SeenRange, VariationParameters,
};
use replay::policy::Policy;
use replay::run::CpuCosts;
use traces::access::Source;

use crate::replay::Model;
use crate::timing::predict;
use observation::{Observations, Seen, mean, whole};
use regression::Law;

pub use cpu::CpuFit;
pub use held_out::{HeldOut, HeldOutRow, Workload, calibrated_on, fitted_to_itself, leave_one_out};
pub use report::{FitReport, FitRow};

/// Fewest requests a fit can rest on.
const REQUESTS_MIN: usize = 20;
/// Equally likely multiples of the mean that a fitted variation has.
const QUANTILES: usize = 64;
/// A law with more to it must leave this share of the error, or less, to be taken.
const BETTER: f64 = 0.95;
/// Tags of the fitted device's queue. Captures do not show where the limit lies.
const DEPTH_ASSUMED: u64 = 128;

/// Captures that no device can be fitted to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// Too few requests have both an issue and a completion.
    #[error(
        "{requests} device reads have an issue and a completion, at least {REQUESTS_MIN} are \
         needed: record block:block_rq_issue and block:block_rq_complete"
    )]
    TooFewRequests {
        /// How many have.
        requests: usize,
    },
}

/// A capture to calibrate on.
#[derive(Clone, Copy)]
pub struct Recording<'r> {
    /// The capture.
    pub source: &'r Source,
    /// The policy of the kernel that made it. Without, its requests count, but not its elapsed
    /// time.
    pub policy: Option<&'r dyn Policy>,
}

/// A fitted device and how well it fits.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// What `-o device.toml` gets.
    pub device: DeviceFile,
    /// What is printed.
    pub report: FitReport,
}

impl Calibration {
    /// The device description as TOML.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(&self.device)
    }
}

/// Fits one device to all of `recordings`.
pub fn calibrate(recordings: &[Recording<'_>]) -> Result<Calibration, CalibrateError> {
    let sources: Vec<&Source> = recordings.iter().map(|recording| recording.source).collect();
    let observations = Observations::new(&sources);
    if observations.len() < REQUESTS_MIN {
        return Err(CalibrateError::TooFewRequests { requests: observations.len() });
    }
    let seen = observations.seen();
    let (cpu, cpu_fits) = cpu::fit(&sources);
    let device = |law: &Law| device(&observations, &seen, law, cpu);
    let law = choose(&observations, &seen, |law| elapsed_error(recordings, device(law)));
    let report = FitReport::new(&observations, &seen, &law, cpu_fits);
    let device = DeviceFile { about: report.about(&sources), ..device(&law) };
    Ok(Calibration { device, report })
}

fn device(observations: &Observations, seen: &Seen, law: &Law, cpu: CpuCosts) -> DeviceFile {
    DeviceFile {
        about: String::new(),
        queue: QueueParameters {
            depth: DEPTH_ASSUMED.try_into().unwrap_or(std::num::NonZeroU64::MIN),
            scheduler: Scheduler::None,
            nr_requests: None,
        },
        device: Parameters::Calibrated(CalibratedParameters {
            stalls: observations.stalls(),
            ..law.parameters(range(seen))
        }),
        variation: variation(observations, law),
        cpu: Some(cpu),
    }
}

/// How far replays on `device` are off in elapsed time, on average; 0 without a policy to replay
/// under.
fn elapsed_error(recordings: &[Recording<'_>], device: DeviceFile) -> f64 {
    let model = Model::new("calibrated", device);
    let replayed = recordings.iter().filter_map(|recording| {
        let timing = predict(recording.source, recording.policy?, &model);
        Some(timing.elapsed.error().abs())
    });
    mean(replayed)
}

fn range(seen: &Seen) -> SeenRange {
    SeenRange {
        request_bytes_min: seen.bytes_min,
        request_bytes_max: seen.bytes_max,
        depth_max: seen.depth_max,
    }
}

/// The simplest law that predicts about as well as the best one.
fn choose(observations: &Observations, seen: &Seen, elapsed_error: impl Fn(&Law) -> f64) -> Law {
    let candidate = |law: Law| {
        let law = observations.unbiased(law);
        Candidate { error: observations.bias(&law) + elapsed_error(&law), law }
    };
    let mut best = candidate(regression::fit(observations, 1));
    if let Some(together) = regression::fit_together(observations) {
        best = best.or(candidate(together));
    }
    for law in laws(observations, seen) {
        let bent = regression::curve(observations, &law);
        best = best.or(candidate(law)).or(candidate(bent));
    }
    best.law
}

/// Laws to try, the simpler ones first.
fn laws(observations: &Observations, seen: &Seen) -> Vec<Law> {
    // 1 to 4, then doubling.
    let next = |parallel: &u64| Some(if *parallel < 4 { parallel + 1 } else { parallel * 2 });
    let servers: Vec<u64> = std::iter::successors(Some(1), next)
        .take_while(|parallel| *parallel < seen.depth_max)
        .chain([seen.depth_max])
        .collect();
    let mut laws: Vec<Law> =
        servers.iter().map(|parallel| regression::fit(observations, *parallel)).collect();
    if let Some(alone) = regression::fit_alone(observations) {
        for (parallel, link_share) in servers
            .iter()
            .flat_map(|parallel| [(*parallel, 0.0), (*parallel, 0.5), (*parallel, 1.0)])
        {
            laws.push(Law { parallel, link_share, ..alone.clone() });
        }
    }
    laws
}

/// A law, scaled to the recorded mean, and what error is left.
struct Candidate {
    law: Law,
    error: f64,
}

impl Candidate {
    /// The other one if it is clearly better.
    fn or(self, other: Self) -> Self {
        if other.error < self.error * BETTER { other } else { self }
    }
}

/// How the service times spread around the law: means of equal shares, smallest first.
fn variation(observations: &Observations, law: &Law) -> Option<VariationParameters> {
    let mut ratios = observations.service_ratios(law);
    ratios.sort_by(f64::total_cmp);
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let quantile = |n: usize| {
        let from = ratios.len() * n / QUANTILES;
        let to = (ratios.len() * (n + 1) / QUANTILES).max(from + 1).min(ratios.len());
        let part = &ratios[from.min(to - 1)..to];
        whole(part.iter().sum::<f64>() / part.len() as f64 / mean * 1000.0)
    };
    let quantiles_permille: Vec<u64> = (0..QUANTILES).map(quantile).collect();
    let varies = quantiles_permille.iter().any(|permille| permille.abs_diff(1000) > 10);
    varies.then_some(VariationParameters { seed: 1, quantiles_permille })
}
