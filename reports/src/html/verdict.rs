//! What the gate makes of the figures: of all sources, and of one.

use analysis::compare::{Check, Verdict};
use analysis::gate::{GateReport, SourceOutcome};
use maud::{Markup, html};

use crate::gate::{allowed, change, counts, details, order_changes, side, sides, worst};

/// The class that colours a verdict.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass | Verdict::Improved => "good",
        Verdict::Changed | Verdict::Inconclusive => "care",
        _ => "bad",
    }
}

/// The verdict over all sources, with what a reader should know besides.
pub(super) fn banner(gate: &GateReport) -> Markup {
    html! {
        div.outcome.(class(gate.verdict)) {
            p { strong { "Verdict: " (gate.verdict.name()) "." } " " (sides(gate)) "; " (counts(gate)) "." }
            @if let Some(found) = &gate.worst { p { "Worst: " (worst(found)) "." } }
            @for note in &gate.notes { p { (note) } }
        }
    }
}

/// The judgement of one source: its verdict, and every check that is worth a line.
pub(super) fn of_source(gate: &GateReport, source: &SourceOutcome) -> Markup {
    let checks: Vec<&Check> = gate.checks_of(&source.source).collect();
    html! {
        div.outcome.(class(source.verdict)) {
            p {
                strong { "Verdict: " (source.verdict.name()) "." }
                @if let Some(reason) = &source.reason { " " (reason) }
                @if source.verdict != Verdict::Pass {
                    @if let Some(orders) = order_changes(source) { " " (orders) "." }
                }
            }
        }
        @if !checks.is_empty() { (table(&checks)) }
    }
}

fn table(checks: &[&Check]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Checks, as a table" {
            table {
                caption { "Figures held against their budgets" }
                thead {
                    tr {
                        @for head in ["metric", "baseline", "candidate", "change", "allowed", "verdict"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody { @for check in checks { (row(check)) } }
            }
        }
    }
}

fn row(check: &Check) -> Markup {
    html! {
        tr {
            th scope="row" { code { (check.metric.key()) } }
            td { (side(check.metric, check.baseline)) }
            td { (side(check.metric, check.candidate)) }
            td { (change(check)) }
            td { (allowed(check)) }
            td.(class(check.verdict)) { (check.verdict.name()) }
        }
        @for detail in details(check) {
            tr { td {} td.detail colspan="5" { (detail) } }
        }
    }
}
