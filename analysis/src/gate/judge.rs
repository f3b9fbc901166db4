//! From two sides to a verdict.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use traces::capture::Losses;

use super::{Budgets, Entry, GateReport, Refusal, SCHEMA, Side, SideLosses, SourceOutcome, Worst};
use crate::compare::{Better, Check, Nature, OrderChange, Verdict, compare};

/// Compares every source of two sides.
pub fn judge(baseline: &Side, candidate: &Side, budgets: &Budgets) -> GateReport {
    let names: BTreeSet<&String> =
        baseline.entries.keys().chain(candidate.entries.keys()).collect();
    let names: Vec<&String> = names.into_iter().collect();
    let judged: Vec<(SourceOutcome, Vec<Check>)> =
        names.par_iter().map(|name| judge_source(name, baseline, candidate, budgets)).collect();
    let (sources, checks): (Vec<_>, Vec<_>) = judged.into_iter().unzip();
    let checks = checks.concat();
    let mut counts = BTreeMap::new();
    for source in &sources {
        *counts.entry(source.verdict).or_default() += 1;
    }
    let mut notes = budgets.notes(|name| names.iter().any(|known| *known == name));
    notes.extend(unproven(&sources));
    GateReport {
        schema: SCHEMA,
        verdict: roll_up(&sources),
        self_test: false,
        accepted: false,
        baseline: baseline.name.clone(),
        candidate: candidate.name.clone(),
        counts,
        worst: worst(&checks),
        notes,
        sources,
        checks,
        change_points: Vec::new(),
    }
}

/// Improvements and changes are passes of the gate; no source at all is none.
fn roll_up(sources: &[SourceOutcome]) -> Verdict {
    match sources.iter().map(|source| source.verdict).max() {
        None => Verdict::BadInput,
        Some(verdict) if verdict.is_good() => Verdict::Pass,
        Some(verdict) => verdict,
    }
}

fn unproven(sources: &[SourceOutcome]) -> impl Iterator<Item = String> {
    sources.iter().filter_map(|source| {
        let proof = source.proof.as_ref().filter(|proof| !proof.exact)?;
        Some(format!(
            "the replay of {} under its own {} gives {} of {} folios: its figures are as good",
            source.source, proof.policy, proof.folios_matched, proof.folios_recorded
        ))
    })
}

fn judge_source(
    name: &str,
    baseline: &Side,
    candidate: &Side,
    budgets: &Budgets,
) -> (SourceOutcome, Vec<Check>) {
    let mut outcome = SourceOutcome {
        source: name.to_owned(),
        verdict: Verdict::Pass,
        reason: None,
        stream: None,
        proof: None,
        orders: OrderChange::default(),
        why: Vec::new(),
        losses: side_losses(name, baseline, candidate),
    };
    let (from, to) = match pair(name, baseline, candidate) {
        Ok(pair) => pair,
        Err(refusal) => {
            outcome.verdict = refusal.verdict;
            outcome.reason = Some(refusal.reason);
            return (outcome, Vec::new());
        }
    };
    let budget = |metric, sampled| budgets.of(name, metric, sampled);
    let compared = compare(name, &from.measured, &to.measured, budget, budgets.test());
    outcome.stream = to.stream.or(from.stream);
    outcome.proof = to.proof.clone().or_else(|| from.proof.clone());
    outcome.orders = compared.orders;
    let worst = compared.checks.iter().map(|check| check.verdict).max();
    outcome.verdict = worst.unwrap_or(Verdict::BadInput);
    if worst.is_none() {
        outcome.reason = Some("no metric is left to judge".to_owned());
    }
    (outcome, compared.checks)
}

/// What the captures of a source lost, on either side.
fn side_losses(name: &str, baseline: &Side, candidate: &Side) -> SideLosses {
    let of_side = |side: &Side| match side.entries.get(name) {
        Some(Ok(entry)) => entry.losses.clone(),
        Some(Err(refusal)) => refusal.losses.clone(),
        None => Losses::default(),
    };
    SideLosses { baseline: of_side(baseline), candidate: of_side(candidate) }
}

/// The entries of a source on both sides, if they can be compared.
fn pair<'a>(
    name: &str,
    baseline: &'a Side,
    candidate: &'a Side,
) -> Result<(&'a Entry, &'a Entry), Refusal> {
    let refuse = |verdict, reason: String| Err(Refusal::new(verdict, reason));
    let Some(to) = candidate.entries.get(name) else {
        return refuse(Verdict::NotComparable, "missing: only the baseline has it".to_owned());
    };
    let to = to.as_ref().map_err(Clone::clone)?;
    let Some(from) = baseline.entries.get(name) else {
        return refuse(Verdict::BaselineMissing, "new: the baseline does not have it".to_owned());
    };
    let from = from.as_ref().map_err(Clone::clone)?;
    let (of_baseline, of_candidate) = (from.measured.nature, to.measured.nature);
    if !of_baseline.compares_with(of_candidate) {
        let reason = "replayed figures and recorded ones do not compare".to_owned();
        return refuse(Verdict::NotComparable, reason);
    }
    // A histogram does not say under which settings it was counted.
    let both_say = ![of_baseline, of_candidate].contains(&Nature::Histogram);
    if both_say && from.settings != to.settings {
        let reason = format!("other settings: {}", differing(&from.settings, &to.settings));
        return refuse(Verdict::NotComparable, reason);
    }
    if let (Some(before), Some(now)) = (&from.digest, &to.digest)
        && before != now
    {
        let reason = "its content changed since the baseline was accepted".to_owned();
        return refuse(Verdict::NotComparable, reason);
    }
    if let (Some(before), Some(now)) = (from.accesses, to.accesses)
        && before != now
    {
        let reason = format!("it had {before} accesses in the baseline and has {now} now");
        return refuse(Verdict::NotComparable, reason);
    }
    Ok((from, to))
}

/// `read_ahead_kb 128 and 256, memory 64M and none`
pub(super) fn differing(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> String {
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let shown = |side: &BTreeMap<String, String>, key: &String| {
        side.get(key).cloned().unwrap_or_else(|| "none".to_owned())
    };
    let differences = keys.into_iter().filter(|key| a.get(*key) != b.get(*key));
    let texts = differences.map(|key| format!("{key} {} and {}", shown(a, key), shown(b, key)));
    texts.collect::<Vec<_>>().join(", ")
}

/// A regressed check before one that is not, then the one that got worse most.
fn worst(checks: &[Check]) -> Option<Worst> {
    let severity = |check: &Check| {
        let change = check.change?;
        let worse = match check.metric.better() {
            Better::Less => change.absolute,
            Better::More => -change.absolute,
            Better::Neither => return None,
        };
        // What comes out of nothing has no percentage and is worse than any.
        let percent = change.percent.map(f64::abs);
        let rank = (check.verdict == Verdict::Regressed, percent.unwrap_or(f64::INFINITY));
        (worse > 0.0).then_some(rank)
    };
    let ranked = checks.iter().filter_map(|check| Some((severity(check)?, check)));
    // The first of equals, so that the order of reports decides.
    let (_, check) = ranked.reduce(|best, next| {
        let is_worse = next.0.0.cmp(&best.0.0).then(next.0.1.total_cmp(&best.0.1)).is_gt();
        if is_worse { next } else { best }
    })?;
    let percent = check.change.and_then(|change| change.percent).map(f64::abs);
    Some(Worst { source: check.source.clone(), metric: check.metric, worse_percent: percent })
}
