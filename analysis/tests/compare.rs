//! Comparison of measured runs, and of a history of them.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::compare::{
    Budget, Check, Comparison, Figures, Measured, Metric, Nature, TestOptions, Verdict, compare,
    read_saved,
};
use analysis::history::History;
use analysis::stats::change_points;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

#[expect(clippy::cast_sign_loss, reason = "not below 0")]
fn recorded(metric: Metric, values: &[f64]) -> Measured {
    let run = |value: &f64| Figures {
        by_order: Vec::new(),
        values: BTreeMap::from([(metric, value.max(0.0).round() as u64)]),
    };
    Measured { nature: Nature::Recorded, runs: values.iter().map(run).collect() }
}

#[expect(clippy::unnecessary_wraps, reason = "what compare asks for")]
fn usual(metric: Metric, sampled: bool) -> Option<Budget> {
    Some(Budget::usual(metric, sampled))
}

fn compare_elapsed(baseline: &[f64], candidate: &[f64]) -> Check {
    let side = |values| recorded(Metric::Elapsed, values);
    let options = TestOptions::default();
    let Comparison { mut checks, .. } =
        compare("s", &side(baseline), &side(candidate), usual, &options);
    checks.remove(0)
}

/// Normal values by Box and Muller's method, in nanoseconds around 250 ms.
struct Runs(Pcg64);

impl Runs {
    fn draw(&mut self, runs: usize, shift_percent: f64, deviation_percent: f64) -> Vec<f64> {
        let one = |_| {
            let z = (-2.0 * self.uniform().ln()).sqrt()
                * (std::f64::consts::TAU * self.uniform()).cos();
            250e6 * (1.0 + shift_percent / 100.0 + z * deviation_percent / 100.0)
        };
        (0..runs).map(one).collect()
    }

    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }
}

/// Of so many pairs of samples, how many are called regressed.
fn regressed(pairs: usize, runs: usize, shift_percent: f64, deviation_percent: f64) -> usize {
    let mut source = Runs(Pcg64::seed_from_u64(7));
    let mut draw = |shift_percent| {
        recorded(Metric::Elapsed, &source.draw(runs, shift_percent, deviation_percent))
    };
    let budget = |metric, sampled| {
        Some(Budget { soft_percent: shift_percent / 5.0, ..Budget::usual(metric, sampled) })
    };
    let mut is_called = || {
        let (baseline, candidate) = (draw(0.0), draw(shift_percent));
        let compared = compare("s", &baseline, &candidate, budget, &TestOptions::default());
        compared.checks[0].verdict == Verdict::Regressed
    };
    (0..pairs).filter(|_| is_called()).count()
}

#[test]
fn equal_sides_are_rarely_called_regressed() {
    // Two-sided at 0.05 and without a floor, 5 of 200 in the bad direction are to be expected, and
    // 10 are alpha. Five runs a side have no p-value between 0.032 and 0.056.
    let cases = [(5, 1.0), (10, 2.0), (10, 6.0)];
    let found = cases.map(|(runs, deviation)| regressed(200, runs, 0.0, deviation));
    assert!(found.iter().all(|false_alarms| *false_alarms <= 10), "{found:?}");
    insta::assert_compact_debug_snapshot!(found, @"[3, 3, 3]");
}

#[test]
fn ten_runs_show_a_shift_of_five_percent() {
    // With a budget of 1 %; of 100 pairs, by the deviation of a run in percent.
    let found = [1.0, 2.0, 3.0, 6.0].map(|deviation| regressed(100, 10, 5.0, deviation));
    insta::assert_compact_debug_snapshot!(found, @"[100, 100, 93, 36]");
}

const QUIET: [f64; 5] = [250.1e6, 249.2e6, 251.3e6, 250.6e6, 248.9e6];

#[test]
fn a_small_shift_within_the_noise_is_no_regression() {
    // 1.4 % worse with a deviation of 6 %.
    let baseline: Vec<f64> = [-8.0, -6.5, -3.5, -1.0, 0.0, 1.5, 3.0, 5.5, 7.0, 8.5]
        .iter()
        .map(|percent| 250e6 * (1.0 + percent / 100.0))
        .collect();
    let candidate: Vec<f64> = baseline.iter().map(|value| value * 1.014).collect();
    let check = compare_elapsed(&baseline, &candidate);
    let sampled = check.sampled.expect("times are sampled");
    assert!((5.5..6.5).contains(&sampled.deviation_percent), "{sampled:?}");
    assert_eq!(check.verdict, Verdict::Inconclusive);
    assert!(sampled.runs_needed.is_some_and(|runs| runs > 10), "{sampled:?}");
}

#[test]
fn a_large_shift_beyond_the_noise_is_a_regression() {
    let slower: Vec<f64> = QUIET.iter().map(|value| value * 1.188).collect();
    let check = compare_elapsed(&QUIET, &slower);
    assert_eq!(check.verdict, Verdict::Regressed);
    let percent = check.change.and_then(|change| change.percent).expect("a percentage");
    assert!((percent - 18.8).abs() < 0.5, "{percent}");
    let faster: Vec<f64> = QUIET.iter().map(|value| value * 0.812).collect();
    assert_eq!(compare_elapsed(&QUIET, &faster).verdict, Verdict::Improved);
}

#[test]
fn a_significant_shift_below_the_floor_passes() {
    let slower: Vec<f64> = QUIET.iter().map(|value| value * 1.03).collect();
    let check = compare_elapsed(&QUIET, &slower);
    assert!(check.sampled.expect("sampled").p_adjusted < 0.01);
    assert_eq!(check.verdict, Verdict::Pass);
}

#[test]
fn too_few_runs_settle_nothing() {
    for runs in 1..=3 {
        let check = compare_elapsed(&QUIET[..runs], &QUIET[..runs]);
        let needed = check.sampled.expect("sampled").runs_needed;
        assert_eq!((check.verdict, needed), (Verdict::Inconclusive, Some(4)));
    }
}

#[test]
fn counts_are_exact_while_the_runs_of_a_side_agree() {
    let check = |baseline: &[f64], candidate: &[f64]| {
        let side = |values| recorded(Metric::DeviceReads, values);
        let options = TestOptions::default();
        compare("s", &side(baseline), &side(candidate), usual, &options).checks.remove(0)
    };
    let exact = check(&[1029.0], &[3327.0]);
    assert_eq!((exact.verdict, exact.sampled), (Verdict::Regressed, None));
    assert_eq!(check(&[1029.0; 3], &[1029.0; 2]).verdict, Verdict::Pass);
    let sampled = check(&[1029.0, 1030.0], &[3327.0, 3327.0]);
    assert_eq!(sampled.verdict, Verdict::Inconclusive);
}

#[test]
fn holm_counts_every_sampled_metric_of_a_source() {
    let side = |values: &[f64]| {
        let mut side = recorded(Metric::Elapsed, values);
        for run in &mut side.runs {
            let value = run.values[&Metric::Elapsed];
            run.values.insert(Metric::DeviceReadTimeP99, value);
        }
        side
    };
    let slower: Vec<f64> = QUIET.iter().map(|value| value * 1.188).collect();
    let compared = compare("s", &side(&QUIET), &side(&slower), usual, &TestOptions::default());
    for check in &compared.checks {
        let sampled = check.sampled.as_ref().expect("sampled");
        assert!((sampled.p_adjusted - 2.0 * sampled.p).abs() < 1e-12, "{sampled:?}");
    }
}

fn history_of(values: &[u64]) -> History {
    let mut history = History::default();
    for (at, value) in values.iter().enumerate() {
        let side = recorded(Metric::DeviceReads, &[*value as f64]);
        let checks = compare("s", &side, &side, usual, &TestOptions::default()).checks;
        history.add(&format!("v{at}"), &checks).expect("a label");
    }
    history
}

#[test]
fn a_history_keeps_what_changed_and_reads_back() {
    let history = history_of(&[1029, 1029, 3327]);
    insta::assert_snapshot!(history.text().replace('\t', " "), @r"
    # rareplay.history/1
    run v0
    s device_reads.count 1029
    run v1
    run v2
    s device_reads.count 3327
    ");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history.txt");
    history.write(&file).expect("written");
    assert_eq!(History::read(&file).expect("read"), history);
    assert_eq!(History::read(Path::new("/none")).expect("empty"), History::default());
    std::fs::write(&file, "# rareplay.history/1\nrun a\ns\tm\tmany\n").expect("written");
    let error = History::read(&file).expect_err("no value").to_string();
    assert!(error.ends_with(
        "history.txt:3: `s\tm\tmany` is neither `run LABEL` nor source, metric and value"
    ));
}

#[test]
fn a_second_run_of_a_label_replaces_the_first() {
    let mut history = history_of(&[1, 2]);
    history.add("v1", &[]).expect("a label");
    assert!(history.text().ends_with("run v1\ns\tdevice_reads.count\t-\n"), "{}", history.text());
    assert!(history.add("a\tb", &[]).is_err());
}

#[test]
fn a_step_in_a_noisy_series_is_found_where_it_is() {
    let mut runs = Runs(Pcg64::seed_from_u64(3));
    let series = [runs.draw(20, 0.0, 1.0), runs.draw(20, 5.0, 1.0), runs.draw(20, 4.9, 1.0)];
    let found = change_points(&series.concat(), 1.0);
    let places: Vec<usize> = found.iter().map(|(at, ..)| *at).collect();
    assert_eq!(places, [20]);
    assert!((found[0].2 / found[0].1 - 1.05).abs() < 0.01, "{found:?}");
    assert_eq!(change_points(&series.concat(), 10.0), []);
}

#[test]
fn a_series_without_a_change_has_rarely_one() {
    let mut runs = Runs(Pcg64::seed_from_u64(11));
    let with_change = |_: &usize| !change_points(&runs.draw(30, 0.0, 2.0), 0.0).is_empty();
    let false_alarms = (0..100).filter(with_change).count();
    assert!(false_alarms <= 9, "{false_alarms} of 100");
    assert_eq!(change_points(&[5.0; 50], 0.0), []);
    assert_eq!(change_points(&[1.0, 9.0], 0.0), []);
}

#[test]
fn changes_of_a_history_have_the_label_of_the_first_new_run() {
    let values = [[1029; 8], [3327; 8]].concat();
    let found = history_of(&values).change_points(1.0);
    insta::assert_debug_snapshot!(found);
}

#[test]
fn saved_results_of_another_schema_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("saved.json");
    let error = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let error = read_saved(&file).expect_err(text).to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    let texts = [
        r#"{"schema": "rareplay.replay/2"}"#,
        r#"{"schema": "rareplay.replay/1", "source": "a"}"#,
        "{",
    ];
    insta::assert_debug_snapshot!(texts.map(error));
}
