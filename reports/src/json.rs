//! JSON documents: a `schema` first, fields in a fixed order, a line feed at the end.
//!
//! The shapes are described by the JSON Schemas in `reports/schema`. Fields may
//! be added to a version of a schema, never renamed or removed.

use analysis::explain::Explanation;
use analysis::inspect::InspectReport;
use analysis::result::ReplayReport;
use analysis::sweep::SweepReport;
use analysis::verify::CaptureVerify;
use serde::Serialize;

/// `rareplay.replay/1`.
pub fn replay(report: &ReplayReport) -> String {
    document(report)
}

/// `rareplay.inspect/1`.
pub fn inspect(report: &InspectReport) -> String {
    document(report)
}

/// `rareplay.explain/1`.
pub fn explain(explanation: &Explanation) -> String {
    document(explanation)
}

/// `rareplay.sweep/1`.
pub fn sweep(report: &SweepReport) -> String {
    document(report)
}

/// `rareplay.verify/1`.
pub fn verify(captures: &[CaptureVerify]) -> String {
    #[derive(Serialize)]
    struct Verify<'a> {
        schema: &'static str,
        captures: &'a [CaptureVerify],
    }
    document(&Verify { schema: "rareplay.verify/1", captures })
}

fn document(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("result structs have text keys and no writer that fails") + "\n"
}
