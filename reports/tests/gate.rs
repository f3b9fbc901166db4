//! A hand-made gate in every format.

use std::collections::BTreeMap;

use analysis::compare::{Figures, Measured, Metric, Nature, Verdict};
use analysis::gate::{Budgets, Date, Entry, GateReport, Refusal, Side, judge, self_test};
use analysis::history::ChangePoint;

use reports::gate::{csv, json, junit, ktap, mail, markdown, text, verdict_file};
use reports::text::Style;
use traces::capture::{LossKind, Losses};

fn run(by_order: &[u64], values: &[(Metric, u64)]) -> Figures {
    Figures { by_order: by_order.to_vec(), values: values.iter().copied().collect() }
}

fn entry(nature: Nature, runs: Vec<Figures>) -> Entry {
    Entry {
        digest: None,
        accesses: None,
        settings: BTreeMap::new(),
        measured: Measured { nature, runs },
        stream: None,
        proof: None,
        losses: Losses::default(),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of a side may be a refusal")]
fn replayed(by_order: &[u64], reads: u64, elapsed_ns: u64) -> Result<Entry, Refusal> {
    let folios = by_order.iter().sum();
    let values = [
        (Metric::Folios, folios),
        (Metric::DeviceReads, reads),
        (Metric::DeviceReadBytes, 512 << 20),
        (Metric::Elapsed, elapsed_ns),
    ];
    Ok(entry(Nature::Replayed, vec![run(by_order, &values)]))
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of a side may be a refusal")]
fn recorded(times_ms: &[u64]) -> Result<Entry, Refusal> {
    let one = |ms: &u64| run(&[4, 2], &[(Metric::Elapsed, ms * 1_000_000)]);
    Ok(entry(Nature::Recorded, times_ms.iter().map(one).collect()))
}

fn side(name: &str, entries: Vec<(&str, Result<Entry, Refusal>)>) -> Side {
    let entries = entries.into_iter().map(|(name, entry)| (name.to_owned(), entry)).collect();
    Side { name: name.to_owned(), entries }
}

fn lost() -> Result<Entry, Refusal> {
    let reason = "events lost by the tracer: 7 (first: CPU 0 at line 12)".to_owned();
    let mut losses = Losses::default();
    losses.add(LossKind::LostEvents, 7, || "CPU 0 at line 12".to_owned());
    Err(Refusal { verdict: Verdict::DataLoss, reason, losses })
}

const BUDGETS: &str = r#"
[metric.elapsed_ns]
soft_percent = 2
reason = "the model is that good"
"#;

fn sample() -> GateReport {
    let aligned = [4, 0, 5, 1, 2, 2, 4, 1021];
    let mainline = [516, 768, 3067, 1278, 2554, 1024, 514];
    let noisy = [100, 112, 95, 104, 99, 108, 101, 93];
    let baseline = side(
        "linux-7.3",
        vec![
            ("gone.trace", replayed(&[1], 1, 1)),
            ("lossy.trace", replayed(&[1], 1, 1)),
            ("noisy", recorded(&noisy)),
            ("same.trace", replayed(&[32, 0, 8], 16, 9_000_000)),
            ("seq1m.trace", replayed(&aligned, 1029, 200_000_000)),
            ("seq512k.trace", replayed(&mainline, 3327, 251_000_000)),
        ],
    );
    let candidate = side(
        "linux-7.4 #2",
        vec![
            ("lossy.trace", lost()),
            ("new|odd.trace", replayed(&[1], 1, 1)),
            ("noisy", recorded(&noisy.map(|ms| ms * 103 / 100))),
            ("same.trace", replayed(&[32, 0, 8], 16, 9_100_000)),
            ("seq1m.trace", replayed(&mainline, 3327, 251_000_000)),
            ("seq512k.trace", replayed(&aligned, 1029, 200_000_000)),
        ],
    );
    let today = Date { year: 2026, month: 12, day: 1 };
    let mut report =
        judge(&baseline, &candidate, &Budgets::parse(BUDGETS, today).expect("budgets"));
    report.change_points.push(ChangePoint {
        source: "seq1m.trace".to_owned(),
        metric: "device_reads.count".to_owned(),
        label: "v7.4-rc1".to_owned(),
        before: 1029.0,
        after: 3327.0,
        percent: Some(223.324),
    });
    report
}

#[test]
fn a_gate_on_a_terminal() {
    insta::assert_snapshot!(text(&sample(), &Style::default()));
}

#[test]
fn a_gate_as_json() {
    insta::assert_snapshot!(json(&sample()));
}

#[test]
fn a_gate_as_junit() {
    insta::assert_snapshot!(junit(&sample()));
}

#[test]
fn a_gate_as_ktap() {
    insta::assert_snapshot!(ktap(&sample()));
}

#[test]
fn a_gate_as_markdown() {
    insta::assert_snapshot!(markdown(&sample()));
}

#[test]
fn verdict_files_are_lines_for_a_shell() {
    insta::assert_snapshot!(verdict_file(&sample(), 10), @r"
    verdict=regressed
    exit_code=10
    worst_source=seq1m.trace
    worst_metric=folios.total
    ");
}

#[test]
fn a_gate_that_could_not_be_run_passes_in_no_format() {
    let reason = "no baseline at baseline.toml".to_owned();
    let report = GateReport::refused("baseline.toml", "p", Verdict::BaselineMissing, reason);
    insta::assert_snapshot!(ktap(&report), @r"
    KTAP version 1
    # gate baseline-missing: p against baseline.toml
    # 0 sources
    # no baseline at baseline.toml
    1..1
    not ok 1 gate is baseline-missing
    ");
    assert!(junit(&report).contains(r#"errors="1""#), "{}", junit(&report));
    assert!(text(&report, &Style::default()).starts_with("gate: baseline-missing"));
}

#[test]
fn json_follows_its_schema() {
    let schema = include_str!("../schema/rareplay.gate-1.schema.json");
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is a JSON Schema");
    let planted = self_test(&side("p", vec![("a", replayed(&[8], 4, 9))]), &Budgets::default());
    let refused = GateReport::refused("b", "p", Verdict::BadInput, "why".to_owned());
    for report in [sample(), planted, refused] {
        let document = serde_json::from_str(&json(&report)).expect("JSON");
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
    let passed_by_name = serde_json::json!({"schema": "rareplay.gate/1", "verdict": "passed"});
    assert!(!validator.is_valid(&passed_by_name));
}

#[test]
fn comments_stay_below_64_kib() {
    let name = |n: u64| format!("{}/{n:04}.trace", "long".repeat(20));
    let of = |reads: u64| Side {
        name: "p".to_owned(),
        entries: (0..1000).map(|n| (name(n), replayed(&[8, 8], reads, 1))).collect(),
    };
    let report = judge(&of(100), &of(200), &Budgets::default());
    let comment = markdown(&report);
    assert!(comment.len() < 64 * 1024, "{}", comment.len());
    assert!(comment.contains("sources left out of this comment"), "{comment}");
    let passed = markdown(&judge(&of(100), &of(100), &Budgets::default()));
    assert!(passed.len() < 64 * 1024 && passed.contains("1000 sources left out"));
}

#[test]
fn both_sides_as_csv() {
    insta::assert_snapshot!(csv(&sample()));
}

#[test]
fn both_sides_in_a_mail() {
    let mail = mail(&sample());
    for line in mail.lines() {
        assert!(line.chars().count() <= 72 && line == line.trim_end(), "{line}");
    }
    insta::assert_snapshot!(mail);
}
