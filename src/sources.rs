//! From arguments to sources.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::load::{LoadOptions, Loaded, load};
use analysis::recover::recover;
use analysis::replay::Model;
use analysis::result::{ReplayReport, view_settings};
use analysis::tree::{self, TreeOptions, parse_policy};
use replay::policy::Policy;
use traces::capture::{Losses, Severity};
use traces::settings::{Origin, Settings};
use traces::workload::is_workload;

use crate::cli::{DeviceArgs, ReadPath, SourceArgs, TreeArgs, UsageError};

/// A source ready to be replayed.
pub(crate) struct Ready {
    pub(crate) loaded: Loaded,
    /// The policy of the kernel that made the capture.
    pub(crate) own_policy: Option<Arc<dyn Policy>>,
}

/// The input lost events, and the user did not say to go on.
#[derive(Debug, thiserror::Error)]
#[error("{path} lost events, so replays of it prove nothing (--allow-loss goes on):\n{losses}")]
pub(crate) struct DataLoss {
    path: String,
    losses: String,
}

impl SourceArgs {
    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            set: self.set.clone(),
            allow_inferred: self.input.allow_inferred,
            accesses: self.input.accesses.clone(),
            join: self.input.join.clone(),
            clock: self.input.clock.clone(),
            ..LoadOptions::default()
        }
    }

    /// Fails where options for the files of one run meet several captures.
    pub(crate) fn check(&self, captures: &[PathBuf]) -> Result<(), UsageError> {
        if self.input.join.is_empty() || captures.len() == 1 {
            return Ok(());
        }
        let what = format!("--join is for one capture; given are {}", captures.len());
        Err(UsageError(what))
    }

    /// Loads a source and recovers its settings.
    pub(crate) fn ready(&self, path: &Path) -> anyhow::Result<Ready> {
        let mut loaded = self.load(path)?;
        let own_policy = recover(&mut loaded.source);
        Ok(Ready { loaded, own_policy })
    }

    /// Loads a source as it is.
    pub(crate) fn load(&self, path: &Path) -> anyhow::Result<Loaded> {
        let loaded = load(path, &self.options())?;
        if let Some(capture) = &loaded.capture
            && capture.losses.severity() == Some(Severity::DataLoss)
            && !self.input.allow_loss
        {
            let losses = capture.losses.to_string();
            return Err(DataLoss { path: path.display().to_string(), losses }.into());
        }
        Ok(loaded)
    }
}

impl TreeArgs {
    /// The same for the analysis.
    pub(crate) fn options(&self) -> TreeOptions {
        let read_path = match self.read_path {
            ReadPath::Tree => tree::ReadPath::Tree,
            ReadPath::Native => tree::ReadPath::Native,
        };
        TreeOptions { in_process: self.in_process, keep: false, read_path }
    }
}

/// Says what a capture lost, for commands whose reports do not.
pub(crate) fn warn_of_losses(path: &Path, loaded: &Loaded) {
    if let Some(capture) = &loaded.capture {
        warn_of(path, &capture.losses);
    }
}

/// Says what was lost.
pub(crate) fn warn_of(path: &Path, losses: &Losses) {
    for loss in losses.to_string().lines() {
        eprintln!("rareplay: {}: {loss}", path.display());
    }
}

/// Says which settings a replay that differs had to assume: one of them may be the reason.
pub(crate) fn warn_of_assumptions(path: &Path, settings: &Settings) {
    let assumed: Vec<_> = view_settings(settings)
        .into_iter()
        .filter(|setting| setting.origin == Origin::Assumed)
        .map(|setting| format!("{}={}", setting.key, setting.value))
        .collect();
    if !assumed.is_empty() {
        let path = path.display();
        eprintln!(
            "rareplay: {path}: assumed, --set or a sidecar says otherwise: {}",
            assumed.join(", ")
        );
    }
}

/// The policies that names on the command line stand for.
pub(crate) fn policies(names: &[String], args: &TreeArgs) -> anyhow::Result<Vec<Arc<dyn Policy>>> {
    let options = args.options();
    names.iter().map(|name| Ok(parse_policy(name, &options)?)).collect()
}

/// Says what went wrong in a policy's own code. Its results are worth nothing then.
pub(crate) fn check_failures(report: &ReplayReport) -> anyhow::Result<()> {
    match report.results.iter().find_map(|result| result.failure.as_ref()) {
        Some(failure) => anyhow::bail!("{}: {failure}", report.source),
        None => Ok(()),
    }
}

/// The model that `--device` names, or the default one.
pub(crate) fn model(args: &DeviceArgs) -> anyhow::Result<Model> {
    args.device.as_deref().map_or_else(|| Ok(Model::default()), |name| Ok(Model::load(name)?))
}

/// Captures to read: those named, and those in the folders named, by name. Workload descriptions in
/// a folder are left out: they recorded nothing.
pub(crate) fn captures(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut captures = Vec::new();
    for path in paths {
        let files = analysis::gate::files(path)?.into_iter();
        captures.extend(files.filter(|file| file == path || !is_workload(file)));
    }
    Ok(captures)
}
