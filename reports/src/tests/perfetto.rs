//! Timelines.

use std::sync::Arc;

use analysis::replay::{Model, timeline_report};
use insta::assert_snapshot;
use replay::policy;
use traces::capture::Losses;

use super::sample;
use crate::perfetto;

#[test]
fn a_timeline_of_a_few_reads() {
    let source = sample::few_reads();
    let policies = ["linux-6.18", "linux-6.1"].map(|name| policy::parse(name).expect("built in"));
    let policies = policies.map(Arc::from);
    let model = Model::default();
    let (report, histories) = timeline_report(&source, &policies, &model, None, Losses::default());
    let mut out = Vec::new();
    perfetto::replay(&mut out, &source, &report, &histories).expect("memory takes every byte");
    assert_snapshot!("perfetto_few_reads", String::from_utf8(out).expect("UTF-8"));
}
