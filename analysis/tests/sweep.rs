//! Sweeps over captures of the corpus: what they recommend, and that they say what they cannot.

use std::path::PathBuf;
use std::sync::Arc;

use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::Model;
use analysis::sweep::{Advice, Axes, DoubtKind, Goal, Shape, SweepOptions, SweepReport, sweep};
use analysis::verify::{Pair, verify};
use replay::policy::{self, Policy};
use traces::capture::Losses;

fn options(goal: Goal) -> SweepOptions {
    SweepOptions { model: Model::default(), goal, tolerance_percent: 2.0 }
}

fn run(
    source: &str,
    policies: &[&str],
    set: &[(&str, &str)],
    options: &SweepOptions,
) -> SweepReport {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../traces/corpus").join(source);
    let mut source = load(&path, &LoadOptions::default()).unwrap().source;
    let own = recover(&mut source);
    let named = policies.iter().map(|name| policy::parse(name).unwrap());
    let mut policies: Vec<Arc<dyn Policy>> = named.collect();
    policies.extend(own.filter(|_| policies.is_empty()));
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let axes = Axes::parse(&set).unwrap();
    sweep(&source, &axes, &policies, options, (None, Losses::default()), &|| ()).unwrap()
}

fn value(report: &SweepReport, advice: &Advice) -> u64 {
    report.points[advice.point.unwrap()].values[0].parse().unwrap()
}

fn has(doubts: &[analysis::sweep::Doubt], kind: DoubtKind) -> bool {
    doubts.iter().any(|doubt| doubt.kind == kind)
}

#[test]
fn small_sequential_reads_want_readahead() {
    let set = [("read_ahead_kb", "0,4..4096")];
    let report = run("linux-6.18/unaligned.ftrace.zst", &[], &set, &options(Goal::Elapsed));
    let advice = &report.advice[0];
    assert_eq!(advice.shape, Shape::MoreHelps, "{:?}", advice.reason);
    assert!(value(&report, advice) >= 128, "{:?}", advice.reason);
    let off = &report.points[0].results[0];
    let best = &report.points[advice.best].results[0];
    assert!(off.elapsed_ns > 2 * best.elapsed_ns);
    assert!(off.device_reads.count > 10 * best.device_reads.count);
    assert!(has(&report.doubts, DoubtKind::Uncalibrated));
    assert!(advice.knee.unwrap() < advice.best);
}

#[test]
fn random_touches_of_a_mapping_are_hurt_by_readahead() {
    let set = [("read_ahead_kb", "16..1024")];
    let report = run("linux-6.1/mmap_rand.ftrace.zst", &[], &set, &options(Goal::Elapsed));
    let advice = &report.advice[0];
    assert_eq!(advice.shape, Shape::MoreHurts, "{:?}", advice.reason);
    assert_eq!(value(&report, advice), 16);
    let text = advice.reason.join(" ");
    assert!(text.contains("More than enough hurts"), "{text}");
    assert!(text.contains("never uses"), "{text}");
    let waste: Vec<f64> = report.points.iter().map(|point| point.results[0].waste()).collect();
    assert!(waste.is_sorted(), "{waste:?}");
    assert!(has(&report.doubts, DoubtKind::MemoryNotModelled));
}

#[test]
fn random_reads_do_not_care() {
    let set = [("read_ahead_kb", "64..1024")];
    let source = "linux-6.18/fadvrand.ftrace.zst";
    let report = run(source, &[], &set, &options(Goal::Elapsed));
    let advice = &report.advice[0];
    assert_eq!(advice.shape, Shape::Flat, "{:?}", advice.reason);
    assert_eq!(value(&report, advice), 64);
    assert!(advice.reason.join(" ").contains("takes no part"), "{:?}", advice.reason);
}

/// Without a limit larger windows cost nothing; with one they push each other out.
#[test]
fn a_memory_limit_makes_large_windows_expensive() {
    let set = [("memory", "1M,4M,1G"), ("read_ahead_kb", "128,4096")];
    let source = "workloads/interleaved2.workload.toml";
    let report = run(source, &["linux-6.18"], &set, &options(Goal::Reads));
    let figures = |memory: &str, kb: &str| {
        let point = report.points.iter().find(|point| point.values == [memory, kb]).unwrap();
        &point.results[0]
    };
    assert!(figures("1M", "4096").waste() > 0.1);
    assert!(figures("1G", "4096").waste() < 0.05);
    let bytes = |memory, kb| figures(memory, kb).device_reads.bytes;
    assert!(bytes("1M", "4096") > 2 * bytes("1M", "128"));
    assert!(!has(&report.doubts, DoubtKind::MemoryNotModelled));
    let answers = report.advice.iter().map(|advice| {
        let given = advice.given.as_ref().unwrap();
        (given.value.as_str(), report.points[advice.point.unwrap()].values[1].as_str())
    });
    assert_eq!(answers.collect::<Vec<_>>(), [("1M", "128"), ("4M", "128"), ("1G", "4096")]);
}

#[test]
fn each_device_has_its_own_answer() {
    let set = [("device", "hdd,nvme"), ("read_ahead_kb", "64..2048")];
    let source = "linux-6.18/inter2fd.ftrace.zst";
    let report = run(source, &["linux-6.18", "linux-6.12"], &set, &options(Goal::Elapsed));
    assert_eq!(report.advice.len(), 4);
    assert_eq!(report.device, None);
    for advice in &report.advice {
        let device = advice.given.as_ref().unwrap().value.as_str();
        for place in [advice.point.unwrap(), advice.best] {
            assert_eq!(report.points[place].values[0], device);
        }
    }
    // The disk has to seek between the two streams.
    let seconds = |device: usize| report.points[device * 6].results[0].elapsed_ns;
    assert!(seconds(0) > 2 * seconds(1));
    let only = run(source, &[], &[("device", "hdd,nvme")], &options(Goal::Elapsed));
    assert_eq!(only.advice[0].point, None);
    assert!(only.advice[0].reason[0].starts_with("device nvme has the smallest"));
}

#[test]
fn what_the_source_came_with_is_marked_and_judged() {
    let set = [("read_ahead_kb", "64..512")];
    let source = "linux-6.18/seq1m_ra768.ftrace.zst";
    let report = run(source, &[], &set, &options(Goal::Elapsed));
    assert!(report.points.iter().all(|point| !point.is_current));
    let with = run(source, &[], &[("read_ahead_kb", "64..512,768")], &options(Goal::Elapsed));
    let current: Vec<_> = with.points.iter().filter(|point| point.is_current).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(current[0].values, ["768"]);
    // Under the capture's own value the sweep gives what was recorded.
    assert_eq!(current[0].results[0].folios.total, 848);
    assert_eq!(current[0].results[0].device_reads.count, 513);
}

#[test]
fn doubts_about_time_and_settings_are_told() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../traces/corpus/linux-6.18/unaligned.ftrace.zst");
    let mut source = load(&path, &LoadOptions::default()).unwrap().source;
    let own = recover(&mut source).unwrap();
    source.settings.max_sectors_kb.origin = traces::settings::Origin::Assumed;
    source.fidelity = traces::access::Fidelity::Insertions;
    let mut verified = verify(&source, &*own).unwrap();
    verified.timing.elapsed = Pair { recorded_ns: 100, predicted_ns: 150 };
    let known = (Some(verified), Losses::default());
    let axes = Axes::parse(&[("read_ahead_kb".into(), "64,128".into())]).unwrap();
    let report = sweep(&source, &axes, &[own], &options(Goal::Wait), known, &|| ()).unwrap();
    let text = |kind| &report.doubts.iter().find(|doubt| doubt.kind == kind).unwrap().text;
    assert!(text(DoubtKind::TimingError).contains("50 % more time"));
    assert!(text(DoubtKind::SettingAssumed).contains("max_sectors_kb=512 is assumed"));
    assert!(text(DoubtKind::StreamInferred).contains("inferred"));
}

#[test]
fn threads_do_not_show_in_the_result() {
    let in_pool = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let set = [("read_ahead_kb", "32..512"), ("max_sectors_kb", "128,512")];
        let source = "linux-6.18/inter2.ftrace.zst";
        let policies = ["linux-6.12", "linux-6.18"];
        pool.install(|| run(source, &policies, &set, &options(Goal::Elapsed)))
    };
    assert_eq!(in_pool(1), in_pool(3));
}

#[test]
fn axes_that_make_no_sweep_are_refused() {
    for (set, expected) in [
        (&[][..], "given are 0"),
        (&[("read_ahead_kb", "1,2"), ("read_ahead_kb", "4,8")], "read_ahead_kb twice"),
        (
            &[("memory", "1M,2M"), ("read_ahead_kb", "4,8"), ("max_sectors_kb", "4,8")],
            "given are 3",
        ),
    ] {
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let error = Axes::parse(&set).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
