//! Charts of the page, each with its figures as a table below.

use maud::{Markup, PreEscaped, html};

use super::Place;
use crate::chart::{Figure, Table, TableRow};

/// A chart, how it is read, and its figures.
pub(super) fn section(figure: &Figure, place: &Place) -> Markup {
    let parts = figure.parts(&place.prefix);
    html! {
        section.chart aria-labelledby=(place.id(figure.id())) {
            (place.heading(figure.id(), figure.title()))
            figure {
                div.legend { (PreEscaped(&parts.legend)) }
                div.charts { @for panel in &parts.panels { (PreEscaped(panel)) } }
                figcaption { (figure.reading()) }
            }
            div.scroll tabindex="0" role="region" aria-label={ (figure.title()) ", as a table" } {
                (table(figure.table()))
            }
        }
    }
}

/// Cells of a row above which a table is set smaller, to fit a page.
pub(super) const CELLS_DENSE: usize = 9;

fn table(table: &Table) -> Markup {
    let several = table.columns.len() > 1;
    let is_wide = table.groups.len() * table.columns.len() > CELLS_DENSE;
    html! {
        table.dense[is_wide] {
            caption { (table.caption) }
            thead {
                tr {
                    th scope="col" rowspan=[several.then_some("2")] { (table.head) }
                    @for group in &table.groups {
                        th.policy scope="colgroup" colspan=(table.columns.len()) { (group) }
                    }
                }
                @if several {
                    tr {
                        @for _ in &table.groups {
                            @for column in &table.columns { th scope="col" { (column) } }
                        }
                    }
                }
            }
            tbody { @for row in &table.rows { (table_row(row)) } }
        }
    }
}

fn table_row(row: &TableRow) -> Markup {
    html! {
        tr.total[row.total] {
            th scope="row" { (row.name) }
            @for cell in &row.cells { td { (cell) } }
        }
    }
}
