//! `rareplay replay`

use std::path::Path;

use analysis::replay::{Model, report};
use analysis::result::ReplayReport;
use analysis::verify::verify;

use crate::cli::{Format, ReplayArgs, SourceArgs};
use crate::{exit, output, sources};

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    for path in &args.sources {
        let report = build(&args.source, path, &args.policies)?;
        output::print(&show(&report, args.output.format))?;
    }
    Ok(exit::OK)
}

/// Replays one source under the named policies, with the proof where the source is a capture.
pub(crate) fn build(
    source: &SourceArgs,
    path: &Path,
    names: &[String],
) -> anyhow::Result<ReplayReport> {
    let policies = sources::policies(names)?;
    let ready = source.ready(path)?;
    let verified = match (&ready.loaded.source.recorded, &ready.own_policy) {
        (Some(_), Some(policy)) => Some(verify(&ready.loaded.source, &**policy)?),
        _ => None,
    };
    let losses = ready.loaded.capture.map(|capture| capture.losses).unwrap_or_default();
    Ok(report(&ready.loaded.source, &policies, &Model::default(), verified, losses))
}

pub(crate) fn show(report: &ReplayReport, format: Format) -> String {
    match format {
        Format::Text => reports::text::replay(report, &output::style()),
        Format::Json => reports::json::replay(report),
        Format::Csv => reports::csv::replay(report),
        Format::Markdown => reports::markdown::replay(report),
        Format::Mail => reports::mail::replay(report),
    }
}
