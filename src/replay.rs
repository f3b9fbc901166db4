//! `rareplay replay`

use std::path::Path;
use std::sync::Arc;

use analysis::replay::{Model, report};
use analysis::result::ReplayReport;
use analysis::timing::verify_timed;
use analysis::verify::CaptureVerify;
use replay::policy::Policy;
use traces::access::Source;
use traces::capture::Losses;

use crate::cli::{Format, ReplayArgs, SourceArgs};
use crate::progress::Progress;
use crate::{exit, fleet, output, sources};

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    if let Some(list) = &args.from_list {
        return fleet::replay(args, list);
    }
    args.source.check(&args.sources)?;
    let policies = sources::policies(&args.policies, &args.tree)?;
    let model = sources::model(&args.device)?;
    let progress = Progress::new("replaying sources", args.sources.len());
    let reports = args.sources.iter().map(|path| {
        let report = build(&args.source, path, &policies, &model, report);
        progress.step();
        report
    });
    if args.output.format == Format::Mail {
        // Sources share a mail.
        let reports: Vec<ReplayReport> = reports.collect::<Result<_, _>>()?;
        output::print(&reports::mail::replay(&reports))?;
        return Ok(exit::OK);
    }
    for report in reports {
        let text = show(&report?, args.output.format);
        progress.aside(|| output::print(&text))?;
    }
    Ok(exit::OK)
}

/// How a report is made: with pictures or without.
pub(crate) type Make =
    fn(&Source, &[Arc<dyn Policy>], &Model, Option<CaptureVerify>, Losses) -> ReplayReport;

/// Replays one source under some policies, with the proof where the source is a capture.
pub(crate) fn build(
    source: &SourceArgs,
    path: &Path,
    policies: &[Arc<dyn Policy>],
    model: &Model,
    make: Make,
) -> anyhow::Result<ReplayReport> {
    let ready = source.ready(path)?;
    let verified = match (&ready.loaded.source.recorded, &ready.own_policy) {
        (Some(_), Some(policy)) => Some(verify_timed(&ready.loaded.source, &**policy, model)?),
        _ => None,
    };
    let losses = ready.loaded.capture.map(|capture| capture.losses).unwrap_or_default();
    let report = make(&ready.loaded.source, policies, model, verified, losses);
    sources::check_failures(&report)?;
    Ok(report)
}

pub(crate) fn show(report: &ReplayReport, format: Format) -> String {
    match format {
        Format::Text => reports::text::replay(report, &output::style()),
        Format::Json => reports::json::replay(report),
        Format::Csv => reports::csv::replay(report),
        Format::Markdown => reports::markdown::replay(report),
        Format::Mail => reports::mail::replay(std::slice::from_ref(report)),
    }
}
