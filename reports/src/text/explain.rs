//! `explain`: the first divergence, a table of causes, where windows start.

use analysis::explain::{Divergence, Explanation};

use super::{BOLD, Style};
use crate::causes;
use crate::grid::{Cell, Grid};
use crate::number::count;

/// Why two policies differ on a source.
pub fn explain(explanation: &Explanation, style: &Style) -> String {
    let style = *style;
    let mut out = format!("{}\n", style.paint(&explanation.source, BOLD));
    match &explanation.divergence {
        None => out += "  The policies decide the same everywhere.\n",
        Some(divergence) => out += &diverging(explanation, divergence, style),
    }
    out.push('\n');
    out += &causes_grid(explanation).render(style.colour);
    out.push('\n');
    for side in &explanation.sides {
        out += &style.labelled("windows", &causes::windows(side));
    }
    out
}

fn diverging(explanation: &Explanation, divergence: &Divergence, style: Style) -> String {
    let mut out = style.labelled("parts at", &causes::parts_at(divergence));
    out += &style.labelled("before", &divergence.state_before);
    for decided in causes::decisions(explanation, divergence) {
        out += &style.labelled("decides", &decided);
    }
    out += &style.labelled("folio map", "a page is its folio's order, `.` is not cached");
    let sides = &explanation.sides;
    let width = sides.iter().map(|side| side.policy.len()).max().unwrap_or(0);
    for (side, line) in sides.iter().zip(&divergence.map.lines) {
        out += &format!("  {:width$}  {:>8} {line}\n", side.policy, divergence.map.first_page);
    }
    out
}

/// Pages below the largest order, by cause.
fn causes_grid(explanation: &Explanation) -> Grid {
    let [a, b] = &explanation.sides;
    let mut grid = Grid::new("lrr");
    let bold = |text: &str| Cell::painted(text, BOLD);
    grid.push(vec![bold(&causes::title(explanation)), bold(&a.policy), bold(&b.policy)]);
    for row in causes::rows(explanation) {
        let pages = row.pages.map(|pages| Cell::from(count(pages)));
        grid.push(std::iter::once(format!("  {}", row.label).into()).chain(pages).collect());
    }
    grid
}
