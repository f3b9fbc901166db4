//! Replays of one source under several policies, and what they gave.

use std::sync::Arc;

use rayon::prelude::*;
use replay::device::{DeviceError, DeviceFile, presets};
use replay::machine::Machine;
use replay::policy::Policy;
use replay::run::{self, CpuCosts, History, RunOptions, Timeline};
use traces::access::Source;
use traces::capture::Losses;
use traces::units::PAGE_SHIFT;

use crate::picture::Pictures;
use crate::result::{
    DeviceReads, DeviceView, FolioCounts, PageCounts, PolicyResult, ReplayReport, SizeCount,
    StreamCounts, WaitPercentiles, view_settings,
};
use crate::timing::DeviceUse;
use crate::verify::CaptureVerify;

/// Name of the JSON schema.
pub const SCHEMA: &str = "rareplay.replay/1";

/// The modelled machine.
#[derive(Clone, Debug)]
pub struct Model {
    /// What `--device` said: the name of a preset or a file.
    pub name: String,
    /// The device.
    pub device: DeviceFile,
    /// CPU costs.
    pub cpu: CpuCosts,
}

impl Default for Model {
    fn default() -> Self {
        let text = presets::text(presets::DEFAULT).unwrap_or_default();
        let device = DeviceFile::parse(text, presets::DEFAULT);
        Self::new(presets::DEFAULT, device.expect("the presets are tested"))
    }
}

impl Model {
    /// The model of a device description.
    pub fn new(name: &str, device: DeviceFile) -> Self {
        let cpu = device.cpu.unwrap_or_default();
        Self { name: name.to_owned(), device, cpu }
    }

    /// The model that `--device NAME|FILE` asks for.
    pub fn load(name_or_path: &str) -> Result<Self, DeviceError> {
        Ok(Self::new(name_or_path, DeviceFile::load(name_or_path)?))
    }

    /// Its parameters, by name.
    pub fn view(&self) -> DeviceView {
        let mut parameters = Vec::new();
        let described =
            toml::Table::try_from(&DeviceFile { cpu: Some(self.cpu), ..self.device.clone() });
        for (key, value) in described.unwrap_or_default() {
            flatten(&key, &value, &mut parameters);
        }
        DeviceView { model: self.device.model_name().to_owned(), parameters }
    }

    /// How sources are run under this model.
    pub fn options(&self) -> RunOptions {
        RunOptions {
            cpu: self.cpu,
            queue: self.device.queue,
            think: true,
            keep_reads: false,
            keep_history: false,
        }
    }

    /// Runs a source under a policy.
    pub fn run<'p>(
        &self,
        source: &Source,
        policy: &'p dyn Policy,
        options: &RunOptions,
    ) -> (Machine<'p>, Timeline) {
        loop {
            let mut device = self.device.build();
            let (machine, timeline) = run::run(source, policy, &mut *device, options);
            if !machine.repeat {
                return (machine, timeline);
            }
        }
    }
}

/// Integers below `value`, by their last keys; those of the CPU and the flash keep their names, as
/// no two tables share one.
fn flatten(key: &str, value: &toml::Value, parameters: &mut Vec<(String, u64)>) {
    match value {
        toml::Value::Integer(number) => {
            parameters.push((key.to_owned(), u64::try_from(*number).unwrap_or(0)));
        }
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(key, value, parameters);
            }
        }
        _ => {}
    }
}

/// Replays a source under each policy, in parallel. The order of the results is that of `policies`.
pub fn replay_all(
    source: &Source,
    policies: &[Arc<dyn Policy>],
    model: &Model,
) -> Vec<PolicyResult> {
    policies.par_iter().map(|policy| replay_one(source, &**policy, model)).collect()
}

/// Replays a source under one policy on virtual time.
pub fn replay_one(source: &Source, policy: &dyn Policy, model: &Model) -> PolicyResult {
    let (machine, timeline) = model.run(source, policy, &model.options());
    result_of(source, policy, &machine, &timeline)
}

/// What a run gave, with what is to be known of its policy.
fn result_of(
    source: &Source,
    policy: &dyn Policy,
    machine: &Machine<'_>,
    timeline: &Timeline,
) -> PolicyResult {
    PolicyResult {
        notes: policy.notes(),
        not_modelled: policy.not_modelled(),
        ..summarize(source, policy.name(), machine, timeline)
    }
}

pub(crate) fn summarize(
    source: &Source,
    policy: &str,
    machine: &Machine<'_>,
    timeline: &Timeline,
) -> PolicyResult {
    let mut by_order = [0; traces::units::Order::COUNT];
    let mut lock = replay::log::CacheLock::default();
    let (mut inserted, mut unused, mut windows) = (0, 0, 0);
    for file in &machine.files {
        for (sum, count) in by_order.iter_mut().zip(file.log.folios_by_order) {
            *sum += count;
        }
        lock += file.log.cache_lock;
        inserted += file.log.pages_inserted;
        unused += file.evicted_unused_pages + file.cache.unused_pages();
        windows += file.log.windows;
    }
    let waits = timeline.waits_sorted();
    PolicyResult {
        policy: policy.to_owned(),
        folios: FolioCounts::new(&by_order),
        device_reads: DeviceReads {
            count: timeline.queue.requests,
            bytes: timeline.queue.request_bytes,
        },
        pages: PageCounts { inserted, read: timeline.queue.request_bytes >> PAGE_SHIFT, unused },
        elapsed_ns: timeline.elapsed_ns,
        read_wait_ns: WaitPercentiles::of(&waits),
        read_wait_quantiles_ns: (0..=100).map(|percent| waits.percentile(percent)).collect(),
        request_sizes: timeline
            .queue
            .request_sizes
            .iter()
            .map(|(&bytes, &count)| SizeCount { bytes, count })
            .collect(),
        device_use: DeviceUse::new(source, timeline),
        cache_lock: lock,
        windows,
        notes: Vec::new(),
        not_modelled: &[],
        failure: machine.failure.clone(),
    }
}

/// Replays a source under each policy as [`replay_all`] does, and keeps what each run did when.
fn replay_with_histories(
    source: &Source,
    policies: &[Arc<dyn Policy>],
    model: &Model,
) -> (Vec<PolicyResult>, Vec<History>) {
    let options = RunOptions { keep_history: true, ..model.options() };
    let replays = policies.par_iter().map(|policy| {
        let (machine, mut timeline) = model.run(source, &**policy, &options);
        let history = timeline.history.take().unwrap_or_default();
        (result_of(source, &**policy, &machine, &timeline), history)
    });
    replays.unzip()
}

/// The report on a source.
pub fn report(
    source: &Source,
    policies: &[Arc<dyn Policy>],
    model: &Model,
    verify: Option<CaptureVerify>,
    losses: Losses,
) -> ReplayReport {
    ReplayReport {
        schema: SCHEMA,
        source: source.name.clone(),
        about: source.about.clone(),
        fidelity: source.fidelity,
        streams: StreamCounts::of(source),
        settings: view_settings(&source.settings),
        device: model.view(),
        results: replay_all(source, policies, model),
        verify,
        losses,
        pictures: None,
    }
}

/// The same with what detailed charts show.
pub fn illustrated_report(
    source: &Source,
    policies: &[Arc<dyn Policy>],
    model: &Model,
    verify: Option<CaptureVerify>,
    losses: Losses,
) -> ReplayReport {
    timeline_report(source, policies, model, verify, losses).0
}

/// The same with all that each policy's run did when, in the order of the results.
pub fn timeline_report(
    source: &Source,
    policies: &[Arc<dyn Policy>],
    model: &Model,
    verify: Option<CaptureVerify>,
    losses: Losses,
) -> (ReplayReport, Vec<History>) {
    let (results, histories) = replay_with_histories(source, policies, model);
    let pictures = Some(Pictures::new(source, &histories));
    let report = report(source, &[], model, verify, losses);
    (ReplayReport { results, pictures, ..report }, histories)
}
