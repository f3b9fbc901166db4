//! Presets against what is published of such devices, and the parts of models.

use traces::units::Time;

use super::{DISK_SECTORS, Places, SPAN_SECTORS, closed_loop, preset, request, within};
use crate::device::hdd::Hdd;
use crate::device::{DeviceFile, Parameters, VariationParameters, presets};

#[test]
fn presets_parse_and_name_their_sources() {
    for (name, text) in presets::all() {
        let file = DeviceFile::parse(text, name).expect(name);
        assert!(file.about.len() > 80, "{name} does not say where its numbers come from");
        let written = toml::to_string(&file).expect("a device is TOML");
        assert_eq!(DeviceFile::parse(&written, name).expect("it reads back"), file);
    }
}

/// Samsung 970 EVO Plus 1 TB: 19,000 IOPS at depth 1, 600,000 at depth 32 from 4 threads, 3,500 MB/s.
#[test]
fn nvme_meets_its_ratings() {
    let nvme = preset("nvme");
    let random = |depth| closed_loop(&nvme, depth, 4096, 20_000, Places::random(SPAN_SECTORS));
    within(random(1).iops(), 19_000.0, 15.0, "4 KiB at depth 1");
    within(random(128).iops(), 600_000.0, 15.0, "4 KiB at depth 128");
    let sequential = closed_loop(&nvme, 32, 128 << 10, 5_000, Places::sequential());
    within(sequential.megabytes_per_s(), 3500.0, 15.0, "128 KiB in sequence");
}

/// Samsung 860 EVO 1 TB: 10,000 IOPS at depth 1, 98,000 at depth 32, 550 MB/s.
#[test]
fn sata_ssd_meets_its_ratings() {
    let ssd = preset("sata-ssd");
    let random = |depth| closed_loop(&ssd, depth, 4096, 20_000, Places::random(SPAN_SECTORS));
    within(random(1).iops(), 10_000.0, 15.0, "4 KiB at depth 1");
    within(random(32).iops(), 98_000.0, 15.0, "4 KiB at depth 32");
    let sequential = closed_loop(&ssd, 32, 128 << 10, 5_000, Places::sequential());
    within(sequential.megabytes_per_s(), 550.0, 15.0, "128 KiB in sequence");
}

/// Published for a drive of 17 us: 236 MB/s page by page, 1222 MB/s in reads of 128 KiB.
#[test]
fn low_latency_nvme_meets_its_published_pair() {
    let nvme = preset("nvme-low-latency");
    let small = closed_loop(&nvme, 1, 4096, 5_000, Places::sequential());
    within(small.megabytes_per_s(), 236.0, 2.0, "4 KiB at depth 1");
    within(small.latency_us(), 17.0, 3.0, "latency of 4 KiB");
    let large = closed_loop(&nvme, 1, 128 << 10, 1_000, Places::sequential());
    within(large.megabytes_per_s(), 1222.0, 2.0, "128 KiB at depth 1");
}

/// Seagate Constellation ES.3: 175 MB/s outside, 83 MB/s inside; a random read is a seek of 8.5 ms
/// and half a turn (4.16 ms).
#[test]
fn hdd_meets_its_data_sheet() {
    let hdd = preset("hdd");
    let outer = closed_loop(&hdd, 2, 512 << 10, 2_000, Places::sequential());
    within(outer.megabytes_per_s(), 175.0, 15.0, "outer tracks");
    let Parameters::Hdd(parameters) = &hdd.device else { panic!("the preset is a disk") };
    let disk = Hdd::new(parameters);
    let inner = Places::sequential_from(disk.sectors() - (2_000 << 10));
    let inner = closed_loop(&hdd, 2, 512 << 10, 1_900, inner);
    within(inner.megabytes_per_s(), 83.0, 15.0, "inner tracks");
    let random = closed_loop(&hdd, 1, 4096, 3_000, Places::random(DISK_SECTORS));
    within(random.latency_us(), 8_500.0 + 4_160.0, 15.0, "random 4 KiB at depth 1");
}

/// Command queuing about doubles random reads of a disk: 6 to 7 ms a request, some 150 a second
/// (freebsd-hackers, July 2009, message 029085).
#[test]
fn hdd_reorders_what_it_holds() {
    let hdd = preset("hdd");
    let deep = closed_loop(&hdd, 32, 4096, 3_000, Places::random(DISK_SECTORS));
    within(deep.iops(), 165.0, 30.0, "random 4 KiB at depth 32");
    let one = closed_loop(&hdd, 1, 4096, 3_000, Places::random(DISK_SECTORS));
    assert!(deep.iops() > one.iops() * 1.7, "{} against {}", deep.iops(), one.iops());
    let oldest_ns = deep.latencies_ns.iter().max().copied().unwrap_or(0);
    assert!(oldest_ns < 3_000_000_000, "a request starved for {oldest_ns} ns");
}

/// A page that follows the one before costs no turn: the drive has read on.
#[test]
fn hdd_reads_on_behind_a_read() {
    let hdd = preset("hdd");
    let pages = closed_loop(&hdd, 1, 4096, 512, Places::sequential());
    assert!(pages.latency_us() < 300.0, "{} us a page", pages.latency_us());
}

/// Flash of 57 us behind a command of 8 us.
#[test]
fn a_flash_read_is_its_parts() {
    let mut nvme = preset("nvme");
    let Parameters::Nvme(parameters) = &mut nvme.device else { panic!("the preset is NVMe") };
    parameters.flash.page_read_ns = 57_000;
    let measured = closed_loop(&nvme, 1, 4096, 100, Places::random(SPAN_SECTORS));
    let parts_us = 1.6 + 57.0 + 4096.0 / 533.0 + 4096.0 / 3500.0 + 8.0;
    within(measured.latency_us(), parts_us, 0.1, "4 KiB");
}

#[test]
fn network_splits_by_rsize_and_is_bounded_by_the_wire() {
    let mut network = preset("network");
    let large = closed_loop(&network, 16, 1 << 20, 500, Places::sequential());
    within(large.megabytes_per_s(), 1180.0, 5.0, "1 MiB reads");
    let small = closed_loop(&network, 1, 4096, 100, Places::sequential());
    within(small.latency_us(), 200.0 + 4096.0 / 1180.0, 1.0, "4 KiB at depth 1");
    let Parameters::Network(parameters) = &mut network.device else { panic!("the preset is NFS") };
    parameters.slots = std::num::NonZeroU64::MIN;
    parameters.rsize_bytes = 65_536.try_into().expect("not 0");
    let one_slot = closed_loop(&network, 1, 1 << 20, 10, Places::sequential());
    let call_us = 200.0 + 65_536.0 / 1180.0;
    within(one_slot.latency_us(), 16.0 * call_us, 1.0, "16 calls one by one");
}

#[test]
fn virtio_is_bounded_by_its_thread() {
    let virtio = preset("virtio");
    let small = closed_loop(&virtio, 1, 4096, 100, Places::sequential());
    within(small.latency_us(), 12.0 + 6.0 + 80.0 + 12.0 + 2.048, 0.1, "4 KiB at depth 1");
    let deep = closed_loop(&virtio, 128, 4096, 20_000, Places::sequential());
    within(deep.iops(), 1e9 / 6_000.0, 2.0, "4 KiB at depth 128");
}

#[test]
fn variation_keeps_the_mean_and_follows_its_seed() {
    let mut nvme = preset("nvme");
    let steady = closed_loop(&nvme, 1, 4096, 5_000, Places::random(SPAN_SECTORS));
    nvme.variation =
        Some(VariationParameters { seed: 7, quantiles_permille: vec![500, 700, 1800] });
    let varied = closed_loop(&nvme, 1, 4096, 5_000, Places::random(SPAN_SECTORS));
    within(varied.latency_us(), steady.latency_us(), 2.0, "mean latency");
    let again = closed_loop(&nvme, 1, 4096, 5_000, Places::random(SPAN_SECTORS));
    assert_eq!(varied.latencies_ns, again.latencies_ns);
    nvme.variation =
        Some(VariationParameters { seed: 8, quantiles_permille: vec![500, 700, 1800] });
    let other = closed_loop(&nvme, 1, 4096, 5_000, Places::random(SPAN_SECTORS));
    assert_ne!(varied.latencies_ns, other.latencies_ns);
}

const CALIBRATED: &str = r#"
[queue]
depth = 32
scheduler = "none"
[device]
model = "calibrated"
fixed_ns = 100_000
discontiguous_ns = 10_000
idle_ns = 1_000
byte_ps = 500
parallel = 2
curve = [{ bytes = 4096, permille = 1000 }, { bytes = 12288, permille = 2000 }]
stalls = { every_ns = 1_000_000_000, stall_ns = 7_000_000 }
seen = { request_bytes_min = 4096, request_bytes_max = 8192, depth_max = 2 }
"#;

/// Each term of the fitted device, on its own.
#[test]
fn a_calibrated_device_adds_up_its_terms() {
    let file = DeviceFile::parse(CALIBRATED, "calibrated").expect("it is right");
    let mut device = file.build();
    let mut read_ns = |now: u64, sector, bytes| {
        let now = Time(now);
        device.read(now, &request(sector, bytes)) - now
    };
    assert_eq!(read_ns(0, 0, 4096), 113_048, "apart, idle");
    assert_eq!(read_ns(0, 8, 4096), 102_048, "contiguous, not idle");
    assert_eq!(read_ns(0, 16, 4096), 102_048 + 102_048, "waits for the first free server");
    assert_eq!(read_ns(1_000_000, 24, 8192), 105_096 * 3 / 2, "between two points of the curve");
    assert_eq!(read_ns(2_000_000, 40, 1 << 20), (101_000 + 524_288) * 2, "beyond the curve");
    assert_eq!(read_ns(600_000_000, 2088, 4096), 103_048 + 7_000_000, "meets a stall");
    assert_eq!(read_ns(700_000_000, 2096, 4096), 103_048, "the next stall is a second away");
    assert!(!device.extrapolates(&request(0, 8192), 2));
    assert!(device.extrapolates(&request(0, 12_288), 1));
    assert!(device.extrapolates(&request(0, 4096), 3));
}

#[test]
fn wrong_descriptions_say_what_is_wrong() {
    for (from, to, says) in [
        ("byte_ps", "byte_ns", "unknown field `byte_ns`"),
        ("parallel = 2", "parallel = 0", "expected a nonzero u64"),
        ("\"calibrated\"", "\"tape\"", "unknown variant `tape`"),
        ("parallel = 2", "parallel = 70000", "x: parallel = 70000 is more than 65536"),
    ] {
        let error = DeviceFile::parse(&CALIBRATED.replace(from, to), "x").expect_err(says);
        assert!(error.to_string().contains(says), "{error} does not say {says}");
    }
    let unknown = DeviceFile::load("floppy").expect_err("no such preset").to_string();
    assert!(unknown.contains("`floppy`") && unknown.contains("hdd"), "{unknown}");
}
