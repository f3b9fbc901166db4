//! Replays of one source under several policies, and what they gave.

use std::sync::Arc;

use rayon::prelude::*;
use replay::device::{Basic, BasicParameters};
use replay::machine::Machine;
use replay::policy::Policy;
use replay::run::{self, CpuCosts, RunOptions, Timeline};
use traces::access::Source;
use traces::capture::Losses;
use traces::units::PAGE_SHIFT;

use crate::result::{
    DeviceReads, DeviceView, FolioCounts, PageCounts, PolicyResult, ReplayReport, StreamCounts,
    WaitPercentiles, view_settings,
};
use crate::verify::CaptureVerify;

/// Name of the JSON schema.
pub const SCHEMA: &str = "rareplay.replay/1";

/// The modelled machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Model {
    /// The device.
    pub device: BasicParameters,
    /// CPU costs.
    pub cpu: CpuCosts,
}

impl Model {
    /// Its parameters, by name.
    pub fn view(&self) -> DeviceView {
        let Self { device, cpu } = self;
        let parameters = [
            ("request_overhead_ns", device.request_overhead_ns),
            ("bandwidth_bytes_per_s", device.bandwidth_bytes_per_s),
            ("channels", device.channels),
            ("call_ns", cpu.call_ns),
            ("copy_page_ns", cpu.copy_page_ns),
            ("lookup_ns", cpu.lookup_ns),
            ("folio_ns", cpu.folio_ns),
            ("request_ns", cpu.request_ns),
        ];
        DeviceView {
            model: "basic".to_owned(),
            parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
        }
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
    let mut device = Basic::new(model.device);
    let options = RunOptions { cpu: model.cpu, think: source.recorded.is_some() };
    let (machine, timeline) = run::run(source, policy, &mut device, &options);
    summarize(policy.name(), &machine, timeline)
}

fn summarize(policy: &str, machine: &Machine<'_>, mut timeline: Timeline) -> PolicyResult {
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
    timeline.waits_ns.sort_unstable();
    PolicyResult {
        policy: policy.to_owned(),
        folios: FolioCounts::new(&by_order),
        device_reads: DeviceReads { count: timeline.requests, bytes: timeline.request_bytes },
        pages: PageCounts { inserted, read: timeline.request_bytes >> PAGE_SHIFT, unused },
        elapsed_ns: timeline.elapsed_ns,
        read_wait_ns: WaitPercentiles {
            p50: percentile(&timeline.waits_ns, 50),
            p99: percentile(&timeline.waits_ns, 99),
            max: timeline.waits_ns.last().copied().unwrap_or(0),
        },
        cache_lock: lock,
        windows,
    }
}

/// The smallest value that at least `percent` of the sorted values do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
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
        fidelity: source.fidelity,
        streams: StreamCounts {
            files: source.files.len() as u64,
            opens: source.opens.len() as u64,
            threads: source.threads.len() as u64,
            accesses: source.accesses.len() as u64,
        },
        settings: view_settings(&source.settings),
        device: model.view(),
        results: replay_all(source, policies, model),
        verify,
        losses,
    }
}
