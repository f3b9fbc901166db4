//! `rareplay compare`

use std::path::{Path, PathBuf};

use analysis::fleet::is_results;
use analysis::gate::{Budgets, GateReport, MeasureOptions, Side, judge, recorded_side};
use analysis::replay::{illustrated_report, report};
use anyhow::Context;

use crate::cli::{By, CompareArgs, Format, ReplayFormat, UsageError};
use crate::{exit, fleet, gate, output, replay, sources};

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    if let ([results], [_, _]) = (&args.sources[..], &args.policies[..])
        && is_results(results)
    {
        return of_results(args, results);
    }
    if !args.sources.iter().any(|source| is_results(source)) {
        fleet::only_for_results(&[("--by", args.by.is_some())])?;
    }
    args.source.check(&args.sources)?;
    match (&args.sources[..], args.policies.len()) {
        ([source], 2) => policies(args, source),
        ([base, candidate], 0) => recorded(args, base, candidate),
        (_, given) => {
            let what = format!(
                "compare takes one SOURCE and --policy twice, or two SOURCEs and no --policy; \
                 given are {} and {given}",
                args.sources.len()
            );
            Err(UsageError(what).into())
        }
    }
}

/// One source under two policies.
fn policies(args: &CompareArgs, source: &Path) -> anyhow::Result<u8> {
    let policies = sources::policies(&args.policies, &args.tree)?;
    let model = sources::model(&args.device)?;
    let report = match replay::of_report(args.format) {
        Some(format) => {
            let make: replay::Make =
                if args.directory.is_some() { illustrated_report } else { report };
            let report = replay::build(&args.source, source, &policies, &model, make)?;
            output::print(&replay::show(&report, format))?;
            report
        }
        None => replay::print_timeline(&args.source, source, &policies, &model)?,
    };
    if let Some(directory) = &args.directory {
        reports::write_dir(&report, directory, args.png)?;
        if args.format == ReplayFormat::Text {
            eprintln!("wrote {}", directory.join("index.html").display());
        }
    }
    Ok(exit::OK)
}

/// Results of a list under two of their policies.
fn of_results(args: &CompareArgs, results: &PathBuf) -> anyhow::Result<u8> {
    if args.directory.is_some() {
        let what = "-o is for one SOURCE under two policies; `report` makes a page of results";
        return Err(UsageError(what.to_owned()).into());
    }
    let format = format_of_sides(args)?;
    let sides = fleet::sides(std::slice::from_ref(results), args.by)?;
    let [base, candidate] =
        [&args.policies[0], &args.policies[1]].map(|policy| fleet::side_of(&sides, policy));
    let report = judge(base?, candidate?, &Budgets::default());
    output::print(&show(&report, format))?;
    Ok(exit::OK)
}

/// What two sides recorded: captures, sets of captures, saved results.
fn recorded(args: &CompareArgs, base: &Path, candidate: &Path) -> anyhow::Result<u8> {
    if args.directory.is_some() {
        return Err(UsageError("-o is for one SOURCE under two policies".to_owned()).into());
    }
    let format = format_of_sides(args)?;
    let options = MeasureOptions {
        load: args.source.options(),
        allow_loss: args.source.input.allow_loss,
        model: sources::model(&args.device)?,
    };
    let base = side(base, &options, args.by)?;
    let candidate = same_name(&base, side(candidate, &options, args.by)?);
    let report = judge(&base, &candidate, &Budgets::default());
    output::print(&show(&report, format))?;
    Ok(exit::OK)
}

/// The format to show two sides in, which have no timeline.
fn format_of_sides(args: &CompareArgs) -> Result<Format, UsageError> {
    replay::of_report(args.format).ok_or_else(|| {
        UsageError("--format perfetto is for one SOURCE under two policies".to_owned())
    })
}

fn side(path: &Path, options: &MeasureOptions, by: Option<By>) -> anyhow::Result<Side> {
    let side = if gate::is_saved(path) {
        gate::saved_side(path, by)
    } else {
        recorded_side(path, options).map_err(anyhow::Error::from)
    };
    side.with_context(|| path.display().to_string())
}

/// Two single runs are runs of the same thing, whatever their files are called.
fn same_name(base: &Side, mut candidate: Side) -> Side {
    if base.entries.len() == 1 && candidate.entries.len() == 1 {
        let entry = candidate.entries.pop_first().map(|(_, entry)| entry);
        let name = base.entries.keys().next().cloned();
        candidate.entries.extend(name.zip(entry));
    }
    candidate
}

fn show(report: &GateReport, format: Format) -> String {
    match format {
        Format::Text => {
            let style = output::style();
            reports::gate::text(report, &style) + &reports::gate::orders(report, &style)
        }
        Format::Json => reports::gate::json(report),
        Format::Csv => reports::gate::csv(report),
        Format::Markdown => reports::gate::markdown(report),
        Format::Mail => reports::gate::mail(report),
    }
}
