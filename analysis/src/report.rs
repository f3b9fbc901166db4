//! What a report shows: many sources under the same policies, each with its pictures and causes, and
//! the gate's judgement of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use replay::policy::Policy;

use crate::compare::Verdict;
use crate::explain::{ExplainOptions, Explanation, explain};
use crate::gate::{
    Budgets, GateReport, MeasureOptions, Outcome, Prepared, Refusal, Side, SourceFile, judge,
};
use crate::replay::illustrated_report;
use crate::result::ReplayReport;
use crate::timing::predict;

/// One source of a report.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// Its name.
    pub key: String,
    /// Its replays, or why there are none.
    pub replay: Result<ReplayReport, Refusal>,
    /// Why two policies differ on it.
    pub explanation: Option<Explanation>,
}

/// Sources under the same policies.
#[derive(Clone, Debug)]
pub struct CorpusReport {
    /// Every source, by name.
    pub sources: Vec<SourceReport>,
    /// The second policy judged by the first, or the only one by a saved baseline.
    pub gate: Option<GateReport>,
}

/// What to report.
pub struct ReportOptions {
    /// Policies; none takes each capture's own kernel.
    pub policies: Vec<Arc<dyn Policy>>,
    /// What the only policy is judged by.
    pub baseline: Option<Side>,
    /// How much worse a figure may be.
    pub budgets: Budgets,
    /// How sources are loaded and replayed.
    pub measure: MeasureOptions,
}

impl CorpusReport {
    /// Replays all sources. `done` is called after each of them, from any thread.
    pub fn new(sources: &[SourceFile], options: &ReportOptions, done: &(dyn Fn() + Sync)) -> Self {
        let replayed: Vec<(SourceReport, Vec<Outcome>)> = sources
            .par_iter()
            .map(|source| {
                let replayed = replayed(source, options);
                done();
                replayed
            })
            .collect();
        let mut sides: Vec<Side> = options
            .policies
            .iter()
            .map(|policy| Side { name: policy.name().to_owned(), entries: BTreeMap::new() })
            .collect();
        let mut reports = Vec::new();
        for (report, outcomes) in replayed {
            for (side, outcome) in sides.iter_mut().zip(outcomes) {
                side.entries.insert(report.key.clone(), outcome);
            }
            reports.push(report);
        }
        let gate = match (&options.baseline, &sides[..]) {
            (Some(baseline), [candidate]) | (None, [baseline, candidate]) => {
                Some(judge(baseline, candidate, &options.budgets))
            }
            _ => None,
        };
        Self { sources: reports, gate }
    }
}

fn replayed(file: &SourceFile, options: &ReportOptions) -> (SourceReport, Vec<Outcome>) {
    let of = |replay, explanation| SourceReport { key: file.key.clone(), replay, explanation };
    let refused = |refusal: Refusal| {
        let outcomes = vec![Err(refusal.clone()); options.policies.len()];
        (of(Err(refusal), None), outcomes)
    };
    let prepared = match Prepared::new(&file.path, &options.measure) {
        Ok(prepared) => prepared,
        Err(refusal) => return refused(refusal),
    };
    let mut policies = options.policies.clone();
    if policies.is_empty() {
        policies.extend(prepared.own_policy.clone());
    }
    if policies.is_empty() {
        let reason = "no policy for its kernel; name one with --policy".to_owned();
        return refused(Refusal::new(Verdict::BadInput, reason));
    }
    let model = &options.measure.model;
    let (mut verify, losses) = (prepared.verify.clone(), prepared.losses.clone());
    if let (Some(verify), Some(own)) = (&mut verify, &prepared.own_policy) {
        verify.timing = predict(&prepared.source, &**own, model);
    }
    let report = illustrated_report(&prepared.source, &policies, model, verify, losses);
    let outcomes = report.results.iter().map(|result| prepared.entry(result, model)).collect();
    if let Some(reason) = report.results.iter().find_map(|result| result.failure.clone()) {
        let refusal = Refusal::new(Verdict::BadInput, reason);
        return (of(Err(refusal), None), outcomes);
    }
    let explanation = match &policies[..] {
        [a, b] => explain(&prepared.source, &**a, &**b, ExplainOptions::default()).ok(),
        _ => None,
    };
    (of(Ok(report), explanation), outcomes)
}
