//! `explain`: the first divergence, a table of causes, where windows start.

use analysis::explain::{Divergence, Explanation, PolicySide};

use super::{BOLD, Style};
use crate::grid::{Cell, Grid};
use crate::number::count;

/// Why two policies differ on a source.
pub fn explain(explanation: &Explanation, style: &Style) -> String {
    let style = *style;
    let mut out = format!("{}\n", style.paint(&explanation.source, BOLD));
    match &explanation.divergence {
        None => out += "  The policies decide the same everywhere.\n",
        Some(divergence) => out += &diverging(divergence, &explanation.sides, style),
    }
    out.push('\n');
    out += &causes(explanation, style);
    out.push('\n');
    for side in &explanation.sides {
        out += &windows(side, style);
    }
    out
}

fn diverging(divergence: &Divergence, sides: &[PolicySide; 2], style: Style) -> String {
    let access = format!(
        "number {} of the source ({}), file {}",
        divergence.access, divergence.access_is, divergence.file
    );
    let mut out = style.labelled("parts at", &access);
    out += &style.labelled("before", &divergence.state_before);
    for (side, decided) in sides.iter().zip(&divergence.decisions) {
        let rule = decided.rule.as_ref().map_or(String::new(), |rule| format!(" ({rule})"));
        let text = format!("{}: {}{rule}", side.policy, decided.decision);
        out += &style.labelled("decides", &text);
    }
    out += &style.labelled("folio map", "a page is its folio's order, `.` is not cached");
    let width = sides.iter().map(|side| side.policy.len()).max().unwrap_or(0);
    for (side, line) in sides.iter().zip(&divergence.map.lines) {
        out += &format!("  {:width$}  {:>8} {line}\n", side.policy, divergence.map.first_page);
    }
    out
}

/// Pages below the largest order, by cause.
fn causes(explanation: &Explanation, style: Style) -> String {
    let [a, b] = &explanation.sides;
    let mut grid = Grid::new("lrr");
    let bold = |text: &str| Cell::painted(text, BOLD);
    let head = format!("Pages in folios below order {}", explanation.order_max);
    grid.push(vec![bold(&head), bold(&a.policy), bold(&b.policy)]);
    let mut known: Vec<_> = a.causes.keys().chain(b.causes.keys()).copied().collect();
    known.sort();
    known.dedup();
    for cause in known {
        let pages = |side: &PolicySide| side.causes.get(&cause).map_or(0, |c| c.pages);
        let name = format!("  {}", cause.describe());
        grid.push(vec![name.into(), count(pages(a)).into(), count(pages(b)).into()]);
    }
    let largest = format!("  none: order {}", explanation.order_max);
    grid.push(vec![largest.into(), count(a.pages_largest).into(), count(b.pages_largest).into()]);
    grid.render(style.colour)
}

fn windows(side: &PolicySide, style: Style) -> String {
    let total = side.windows;
    if total == 0 {
        return style.labelled("windows", &format!("{}: none on large folios", side.policy));
    }
    let starts = side
        .alignment
        .starts
        .iter()
        .take(4)
        .map(|(start, windows)| format!("{start} ({})", share(*windows, total)));
    let starts = starts.collect::<Vec<_>>().join(", ");
    let text = format!(
        "{}: {} windows; {} cut to end on a boundary; {} of {} pages or fewer, of {} at most; \
         starting at {starts} modulo {} pages",
        side.policy,
        count(total),
        share(side.windows_cut, total),
        share(side.windows_short, total),
        side.window_pages_max / 16,
        side.window_pages_max,
        side.alignment.modulus
    );
    style.labelled("windows", &text)
}

/// A share in percent, to a tenth.
fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}
