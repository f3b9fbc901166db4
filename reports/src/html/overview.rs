//! All sources of a report in one table.

use analysis::gate::SourceOutcome;
use analysis::report::{CorpusReport, SourceReport};
use analysis::result::{PolicyResult, ReplayReport};
use maud::{Markup, html};

use super::{Place, verdict};
use crate::number::{Unit, count, percent_change, signed_percent};
use crate::words::Outcome;

/// A figure of the overview: its name, what it counts, and where it stands in a result.
type Figure = (&'static str, Unit, fn(&PolicyResult) -> u64);

const FIGURES: [Figure; 4] = [
    ("folios", Unit::Count, |result| result.folios.total),
    ("device reads", Unit::Count, |result| result.device_reads.count),
    ("unused pages", Unit::Count, |result| result.pages.unused),
    ("elapsed (modelled)", Unit::Nanoseconds, |result| result.elapsed_ns),
];

/// One row per source, each with a link to its section.
pub(super) fn table(report: &CorpusReport) -> Markup {
    let mut replays = report.sources.iter().flat_map(|source| &source.replay);
    let is_pair = replays.all(|replay| replay.results.len() == 2);
    html! {
        div.scroll tabindex="0" role="region" aria-label="All sources, as a table" {
            table.dense {
                caption {
                    @if is_pair { "From the first policy to the second, and the change" }
                    @else { "Figures of the last policy" }
                }
                thead {
                    tr {
                        th scope="col" { "source" }
                        @if report.gate.is_some() { th scope="col" { "verdict" } }
                        th scope="col" { "replay" }
                        @for (name, ..) in FIGURES {
                            th scope="col" colspan=[is_pair.then_some("2")] { (name) }
                        }
                    }
                }
                tbody {
                    @for (number, source) in report.sources.iter().enumerate() {
                        (row(report, source, &Place::of_source(number), is_pair))
                    }
                }
            }
        }
    }
}

fn row(report: &CorpusReport, source: &SourceReport, place: &Place, is_pair: bool) -> Markup {
    let outcome = super::outcome_of(report, source);
    html! {
        tr {
            th scope="row" { a href={ "#" (place.id("source")) } { (source.key) } }
            @if report.gate.is_some() { (verdict_cell(outcome)) }
            @match &source.replay {
                Err(refusal) => { td colspan="9" { (refusal.reason) } }
                Ok(replay) => {
                    (check_cell(replay))
                    @for figure in FIGURES { (figure_cells(replay, figure, is_pair)) }
                }
            }
        }
    }
}

fn verdict_cell(outcome: Option<&SourceOutcome>) -> Markup {
    html! {
        @match outcome {
            Some(outcome) => { td.(verdict::class(outcome.verdict)) { (outcome.verdict.name()) } }
            None => { td {} }
        }
    }
}

fn check_cell(replay: &ReplayReport) -> Markup {
    html! {
        @match replay.verify.as_ref().map(Outcome::of) {
            Some(Outcome::Exact) => { td.good { "exact" } }
            Some(Outcome::OtherOrder) => { td { "complete" } }
            Some(Outcome::Differs) => { td.bad { "differs" } }
            None => { td { "described" } }
        }
    }
}

fn figure_cells(replay: &ReplayReport, (_, unit, value): Figure, is_pair: bool) -> Markup {
    let values: Vec<u64> = replay.results.iter().map(value).collect();
    let scale = unit.scale(values.iter().copied().max().unwrap_or(0));
    html! {
        @match values[..] {
            [before, after] if is_pair => {
                td { (scale.show(before)) " \u{2192} " (scale.show(after)) }
                (change_cell(before, after))
            }
            [.., last] => { td { (scale.show(last)) } }
            [] => { td {} }
        }
    }
}

fn change_cell(before: u64, after: u64) -> Markup {
    let class = match after.cmp(&before) {
        std::cmp::Ordering::Less => "good",
        std::cmp::Ordering::Equal => "same",
        std::cmp::Ordering::Greater => "bad",
    };
    let change = if before == after {
        "same".to_owned()
    } else {
        percent_change(before, after).map_or_else(|| format!("+{}", count(after)), signed_percent)
    };
    html! { td.(class) { (change) } }
}
