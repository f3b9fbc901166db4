//! What a replay gave, in the shape that reports and JSON show.

use replay::run::Waits;
use serde::Serialize;
use traces::access::{Fidelity, Source};
use traces::capture::Losses;
use traces::settings::{Origin, Settings};
use traces::units::Order;

use crate::picture::Pictures;
use crate::timing::DeviceUse;

/// Folios inserted into the page cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FolioCounts {
    /// All of them.
    pub total: u64,
    /// By order, from 0 to the largest one used.
    pub by_order: Vec<u64>,
}

impl FolioCounts {
    /// From a count per order.
    pub fn new(by_order: &[u64; Order::COUNT]) -> Self {
        let used = by_order.iter().rposition(|count| *count > 0).map_or(1, |order| order + 1);
        Self { total: by_order.iter().sum(), by_order: by_order[..used].to_vec() }
    }

    /// Folios of an order.
    pub fn of(&self, order: usize) -> u64 {
        self.by_order.get(order).copied().unwrap_or(0)
    }
}

/// Read requests the device got, without metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceReads {
    /// Requests.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What became of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageCounts {
    /// Pages inserted into the page cache.
    pub inserted: u64,
    /// Pages read from the device.
    pub read: u64,
    /// Pages inserted and never used by the program.
    pub unused: u64,
}

/// Time reads waited for data, over the reads that waited at all or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitPercentiles {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Longest.
    pub max: u64,
}

impl WaitPercentiles {
    /// Of sorted waits.
    pub fn of(waits: &Waits) -> Self {
        Self { p50: waits.percentile(50), p99: waits.percentile(99), max: waits.max() }
    }
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// Size of a request.
    pub bytes: u64,
    /// Requests of this size.
    pub count: u64,
}

/// One policy's replay of one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyResult {
    /// Name of the policy.
    pub policy: String,
    /// Folios inserted.
    pub folios: FolioCounts,
    /// Device reads.
    pub device_reads: DeviceReads,
    /// Pages.
    pub pages: PageCounts,
    /// Virtual time from the first access to the end of the last one.
    pub elapsed_ns: u64,
    /// Wait per read.
    pub read_wait_ns: WaitPercentiles,
    /// Wait per read at 0, 1, 2, ... 100 percent of the reads, shortest first.
    pub read_wait_quantiles_ns: Vec<u64>,
    /// Device reads by size, smallest first.
    pub request_sizes: Vec<SizeCount>,
    /// What became of the device.
    pub device_use: DeviceUse,
    /// Page cache lock work.
    pub cache_lock: replay::log::CacheLock,
    /// Windows the large-folio path was asked to fill.
    pub windows: u64,
    /// What to know of the policy: how a patch was bent to apply, what guards its code and what not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What a kernel would do and the replay of its code does not.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub not_modelled: &'static [&'static str],
    /// Why none of this can be used: the policy's own code failed.
    #[serde(skip)]
    pub failure: Option<String>,
}

/// A setting as it is printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingView {
    /// The `--set` key.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// The settings a source is replayed under, by their `--set` keys.
pub fn view_settings(settings: &Settings) -> Vec<SettingView> {
    let mut views = Vec::new();
    let mut push = |key, value: String, origin| views.push(SettingView { key, value, origin });
    for (key, setting) in [("kernel", &settings.kernel), ("fs", &settings.filesystem)] {
        let known = if setting.value.is_empty() { "unknown" } else { &setting.value };
        push(key, known.to_owned(), setting.origin);
    }
    push("read_ahead_kb", settings.read_ahead_kb().to_string(), settings.ra_pages.origin);
    for (key, setting) in [
        ("max_sectors_kb", &settings.max_sectors_kb),
        ("max_segments", &settings.segments_max),
        ("max_segment_size", &settings.segment_bytes_max),
    ] {
        push(key, setting.value.to_string(), setting.origin);
    }
    // What the queue is like matters to a replay only where something says so.
    let chunk = &settings.chunk_sectors;
    let scheduler = &settings.scheduler;
    let requests = &settings.nr_requests;
    for (key, value, origin) in [
        ("chunk_sectors", chunk.value.map(|sectors| sectors.to_string()), chunk.origin),
        ("scheduler", scheduler.value.map(|one| one.name().to_owned()), scheduler.origin),
        ("nr_requests", requests.value.map(|requests| requests.to_string()), requests.origin),
    ] {
        if let Some(value) = value {
            push(key, value, origin);
        }
    }
    for (key, setting) in
        [("min_folio_order", &settings.order_min), ("max_folio_order", &settings.order_max)]
    {
        push(key, setting.value.to_string(), setting.origin);
    }
    let memory = settings.memory_pages.value;
    let memory = memory.map_or("unlimited".to_owned(), |pages| format!("{}K", pages * 4));
    push("memory", memory, settings.memory_pages.origin);
    views
}

/// How the time of a replay was modelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceView {
    /// Name of the model.
    pub model: String,
    /// Its parameters by name, with units in the names.
    pub parameters: Vec<(String, u64)>,
}

/// Replays of one source under one or more policies: `rareplay.replay/1`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// `rareplay.replay/1`.
    pub schema: &'static str,
    /// The source's name.
    pub source: String,
    /// What it is, in words, where its author said so.
    pub about: String,
    /// How much of the capture the streams reproduce.
    pub fidelity: Fidelity,
    /// Files, opens, threads and accesses of the source.
    pub streams: StreamCounts,
    /// Settings and their origins.
    pub settings: Vec<SettingView>,
    /// The device model.
    pub device: DeviceView,
    /// One per policy, in the order asked for.
    pub results: Vec<PolicyResult>,
    /// The recording kernel's policy held against the capture; `None` for a workload description.
    pub verify: Option<crate::verify::CaptureVerify>,
    /// What the capture lost.
    pub losses: Losses,
    /// What detailed charts show; only where they are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pictures: Option<Pictures>,
}

/// Size of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamCounts {
    /// Files accessed.
    pub files: u64,
    /// Open files.
    pub opens: u64,
    /// Threads.
    pub threads: u64,
    /// Accesses.
    pub accesses: u64,
}

impl StreamCounts {
    pub(crate) fn of(source: &Source) -> Self {
        Self {
            files: source.files.len() as u64,
            opens: source.opens.len() as u64,
            threads: source.threads.len() as u64,
            accesses: source.accesses.len() as u64,
        }
    }
}
