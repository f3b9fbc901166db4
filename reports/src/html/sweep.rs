//! The page of a sweep.

use analysis::sweep::{Advice, Doubt, SweepReport};
use maud::{Markup, html};

use super::{Basis, Place, charts, checked, footer, losses, page};
use crate::chart;
use crate::sweep::{Column, columns, remarks};
use crate::words;

/// The page: what to take and why, the chart, every point.
pub fn sweep(report: &SweepReport) -> String {
    let place = Place::alone();
    let name = words::file_name(&report.source);
    let figure = chart::of_sweep(report);
    let basis = Basis {
        source: &report.source,
        fidelity: report.fidelity,
        streams: &report.streams,
        settings: &report.settings,
        device: report.device.as_ref(),
    };
    let body = html! {
        header {
            h1 { (name) }
            p.lead { (lead(report)) }
            (checked(report.verify.as_ref()))
            (losses(&report.losses))
        }
        main {
            section aria-labelledby="answers" {
                (place.heading("answers", "What to take"))
                @for advice in &report.advice { (answer(report, advice)) }
                @for doubt in &report.doubts { (note(doubt)) }
            }
            (charts::section(&figure, &place))
            section aria-labelledby="points" {
                (place.heading("points", "Every point"))
                @for policy in 0..report.policies.len() { (points(report, policy)) }
            }
            (basis.section(&place))
        }
        (footer(&files(&figure)))
    };
    page(name, &body)
}

/// What was swept.
fn lead(report: &SweepReport) -> String {
    let axis = |axis: &analysis::sweep::Axis| {
        let values = axis.values.iter().map(|value| value.text.as_str());
        format!("{} {}", axis.key, values.collect::<Vec<_>>().join(", "))
    };
    let axes: Vec<_> = report.axes.iter().map(axis).collect();
    let policies = report.policies.join(" and ");
    format!("Replayed under {policies} with {}.", axes.join(", each with "))
}

fn answer(report: &SweepReport, advice: &Advice) -> Markup {
    html! {
        div.outcome.(if advice.point.is_some() { "good" } else { "neutral" }) {
            p {
                @if report.policies.len() > 1 { strong { (advice.policy) ": " } }
                (advice.reason.join(" "))
            }
        }
        @for doubt in &advice.doubts { (note(doubt)) }
    }
}

fn note(doubt: &Doubt) -> Markup {
    html! { p.outcome.care { strong { "Note: " } (doubt.text) } }
}

fn points(report: &SweepReport, policy: usize) -> Markup {
    let columns = columns(report, policy);
    let name = &report.policies[policy];
    let (swept, figures): (&[Column], &[Column]) = columns.split_at(report.axes.len());
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Every point under " (name) ", as a table" } {
            table.dense[columns.len() + 1 > charts::CELLS_DENSE] {
                caption { "Under " (name) }
                thead {
                    tr {
                        @for column in &columns { th scope="col" { (column.head) } }
                        th.detail scope="col" { "remarks" }
                    }
                }
                tbody {
                    @for place in 0..report.points.len() {
                        tr {
                            @for column in swept { th scope="row" { (column.cells[place]) } }
                            @for column in figures { td { (column.cells[place]) } }
                            td.detail { (remarks(report, policy, place)) }
                        }
                    }
                }
            }
        }
    }
}

/// What [`write_sweep`](crate::write_sweep) writes beside the page.
fn files(figure: &chart::Figure) -> Vec<String> {
    let chart = ["svg", "csv"].map(|kind| format!("{}.{kind}", figure.id()));
    chart.into_iter().chain(["sweep.json", "figures.csv"].map(str::to_owned)).collect()
}
