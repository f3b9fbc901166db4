//! One HTML file with everything in it: no script, no request, light and dark, on paper too.

mod basis;
mod causes;
mod charts;
mod corpus;
mod fleet;
mod overview;
mod sweep;
mod verdict;

use analysis::explain::Explanation;
use analysis::result::ReplayReport;
use analysis::verify::CaptureVerify;
use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use traces::capture::{Losses, Severity};

use crate::chart::{self, Figure};
use crate::figures::{Row, Section, Trend, sections};
use crate::number::{count, signed_percent};
use crate::words::{self, Outcome};

use basis::Basis;
pub use corpus::corpus;
use corpus::outcome_of;
pub use fleet::fleet;
pub use sweep::sweep;

const STYLE: &str = include_str!("style.css");

/// Where a part stands on a page: what its names begin with, and how deep its headings are.
#[derive(Clone, Debug)]
struct Place {
    prefix: String,
    is_below_source: bool,
}

impl Place {
    /// On a page of its own.
    fn alone() -> Self {
        Self { prefix: String::new(), is_below_source: false }
    }

    /// In the section of a source.
    fn of_source(number: usize) -> Self {
        Self { prefix: format!("s{number}-"), is_below_source: true }
    }

    fn id(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn heading(&self, name: &str, text: &str) -> Markup {
        let id = self.id(name);
        html! {
            @if self.is_below_source { h3 id=(id) { (text) } }
            @else { h2 id=(id) { (text) } }
        }
    }
}

/// The page of a source under one or more policies.
pub fn replay(report: &ReplayReport) -> String {
    let name = words::file_name(&report.source);
    let body = html! {
        header {
            h1 { (name) }
            @if let Some(headline) = words::headline(report) { p.lead { (headline) } }
            (trust(report))
        }
        main { (source_body(report, None, &Place::alone())) }
        (footer(&files_of(report)))
    };
    page(name, &body)
}

/// A whole document.
fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " \u{2013} rareplay" }
                link rel="icon" href="data:,";
                style { (PreEscaped(fonts())) (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    page.into_string() + "\n"
}

/// Charts, figures, causes and settings of a source.
fn source_body(report: &ReplayReport, explanation: Option<&Explanation>, place: &Place) -> Markup {
    let figures_drawn = chart::of_report(report);
    let (orders, others) = figures_drawn.split_first().expect("every report has its orders");
    html! {
        (charts::section(orders, place))
        (figures(report, place))
        @if let Some(explanation) = explanation { (causes::causes(explanation, place)) }
        @for figure in others { (charts::section(figure, place)) }
        (Basis::of(report).section(place))
    }
}

/// How far the figures can be trusted.
fn trust(report: &ReplayReport) -> Markup {
    html! {
        (checked(report.verify.as_ref()))
        (losses(&report.losses))
    }
}

/// The verify line, as the first thing a reader should know.
fn checked(verify: Option<&CaptureVerify>) -> Markup {
    let Some(verify) = verify else {
        return html! { p.outcome.neutral { (words::NOT_VERIFIED) } };
    };
    let (class, says) = match Outcome::of(verify) {
        Outcome::Exact => ("good", "\u{2713} Exact."),
        Outcome::OtherOrder => ("care", "Complete, in another order."),
        Outcome::Differs => ("bad", "\u{2717} Differs."),
    };
    html! {
        div.outcome.(class) {
            p { strong { (says) } " " (words::verify(verify)) }
            @if let Some(difference) = &verify.first_difference { p { (words::difference(difference)) } }
            @if let Some(unrecorded) = words::unrecorded_reads(verify) { p { (unrecorded) } }
            @if let Some(errors) = words::time_errors(verify) { p { (errors) } }
        }
    }
}

fn losses(losses: &Losses) -> Markup {
    html! {
        @for (kind, loss) in &losses.0 {
            @let (class, name) = match kind.severity() {
                Severity::Info => ("neutral", "Note"),
                Severity::Warning => ("care", "Warning"),
                Severity::DataLoss => ("bad", "Data loss"),
            };
            p.outcome.(class) {
                strong { (name) ": " } (kind.describe()) ": " (count(loss.count))
                " (first: " code { (loss.first) } ")"
            }
        }
    }
}

fn figures(report: &ReplayReport, place: &Place) -> Markup {
    let with_change = report.results.len() == 2;
    // Orders have a table of their own.
    let total = |row: &Row| !row.key.starts_with("folios.order_");
    html! {
        section aria-labelledby=(place.id("figures")) {
            (place.heading("figures", "Figures"))
            div.scroll tabindex="0" role="region" aria-label="Figures, as a table" {
                table {
                    thead {
                        tr {
                            th scope="col" { "" }
                            @for result in &report.results { th.policy scope="col" { (result.policy) } }
                            @if with_change { th scope="col" colspan="2" { "change" } }
                        }
                    }
                    @for section in sections(report) { (figure_group(&section, total, with_change)) }
                }
            }
        }
    }
}

fn figure_group(section: &Section, shown: impl Fn(&Row) -> bool, with_change: bool) -> Markup {
    html! {
        tbody {
            tr { th.group scope="rowgroup" colspan="5" { (section.title) } }
            @for row in section.rows.iter().filter(|row| shown(row)) {
                tr {
                    th scope="row" { (row.label) }
                    @for value in &row.values { td { (row.scale().show(*value)) } }
                    @if with_change { (change(row)) }
                }
            }
        }
    }
}

fn change(row: &Row) -> Markup {
    let class = match row.trend() {
        Trend::Better => "good",
        Trend::Worse => "bad",
        Trend::Neutral => "neutral",
    };
    let change = row.change();
    let changed = change.filter(|change| change.before != change.after);
    html! {
        @if let Some(change) = changed {
            td.(class) { (row.scale().show_difference(change.before, change.after)) }
            td.(class) { (change.percent.map(signed_percent).unwrap_or_default()) }
        } @else {
            td { "0" }
            td {}
        }
    }
}

/// The fonts of the charts, so that their texts are as wide as they were measured.
fn fonts() -> String {
    let face = |weight: u32, font: &[u8]| {
        let font = BASE64_STANDARD.encode(font);
        format!(
            "@font-face {{ font-family: Inter; font-weight: {weight}; \
             src: url(data:font/ttf;base64,{font}); }}\n"
        )
    };
    face(400, chart::REGULAR) + &face(600, chart::SEMI_BOLD)
}

/// What [`write_dir`](crate::write_dir) writes beside the page of a source.
fn files_of(report: &ReplayReport) -> Vec<String> {
    let of_figure = |figure: Figure| ["svg", "csv"].map(|kind| format!("{}.{kind}", figure.id()));
    let charts = chart::of_report(report).into_iter().flat_map(of_figure);
    charts.chain(["report.json".to_owned()]).collect()
}

/// Names what is written beside the page.
fn footer(files: &[String]) -> Markup {
    html! {
        footer {
            p { "rareplay " (env!("CARGO_PKG_VERSION")) }
            p.files {
                "Beside this page:"
                @for name in files { " " a href=(name) { (name) } }
            }
        }
    }
}
