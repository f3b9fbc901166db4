//! Charts as SVG: one module per chart over one shared style.
//!
//! Each chart is a function from a result to an SVG document that stands on its
//! own: real text, no external reference, light and dark by the reader's
//! preference, a title and a description for screen readers, a caption with
//! policy, settings and fidelity. The same result gives the same bytes. Only
//! this module knows of plotters.

#![expect(clippy::cast_possible_wrap, reason = "counts of rows, lines and pixels are small")]

mod axis;
mod bars;
mod canvas;
mod frame;
mod orders;
mod sizes;
mod style;
mod svg;
mod waits;

pub use orders::orders;
pub(crate) use orders::panels as order_panels;
pub(crate) use sizes::panels as size_panels;
pub use sizes::sizes;
pub(crate) use waits::panel as wait_panel;
pub use waits::waits;
