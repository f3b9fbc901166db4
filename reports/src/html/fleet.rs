//! The page of a fleet's results.

use analysis::fleet::{FleetReport, PolicyTally};
use analysis::gate::{GateReport, SourceOutcome};
use maud::{Markup, html};

use super::{footer, page, verdict};
use crate::fleet::{Table, distributions, groups, left_out, overview};
use crate::number::counted;

/// The page: the verdict where there is one, then every policy by group and over the sources.
pub fn fleet(report: &FleetReport, gate: Option<&GateReport>) -> String {
    let title = match gate {
        Some(gate) => format!("{} against {}", gate.candidate, gate.baseline),
        None => report.results.clone(),
    };
    let body = html! {
        header {
            h1 { (title) }
            @if let Some(gate) = gate { (verdict::banner(gate)) }
            @for (label, text) in overview(report) { p { strong { (label) ": " } (text) } }
        }
        main {
            @for (number, tally) in report.policies.iter().enumerate() {
                (policy(report, tally, number))
            }
            @if let Some(gate) = gate { (judged(gate)) }
            @if !report.failed.is_empty() { (failed(report)) }
        }
        (footer(&crate::fleet_files(gate)))
    };
    page(&title, &body)
}

fn policy(report: &FleetReport, tally: &PolicyTally, number: usize) -> Markup {
    let id = format!("policy{number}");
    let by = format!("{} by {}, the worst by {} first", tally.policy, report.by, report.metric);
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (tally.policy) }
            (table(&groups(report, tally), &by))
            @if let Some(more) = left_out(report) { p { (more) } }
            @if let Some(over) = distributions(tally) {
                (table(&over, &format!("{}: values that so many percent of the sources do not exceed", tally.policy)))
            }
        }
    }
}

fn table(table: &Table, caption: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table.dense {
                caption { (caption) }
                thead { tr { @for head in &table.heads { th scope="col" { (head) } } } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the gate makes of each source or group that is no plain pass.
fn judged(gate: &GateReport) -> Markup {
    let is_plain = |outcome: &&SourceOutcome| outcome.verdict == analysis::compare::Verdict::Pass;
    let (plain, notable): (Vec<_>, Vec<_>) = gate.sources.iter().partition(is_plain);
    html! {
        section aria-labelledby="judged" {
            h2 id="judged" { "What changed" }
            p { (counted(plain.len() as u64, "passes", "pass")) " without a change." }
            @for outcome in notable {
                details {
                    summary {
                        (outcome.source) " "
                        span.(verdict::class(outcome.verdict)) { (outcome.verdict.name()) }
                    }
                    (verdict::of_source(gate, outcome))
                }
            }
        }
    }
}

fn failed(report: &FleetReport) -> Markup {
    html! {
        section aria-labelledby="failed" {
            h2 id="failed" { "Sources without figures" }
            div.scroll tabindex="0" role="region" aria-label="Sources without figures, as a table" {
                table.words {
                    thead { tr { @for head in ["source", "kind", "reason"] { th scope="col" { (head) } } } }
                    tbody {
                        @for failed in &report.failed {
                            tr { th scope="row" { (failed.source) } td { (failed.kind) } td { (failed.reason) } }
                        }
                    }
                }
            }
        }
    }
}
