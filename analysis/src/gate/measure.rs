//! Sides measured here: replays of a corpus, and what captures recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use replay::policy::Policy;
use traces::access::Source;
use traces::capture::{Losses, Severity};

use super::corpus::{self, SourceFile};
use super::reference::reference;
use super::{Entry, GateError, Proof, Refusal, Side};
use crate::compare::{Figures, Measured, Nature, Verdict};
use crate::load::{LoadOptions, Loaded, load};
use crate::recover::recover;
use crate::replay::{Model, replay_one};
use crate::result::{PolicyResult, view_settings};
use crate::verify::{CaptureVerify, verify};

/// How sources are measured.
#[derive(Clone, Debug, Default)]
pub struct MeasureOptions {
    /// How they are loaded.
    pub load: LoadOptions,
    /// Go on with captures that lost events.
    pub allow_loss: bool,
    /// The modelled machine.
    pub model: Model,
}

pub(crate) type Outcome = Result<Entry, Refusal>;

/// Replays every source under every policy; one side per policy, in their order.
///
/// Sources are measured in parallel and kept by name, so that neither the number of threads nor the
/// order of the paths shows in the result.
pub fn measure(
    sources: &[SourceFile],
    policies: &[Arc<dyn Policy>],
    options: &MeasureOptions,
) -> Vec<Side> {
    let outcomes: Vec<Vec<Outcome>> =
        sources.par_iter().map(|source| replayed(&source.path, policies, options)).collect();
    let mut sides: Vec<Side> = policies
        .iter()
        .map(|policy| Side { name: policy.name().to_owned(), entries: BTreeMap::new() })
        .collect();
    for (source, of_policies) in sources.iter().zip(outcomes) {
        for (side, outcome) in sides.iter_mut().zip(of_policies) {
            side.entries.insert(source.key.clone(), outcome);
        }
    }
    sides
}

fn replayed(path: &Path, policies: &[Arc<dyn Policy>], options: &MeasureOptions) -> Vec<Outcome> {
    let prepared = match Prepared::new(path, options) {
        Ok(prepared) => prepared,
        Err(refusal) => return vec![Err(refusal); policies.len()],
    };
    let entry = |policy: &Arc<dyn Policy>| {
        let result = replay_one(&prepared.source, &**policy, &options.model);
        prepared.entry(&result, &options.model)
    };
    policies.par_iter().map(entry).collect()
}

/// A source ready to be replayed, and what is known of it.
pub(crate) struct Prepared {
    pub(crate) source: Source,
    /// The policy of the kernel that made the capture.
    pub(crate) own_policy: Option<Arc<dyn Policy>>,
    /// That policy held against the capture.
    pub(crate) verify: Option<CaptureVerify>,
    /// What the capture lost.
    pub(crate) losses: Losses,
    digest: String,
}

impl Prepared {
    pub(crate) fn new(path: &Path, options: &MeasureOptions) -> Result<Self, Refusal> {
        let mut prepared = Self::with_digest(path, String::new(), options)?;
        prepared.digest = corpus::digest(path).map_err(|error| bad_input(&error))?;
        Ok(prepared)
    }

    /// The same where the source's digest is known.
    pub(crate) fn with_digest(
        path: &Path,
        digest: String,
        options: &MeasureOptions,
    ) -> Result<Self, Refusal> {
        let Loaded { mut source, capture } = prepare(path, options)?;
        let own_policy = recover(&mut source);
        let verify = own_policy.as_ref().and_then(|own| verify(&source, &**own).ok());
        let losses = capture.map(|capture| capture.losses).unwrap_or_default();
        Ok(Self { source, own_policy, verify, losses, digest })
    }

    /// What a policy's replay of it contributes to that policy's side.
    pub(crate) fn entry(&self, result: &PolicyResult, model: &Model) -> Outcome {
        if let Some(failure) = &result.failure {
            return Err(bad_input(failure));
        }
        Ok(Entry {
            digest: Some(self.digest.clone()),
            accesses: Some(self.source.accesses.len() as u64),
            settings: settings(&self.source, Some(model)),
            measured: Measured::replayed(result),
            stream: Some(self.source.fidelity),
            proof: self.verify.as_ref().map(proof),
            losses: self.losses.clone(),
        })
    }
}

fn proof(verify: &CaptureVerify) -> Proof {
    Proof {
        policy: verify.policy.clone(),
        folios_recorded: verify.folios.recorded,
        folios_matched: verify.folios.matched,
        exact: verify.exact,
    }
}

pub(crate) fn bad_input(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(Verdict::BadInput, error.to_string())
}

pub(super) fn prepare(path: &Path, options: &MeasureOptions) -> Result<Loaded, Refusal> {
    let loaded = load(path, &options.load).map_err(|error| bad_input(&error))?;
    let losses = loaded.capture.as_ref().map(|capture| &capture.losses);
    if let Some(losses) = losses.filter(|losses| losses.severity() == Some(Severity::DataLoss))
        && !options.allow_loss
    {
        let reason = losses.to_string().trim_end().replace('\n', "; ");
        return Err(Refusal { verdict: Verdict::DataLoss, reason, losses: losses.clone() });
    }
    Ok(loaded)
}

/// What has to be the same on both sides. The kernel that made a capture is not: replays do not
/// depend on it, and recorded runs are compared in order to compare kernels.
fn settings(source: &Source, model: Option<&Model>) -> BTreeMap<String, String> {
    let views = view_settings(&source.settings).into_iter().filter(|view| view.key != "kernel");
    let mut settings: BTreeMap<String, String> =
        views.map(|view| (view.key.to_owned(), view.value)).collect();
    if let Some(device) = model.map(Model::view) {
        settings.insert("device.model".to_owned(), device.model);
        for (name, value) in device.parameters {
            settings.insert(format!("device.{name}"), value.to_string());
        }
    }
    settings
}

/// What captures recorded, without a replay: the runs of a source are the captures of one folder.
///
/// A capture that lies directly in the folder named, or is named itself, is a run of the source
/// `recorded`.
pub fn recorded_side(path: &Path, options: &MeasureOptions) -> Result<Side, GateError> {
    let files = corpus::expand(&[path.to_owned()])?;
    let runs: Vec<(String, Outcome)> =
        files.par_iter().map(|file| (run_of(&file.key), recorded(&file.path, options))).collect();
    let mut entries: BTreeMap<String, Outcome> = BTreeMap::new();
    for (key, run) in runs {
        match entries.remove(&key) {
            None => entries.insert(key, run),
            Some(before) => entries.insert(key, add_run(before, run)),
        };
    }
    Ok(Side { name: path.display().to_string(), entries })
}

fn run_of(key: &str) -> String {
    key.rsplit_once('/').map_or("recorded", |(folder, _)| folder).to_owned()
}

/// One refused run spoils its source: leaving it out would be a choice of runs.
fn add_run(before: Outcome, run: Outcome) -> Outcome {
    let (mut entry, run) = (before?, run?);
    if entry.settings != run.settings {
        let differing = super::judge::differing(&entry.settings, &run.settings);
        let reason = format!("runs with different settings: {differing}");
        return Err(Refusal::new(Verdict::NotComparable, reason));
    }
    entry.measured.runs.extend(run.measured.runs);
    entry.losses.merge(run.losses, "");
    Ok(entry)
}

fn recorded(path: &Path, options: &MeasureOptions) -> Outcome {
    if let Some(entry) = reference(path)? {
        return Ok(entry);
    }
    let loaded = prepare(path, options)?;
    let figures = Figures::recorded(&loaded.source).ok_or_else(|| {
        bad_input(&format!("{} is no capture: nothing was recorded", path.display()))
    })?;
    Ok(Entry {
        // Every run is another recording: neither bytes nor accesses can be the same.
        digest: None,
        accesses: None,
        settings: settings(&loaded.source, None),
        measured: Measured { nature: Nature::Recorded, runs: vec![figures] },
        stream: Some(loaded.source.fidelity),
        proof: None,
        losses: loaded.capture.map(|capture| capture.losses).unwrap_or_default(),
    })
}
