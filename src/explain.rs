//! `rareplay explain`

use analysis::explain::{ExplainOptions, explain};

use crate::cli::{ExplainArgs, Format, UsageError};
use crate::{exit, output, sources};

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<u8> {
    let policies = sources::policies(&args.policies, &args.tree)?;
    let [a, b] = &policies[..] else {
        let given = policies.len();
        return Err(UsageError(format!("explain takes --policy twice, not {given} times")).into());
    };
    let ready = args.source.ready(&args.source_path)?;
    sources::warn_of_losses(&args.source_path, &ready.loaded);
    let options = ExplainOptions { inode: args.file, from_access: args.at };
    let explanation = explain(&ready.loaded.source, &**a, &**b, options)?;
    output::print(&match args.output.format {
        Format::Text => reports::text::explain(&explanation, &output::style()),
        Format::Json => reports::json::explain(&explanation),
        Format::Csv => reports::csv::explain(&explanation),
        Format::Markdown => reports::markdown::explain(&explanation),
        Format::Mail => reports::mail::explain(&explanation),
    })?;
    Ok(exit::OK)
}
