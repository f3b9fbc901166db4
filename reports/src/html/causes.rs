//! Why two policies differ on a source.

use analysis::explain::{Divergence, Explanation};
use maud::{Markup, html};

use super::Place;
use crate::causes;
use crate::number::count;

/// Where the policies part, and what keeps folios small under each.
pub(super) fn causes(explanation: &Explanation, place: &Place) -> Markup {
    html! {
        section aria-labelledby=(place.id("causes")) {
            (place.heading("causes", "Causes"))
            @match &explanation.divergence {
                Some(divergence) => { (parting(explanation, divergence)) }
                None => { p { "The policies decide the same everywhere." } }
            }
            (table(explanation))
            ul { @for side in &explanation.sides { li { (causes::windows(side)) } } }
        }
    }
}

fn parting(explanation: &Explanation, divergence: &Divergence) -> Markup {
    let (sides, map) = (&explanation.sides, &divergence.map);
    html! {
        p { "The policies part at access " (causes::parts_at(divergence)) "." }
        p { "Before: " code { (divergence.state_before) } }
        ul { @for decided in causes::decisions(explanation, divergence) { li { (decided) } } }
        div.scroll tabindex="0" role="region" aria-label="Folios where the policies part" {
            pre {
                @for (side, line) in sides.iter().zip(&map.lines) {
                    (line) "  " (side.policy) "\n"
                }
            }
        }
        p.reading {
            "Folios from page " (map.first_page) " on: each page is the order of its folio, a dot is not "
            "cached."
        }
    }
}

fn table(explanation: &Explanation) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Causes of small folios, as a table" {
            table {
                caption { (causes::title(explanation)) ", by cause" }
                thead {
                    tr {
                        th scope="col" { "cause" }
                        @for side in &explanation.sides { th.policy scope="col" { (side.policy) } }
                    }
                }
                tbody {
                    @for row in causes::rows(explanation) {
                        tr {
                            th scope="row" { (row.label) }
                            @for pages in row.pages { td { (count(pages)) } }
                        }
                    }
                }
            }
        }
    }
}
