//! The table of `docs/timing.md`: what a calibration predicts for captures it has not seen.
//!
//! A folder holds each workload twice, as `NAME_r1` and `NAME_r2`. Three questions are asked: what a
//! model fitted to the first runs of some workloads says of all other runs, what a model fitted to
//! the first runs of all other workloads says of a workload, and how well each capture is met by a
//! model fitted to itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::calibrate::{Workload, calibrated_on, fitted_to_itself, leave_one_out};
use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use anyhow::Context;
use replay::policy::Policy;
use traces::access::Source;

use crate::captures;

pub(crate) fn run(folder: &Path, calibrate_on: &[String]) -> anyhow::Result<()> {
    let workloads = workloads(folder)?;
    let every_other = || workloads.iter().map(|workload| &workload.name).step_by(2).collect();
    let named = calibrate_on.iter();
    let names: Vec<&String> = if named.len() > 0 { named.collect() } else { every_other() };
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    for name in &names {
        let known = workloads.iter().any(|workload| workload.name == *name);
        anyhow::ensure!(known, "no workload {name} in {}", folder.display());
    }
    println!("Calibrated on run 1 of {}:\n", names.join(", "));
    println!("{}", calibrated_on(&workloads, &names)?);
    println!("Each workload predicted by a calibration on run 1 of all others:\n");
    println!("{}", leave_one_out(&workloads)?);
    println!("Each capture under the model fitted to itself:\n");
    println!("{}", fitted_to_itself(&workloads)?);
    Ok(())
}

/// The workloads of a folder, by name.
fn workloads(folder: &Path) -> anyhow::Result<Vec<Workload>> {
    let first_runs = captures::find(&[folder.to_owned()])?;
    let first_runs = first_runs.iter().filter_map(|path| {
        let name = captures::stem(path).strip_suffix("_r1")?.to_owned();
        Some((name, path))
    });
    let workloads = first_runs.map(|(name, first)| {
        let second = first.to_string_lossy().replace("_r1.", "_r2.");
        let runs = [ready(first)?, ready(&PathBuf::from(second))?];
        Ok(Workload { name, runs })
    });
    workloads.collect()
}

/// A capture and the policy of the kernel that made it.
fn ready(capture: &Path) -> anyhow::Result<(Source, Arc<dyn Policy>)> {
    let options = LoadOptions { noted: captures::settings(capture), ..LoadOptions::default() };
    let mut source = load(capture, &options)?.source;
    source.name = captures::stem(capture);
    let policy = recover(&mut source).context("no policy for its kernel")?;
    Ok((source, policy))
}
