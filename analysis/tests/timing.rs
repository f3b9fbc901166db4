//! Calibration and prediction against a device whose timing is known, see
//! `fixtures/law/README.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::calibrate::{CalibrateError, Calibration, calibrate};
use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::{Model, replay_one};
use analysis::timing::{TimingCheck, predict};
use replay::device::{DeviceFile, Parameters};
use replay::policy::Policy;
use traces::access::Source;

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
    source.name = name.to_owned();
    let policy = recover(&mut source).expect("the fixture tells its kernel");
    (source, policy)
}

fn calibration() -> Calibration {
    let sources = CALIBRATED_ON.map(|name| fixture(name).0);
    calibrate(&sources.each_ref()).expect("the fixtures have requests")
}

fn model() -> Model {
    Model::new("law", calibration().device)
}

fn check(name: &str, model: &Model) -> TimingCheck {
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
    assert!(fitted.curve.is_empty(), "a straight law was bent: {:?}", fitted.curve);
}

#[test]
fn unseen_workloads_and_settings_are_predicted_within_5_percent() {
    let model = model();
    for name in UNSEEN {
        let check = check(name, &model);
        let error = check.elapsed.error();
        assert!(error.abs() < 0.05, "{name}: elapsed time off by {:.1} %", error * 100.0);
        let error = check.request.error();
        assert!(error.abs() < 0.05, "{name}: request time off by {:.1} %", error * 100.0);
        let error = check.read_p99.error();
        assert!(error.abs() < 0.25, "{name}: read p99 off by {:.1} %", error * 100.0);
        assert!(check.utilisation > 0.9 && check.utilisation <= 1.0, "{}", check.utilisation);
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
    let mut last = traces::units::Time(0);
    recorded.reads.retain(|read| {
        let alone = read.issued >= last;
        last = if alone { read.completed.unwrap_or(last) } else { last };
        alone
    });
    let unknown = calibrate(&[&source]).expect("enough requests").report.unknown.join("\n");
    insta::assert_snapshot!(unknown);
}

#[test]
fn a_capture_without_requests_is_refused() {
    let (mut source, _) = fixture("seq1m_ra512");
    source.recorded.as_mut().expect("a capture").reads.clear();
    let error: CalibrateError = calibrate(&[&source]).expect_err("nothing to fit");
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
