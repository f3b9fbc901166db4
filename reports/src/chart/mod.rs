//! Charts: one module per chart over one shared style.
//!
//! Each chart is a function from a result to a [`Figure`]: an SVG document that
//! stands on its own (real text, no external reference, light and dark by the
//! reader's preference, a title and a description for screen readers, a caption
//! with source, settings and fidelity), the same as PNG, and the figures it
//! shows as a table and as CSV. The same result gives the same bytes. Only this
//! module knows of plotters.

#![expect(
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "counts of rows, lines and pixels are small, and no figure is negative"
)]

mod axis;
mod bars;
mod canvas;
mod corpus;
mod figure;
mod heat;
mod legend;
mod map;
mod orders;
mod plot;
mod png;
mod ramp;
mod raster;
mod sizes;
mod style;
mod svg;
mod sweep;
mod table;
mod waits;
mod waste;

use analysis::result::ReplayReport;

pub use corpus::corpus;
pub use figure::Figure;
pub(crate) use style::{REGULAR, SEMI_BOLD};
pub use sweep::of_sweep;
pub(crate) use table::{Table, TableRow};

/// All charts of a source, in the order in which they are read. Without pictures in the report, only
/// those of figures.
pub fn of_report(report: &ReplayReport) -> Vec<Figure> {
    let pictures = report.pictures.as_ref();
    let detailed = |chart: fn(&ReplayReport, &analysis::picture::Pictures) -> Figure| {
        pictures.map(|pictures| chart(report, pictures))
    };
    [
        Some(orders::figure(report)),
        detailed(map::figure),
        pictures.and_then(|pictures| ramp::figure(report, pictures)),
        detailed(raster::figure),
        Some(sizes::figure(report)),
        Some(waits::figure(report)),
        pictures.and_then(|pictures| heat::figure(report, pictures)),
        Some(waste::figure(report)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
