//! The gate through the library: verdicts, refusals, budgets, baselines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::compare::{Metric, Verdict};
use analysis::gate::{
    Budgets, Date, Entry, GateReport, MeasureOptions, Side, SourceFile, expand, judge, measure,
    read_saved_side, self_test, write_baseline,
};
use replay::policy::{self, Policy};

const MAINLINE: &str = "linux-6.18";
const ALIGNED: &str = "linux-7.3+align-async-window-v2";
const TODAY: Date = Date { year: 2026, month: 12, day: 1 };

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/corpus").join(name)
}

fn workloads(names: &[&str]) -> Vec<SourceFile> {
    let path = |name: &&str| corpus("workloads").join(format!("{name}.workload.toml"));
    expand(&names.iter().map(path).collect::<Vec<_>>()).expect("the corpus is there")
}

fn policies(names: &[&str]) -> Vec<Arc<dyn Policy>> {
    names.iter().map(|name| policy::parse(name).expect("a policy")).collect()
}

fn sides(sources: &[SourceFile], baseline: &str, candidate: &str) -> (Side, Side) {
    let policies = policies(&[baseline, candidate]);
    let mut sides = measure(sources, &policies, &MeasureOptions::default()).into_iter();
    (sides.next().expect("two"), sides.next().expect("two"))
}

fn gate(sources: &[SourceFile], baseline: &str, candidate: &str) -> GateReport {
    let (baseline, candidate) = sides(sources, baseline, candidate);
    judge(&baseline, &candidate, &Budgets::default())
}

/// Verdict and rounded change in percent of a metric of the first source.
fn found(report: &GateReport, metric: Metric) -> (Verdict, Option<f64>) {
    let check = report.checks.iter().find(|check| check.metric == metric).expect("the metric");
    (check.verdict, check.change.and_then(|change| change.percent).map(f64::round))
}

#[test]
fn mainline_fails_against_aligned_windows() {
    for name in ["seq1m_after4k_ms512", "seq1m_after4k_ms1024", "seq1m_after4k_ms2048"] {
        let report = gate(&workloads(&[name]), ALIGNED, MAINLINE);
        assert_eq!(report.verdict, Verdict::Regressed, "{name}");
        assert_eq!(found(&report, Metric::MeanOrder).0, Verdict::Regressed, "{name}");
        assert_eq!(found(&report, Metric::Folios).0, Verdict::Regressed, "{name}");
    }
    let report = gate(&workloads(&["seq1m_after4k_ms512"]), ALIGNED, MAINLINE);
    assert_eq!(found(&report, Metric::Folios), (Verdict::Regressed, Some(836.0)));
    assert_eq!(found(&report, Metric::DeviceReads), (Verdict::Regressed, Some(223.0)));
    let distance = report.sources[0].orders.distance.expect("folios");
    assert!((distance.signed() - 2.559).abs() < 0.001, "{distance:?}");
}

#[test]
fn aligned_windows_pass_against_mainline_with_the_improvement_shown() {
    let report = gate(&workloads(&["seq1m_after4k_ms512"]), MAINLINE, ALIGNED);
    assert_eq!(report.verdict, Verdict::Pass);
    assert_eq!(report.sources[0].verdict, Verdict::Improved);
    assert_eq!(found(&report, Metric::MeanOrder), (Verdict::Improved, Some(58.0)));
    assert_eq!(found(&report, Metric::DeviceReads), (Verdict::Improved, Some(-69.0)));
}

#[test]
fn rows_that_the_patch_leaves_alone_pass_both_ways() {
    let sources = workloads(&["seq1m_ms512", "seq64k_ms512", "rand4k", "rand64k"]);
    for (baseline, candidate) in [(MAINLINE, ALIGNED), (ALIGNED, MAINLINE)] {
        let report = gate(&sources, baseline, candidate);
        for source in &report.sources {
            let over: Vec<_> =
                report.checks_of(&source.source).filter(|c| !c.verdict.is_good()).collect();
            assert!(source.verdict.is_good(), "{}: {over:#?}", source.source);
        }
        assert_eq!(report.verdict, Verdict::Pass);
    }
}

#[test]
fn captures_carry_the_proof_of_their_replay() {
    let sources = expand(&[corpus("linux-6.18/mmapseq.ftrace.zst")]).expect("the corpus");
    let report = gate(&sources, MAINLINE, MAINLINE);
    assert_eq!(report.verdict, Verdict::Pass);
    let proof = report.sources[0].proof.as_ref().expect("a capture has one");
    assert!(proof.exact, "{proof:?}");
}

#[test]
fn a_baseline_is_what_was_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("baseline.toml");
    let sources = workloads(&["seq1m_ms512", "interleaved2"]);
    let (side, _) = sides(&sources, MAINLINE, MAINLINE);
    write_baseline(&side, &file).expect("written");
    let saved = read_saved_side(&file).expect("read");
    let report = judge(&saved, &side, &Budgets::default());
    assert_eq!(report.verdict, Verdict::Pass);
    assert!(report.checks.iter().all(|check| check.verdict == Verdict::Pass));
    for (name, entry) in &side.entries {
        let (saved, entry) = (saved.entries[name].as_ref(), entry.as_ref());
        assert_eq!(saved.expect("saved").measured, entry.expect("measured").measured);
    }
}

#[test]
fn what_is_missing_new_or_other_is_never_a_pass() {
    let (both, _) = sides(&workloads(&["seq1m_ms512", "rand4k"]), MAINLINE, MAINLINE);
    let (one, _) = sides(&workloads(&["seq1m_ms512"]), MAINLINE, MAINLINE);
    let judge = |a: &Side, b: &Side| judge(a, b, &Budgets::default()).verdict;
    assert_eq!(judge(&both, &one), Verdict::NotComparable);
    assert_eq!(judge(&one, &both), Verdict::BaselineMissing);
    let none = Side { name: String::new(), entries: BTreeMap::default() };
    assert_eq!(judge(&none, &none), Verdict::BadInput);

    let mut options = MeasureOptions::default();
    options.load.set = vec![("read_ahead_kb".to_owned(), "256".to_owned())];
    let other = measure(&workloads(&["seq1m_ms512"]), &policies(&[MAINLINE]), &options);
    assert_eq!(judge(&one, &other[0]), Verdict::NotComparable);

    let changed = |change: fn(&mut Entry)| {
        let mut side = one.clone();
        change(side.entries.values_mut().next().expect("one").as_mut().expect("measured"));
        side
    };
    let other_bytes = changed(|entry| entry.digest = Some("sha256:0".to_owned()));
    assert_eq!(judge(&other_bytes, &one), Verdict::NotComparable);
    let fewer_metrics = changed(|entry| {
        entry.measured.runs[0].values.remove(&Metric::DeviceReads);
    });
    assert_eq!(judge(&fewer_metrics, &one), Verdict::BaselineMissing);
    assert_eq!(judge(&one, &fewer_metrics), Verdict::NotComparable);
}

#[test]
fn a_folder_without_sources_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("README.md"), "").expect("written");
    let error = expand(&[folder.path().to_owned()]).expect_err("no source");
    assert!(error.to_string().starts_with("no capture and no workload description in "));
}

#[test]
fn names_do_not_depend_on_where_the_corpus_lies() {
    let names = |path: &str| -> Vec<String> {
        expand(&[corpus(path)]).expect("the corpus").into_iter().map(|file| file.key).collect()
    };
    assert!(names("").contains(&"linux-6.18/inter2.ftrace.zst".to_owned()));
    assert!(names("linux-6.18").contains(&"inter2.ftrace.zst".to_owned()));
    assert!(names("").iter().all(|name| !name.ends_with(".meta.toml")));
    assert!(names("workloads").contains(&"rand4k.workload.toml".to_owned()));
}

#[test]
fn a_planted_regression_is_caught_unless_budgets_let_it_pass() {
    let (side, _) = sides(&workloads(&["seq1m_ms512", "rand4k"]), MAINLINE, MAINLINE);
    let report = self_test(&side, &Budgets::default());
    assert_eq!((report.verdict, report.self_test), (Verdict::Regressed, true), "{report:#?}");
    let loose = "[default]\nsoft_percent = 1000";
    let report = self_test(&side, &Budgets::parse(loose, TODAY).expect("budgets"));
    assert_eq!(report.verdict, Verdict::BadInput);
    let note = "a planted regression of device_reads.count passed in seq1m_ms512.workload.toml";
    assert!(report.notes.iter().any(|found| found == note), "{:?}", report.notes);
}

const BUDGETS: &str = r#"
[default]
soft_percent = 1

[metric."device_reads.count"]
soft_percent = 5
floor = 16
hard = 4000

[metric."read_wait_ns.max"]
ignore = true
reason = "one read decides it"

[source."a.trace"]
soft_percent = 20
reason = "known"
expires = 2026-11-30

[source."b.trace".metric.elapsed_ns]
hard = 250
reason = "the limit"
expires = 2026-12-01
"#;

#[test]
fn special_budgets_replace_general_ones_until_they_expire() {
    let budgets = Budgets::parse(BUDGETS, TODAY).expect("budgets");
    let of = |source: &str, metric| budgets.of(source, metric, false);
    let reads = of("a.trace", Metric::DeviceReads).expect("judged");
    assert_eq!((reads.soft_percent, reads.floor, reads.hard), (5.0, 16.0, Some(4000.0)));
    // That of the source has expired.
    assert_eq!(of("a.trace", Metric::Folios).map(|budget| budget.soft_percent), Some(1.0));
    assert_eq!(of("a.trace", Metric::ReadWaitMax), None);
    let elapsed = of("b.trace", Metric::Elapsed).expect("judged");
    assert_eq!((elapsed.hard, elapsed.reason.as_deref()), (Some(250.0), Some("the limit")));
    let notes = budgets.notes(|source| source == "a.trace");
    insta::assert_debug_snapshot!(notes, @r#"
    [
        "budget [source.\"a.trace\"] expired on 2026-11-30 and is out of force",
        "no source is called \"b.trace\", but a budget is for it",
    ]
    "#);
}

#[test]
fn budgets_that_mean_nothing_are_refused() {
    let refused = [
        "[default]\nsoft_percent = -1",
        "[default]\nfloor = 1",
        "[metric.\"device_reads\"]\nfloor = 1",
        "[metric.elapsed_ns]\nignore = true",
        "[source.\"a\"]\nsoft_percent = 5",
        "[source.\"a\".metric.elapsed_ns]\nsoft_percent = 5\nreason = \" \"",
        "[metric.elapsed_ns]\nreason = \"x\"\nexpires = 12:00:00",
        "[statistics]\nalpha = 1.5",
        "[default]\nsoft = 1",
    ];
    let errors: Vec<String> = refused
        .iter()
        .map(|text| Budgets::parse(text, TODAY).expect_err(text).to_string())
        .map(|error| error.lines().last().unwrap_or_default().to_owned())
        .collect();
    insta::assert_debug_snapshot!(errors);
}

#[test]
fn a_hard_limit_fails_whatever_the_baseline() {
    let (side, _) = sides(&workloads(&["seq1m_ms512"]), MAINLINE, MAINLINE);
    let judge = |text: &str| judge(&side, &side, &Budgets::parse(text, TODAY).expect("budgets"));
    let limit = |reads: u64| format!("[metric.\"device_reads.count\"]\nhard = {reads}");
    assert_eq!(judge(&limit(1024)).verdict, Verdict::Pass);
    assert_eq!(judge(&limit(1023)).verdict, Verdict::Regressed);
}
