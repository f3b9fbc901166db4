//! JSON documents: a `schema` first, fields in a fixed order, a line feed at the end.
//!
//! The shapes are described by the JSON Schemas in `reports/schema`. Fields may
//! be added to a version of a schema, never renamed or removed.

use analysis::explain::Explanation;
use analysis::fleet::{FleetReport, Row};
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

/// `rareplay.fleet/1`.
pub fn fleet(report: &FleetReport) -> String {
    document(report)
}

/// A line of `rareplay.result/1`: what all policies made of one source.
pub fn results(rows: &[Row]) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        schema: &'static str,
        source: &'a str,
        error: Option<&'a str>,
        results: &'a [Row],
    }
    let source = rows.first().map_or("", |row| &row.source);
    let error = rows.iter().find_map(|row| row.error.as_deref());
    let line = Line { schema: analysis::fleet::SCHEMA, source, error, results: rows };
    let text = serde_json::to_string(&line);
    text.expect("result structs have text keys and no writer that fails") + "\n"
}

fn document(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("result structs have text keys and no writer that fails") + "\n"
}
