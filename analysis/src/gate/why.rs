//! Why a source regressed, where both sides are policies.

use rayon::prelude::*;
use replay::policy::Policy;

use super::corpus::SourceFile;
use super::measure::{MeasureOptions, prepare};
use super::{GateReport, Refusal};
use crate::compare::Verdict;
use crate::explain::{Divergence, ExplainOptions, PolicySide, explain};
use crate::recover::recover;

/// Sources that are explained, in the order of their names: each takes two more replays.
const EXPLAINED_MAX: usize = 20;

/// Adds to every regressed source where the policies part first and what keeps folios small.
///
/// `sources` are those of the report, `baseline` and `candidate` the policies of its sides.
pub fn explain_regressions(
    report: &mut GateReport,
    sources: &[SourceFile],
    (baseline, candidate): (&dyn Policy, &dyn Policy),
    options: &MeasureOptions,
) {
    let mut regressed: Vec<_> =
        report.sources.iter_mut().filter(|source| source.verdict == Verdict::Regressed).collect();
    let left_out = regressed.len().saturating_sub(EXPLAINED_MAX);
    regressed.truncate(EXPLAINED_MAX);
    regressed.par_iter_mut().for_each(|outcome| {
        let file = sources.iter().find(|file| file.key == outcome.source);
        let why = file.map(|file| why(file, baseline, candidate, options));
        outcome.why = why.and_then(Result::ok).unwrap_or_default();
    });
    if left_out > 0 {
        let note = format!("{left_out} more regressed sources are not explained: `explain` does");
        report.notes.push(note);
    }
}

fn why(
    file: &SourceFile,
    baseline: &dyn Policy,
    candidate: &dyn Policy,
    options: &MeasureOptions,
) -> Result<Vec<String>, Refusal> {
    let mut source = prepare(&file.path, options)?.source;
    recover(&mut source);
    let Ok(explained) = explain(&source, baseline, candidate, ExplainOptions::default()) else {
        return Ok(Vec::new());
    };
    let divergence = explained.divergence.iter().flat_map(part);
    Ok(divergence.chain(explained.sides.iter().map(small_folios)).collect())
}

/// Where the policies part.
fn part(divergence: &Divergence) -> [String; 2] {
    let [from, to] = &divergence.decisions;
    let decided = |side: &crate::explain::DecisionView| match &side.rule {
        Some(rule) => format!("{} ({rule})", side.decision),
        None => side.decision.clone(),
    };
    [
        format!(
            "parts at access {}, {}: {}",
            divergence.access, divergence.access_is, divergence.state_before
        ),
        format!("baseline {}, candidate {}", decided(from), decided(to)),
    ]
}

/// Pages by what keeps their folios small, the most frequent cause first.
fn small_folios(side: &PolicySide) -> String {
    let mut causes: Vec<_> = side.causes.iter().collect();
    causes.sort_by_key(|(_, count)| std::cmp::Reverse(count.pages));
    let causes = causes.iter().filter(|(_, count)| count.pages > 0);
    let mut parts: Vec<String> =
        causes.map(|(cause, count)| format!("{} {}", count.pages, cause.describe())).collect();
    if parts.is_empty() {
        parts.push("none".to_owned());
    }
    format!("{}: pages in folios below the largest order: {}", side.policy, parts.join(", "))
}
