//! `inspect`: what is in a capture.

use analysis::inspect::{DeviceStats, FileStats, FilterView, InspectReport, Percentiles};
use analysis::result::FolioCounts;
use traces::join::{AlignedBy, Join};
use traces::units::Time;

use super::{BOLD, CARE, Style, losses};
use crate::figures::size_buckets;
use crate::grid::{Cell, Grid};
use crate::number::{Unit, count, counted, percent, size_name};
use crate::words;

/// Width of the longest bar of the size histogram.
const BAR_WIDTH: u64 = 30;

/// A capture.
pub fn inspect(report: &InspectReport, style: &Style) -> String {
    let mut out = style.paint(&report.source, BOLD) + "\n";
    out += &inspect_head(report, style);
    if !report.files.is_empty() {
        out.push('\n');
        out += &files(report, *style);
    }
    out
}

/// All but the name of the capture and its files.
pub(crate) fn inspect_head(report: &InspectReport, style: &Style) -> String {
    let style = *style;
    let mut out = String::new();
    out += &style.labelled("format", &format(report));
    for join in &report.joins {
        out += &style.labelled("joined", &joined(join));
    }
    if let Some(filter) = &report.filter {
        out += &style.paint(style.labelled("part", &part(filter)).trim_end(), CARE);
        out.push('\n');
    }
    out += &events(report, style);
    out += &streams(report, style);
    out += &style.labelled("folios", &folios(&report.folios));
    out += &usage(report, style);
    out += &losses(&report.losses, style);
    if !report.devices.is_empty() {
        out.push('\n');
        out += &devices(&report.devices, style);
    }
    for device in report.devices.iter().filter(|device| device.data_reads.count > 0) {
        out.push('\n');
        out += &sizes(device, style);
    }
    out
}

fn format(report: &InspectReport) -> String {
    let header = &report.header;
    let mut parts = vec![header.format.clone()];
    parts.extend(header.tracer.as_ref().map(|tracer| format!("tracer {tracer}")));
    parts.push(match &header.kernel {
        Some(kernel) => format!("kernel {kernel}"),
        None => "kernel not recorded".to_owned(),
    });
    parts.extend(header.cpus.map(|cpus| counted(u64::from(cpus), "CPU", "CPUs")));
    parts.extend(header.clock.as_ref().map(|clock| format!("clock {clock}")));
    parts.join(", ")
}

/// How a further file of the run was aligned.
fn joined(join: &Join) -> String {
    let mut parts = vec![words::file_name(&join.name).to_owned()];
    parts.push(match join.aligned_by {
        AlignedBy::Clock => "on the same clock".to_owned(),
        AlignedBy::Events => format!(
            "aligned by {} in both, {:+} ns, drifting by {} ppb",
            counted(join.events_matched, "request", "requests"),
            join.offset_ns,
            join.drift_ppb
        ),
    });
    parts.push(match join.residual_ns {
        Some(residual) => format!("residual {}", Unit::Nanoseconds.show(residual)),
        None => "nothing in both to check it by".to_owned(),
    });
    if join.events_left_out > 0 {
        parts.push(format!("{} left out as doubles", count(join.events_left_out)));
    }
    parts.join(", ")
}

/// What a filter left, and what that does to the rest.
fn part(filter: &FilterView) -> String {
    format!(
        "{}: {} of {} events; what the others say, such as that a page was used, is not counted",
        filter.conditions.join(", "),
        count(filter.events_kept),
        count(filter.events_total)
    )
}

fn events(report: &InspectReport, style: Style) -> String {
    let events = &report.events;
    let span = Unit::Nanoseconds.show(report.span_ns);
    let first = Time(report.first_ns).seconds();
    let mut names: Vec<_> = events.by_kind.iter().collect();
    names.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), **name));
    let names: Vec<_> = names.iter().map(|(name, n)| format!("{name} {}", count(**n))).collect();
    let text = match events.total {
        0 => format!("none; accesses of {span} from {first} s"),
        total => format!("{} in {span} from {first} s: {}", count(total), names.join(", ")),
    };
    let mut out = style.labelled("events", &text);
    if !events.unused.is_empty() {
        let names = events.unused.iter().map(|(name, n)| format!("{name} {}", count(*n)));
        out += &style.labelled("not used", &names.collect::<Vec<_>>().join(", "));
    }
    out
}

fn streams(report: &InspectReport, style: Style) -> String {
    let Some(streams) = &report.streams else {
        let why = report.no_streams.as_deref().unwrap_or("none");
        return style.paint(style.labelled("streams", why).trim_end(), CARE) + "\n";
    };
    let settings = words::settings(&streams.settings);
    style.labelled("streams", &words::streams(streams.fidelity, &streams.counts))
        + &style.labelled("settings", &settings)
}

/// `9721: 0:516 1:768`, orders without folios left out.
fn folios(folios: &FolioCounts) -> String {
    let used = folios.by_order.iter().enumerate().filter(|(_, n)| **n > 0);
    let orders: Vec<_> = used.map(|(order, n)| format!("{order}:{}", count(*n))).collect();
    match folios.total {
        0 => "none inserted".to_owned(),
        total => format!("{} inserted, by order {}", count(total), orders.join(" ")),
    }
}

fn usage(report: &InspectReport, style: Style) -> String {
    let Some(usage) = &report.usage else { return String::new() };
    let mut parts = vec![
        format!("{} asked for", Unit::Bytes.show(usage.asked_bytes)),
        format!(
            "{} of {}",
            counted(usage.device_reads.count, "device read", "device reads"),
            Unit::Bytes.show(usage.device_reads.bytes)
        ),
        format!(
            "{} of {} inserted pages unused",
            count(usage.pages_unused),
            count(usage.pages_inserted)
        ),
    ];
    if let Some(amplification) = usage.read_amplification {
        parts.push(format!("{amplification:.3} bytes read per byte of used pages"));
    }
    style.labelled("usage", &parts.join(", "))
}

fn bold(text: &str) -> Cell {
    Cell::painted(text, BOLD)
}

/// Four cells: median, 90th and 99th percentile, largest.
fn percentiles(percentiles: Option<&Percentiles>) -> [Cell; 4] {
    let Some(p) = percentiles else { return ["-", "-", "-", "-"].map(Cell::from) };
    [p.p50, p.p90, p.p99, p.max].map(|ns| Cell::from(Unit::Nanoseconds.show(ns)))
}

fn devices(devices: &[DeviceStats], style: Style) -> String {
    let mut grid = Grid::new("lrrrrlrrrr");
    let heads = ["device", "data reads", "bytes", "metadata", "writes", "latency"];
    grid.push(heads.into_iter().chain(["p50", "p90", "p99", "max"]).map(bold).collect());
    for device in devices {
        let mut cells: Vec<Cell> = vec![
            device.device.as_str().into(),
            count(device.data_reads.count).into(),
            Unit::Bytes.show(device.data_reads.bytes).into(),
            count(device.metadata_reads).into(),
            count(device.writes).into(),
            "issue to complete".into(),
        ];
        cells.extend(percentiles(device.issue_to_complete_ns.as_ref()));
        grid.push(cells);
        if let Some(queue) = &device.queue_to_issue_ns {
            let mut cells = vec![Cell::default(); 5];
            cells.push("queue to issue".into());
            cells.extend(percentiles(Some(queue)));
            grid.push(cells);
        }
    }
    grid.render(style.colour)
}

/// Data reads by size, in powers of two.
fn sizes(device: &DeviceStats, style: Style) -> String {
    let buckets = size_buckets(&device.sizes);
    let most = buckets.values().map(|bucket| bucket.requests).max().unwrap_or(0).max(1);
    let mut grid = Grid::new("lrl");
    grid.push_across(bold(&format!("Data reads of {} by size, up to", device.device)));
    for (bytes, bucket) in buckets {
        let bar = "#".repeat((bucket.requests * BAR_WIDTH).div_ceil(most) as usize);
        let name = format!("  {}", size_name(bytes));
        grid.push(vec![name.into(), count(bucket.requests).into(), bar.into()]);
    }
    grid.render(style.colour)
}

fn pattern(file: &FileStats) -> String {
    match file.pattern.main() {
        Some((pattern, share)) => format!("{} {}", pattern.name(), percent(share)),
        None => "-".to_owned(),
    }
}

fn files(report: &InspectReport, style: Style) -> String {
    let mut grid = Grid::new("lrrrrrrl");
    let heads = ["file", "size", "accesses", "asked", "folios", "unused", "reads", "pattern"];
    grid.push(heads.map(bold).into());
    for file in &report.files {
        grid.push(vec![
            file.file.as_str().into(),
            file.size_bytes.map_or("-".to_owned(), |bytes| Unit::Bytes.show(bytes)).into(),
            count(file.accesses).into(),
            Unit::Bytes.show(file.asked_bytes).into(),
            count(file.folios.total).into(),
            count(file.pages_unused).into(),
            count(file.device_reads.count).into(),
            pattern(file).into(),
        ]);
    }
    if report.files_omitted > 0 {
        let more = counted(report.files_omitted, "more file", "more files");
        grid.push_across(format!("and {more}"));
    }
    grid.render(style.colour)
}
