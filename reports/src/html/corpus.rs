//! The page of a report over one or many sources.

use analysis::gate::SourceOutcome;
use analysis::report::{CorpusReport, SourceReport};
use analysis::result::ReplayReport;
use maud::{Markup, html};

use super::{Place, charts, footer, overview, page, source_body, trust, verdict};
use crate::chart;
use crate::number::counted;
use crate::words;

/// The page: one source in full, or an overview of many and a section for each, folded.
pub fn corpus(report: &CorpusReport) -> String {
    match &report.sources[..] {
        [source] => single(report, source),
        _ => several(report),
    }
}

fn single(report: &CorpusReport, source: &SourceReport) -> String {
    let place = Place::alone();
    let lead = source.replay.as_ref().ok().and_then(words::headline);
    let body = html! {
        header {
            h1 { (words::file_name(&source.key)) }
            @if let Some(lead) = lead { p.lead { (lead) } }
        }
        main { (section(report, source, &place)) }
        (footer(&crate::corpus_files(report)))
    };
    page(words::file_name(&source.key), &body)
}

fn several(report: &CorpusReport) -> String {
    let replays: Vec<ReplayReport> =
        report.sources.iter().filter_map(|source| source.replay.clone().ok()).collect();
    let title = match &report.gate {
        Some(gate) => format!("{} against {}", gate.candidate, gate.baseline),
        None => counted(report.sources.len() as u64, "source", "sources"),
    };
    let dumbbell = chart::corpus(&replays);
    let body = html! {
        header {
            h1 { (title) }
            @if let Some(gate) = &report.gate { (verdict::banner(gate)) }
        }
        main {
            section aria-labelledby="overview" {
                h2 id="overview" { "All sources" }
                (overview::table(report))
            }
            @if let Some(figure) = &dumbbell { (charts::section(figure, &Place::alone())) }
            @for (number, source) in report.sources.iter().enumerate() {
                (folded(report, source, &Place::of_source(number)))
            }
        }
        (footer(&crate::corpus_files(report)))
    };
    page(&title, &body)
}

/// A source whose section opens on request, or when something in it is linked to.
fn folded(report: &CorpusReport, source: &SourceReport, place: &Place) -> Markup {
    let outcome = outcome_of(report, source);
    let headline = source.replay.as_ref().ok().and_then(words::headline);
    html! {
        details.source {
            summary {
                h2 { (source.key) }
                @if let Some(outcome) = outcome {
                    " " span.(verdict::class(outcome.verdict)) { (outcome.verdict.name()) }
                }
                @if let Some(headline) = headline { p { (headline) } }
            }
            div id=(place.id("source")) { (section(report, source, place)) }
        }
    }
}

fn section(report: &CorpusReport, source: &SourceReport, place: &Place) -> Markup {
    html! {
        @if let (Some(gate), Some(outcome)) = (&report.gate, outcome_of(report, source)) {
            (verdict::of_source(gate, outcome))
        }
        @match &source.replay {
            Ok(replay) => {
                (trust(replay))
                (source_body(replay, source.explanation.as_ref(), place))
            }
            Err(refusal) => { p.outcome.bad { (refusal.reason) } }
        }
    }
}

/// The gate's outcome of a source.
pub(super) fn outcome_of<'a>(
    report: &'a CorpusReport,
    source: &SourceReport,
) -> Option<&'a SourceOutcome> {
    let gate = report.gate.as_ref()?;
    gate.sources.iter().find(|outcome| outcome.source == source.key)
}
