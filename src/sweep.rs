//! `rareplay sweep`

use std::path::Path;
use std::sync::Arc;

use analysis::sweep::{Axes, SweepOptions, SweepReport, is_range, sweep};
use analysis::timing::verify_timed;
use anyhow::Context;
use replay::policy::Policy;

use crate::cli::{Format, SourceArgs, SweepArgs, UsageError};
use crate::progress::Progress;
use crate::{exit, output, sources};

pub(crate) fn run(args: &SweepArgs) -> anyhow::Result<u8> {
    let (swept, set): (Vec<_>, Vec<_>) =
        args.set.iter().cloned().partition(|(key, value)| is_range(key, value));
    let axes = Axes::parse(&swept).map_err(|error| UsageError(error.to_string()))?;
    let policies = sources::policies(&args.policies, &args.tree)?;
    let options = SweepOptions {
        model: sources::model(&args.device)?,
        goal: args.goal.into(),
        tolerance_percent: args.tolerance,
    };
    let source = SourceArgs { set, input: args.input.clone() };
    if args.directory.is_some() && args.sources.len() > 1 {
        return Err(UsageError("-o is for one SOURCE".to_owned()).into());
    }
    for path in &args.sources {
        let report = one(&source, path, &axes, &policies, &options)?;
        output::print(&show(&report, args.output.format))?;
        if let Some(directory) = &args.directory {
            reports::write_sweep(&report, directory, args.png)?;
            if args.output.format == Format::Text {
                eprintln!("wrote {}", directory.join("index.html").display());
            }
        }
    }
    Ok(exit::OK)
}

fn one(
    args: &SourceArgs,
    path: &Path,
    axes: &Axes,
    policies: &[Arc<dyn Policy>],
    options: &SweepOptions,
) -> anyhow::Result<SweepReport> {
    let progress = Progress::new(&format!("reading {}", path.display()), 1);
    let ready = args.ready(path)?;
    drop(progress);
    let source = &ready.loaded.source;
    let mut policies = policies.to_vec();
    if policies.is_empty() {
        let own = ready.own_policy.clone().with_context(|| {
            format!("{}: no policy for its kernel; name one with --policy", path.display())
        })?;
        policies.push(own);
    }
    let verified = match (&source.recorded, &ready.own_policy) {
        (Some(_), Some(own)) => Some(verify_timed(source, &**own, &options.model)?),
        _ => None,
    };
    let losses = ready.loaded.capture.map(|capture| capture.losses).unwrap_or_default();
    let runs = axes.len() * policies.len();
    let progress = Progress::new(&format!("replaying {}", path.display()), runs);
    Ok(sweep(source, axes, &policies, options, (verified, losses), &|| progress.step())?)
}

fn show(report: &SweepReport, format: Format) -> String {
    match format {
        Format::Text => reports::text::sweep(report, &output::style()),
        Format::Json => reports::json::sweep(report),
        Format::Csv => reports::csv::sweep(report),
        Format::Markdown => reports::markdown::sweep(report),
        Format::Mail => reports::mail::sweep(report),
    }
}
