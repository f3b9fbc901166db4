//! The committed JSON Schemas describe what is written.

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
