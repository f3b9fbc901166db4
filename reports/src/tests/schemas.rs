//! The committed JSON Schemas describe what is written.

use analysis::compare::Metric;
use analysis::fleet::{FleetOptions, FleetReport, Group, Row};
use serde_json::Value;

use super::sample;
use crate::json;

fn check(schema: &str, document: &str) -> Vec<String> {
    let schema: Value = serde_json::from_str(schema).expect("schemas are JSON");
    let validator = jsonschema::validator_for(&schema).expect("schemas are JSON Schemas");
    let document: Value = serde_json::from_str(document).expect("documents are JSON");
    validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

const REPLAY: &str = include_str!("../../schema/rareplay.replay-1.schema.json");
const VERIFY: &str = include_str!("../../schema/rareplay.verify-1.schema.json");
const SWEEP: &str = include_str!("../../schema/rareplay.sweep-1.schema.json");
const FLEET: &str = include_str!("../../schema/rareplay.fleet-1.schema.json");
const RESULT: &str = include_str!("../../schema/rareplay.result-1.schema.json");
const INSPECT: &str = include_str!("../../schema/rareplay.inspect-1.schema.json");

#[test]
fn documents_follow_their_schemas() {
    let illustrated = sample::illustrated(&["linux-6.18", "linux-6.1"]);
    for report in [sample::pair(), sample::several(), sample::workload(), illustrated] {
        assert_eq!(check(REPLAY, &json::replay(&report)), [""; 0]);
    }
    assert_eq!(check(VERIFY, &json::verify(&sample::verified())), [""; 0]);
    assert_eq!(check(VERIFY, &json::verify(&[])), [""; 0]);
    for report in [sample::swept(), sample::swept_devices()] {
        assert_eq!(check(SWEEP, &json::sweep(&report)), [""; 0]);
    }
    let part = sample::inspected_part();
    for report in [sample::inspected(), sample::inspected_block_only(), part] {
        assert_eq!(check(INSPECT, &json::inspect(&report)), [""; 0]);
    }
}

/// Two policies over two hosts, and a source without figures.
fn rows() -> Vec<Row> {
    let row = |host: &str, policy: &str, folios: i64| Row {
        source: format!("{host}.trace"),
        host: Some(host.to_owned()),
        policy: policy.to_owned(),
        fidelity: Some("exact".to_owned()),
        losses: vec!["unparsed".to_owned()],
        loss_counts: vec![2],
        loss_first: vec!["line 7".to_owned()],
        folios_by_order: vec![folios, 1],
        folios: Some(folios + 1),
        read_wait_ns: vec![0, 4096],
        read_wait_counts: vec![3, 1],
        ..Row::default()
    };
    let failed = Row {
        error: Some("cannot read web2.trace".to_owned()),
        error_kind: Some("bad-input".to_owned()),
        ..row("web2", "linux-6.18", 0)
    };
    vec![row("web1", "linux-6.18", 8), row("web1", "linux-7.3", 4), failed]
}

#[test]
fn documents_of_a_fleet_follow_their_schemas() {
    let options = FleetOptions { by: Group::Host, metric: Metric::Folios, first: None };
    let report = FleetReport::new("results", rows().into_iter(), &options);
    assert_eq!(report.policies[1].groups[0].worse_percent.map(f64::round), Some(-44.0));
    assert_eq!(check(FLEET, &json::fleet(&report)), [""; 0]);
    let line = json::results(&rows());
    assert_eq!(check(RESULT, &line), [""; 0]);
    assert!(line.starts_with("{\"schema\":\"rareplay.result/1\","), "{line}");
    assert!(!check(RESULT, &line.replace("\"folios\":", "\"folio\":")).is_empty());
}

#[test]
fn schemas_refuse_what_a_script_could_not_use() {
    let good = json::replay(&sample::pair());
    let renamed = good.replace("\"by_order\"", "\"orders\"");
    assert!(!check(REPLAY, &renamed).is_empty());
    let text_for_number = good.replace("\"elapsed_ns\": 251318400", "\"elapsed_ns\": \"0.25\"");
    assert!(!check(REPLAY, &text_for_number).is_empty());
    assert!(!check(VERIFY, &good).is_empty());
}

#[test]
fn the_schema_comes_first() {
    let documents = [
        json::replay(&sample::pair()),
        json::verify(&sample::verified()),
        json::inspect(&sample::inspected()),
        json::sweep(&sample::swept()),
    ];
    for document in documents {
        assert!(document.starts_with("{\n  \"schema\": \"rareplay."), "{document}");
    }
}
