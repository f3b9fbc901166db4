//! Calibration and prediction against a device whose timing is known, see
//! `fixtures/law/README.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::calibrate::{CalibrateError, Calibration, Recording, calibrate};
use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::{Model, replay_one};
use analysis::timing::{DeviceUse, predict};
use analysis::verify::Timing;
use replay::device::{DeviceFile, Parameters};
use replay::policy::Policy;
use traces::access::{RecordedRead, Source};
use traces::units::{Sector, Time};

const LAW_FIXED_NS: f64 = 10_000_000.0;
const LAW_BYTE_PS: f64 = 60_000.0;
const LAW_PARALLEL: u64 = 2;
const CALIBRATED_ON: [&str; 3] = ["rand_ra128", "thr3_ra128", "seq1m_ra128"];
const UNSEEN: [&str; 4] = ["seq64k_ra128", "inter2_ra128", "seq1m_ra512", "seq64k_ra512"];

fn fixture(name: &str) -> (Source, Arc<dyn Policy>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/law");
    let path: PathBuf = folder.join(format!("{name}.ftrace.txt.zst"));
    let set = vec![("max_sectors_kb".to_owned(), "512".to_owned())];
    let options = LoadOptions { set, ..LoadOptions::default() };
    let mut source = load(&path, &options).expect("the fixture loads").source;
    name.clone_into(&mut source.name);
    let policy = recover(&mut source).expect("the fixture tells its kernel");
    (source, policy)
}

fn calibration() -> Calibration {
    let fixtures = CALIBRATED_ON.map(fixture);
    let recordings =
        fixtures.each_ref().map(|(source, policy)| Recording { source, policy: Some(&**policy) });
    calibrate(&recordings).expect("the fixtures have requests")
}

/// A source whose replays do not count.
fn requests_of(source: &Source) -> Recording<'_> {
    Recording { source, policy: None }
}

fn model() -> Model {
    Model::new("law", calibration().device)
}

fn check(name: &str, model: &Model) -> Timing {
    let (source, policy) = fixture(name);
    predict(&source, &*policy, model)
}

#[test]
fn the_law_is_recovered_within_5_percent() {
    let Parameters::Calibrated(fitted) = calibration().device.device else {
        panic!("calibrate gives a calibrated device");
    };
    let fixed = fitted.fixed_ns as f64 / LAW_FIXED_NS - 1.0;
    let byte = fitted.byte_ps as f64 / LAW_BYTE_PS - 1.0;
    assert!(fixed.abs() < 0.05, "fixed cost off by {:.1} %", fixed * 100.0);
    assert!(byte.abs() < 0.05, "cost per byte off by {:.1} %", byte * 100.0);
    assert_eq!(fitted.parallel.get(), LAW_PARALLEL);
    assert_eq!((fitted.discontiguous_ns, fitted.idle_ns, fitted.link_bytes_per_s), (0, 0, None));
    assert!(!fitted.together, "completions are reported one by one");
    assert!(fitted.curve.is_empty(), "a straight law was bent: {:?}", fitted.curve);
}

#[test]
fn unseen_workloads_and_settings_are_predicted_within_5_percent() {
    let model = model();
    for name in UNSEEN {
        let check = check(name, &model);
        let error = check.elapsed.error();
        assert!(error.abs() < 0.05, "{name}: elapsed time off by {:.1} %", error * 100.0);
        let error = check.device_read.error();
        assert!(error.abs() < 0.05, "{name}: request time off by {:.1} %", error * 100.0);
        let error = check.read_p99.error();
        assert!(error.abs() < 0.25, "{name}: read p99 off by {:.1} %", error * 100.0);
    }
}

#[test]
fn a_slower_device_is_not_predicted_by_the_law() {
    let mut model = model();
    let Parameters::Calibrated(fitted) = &mut model.device.device else { return };
    fitted.fixed_ns *= 2;
    assert!(check("seq64k_ra128", &model).elapsed.error() > 0.3);
}

#[test]
fn report_says_what_was_fitted_and_what_could_not_be() {
    let calibration = calibration();
    insta::assert_snapshot!(calibration.report);
}

#[test]
fn one_size_and_one_depth_are_reported_as_unknown() {
    let (mut source, _) = fixture("thr3_ra128");
    let recorded = source.recorded.as_mut().expect("a capture");
    recorded.reads.retain(|read| read.sectors == 128);
    let mut last = Time(0);
    recorded.reads.retain(|read| {
        let alone = read.issued >= last;
        last = if alone { read.completed.unwrap_or(last) } else { last };
        alone
    });
    let unknown =
        calibrate(&[requests_of(&source)]).expect("enough requests").report.unknown.join("\n");
    insta::assert_snapshot!(unknown);
}

#[test]
fn a_capture_without_requests_is_refused() {
    let (mut source, _) = fixture("seq1m_ra512");
    source.recorded.as_mut().expect("a capture").reads.clear();
    let error: CalibrateError = calibrate(&[requests_of(&source)]).expect_err("nothing to fit");
    insta::assert_snapshot!(error);
}

#[test]
fn the_file_says_the_same_as_the_fit() {
    let calibration = calibration();
    let text = calibration.to_toml().expect("a device is TOML");
    assert_eq!(DeviceFile::parse(&text, "fitted").expect("it reads back"), calibration.device);
}

/// Requests that no capture showed are counted, not passed over.
#[test]
fn extrapolation_is_counted() {
    let model = model();
    let seen = check("seq64k_ra128", &model);
    let larger = check("seq64k_ra512", &model);
    assert_eq!(seen.extrapolated, 0);
    assert!(larger.extrapolated > 0, "requests of 512 KiB were not seen");
}

#[test]
fn the_view_of_a_model_has_every_parameter() {
    let (source, policy) = fixture("seq1m_ra512");
    let model = Model::default();
    let view = model.view();
    assert_eq!(view.model, "nvme");
    for name in ["depth", "command_ns", "link_bytes_per_s", "page_read_ns", "copy_page_ns"] {
        assert!(view.parameters.iter().any(|(known, _)| known == name), "{name} is missing");
    }
    assert!(replay_one(&source, &*policy, &model).elapsed_ns > 0);
}

fn workload(name: &str) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/corpus/workloads");
    let path = folder.join(format!("{name}.workload.toml"));
    load(&path, &LoadOptions::default()).expect("the workload loads").source
}

fn elapsed_s(source: &Source, policy: &str, device: &str) -> f64 {
    let policy = replay::policy::parse(policy).expect("a policy");
    let model = Model::load(device).expect("a preset");
    replay_one(source, &*policy, &model).elapsed_ns as f64 / 1e9
}

/// Seed `align-async-window-v2`: 0.251 s before and 0.200 s after, to which two parameters of the
/// preset are fitted.
#[test]
fn align_v2_takes_the_published_times() {
    let source = workload("seq1m_after4k_ms512");
    let before = elapsed_s(&source, "linux-7.3", "nvme-qemu");
    let after = elapsed_s(&source, "align-async-window-v2", "nvme-qemu");
    assert!((before / 0.251 - 1.0).abs() < 0.02, "{before:.3} s before");
    assert!((after / 0.200 - 1.0).abs() < 0.02, "{after:.3} s after");
}

/// Seed `randread-readahead-disabled-rfc`: with readahead off, one request per read beats one per
/// page on a disk. The seek and the bytes are the same; each further page costs the drive a command.
#[test]
fn whole_requests_beat_single_pages_on_a_disk() {
    let source = workload("rand4k_128k_ra0");
    let policy = |name: &str| replay::policy::parse(name).expect("a policy");
    let model = Model::load("hdd").expect("a preset");
    let pages = replay_one(&source, &*policy("linux-7.3"), &model);
    let whole = replay_one(&source, &*policy("randread-readahead-disabled"), &model);
    assert_eq!(pages.device_reads.bytes, whole.device_reads.bytes);
    assert!(whole.elapsed_ns * 11 < pages.elapsed_ns * 10, "{whole:?} against {pages:?}");
    let requests = pages.device_reads.count - whole.device_reads.count;
    let saved_us = (pages.elapsed_ns - whole.elapsed_ns) / 1000 / requests;
    assert!((50..200).contains(&saved_us), "{saved_us} us per request saved");
}

/// Streams that share a device wait for each other, and the device does no more than it can.
#[test]
fn readers_share_a_device() {
    let text = |streams: usize| {
        let step = "read = \"random\", size = \"4K\", count = 500";
        let stream = |seed| format!("[[stream]]\nsteps = [{{ {step}, seed = {seed} }}]\n");
        format!("[file]\nsize = \"4G\"\n{}", (0..streams).map(stream).collect::<String>())
    };
    let readers = |streams| {
        let settings = traces::settings::Settings::default();
        let source = traces::workload::parse(&text(streams), "readers", &settings);
        source.expect("the workload is right")
    };
    let run = |streams, device: &str| {
        let source = readers(streams);
        let policy = replay::policy::parse("linux-7.3").expect("a policy");
        let model = Model::load(device).expect("a preset");
        model.run(&source, &*policy, &model.options()).1
    };
    let (one, four) = (run(1, "hdd"), run(4, "hdd"));
    assert!(four.elapsed_ns > one.elapsed_ns * 2, "a disk serves four readers no faster than one");
    assert!(four.utilisation() > 0.9 && four.utilisation() <= 1.0);
    assert!(four.depth_mean() > one.depth_mean());
    assert!(four.queue.depth_max <= 4);
    assert_eq!(four.streams.len(), 4);
    assert!(four.streams.iter().all(|stream| stream.reads == 500));
    assert_eq!(four.queue.requests, four.requests_completed);
    let usage = DeviceUse::new(&readers(4), &four);
    assert_eq!((usage.streams.len(), usage.depth_over_time.len()), (4, 100));
    let mean = usage.depth_over_time.iter().sum::<f64>() / 100.0;
    let expected = usage.depth_mean * usage.utilisation;
    assert!((mean / expected - 1.0).abs() < 0.01, "{mean} in slices against {expected}");
    let (one, four) = (run(1, "nvme"), run(4, "nvme"));
    assert!(four.elapsed_ns < one.elapsed_ns * 3 / 2, "flash serves four readers side by side");
}

/// Reads of several sizes, now and then two at once, on a device that takes 60 us to wake up and 0.4 us
/// per KiB, and reports completions when it has nothing left to do.
fn reported_together() -> Source {
    let (mut source, _) = fixture("seq1m_ra128");
    let recorded = source.recorded.as_mut().expect("a capture");
    recorded.reads.clear();
    let mut now = Time(1_000_000);
    for n in 0..600_u64 {
        let kib = [4, 16, 64, 128, 256][(n % 5) as usize];
        let second_kib = [None, Some(64), Some(8)][(n % 3) as usize];
        let service_ns = |kib: u64| kib * 400;
        let done = now + 60_000 + service_ns(kib) + second_kib.map_or(0, service_ns);
        let mut read = |issued: Time, kib: u64| {
            recorded.reads.push(RecordedRead {
                sector: Sector(n * 100_000 + (issued - now)),
                sectors: kib * 2,
                issued,
                completed: Some(done),
                target: None,
            });
        };
        read(now, kib);
        if let Some(kib) = second_kib {
            read(now + 20_000, kib);
        }
        now = done + 30_000;
    }
    source
}

#[test]
fn completions_reported_together_are_recovered() {
    let calibration = calibrate(&[requests_of(&reported_together())]).expect("enough requests");
    let Parameters::Calibrated(fitted) = calibration.device.device else {
        panic!("calibrate gives a calibrated device");
    };
    assert!(fitted.together, "{fitted:?}");
    let byte = fitted.byte_ps as f64 / (400_000.0 / 1024.0) - 1.0;
    assert!(byte.abs() < 0.05, "cost per byte off by {:.1} %", byte * 100.0);
    let idle = (fitted.idle_ns + fitted.fixed_ns + fitted.discontiguous_ns) as f64 / 60_000.0 - 1.0;
    assert!(idle.abs() < 0.05, "waking up off by {:.1} %: {fitted:?}", idle * 100.0);
    assert!(calibration.report.error < 0.02, "{}", calibration.report.error);
}
