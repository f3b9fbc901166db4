//! `rareplay inspect`

use analysis::inspect::{Filter, inspect_path};

use crate::cli::{FilterArgs, Format, InspectArgs};
use crate::{exit, fleet, output};

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<u8> {
    if fleet::are_results(&args.captures) {
        return fleet::inspect(args);
    }
    fleet::only_for_results(&[("--by", args.by.is_some()), ("--metric", args.metric.is_some())])?;
    args.source.check(&args.captures)?;
    let filter = args.filter.filter();
    for path in &args.captures {
        let mut report = inspect_path(path, &args.source.options(), &filter)?;
        if let Some(count) = args.top.or(listed(args.output.format)) {
            report.keep_files(count);
        }
        output::print(&match args.output.format {
            Format::Text => reports::text::inspect(&report, &output::style()),
            Format::Json => reports::json::inspect(&report),
            Format::Csv => reports::csv::inspect(&report),
            Format::Markdown => reports::markdown::inspect(&report),
            Format::Mail => reports::mail::inspect(&report),
        })?;
    }
    Ok(exit::OK)
}

/// Files or groups listed where nothing says how many.
pub(crate) fn listed(format: Format) -> Option<usize> {
    matches!(format, Format::Text | Format::Mail).then_some(20)
}

impl FilterArgs {
    fn filter(&self) -> Filter {
        Filter {
            pids: self.pid.clone(),
            comms: self.comm.clone(),
            devices: self.dev.clone(),
            inodes: self.inode.clone(),
            from: self.from,
            to: self.to,
        }
    }
}
