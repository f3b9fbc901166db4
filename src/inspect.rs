//! `rareplay inspect`

use analysis::inspect::inspect;
use analysis::load::open;

use crate::cli::{Format, InspectArgs};
use crate::{exit, output};

pub(crate) fn run(args: &InspectArgs) -> anyhow::Result<u8> {
    for path in &args.captures {
        let opened = open(path, &args.source.options())?;
        let name = path.display().to_string();
        let streams = opened.source.as_ref().map_err(ToString::to_string);
        let report = inspect(&name, &opened.capture, streams);
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
