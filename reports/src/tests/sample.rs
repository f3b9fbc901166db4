//! Results with the figures of real captures.

use std::collections::BTreeMap;

use analysis::inspect::{
    DeviceStats, EventCounts, FileStats, FilterView, InspectReport, PatternCounts, Percentiles,
    StreamsView, Usage,
};
use analysis::replay::{Model, illustrated_report};
use analysis::result::{
    DeviceReads, DeviceView, FolioCounts, PageCounts, PolicyResult, ReplayReport, SettingView,
    SizeCount, StreamCounts, WaitPercentiles,
};
use analysis::sweep::{
    Advice, Axis, AxisValue, Doubt, DoubtKind, Given, Goal, Shape, SweepFigures, SweepPoint,
    SweepReport,
};
use analysis::timing::{DeviceUse, StreamUse};
use analysis::verify::{CaptureVerify, Difference, Matched, Pair, Timing};
use replay::log::CacheLock;
use replay::policy;
use traces::access::{Fidelity, Source};
use traces::capture::{Header, LossKind, Losses};
use traces::join::{AlignedBy, Join};
use traces::settings::{Origin, Settings};

/// 512 MiB file, `ra_pages` 32, `max_sectors_kb` 512: one 4 KiB read, then 1 MiB reads.
pub(crate) const CAPTURE: &str = "traces/corpus/seq1m_after4k_ms512.ftrace.txt.zst";

pub(crate) fn folios(by_order: &[u64]) -> FolioCounts {
    FolioCounts { total: by_order.iter().sum(), by_order: by_order.to_vec() }
}

fn size(kib: u64, count: u64) -> SizeCount {
    SizeCount { bytes: kib << 10, count }
}

/// Half of the reads do not wait; the others wait longer and longer, up to `longest_ns`.
fn quantiles(longest_ns: u64) -> Vec<u64> {
    (0..=100_u64).map(|n| n.saturating_sub(50).pow(3) * longest_ns / 125_000).collect()
}

pub(crate) fn mainline() -> PolicyResult {
    PolicyResult {
        policy: "linux-6.18".to_owned(),
        folios: folios(&[516, 768, 3067, 1278, 2554, 1024, 514]),
        device_reads: DeviceReads { count: 3327, bytes: 512 << 20 },
        pages: PageCounts { inserted: 131_072, read: 131_072, unused: 0 },
        elapsed_ns: 251_318_400,
        read_wait_ns: WaitPercentiles { p50: 211_400, p99: 498_112, max: 1_204_880 },
        read_wait_quantiles_ns: quantiles(1_204_880),
        request_sizes: vec![
            size(4, 2),
            size(48, 768),
            size(64, 511),
            size(128, 1022),
            size(340, 1024),
        ],
        device_use: DeviceUse {
            busy_ns: 240_000_000,
            utilisation: 0.955,
            depth_mean: 1.4,
            depth_max: 3,
            depth_over_time: vec![1.3; 100],
            request_ns: 92_400,
            merged: 0,
            extrapolated: 12,
            streams: vec![StreamUse {
                file: "7:0/0x83".to_owned(),
                reads: 513,
                read_wait_ns: WaitPercentiles { p50: 211_400, p99: 498_112, max: 1_204_880 },
            }],
        },
        cache_lock: CacheLock { acquisitions: 9721, lookups: 1024, ..CacheLock::default() },
        windows: 2052,
        notes: Vec::new(),
        not_modelled: &[],
        failure: None,
    }
}

pub(crate) fn align() -> PolicyResult {
    PolicyResult {
        policy: "align-async-window-v2".to_owned(),
        folios: folios(&[4, 0, 5, 1, 2, 2, 4, 1021]),
        device_reads: DeviceReads { count: 1029, bytes: 512 << 20 },
        elapsed_ns: 200_104_000,
        read_wait_ns: WaitPercentiles { p50: 180_950, p99: 402_000, max: 1_204_880 },
        read_wait_quantiles_ns: quantiles(602_440),
        request_sizes: vec![size(4, 3), size(12, 2), size(124, 1), size(256, 2), size(512, 1021)],
        cache_lock: CacheLock { acquisitions: 1039, ..CacheLock::default() },
        windows: 1027,
        notes: Vec::new(),
        not_modelled: &[],
        failure: None,
        ..mainline()
    }
}

fn settings() -> Vec<SettingView> {
    let setting = |key, value: &str, origin| SettingView { key, value: value.to_owned(), origin };
    vec![
        setting("kernel", "6.18.44", Origin::Sidecar),
        setting("fs", "xfs", Origin::Recovered),
        setting("read_ahead_kb", "128", Origin::Recorded),
        setting("max_sectors_kb", "512", Origin::Recovered),
        setting("max_segments", "128", Origin::Assumed),
        setting("max_segment_size", "65536", Origin::Assumed),
        setting("min_folio_order", "0", Origin::Assumed),
        setting("max_folio_order", "9", Origin::Assumed),
        setting("memory", "unlimited", Origin::Assumed),
    ]
}

fn streams() -> StreamCounts {
    StreamCounts { files: 1, opens: 1, threads: 1, accesses: 513 }
}

fn device() -> DeviceView {
    let parameters = [
        ("request_overhead_ns", 60_000),
        ("bandwidth_bytes_per_s", 3_200_000_000),
        ("channels", 8),
    ];
    DeviceView {
        model: "basic".to_owned(),
        parameters: parameters.map(|(name, value)| (name.to_owned(), value)).into(),
    }
}

fn matched(count: u64) -> Matched {
    Matched { recorded: count, replayed: count, matched: count, in_order: true }
}

fn pair_of(recorded_ns: u64, predicted_ns: u64) -> Pair {
    Pair { recorded_ns, predicted_ns }
}

fn lost() -> Losses {
    let mut losses = Losses::default();
    losses.add(LossKind::Unparsed, 2, || "line 9: `garbage`".to_owned());
    losses.add(LossKind::LostEvents, 812, || "CPU 1, line 40211".to_owned());
    losses
}

pub(crate) fn exact() -> CaptureVerify {
    CaptureVerify {
        source: CAPTURE.to_owned(),
        policy: "linux-6.18".to_owned(),
        stream: Fidelity::Exact,
        folios: matched(9721),
        device_reads: matched(3327),
        unrecorded_reads: 0,
        exact: true,
        first_difference: None,
        timing: Timing {
            elapsed: pair_of(428_120_000, 251_318_400),
            read_p50: pair_of(612_000, 301_000),
            read_p99: pair_of(1_480_000, 1_204_880),
            device_read: pair_of(170_100, 92_400),
            extrapolated: 12,
        },
        settings: settings(),
        losses: Losses::default(),
    }
}

fn other_order() -> CaptureVerify {
    let in_order = false;
    let difference = Difference {
        file: "7:0/0x83".to_owned(),
        position: 412,
        recorded: "page 1600 order 2".to_owned(),
        replayed: "page 1604 order 2".to_owned(),
        state_before: "Async at page 1568, 12 pages asked; start=1568 size=32 async_size=32 \
                       order=2 ra_pages=32 mmap_miss=0 prev_pos=6422527"
            .to_owned(),
    };
    CaptureVerify {
        source: "captures/thr4same.ftrace.txt.zst".to_owned(),
        folios: Matched { in_order, ..matched(7572) },
        device_reads: Matched { in_order, ..matched(513) },
        first_difference: Some(difference),
        ..exact()
    }
}

fn differs() -> CaptureVerify {
    let difference = Difference {
        file: "259:0/0x9a".to_owned(),
        position: 17,
        recorded: "page 64 order 2".to_owned(),
        replayed: "nothing".to_owned(),
        state_before: "Sync at page 60, 4 pages asked; start=28 size=32 async_size=32 order=0 \
                       ra_pages=32 mmap_miss=0 prev_pos=245759"
            .to_owned(),
    };
    CaptureVerify {
        source: "captures/sqlite_scan.ftrace.txt.zst".to_owned(),
        stream: Fidelity::Page,
        folios: Matched { recorded: 6149, replayed: 6140, matched: 6101, in_order: false },
        device_reads: Matched { recorded: 2063, replayed: 2061, matched: 2050, in_order: false },
        unrecorded_reads: 3,
        losses: lost(),
        exact: false,
        first_difference: Some(difference),
        ..exact()
    }
}

fn without_block_events() -> CaptureVerify {
    CaptureVerify {
        source: "captures/seq128k.ftrace.txt.zst".to_owned(),
        folios: matched(4135),
        device_reads: Matched { replayed: 4096, ..Matched::default() },
        ..exact()
    }
}

/// All outcomes a verification can have.
pub(crate) fn verified() -> Vec<CaptureVerify> {
    vec![exact(), other_order(), differs(), without_block_events()]
}

/// A capture of 6.18 under two policies, verified.
pub(crate) fn pair() -> ReplayReport {
    ReplayReport {
        schema: "rareplay.replay/1",
        source: CAPTURE.to_owned(),
        about: "One 4 KiB read, then 1 MiB reads to the end. On a loop device.".to_owned(),
        fidelity: Fidelity::Exact,
        streams: streams(),
        settings: settings(),
        device: device(),
        results: vec![mainline(), align()],
        verify: Some(exact()),
        losses: Losses::default(),
        pictures: None,
    }
}

/// Two threads that read a small file, one in order, one here and there.
pub(crate) fn few_reads() -> Source {
    let text = r#"
[file]
size = "256K"
[[stream]]
steps = [{ read = "sequential", size = "4K", count = 1 }, { read = "sequential", size = "64K" }]
[[stream]]
steps = [{ read = "random", size = "16K", count = 2, seed = 7 }]
"#;
    traces::workload::parse(text, "few.workload.toml", &Settings::default()).expect("a workload")
}

/// Two streams with a random one between them under some policies, with pictures.
pub(crate) fn illustrated(policies: &[&str]) -> ReplayReport {
    let text = r#"
what = "a file read twice over, and here and there"
[file]
size = "8M"
[[stream]]
steps = [{ read = "sequential", size = "4K", count = 1 }, { read = "sequential", size = "1M" }]
[[stream]]
steps = [{ read = "random", size = "16K", count = 200, seed = 7 }]
"#;
    let source = traces::workload::parse(text, "a.workload.toml", &Settings::default());
    let source = source.expect("a workload");
    let policies: Vec<_> =
        policies.iter().map(|name| policy::parse(name).expect("a policy")).collect();
    illustrated_report(&source, &policies, &Model::default(), None, Losses::default())
}

/// Several policies with long names and forced readahead, from a capture with losses.
pub(crate) fn several() -> ReplayReport {
    let lock = CacheLock {
        acquisitions: 668_623,
        contended: 138_314,
        insert_conflicts: 586_646,
        lookups: 668_623,
        found: 0,
        forced_calls: 10_300,
        forced_pages: 668_623,
        forced_covered: 8993,
        forced_skipped: 0,
    };
    let result = |name: &str, cache_lock| PolicyResult {
        policy: name.to_owned(),
        folios: folios(&[81_977]),
        device_reads: DeviceReads { count: 1325, bytes: 81_977 << 12 },
        pages: PageCounts { inserted: 81_977, read: 81_977, unused: 53 },
        elapsed_ns: 3_104_000_000,
        read_wait_ns: WaitPercentiles { p50: 0, p99: 98_112, max: 4_204_880 },
        read_wait_quantiles_ns: vec![0; 101],
        request_sizes: vec![size(4, 3), size(248, 1322)],
        device_use: DeviceUse::default(),
        cache_lock,
        windows: 0,
        notes: Vec::new(),
        not_modelled: &[],
        failure: None,
    };
    let skipping = CacheLock { contended: 2144, forced_skipped: 1210, ..lock };
    ReplayReport {
        source: "captures/db_bench_readseq_t8.ftrace.txt.zst".to_owned(),
        about: String::new(),
        streams: StreamCounts { files: 14, opens: 14, threads: 8, accesses: 1_204_311 },
        fidelity: Fidelity::Page,
        results: vec![
            result("linux-6.18", lock),
            result("linux-7.3", lock),
            result("linux-7.3+skip-fully-overlapped", skipping),
            result("linux-7.3+align-async-window-v2", lock),
        ],
        verify: Some(CaptureVerify { stream: Fidelity::Page, ..differs() }),
        losses: lost(),
        ..pair()
    }
}

/// A workload description: nothing recorded, both policies the same.
pub(crate) fn workload() -> ReplayReport {
    let same = PolicyResult {
        folios: folios(&[128, 0, 32, 0, 8, 0, 2, 1020]),
        device_reads: DeviceReads { count: 1024, bytes: 512 << 20 },
        ..mainline()
    };
    let candidate = PolicyResult { policy: "align-async-window-v2".to_owned(), ..same.clone() };
    ReplayReport {
        source: "traces/corpus/seq1m.workload.toml".to_owned(),
        about: "1 MiB reads".to_owned(),
        results: vec![same, candidate],
        verify: None,
        ..pair()
    }
}

pub(crate) fn inspected() -> InspectReport {
    let percentiles = |count, p50, p90, p99, max| {
        Some(Percentiles { count, p50, p90, p99, max, within_ppm: None })
    };
    let reads = DeviceReads { count: 3327, bytes: 512 << 20 };
    InspectReport {
        schema: "rareplay.inspect/1",
        source: CAPTURE.to_owned(),
        header: Header {
            format: "ftrace text".to_owned(),
            tracer: Some("nop".to_owned()),
            kernel: None,
            cpus: Some(2),
            clock: Some("mono".to_owned()),
        },
        first_ns: 2_084_021_443_000,
        span_ns: 428_120_334,
        filter: None,
        joins: Vec::new(),
        events: EventCounts {
            total: 25_817,
            by_kind: BTreeMap::from([
                ("xfs_file_buffered_read", 513),
                ("mm_filemap_add_to_page_cache", 9721),
                ("mm_filemap_get_pages", 6205),
                ("block_rq_issue", 3329),
                ("block_rq_complete", 3329),
            ]),
            unused: BTreeMap::from([("sched_switch".to_owned(), 120)]),
        },
        streams: Some(StreamsView {
            fidelity: Fidelity::Exact,
            counts: streams(),
            settings: settings(),
        }),
        no_streams: None,
        folios: folios(&[516, 768, 3067, 1278, 2554, 1024, 514]),
        usage: Some(Usage {
            asked_bytes: 512 << 20,
            device_reads: reads,
            pages_inserted: 131_072,
            pages_unused: 64,
            read_amplification: Some(131_072.0 / 131_008.0),
        }),
        devices: vec![DeviceStats {
            device: "7:0".to_owned(),
            data_reads: reads,
            metadata_reads: 2,
            writes: 0,
            sizes: vec![size(4, 12), size(16, 750), size(128, 1537), size(512, 1028)],
            issue_to_complete_ns: percentiles(3327, 168_200, 402_000, 798_112, 2_204_880),
            queue_to_issue_ns: percentiles(3327, 1_900, 4_020, 18_112, 104_880),
            uncompleted: 0,
        }],
        files: vec![FileStats {
            file: "7:0/0x83".to_owned(),
            size_bytes: Some(512 << 20),
            accesses: 513,
            forced: 0,
            asked_bytes: 512 << 20,
            pattern: PatternCounts { sequential: 511, random: 1, ..PatternCounts::default() },
            folios: folios(&[516, 768, 3067, 1278, 2554, 1024, 514]),
            pages_inserted: 131_072,
            pages_unused: 64,
            device_reads: reads,
        }],
        files_omitted: 0,
        losses: Losses::default(),
    }
}

/// A block-only capture: no streams, no files.
pub(crate) fn inspected_block_only() -> InspectReport {
    let mut report = inspected();
    report.source = "captures/nvme.blktrace.0".to_owned();
    report.header = Header { format: "blktrace".to_owned(), ..Header::default() };
    report.events.by_kind.retain(|name, _| name.starts_with("block"));
    report.events.unused.clear();
    report.streams = None;
    report.no_streams = Some("no access events in 6658 events".to_owned());
    report.folios = FolioCounts::default();
    report.usage = None;
    report.files.clear();
    report.devices[0].queue_to_issue_ns = None;
    report.losses.add(LossKind::Truncated, 1, || "byte 81920: half a record".to_owned());
    report
}

/// A part of a capture of two files.
pub(crate) fn inspected_part() -> InspectReport {
    let mut report = inspected();
    report.header.format = "ftrace text + blktrace".to_owned();
    report.joins.push(Join {
        name: "captures/run.blktrace.0".to_owned(),
        format: "blktrace".to_owned(),
        aligned_by: AlignedBy::Events,
        offset_ns: -1_204_331,
        drift_ppb: 412,
        residual_ns: Some(2210),
        events_matched: 3329,
        events_left_out: 3329,
    });
    report.filter = Some(FilterView {
        conditions: vec!["pid 516".to_owned(), "from 2084.100000000".to_owned()],
        events_kept: 20_114,
        events_total: 25_817,
    });
    report.keep_files(0);
    report
}

fn axis(key: &str, values: &[(&str, Option<u64>)]) -> Axis {
    let value = |(text, number): &(&str, Option<u64>)| AxisValue {
        text: (*text).to_owned(),
        number: *number,
    };
    Axis { key: key.to_owned(), values: values.iter().map(value).collect() }
}

fn swept_figures(policy: &str, elapsed_ns: u64, reads: u64, unused: u64) -> SweepFigures {
    let pages = 131_072 + unused;
    SweepFigures {
        policy: policy.to_owned(),
        folios: folios(&[516, 768, reads]),
        device_reads: DeviceReads { count: reads, bytes: pages << 12 },
        pages: PageCounts { inserted: pages, read: pages, unused },
        elapsed_ns,
        read_wait_ns: WaitPercentiles { p50: 0, p99: elapsed_ns / 512, max: elapsed_ns / 256 },
        read_wait_ns_total: elapsed_ns / 2,
        device_busy: 0.75,
        queue_depth_mean: 2.5,
    }
}

fn doubt(kind: DoubtKind, text: &str) -> Doubt {
    Doubt { kind, text: text.to_owned() }
}

/// One setting over four values, under one policy.
pub(crate) fn swept() -> SweepReport {
    let values = [("64", 64), ("128", 128), ("256", 256), ("512", 512)];
    let figures = [(402_118_000, 8192, 0), (251_318_400, 4096, 0), (250_900_000, 2048, 640)];
    let figures = figures.into_iter().chain([(300_004_000, 1024, 65_536)]);
    let points = figures.zip(values).enumerate().map(|(at, ((ns, reads, unused), (text, _)))| {
        let results = vec![swept_figures("linux-6.18", ns, reads, unused)];
        SweepPoint { at: vec![at], values: vec![text.to_owned()], is_current: at == 1, results }
    });
    let advice = Advice {
        policy: "linux-6.18".to_owned(),
        given: None,
        point: Some(1),
        best: 2,
        knee: Some(1),
        shape: Shape::Between,
        reason: vec![
            "read_ahead_kb 128 is the smallest value whose elapsed time is within 2 % of the best \
             (read_ahead_kb 256)."
                .to_owned(),
            "At read_ahead_kb 64 it is 60.0 % more.".to_owned(),
            "More than enough hurts: at read_ahead_kb 512 it is 19.6 % more than at read_ahead_kb \
             256."
                .to_owned(),
        ],
        doubts: Vec::new(),
    };
    SweepReport {
        schema: "rareplay.sweep/1",
        source: CAPTURE.to_owned(),
        fidelity: Fidelity::Exact,
        streams: streams(),
        settings: settings(),
        device: Some(device()),
        axes: vec![axis("read_ahead_kb", &values.map(|(text, kb)| (text, Some(kb))))],
        policies: vec!["linux-6.18".to_owned()],
        goal: Goal::Elapsed,
        tolerance_percent: 2.0,
        points: points.collect(),
        advice: vec![advice],
        doubts: vec![doubt(DoubtKind::Uncalibrated, "times are those of the device model basic")],
        verify: Some(exact()),
        losses: Losses::default(),
    }
}

/// Two devices and two values under two policies.
pub(crate) fn swept_devices() -> SweepReport {
    let policies = ["linux-6.18", "linux-7.3+align-async-window-v2"];
    let (devices, values) = (["hdd", "nvme"], [("128", 128), ("1024", 1024)]);
    let point = |device: usize, value: usize| SweepPoint {
        at: vec![device, value],
        values: vec![devices[device].to_owned(), values[value].0.to_owned()],
        is_current: (device, value) == (1, 0),
        results: policies
            .iter()
            .map(|policy| {
                let ns = (4 - 3 * device as u64) * (3 - value as u64) * 251_318_400;
                swept_figures(policy, ns, 4096 >> value, 0)
            })
            .collect(),
    };
    let points = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let of = |policy: &str, at: usize| Advice {
        policy: policy.to_owned(),
        given: Some(Given { key: "device".to_owned(), value: devices[at].to_owned() }),
        point: Some(2 * at + 1),
        best: 2 * at + 1,
        knee: None,
        shape: Shape::MoreHelps,
        reason: vec![format!(
            "read_ahead_kb 1024 on {} has the smallest elapsed time.",
            devices[at]
        )],
        doubts: vec![doubt(DoubtKind::DeviceBound, "the device is busy all the time")],
    };
    let advice = policies.iter().flat_map(|policy| [0, 1].map(|at| of(policy, at)));
    SweepReport {
        device: None,
        axes: vec![
            axis("device", &devices.map(|device| (device, None))),
            axis("read_ahead_kb", &values.map(|(text, kb)| (text, Some(kb)))),
        ],
        policies: policies.map(str::to_owned).into(),
        points: points.map(|(device, value)| point(device, value)).into(),
        advice: advice.collect(),
        doubts: Vec::new(),
        verify: None,
        ..swept()
    }
}

/// Two sizes against each other.
pub(crate) fn swept_pair() -> SweepReport {
    let (first, second) =
        ([("128", 128), ("256", 256), ("512", 512)], [("512", 512), ("1024", 1024)]);
    let point = |a: usize, b: usize| {
        let ns = [600, 400, 300, 200, 150, 100][2 * a + b] * 1_000_000;
        SweepPoint {
            at: vec![a, b],
            values: vec![first[a].0.to_owned(), second[b].0.to_owned()],
            is_current: (a, b) == (0, 0),
            results: vec![swept_figures("linux-6.18", ns, 4096 >> a, 64 << a)],
        }
    };
    let points = (0..3).flat_map(|a| (0..2).map(move |b| (a, b)));
    let advice = Advice {
        point: Some(5),
        best: 5,
        knee: None,
        shape: Shape::MoreHelps,
        reason: vec![
            "read_ahead_kb 512, max_sectors_kb 1024 has the smallest elapsed time.".to_owned(),
        ],
        ..swept().advice.remove(0)
    };
    SweepReport {
        axes: vec![
            axis("read_ahead_kb", &first.map(|(text, kb)| (text, Some(kb)))),
            axis("max_sectors_kb", &second.map(|(text, kb)| (text, Some(kb)))),
        ],
        points: points.map(|(a, b)| point(a, b)).collect(),
        advice: vec![advice],
        doubts: Vec::new(),
        ..swept()
    }
}

/// A setting, one on each of two devices, two at once, and devices alone.
pub(crate) fn sweeps() -> [SweepReport; 4] {
    let devices = swept_devices();
    let alone = SweepReport {
        axes: devices.axes[..1].to_vec(),
        points: vec![
            SweepPoint { at: vec![0], values: vec!["hdd".to_owned()], ..devices.points[0].clone() },
            SweepPoint {
                at: vec![1],
                values: vec!["nvme".to_owned()],
                ..devices.points[2].clone()
            },
        ],
        advice: vec![Advice { given: None, point: None, best: 1, ..devices.advice[0].clone() }],
        ..devices.clone()
    };
    [swept(), devices, swept_pair(), alone]
}
