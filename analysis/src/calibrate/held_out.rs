//! What a calibration predicts for captures it has and has not seen, of workloads
//! that were recorded twice: the error beside the spread of the two recordings.

use std::fmt;
use std::sync::Arc;

use replay::policy::Policy;
use serde::Serialize;
use traces::access::Source;

use super::{CalibrateError, Recording, calibrate};
use crate::replay::Model;
use crate::timing::predict;
use crate::verify::{Pair, Timing};

/// A workload that was recorded twice.
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Both recordings, each with the recording kernel's policy.
    pub runs: [(Source, Arc<dyn Policy>); 2],
}

impl Workload {
    /// Both runs under `model`, of which the first was calibrated on, or neither.
    fn predict(&self, model: &Model, calibrated_on: bool) -> HeldOutRow {
        let runs = [0, 1].map(|run| self.predict_run(run, model));
        HeldOutRow { workload: self.name.clone(), seen: [calibrated_on, false], runs }
    }

    fn recording(&self, run: usize) -> Recording<'_> {
        let (source, policy) = &self.runs[run];
        Recording { source, policy: Some(&**policy) }
    }

    fn predict_run(&self, run: usize, model: &Model) -> Timing {
        let (source, policy) = &self.runs[run];
        predict(source, &**policy, model)
    }
}

fn fit<'w>(workloads: impl Iterator<Item = &'w Workload>) -> Result<Model, CalibrateError> {
    let first_runs: Vec<Recording<'_>> = workloads.map(|one| one.recording(0)).collect();
    Ok(Model::new("calibrated", calibrate(&first_runs)?.device))
}

/// Calibrates on the first runs of the named workloads and predicts every run.
pub fn calibrated_on(workloads: &[Workload], names: &[&str]) -> Result<HeldOut, CalibrateError> {
    let is_named = |workload: &Workload| names.contains(&workload.name.as_str());
    let model = fit(workloads.iter().filter(|workload| is_named(workload)))?;
    let rows = workloads.iter().map(|workload| workload.predict(&model, is_named(workload)));
    Ok(HeldOut { rows: rows.collect() })
}

/// Predicts each workload's runs by a calibration on the first runs of all others.
pub fn leave_one_out(workloads: &[Workload]) -> Result<HeldOut, CalibrateError> {
    let rows = workloads.iter().enumerate().map(|(out, workload)| {
        let others = workloads.iter().enumerate().filter(|(at, _)| *at != out);
        Ok(workload.predict(&fit(others.map(|(_, other)| other))?, false))
    });
    Ok(HeldOut { rows: rows.collect::<Result<_, _>>()? })
}

/// Predicts each run by a calibration on that run.
pub fn fitted_to_itself(workloads: &[Workload]) -> Result<HeldOut, CalibrateError> {
    let rows = workloads.iter().map(|workload| {
        let fitted = |run: usize| {
            let device = calibrate(&[workload.recording(run)])?.device;
            Ok(workload.predict_run(run, &Model::new("calibrated", device)))
        };
        let runs = [fitted(0)?, fitted(1)?];
        Ok(HeldOutRow { workload: workload.name.clone(), seen: [true, true], runs })
    });
    Ok(HeldOut { rows: rows.collect::<Result<_, _>>()? })
}

/// One workload that was recorded twice, predicted by a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOutRow {
    /// The workload.
    pub workload: String,
    /// Which of the two runs the model was calibrated on.
    pub seen: [bool; 2],
    /// The two runs.
    pub runs: [Timing; 2],
}

impl HeldOutRow {
    /// How far the second run's elapsed time lies from the first's.
    pub fn spread(&self) -> f64 {
        let [first, second] = &self.runs;
        Pair { recorded_ns: first.elapsed.recorded_ns, predicted_ns: second.elapsed.recorded_ns }
            .error()
            .abs()
    }
}

/// The table of a calibration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldOut {
    /// One row per workload.
    pub rows: Vec<HeldOutRow>,
}

impl HeldOut {
    /// The error of every run that the calibration has seen, or has not, sorted by size.
    fn errors(&self, seen: bool, error: impl Fn(&HeldOutRow, &Timing) -> f64) -> Vec<f64> {
        let mut errors = Vec::new();
        for row in &self.rows {
            let runs = row.runs.iter().zip(row.seen).filter(|(_, of_run)| *of_run == seen);
            errors.extend(runs.map(|(run, _)| error(row, run).abs()));
        }
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// Median error of elapsed time over the unseen runs.
    pub fn elapsed_error(&self) -> f64 {
        median(&self.errors(false, |_, run| run.elapsed.error()))
    }

    /// Median over the unseen runs of what the error of elapsed time has beyond the spread between
    /// the two runs of the workload.
    pub fn elapsed_error_beyond_spread(&self) -> f64 {
        median(&self.errors(false, |row, run| (run.elapsed.error().abs() - row.spread()).max(0.0)))
    }

    /// Median error of the 99th percentile of read times over the unseen runs.
    pub fn read_p99_error(&self) -> f64 {
        median(&self.errors(false, |_, run| run.read_p99.error()))
    }

    /// Largest error of elapsed time over the runs that were calibrated on.
    pub fn seen_error_max(&self) -> f64 {
        self.errors(true, |_, run| run.elapsed.error()).last().copied().unwrap_or(0.0)
    }

    /// Median spread between two runs of a workload.
    pub fn spread(&self) -> f64 {
        let mut spreads: Vec<f64> = self.rows.iter().map(HeldOutRow::spread).collect();
        spreads.sort_by(f64::total_cmp);
        median(&spreads)
    }
}

fn median(sorted: &[f64]) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)])
}

/// A Markdown table and a line that sums it up.
impl fmt::Display for HeldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| run | elapsed ms | predicted | error | spread | read p99 us | predicted | error | \
             request us | predicted | error |"
        )?;
        writeln!(f, "|---|{}", "---:|".repeat(10))?;
        for row in &self.rows {
            for (at, (run, seen)) in row.runs.iter().zip(row.seen).enumerate() {
                let mark = if seen { "\\*" } else { "" };
                write!(f, "| {}_r{}{mark} |", row.workload, at + 1)?;
                cells(f, run.elapsed, 1e6)?;
                write!(f, " {:.0} % |", row.spread() * 100.0)?;
                cells(f, run.read_p99, 1e3)?;
                cells(f, run.device_read, 1e3)?;
                writeln!(f)?;
            }
        }
        writeln!(f)?;
        self.fmt_summary(f)
    }
}

/// Recorded, predicted and error, in multiples of `unit_ns`.
fn cells(f: &mut fmt::Formatter<'_>, pair: Pair, unit_ns: f64) -> fmt::Result {
    let [recorded, predicted] = [pair.recorded_ns, pair.predicted_ns].map(|ns| ns as f64 / unit_ns);
    let error = pair.error() * 100.0;
    write!(f, " {recorded:.1} | {predicted:.1} | {error:+.1} % |")
}

impl HeldOut {
    fn fmt_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.iter().any(|row| row.seen.contains(&true)) {
            let error = self.seen_error_max() * 100.0;
            writeln!(f, "\\* calibrated on: largest error of elapsed time {error:.1} %.")?;
        }
        if self.rows.iter().any(|row| row.seen.contains(&false)) {
            writeln!(
                f,
                "Not calibrated on: median error of elapsed time {:.1} %, beyond the spread of its \
                 workload {:.1} %; of read p99 {:.1} %. Median spread between two runs {:.1} %.",
                self.elapsed_error() * 100.0,
                self.elapsed_error_beyond_spread() * 100.0,
                self.read_p99_error() * 100.0,
                self.spread() * 100.0
            )?;
        }
        Ok(())
    }
}
