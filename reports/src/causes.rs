//! Why two policies differ, in rows and sentences that every format shows.

use analysis::explain::{Divergence, Explanation, PolicySide};

use crate::number::count;

/// Pages under both policies, by what keeps their folios small.
pub(crate) struct Row {
    /// The cause for people.
    pub(crate) label: String,
    /// The cause in data files.
    pub(crate) key: String,
    /// Pages under each policy.
    pub(crate) pages: [u64; 2],
}

/// Every cause that either policy has, and the pages that need none.
pub(crate) fn rows(explanation: &Explanation) -> Vec<Row> {
    let sides = &explanation.sides;
    let mut known: Vec<_> = sides.iter().flat_map(|side| side.causes.keys()).copied().collect();
    known.sort();
    known.dedup();
    let of_cause = |cause| {
        let pages = |side: &PolicySide| side.causes.get(&cause).map_or(0, |count| count.pages);
        let key = serde_json::to_value(cause).ok();
        Row {
            label: cause.describe().to_owned(),
            key: key.as_ref().and_then(|key| key.as_str()).unwrap_or_default().to_owned(),
            pages: [pages(&sides[0]), pages(&sides[1])],
        }
    };
    let mut rows: Vec<Row> = known.into_iter().map(of_cause).collect();
    rows.push(Row {
        label: format!("none: order {}", explanation.order_max),
        key: "none".to_owned(),
        pages: [sides[0].pages_largest, sides[1].pages_largest],
    });
    rows
}

/// What the rows count.
pub(crate) fn title(explanation: &Explanation) -> String {
    format!("Pages in folios below order {}", explanation.order_max)
}

/// The access at which the policies part.
pub(crate) fn parts_at(divergence: &Divergence) -> String {
    format!(
        "number {} of the source ({}), file {}",
        divergence.access, divergence.access_is, divergence.file
    )
}

/// What each policy decided there.
pub(crate) fn decisions(explanation: &Explanation, divergence: &Divergence) -> [String; 2] {
    [0, 1].map(|side| {
        let decided = &divergence.decisions[side];
        let rule = decided.rule.as_ref().map_or(String::new(), |rule| format!(" ({rule})"));
        format!("{}: {}{rule}", explanation.sides[side].policy, decided.decision)
    })
}

/// Sizes and starts of a policy's windows.
pub(crate) fn windows(side: &PolicySide) -> String {
    let total = side.windows;
    if total == 0 {
        return format!("{}: none on large folios", side.policy);
    }
    let starts = side
        .alignment
        .starts
        .iter()
        .take(4)
        .map(|(start, windows)| format!("{start} ({})", share(*windows, total)));
    let starts = starts.collect::<Vec<_>>().join(", ");
    format!(
        "{}: {} windows; {} cut to end on a boundary; {} of {} pages or fewer, of {} at most; \
         starting at {starts} modulo {} pages",
        side.policy,
        count(total),
        share(side.windows_cut, total),
        share(side.windows_short, total),
        side.window_pages_max / 16,
        side.window_pages_max,
        side.alignment.modulus
    )
}

/// A share in percent, to a tenth.
fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}
