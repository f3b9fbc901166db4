//! `rareplay compare`

use crate::cli::{CompareArgs, Format, UsageError};
use crate::{exit, output, replay, sources};

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    if args.policies.len() != 2 {
        let given = args.policies.len();
        return Err(UsageError(format!("compare takes --policy twice, not {given} times")).into());
    }
    let policies = sources::policies(&args.policies, &args.tree)?;
    let model = sources::model(&args.device)?;
    let report = replay::build(&args.source, &args.source_path, &policies, &model)?;
    output::print(&replay::show(&report, args.output.format))?;
    if let Some(directory) = &args.directory {
        reports::write_dir(&report, directory)?;
        if args.output.format == Format::Text {
            eprintln!("wrote {}", directory.join("index.html").display());
        }
    }
    Ok(exit::OK)
}
