//! Side by side with measurements of real drives that others published. The tables are also in
//! `docs/timing.md`.

use std::fmt::Write as _;

use traces::units::Time;

use super::{Measured, Places, SPAN_SECTORS, closed_loop, preset, request};
use crate::device::hdd::Hdd;
use crate::device::{DeviceFile, Parameters};

/// Most that a model may be off.
const PERCENT_MAX: f64 = 15.0;

/// A published value beside the model's.
struct Row {
    what: String,
    published: f64,
    model: f64,
}

impl Row {
    fn new(what: impl Into<String>, published: f64, model: f64) -> Self {
        Self { what: what.into(), published, model }
    }

    fn percent(&self) -> f64 {
        (self.model / self.published - 1.0) * 100.0
    }
}

/// Holds all rows to [`PERCENT_MAX`] and the table to its snapshot.
fn hold(rows: &[Row]) -> String {
    let mut table = String::new();
    for row in rows {
        let Row { what, published, model } = row;
        let percent = row.percent();
        writeln!(table, "{what:48} {published:9.2} {model:9.2} {percent:+6.1} %")
            .expect("a string");
        assert!(percent.abs() <= PERCENT_MAX, "{what}: {model:.2} against {published:.2}");
    }
    table
}

fn cheetah() -> DeviceFile {
    let text = include_str!("reference/cheetah-9lp.toml");
    DeviceFile::parse(text, "cheetah-9lp").expect("it is right")
}

/// Seeks of a Cheetah 9LP that are no parameters of the model, in milliseconds
/// (`valid/cheetah9LP.seek` of `DiskSim` 4.0).
const SEEKS: &[(u64, f64)] = &[
    (3, 1.089),
    (16, 1.453),
    (80, 1.983),
    (100, 2.145),
    (300, 2.699),
    (500, 3.230),
    (1000, 4.118),
    (1500, 4.757),
    (2000, 5.282),
    (3000, 6.345),
    (4000, 7.419),
    (5000, 8.492),
    (6000, 9.698),
];

#[test]
fn seeks_of_a_cheetah_9lp() {
    let Parameters::Hdd(parameters) = cheetah().device else { panic!("it is a disk") };
    let disk = Hdd::new(&parameters);
    let row = |&(cylinders, ms): &(u64, f64)| {
        Row::new(
            format!("seek over {cylinders} cylinders, ms"),
            ms,
            disk.seek_ns(cylinders) as f64 / 1e6,
        )
    };
    insta::assert_snapshot!(hold(&SEEKS.iter().map(row).collect::<Vec<_>>()));
}

/// Reads of a Cheetah 9LP that follow a read elsewhere: from sector, to sector, sectors, milliseconds
/// (from the beginning of `valid/cheetah9LP.trace` of `DiskSim` 4.0, which carries the drive's own times).
const FAR_READS: &[(u64, u64, u64, f64)] = &[
    (1_975_280, 8_702_844, 4, 7.285),
    (8_702_816, 9_233_408, 4, 6.613),
    (14_631_808, 632_476, 8, 13.045),
    (632_476, 4_733_108, 4, 10.836),
    (11_327_384, 7_202_740, 4, 9.319),
    (910_332, 16_618_464, 4, 16.335),
    (9_137_796, 3_216_992, 8, 10.417),
    (261_516, 13_993_776, 8, 10.429),
    (13_993_776, 5_101_456, 4, 9.140),
    (10_355_420, 8_416_900, 8, 8.369),
    (8_416_900, 36_096, 4, 11.001),
    (36_096, 10_716_796, 8, 13.855),
    (10_716_796, 12_316_500, 4, 9.253),
    (12_316_504, 3_687_716, 4, 11.685),
    (14_138_472, 4_540_664, 4, 12.077),
    (4_669_072, 1_785_684, 4, 9.887),
    (1_785_684, 12_023_104, 4, 10.446),
    (16_478_984, 14_532_308, 8, 10.764),
    (14_532_308, 7_683_748, 12, 12.730),
    (7_683_760, 9_923_956, 8, 7.154),
    (2_142_388, 4_764_620, 4, 8.019),
    (15_315_688, 7_985_308, 4, 11.762),
    (6_955_124, 694_232, 4, 10.808),
    (1_761_364, 1_244_892, 4, 5.769),
    (1_244_892, 13_764_784, 16, 11.639),
    (18_144, 9_465_540, 8, 10.704),
    (1_193_588, 7_345_944, 4, 11.001),
    (6_283_568, 15_694_516, 4, 10.086),
    (15_694_516, 1_465_616, 4, 10.509),
    (1_465_712, 982_132, 4, 5.084),
    (4_577_032, 5_207_124, 4, 6.202),
    (5_207_280, 11_960_624, 4, 10.714),
    (11_960_624, 3_337_876, 4, 13.071),
    (7_661_700, 8_029_924, 4, 7.797),
    (8_029_924, 14_022_508, 8, 12.284),
    (16_469_180, 9_537_852, 12, 8.033),
    (9_537_852, 10_213_684, 4, 7.776),
    (10_213_684, 14_734_020, 8, 12.145),
    (17_091_356, 12_692_324, 4, 6.078),
    (12_692_388, 17_029_564, 16, 8.729),
    (17_029_528, 11_352_540, 8, 8.482),
    (9_538_248, 17_422_252, 20, 10.430),
    (17_422_500, 14_983_684, 4, 9.242),
    (7_684_828, 12_094_348, 4, 9.116),
    (12_094_368, 14_652_996, 8, 7.247),
];

/// Mean time of the reads, over the moments of a turn at which each may begin.
fn far_reads_ms(file: &DeviceFile, sectors: impl Fn(u64) -> bool) -> (f64, f64) {
    const MOMENTS: u64 = 64;
    const TURN_NS: u64 = 60_000_000_000 / 10_025;
    let (mut published, mut model, mut reads) = (0.0, 0.0, 0.0);
    for &(from, to, size, ms) in FAR_READS.iter().filter(|read| sectors(read.2)) {
        published += ms;
        reads += 1.0;
        for moment in 0..MOMENTS {
            let mut disk = file.build();
            disk.read(Time(0), &request(from, size << 9));
            let begins = Time(1_000_000_000 + moment * TURN_NS / MOMENTS);
            let done = disk.read(begins, &request(to, size << 9));
            model += (done - begins) as f64 / 1e6 / MOMENTS as f64;
        }
    }
    (published / reads, model / reads)
}

#[test]
fn reads_of_a_cheetah_9lp() {
    let file = cheetah();
    let far = |what: &str, sectors: &dyn Fn(u64) -> bool| {
        let (published, model) = far_reads_ms(&file, sectors);
        Row::new(what, published, model)
    };
    // The drive's time for a read that continues the one before: most often 0.487 ms for 4 sectors,
    // 0.896 ms for 8.
    let next = |sectors: u64, ms| {
        let measured = closed_loop(&file, 1, sectors << 9, 200, Places::sequential());
        Row::new(format!("next {sectors} sectors, ms"), ms, measured.latency_us() / 1e3)
    };
    let rows = [
        far("45 reads elsewhere, mean, ms", &|_| true),
        far("those of 4 sectors", &|sectors| sectors == 4),
        far("those of 8 sectors", &|sectors| sectors == 8),
        next(4, 0.487),
        next(8, 0.896),
    ];
    insta::assert_snapshot!(hold(&rows));
}

/// The Micron 9100 MAX 2.4 TB: 32 channels of its controller, eight dies each, 750,000 IOPS and
/// 3,000 MB/s by its data sheet; the page time is fitted to its 107.7 us at depth 1.
fn micron_9100() -> DeviceFile {
    let mut file = preset("nvme-datacenter");
    let Parameters::Nvme(nvme) = &mut file.device else { panic!("it is NVMe") };
    nvme.command_interval_ns = 1_333;
    nvme.link_bytes_per_s = 3_000_000_000.try_into().expect("not 0");
    nvme.flash.channels = 32.try_into().expect("not 0");
    nvme.flash.dies_per_channel = 8.try_into().expect("not 0");
    nvme.flash.page_read_ns = 80_800;
    file
}

/// fio's means for random reads of 4 KiB, in microseconds, and thousands of reads a second, at depths 1
/// and 16 (`AnandTech`, review 11209, April 2017, page 4). Depth 1 is fitted, depth 16 predicted.
#[test]
fn random_reads_of_three_ssds() {
    let drives = [
        ("Intel P4800X", preset("nvme-optane"), [(1, 8.9, 108.3), (16, 25.5, 584.8)]),
        ("Intel P3700", preset("nvme-datacenter"), [(1, 77.9, 12.8), (16, 93.9, 167.2)]),
        ("Micron 9100 MAX", micron_9100(), [(1, 107.7, 9.2), (16, 116.2, 135.7)]),
    ];
    let mut rows = Vec::new();
    for (drive, file, published) in &drives {
        for &(depth, us, thousands) in published {
            let measured: Measured =
                closed_loop(file, depth, 4096, 40_000, Places::random(SPAN_SECTORS));
            rows.push(Row::new(format!("{drive}, depth {depth}, us"), us, measured.latency_us()));
            let iops = measured.iops() / 1e3;
            rows.push(Row::new(format!("{drive}, depth {depth}, thousand IOPS"), thousands, iops));
        }
    }
    insta::assert_snapshot!(hold(&rows));
}
