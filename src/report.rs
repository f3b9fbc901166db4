//! `rareplay report`

use std::path::Path;

use analysis::compare::Verdict;
use analysis::gate::{MeasureOptions, Side, expand};
use analysis::report::{CorpusReport, ReportOptions};

use crate::cli::{ReportArgs, UsageError};
use crate::progress::Progress;
use crate::{exit, fleet, gate, sources};

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    if fleet::are_results(&args.sources) {
        return fleet::report(args);
    }
    fleet::only_for_results(&[("--by", args.by.is_some())])?;
    let files = expand(&args.sources)?;
    let options = options(args)?;
    let progress = Progress::new("replaying sources", files.len());
    let report = CorpusReport::new(&files, &options, &|| progress.step());
    drop(progress);
    let code = refused(&report);
    if report.sources.iter().any(|source| source.replay.is_ok()) {
        reports::write_corpus(&report, &args.directory, args.png)?;
        eprintln!("wrote {}", args.directory.join("index.html").display());
    }
    Ok(code)
}

fn options(args: &ReportArgs) -> anyhow::Result<ReportOptions> {
    let mut names = args.policies.clone();
    let mut baseline: Option<Side> = None;
    match args.baseline.as_deref() {
        Some(name) if gate::is_saved(Path::new(name)) => {
            baseline = Some(gate::saved_side(Path::new(name), None)?);
        }
        name => names.extend(name.map(str::to_owned)),
    }
    names.extend(args.candidate.clone());
    if baseline.is_some() && names.len() != 1 {
        let what = "a saved baseline judges one policy: give it with --candidate";
        return Err(UsageError(what.to_owned()).into());
    }
    Ok(ReportOptions {
        policies: sources::policies(&names, &args.tree)?,
        baseline,
        budgets: gate::budgets(args.budget.as_deref())?,
        measure: MeasureOptions {
            load: args.source.options(),
            allow_loss: args.source.input.allow_loss,
            model: sources::model(&args.device)?,
        },
    })
}

/// Says which sources gave no figures, and what the command exits with for it.
fn refused(report: &CorpusReport) -> u8 {
    let mut code = exit::OK;
    for source in &report.sources {
        let Err(refusal) = &source.replay else { continue };
        eprintln!("rareplay: {}: {}", source.key, refusal.reason);
        let is_loss = refusal.verdict == Verdict::DataLoss;
        code = code.max(if is_loss { exit::DATA_LOSS } else { exit::BAD_INPUT });
    }
    code
}
