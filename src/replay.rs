//! `rareplay replay`

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use analysis::replay::{Model, report, timeline_report};
use analysis::result::ReplayReport;
use analysis::timing::verify_timed;
use analysis::verify::CaptureVerify;
use replay::policy::Policy;
use traces::access::Source;
use traces::capture::Losses;

use crate::cli::{Format, ReplayArgs, ReplayFormat, SourceArgs, UsageError};
use crate::progress::Progress;
use crate::{exit, fleet, output, sources};

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<u8> {
    if let Some(list) = &args.from_list {
        return fleet::replay(args, list);
    }
    args.source.check(&args.sources)?;
    let policies = sources::policies(&args.policies, &args.tree)?;
    let model = sources::model(&args.device)?;
    let Some(format) = of_report(args.format) else {
        let [source] = &args.sources[..] else {
            let what = "--format perfetto is for one SOURCE";
            return Err(UsageError(what.to_owned()).into());
        };
        print_timeline(&args.source, source, &policies, &model)?;
        return Ok(exit::OK);
    };
    let progress = Progress::new("replaying sources", args.sources.len());
    let reports = args.sources.iter().map(|path| {
        let report = build(&args.source, path, &policies, &model, report);
        progress.step();
        report
    });
    if format == Format::Mail {
        // Sources share a mail.
        let reports: Vec<ReplayReport> = reports.collect::<Result<_, _>>()?;
        output::print(&reports::mail::replay(&reports))?;
        return Ok(exit::OK);
    }
    for report in reports {
        let text = show(&report?, format);
        progress.aside(|| output::print(&text))?;
    }
    Ok(exit::OK)
}

/// The format of a report; a timeline is made of more than that.
pub(crate) fn of_report(format: ReplayFormat) -> Option<Format> {
    Some(match format {
        ReplayFormat::Text => Format::Text,
        ReplayFormat::Json => Format::Json,
        ReplayFormat::Csv => Format::Csv,
        ReplayFormat::Markdown => Format::Markdown,
        ReplayFormat::Mail => Format::Mail,
        ReplayFormat::Perfetto => return None,
    })
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
    let (source, verified, losses) = checked(source, path, model)?;
    let report = make(&source, policies, model, verified, losses);
    sources::check_failures(&report)?;
    Ok(report)
}

/// Prints the replays of one source as a timeline, and returns their report, with pictures.
pub(crate) fn print_timeline(
    source: &SourceArgs,
    path: &Path,
    policies: &[Arc<dyn Policy>],
    model: &Model,
) -> anyhow::Result<ReplayReport> {
    let progress = Progress::new(&format!("replaying {}", path.display()), 1);
    let (source, verified, losses) = checked(source, path, model)?;
    let (report, histories) = timeline_report(&source, policies, model, verified, losses);
    drop(progress);
    sources::check_failures(&report)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    reports::perfetto::replay(&mut out, &source, &report, &histories)?;
    out.flush()?;
    Ok(report)
}

/// Loads a source and holds it against its own kernel's policy, where it is a capture.
fn checked(
    source: &SourceArgs,
    path: &Path,
    model: &Model,
) -> anyhow::Result<(Source, Option<CaptureVerify>, Losses)> {
    let ready = source.ready(path)?;
    let verified = match (&ready.loaded.source.recorded, &ready.own_policy) {
        (Some(_), Some(policy)) => Some(verify_timed(&ready.loaded.source, &**policy, model)?),
        _ => None,
    };
    let losses = ready.loaded.capture.map(|capture| capture.losses).unwrap_or_default();
    Ok((ready.loaded.source, verified, losses))
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
