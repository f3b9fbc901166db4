//! `rareplay verify`

use std::path::{Path, PathBuf};

use analysis::recover::{recover, recover_under};
use analysis::replay::Model;
use analysis::timing::verify_timed;
use analysis::verify::CaptureVerify;
use anyhow::Context;
use rayon::prelude::*;

use crate::cli::{Format, VerifyArgs};
use crate::progress::Progress;
use crate::{exit, output, sources};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<u8> {
    args.source.check(&args.captures)?;
    // A wrong name is the same mistake for every capture.
    sources::policies(args.policy.as_slice(), &args.tree)?;
    let model = sources::model(&args.device)?;
    let files = sources::captures(&args.captures)?;
    let progress = Progress::new("verifying captures", files.len());
    let one = |file: &PathBuf| {
        let checked = check(args, &model, file);
        progress.step();
        checked
    };
    let checked: Vec<_> = files.par_iter().map(one).collect();
    drop(progress);
    let mut captures = Vec::new();
    let mut code = exit::OK;
    for result in checked {
        match result {
            Ok(capture) => captures.push(capture),
            Err(error) => {
                output::complain(&error);
                code = code.max(exit::of_error(&error));
            }
        }
    }
    if captures.is_empty() {
        anyhow::ensure!(code != exit::OK, "no capture in {}", show(&args.captures));
        return Ok(code);
    }
    output::print(&match args.output.format {
        Format::Text => reports::text::verify(&captures, &output::style()),
        Format::Json => reports::json::verify(&captures),
        Format::Csv => reports::csv::verify(&captures),
        Format::Markdown => reports::markdown::verify(&captures),
        Format::Mail => reports::mail::verify(&captures),
    })?;
    let differs = captures.iter().any(|capture| !capture.exact);
    Ok(if code == exit::OK && differs { exit::DIFFERS } else { code })
}

fn check(args: &VerifyArgs, model: &Model, file: &Path) -> anyhow::Result<CaptureVerify> {
    // Each capture has its own: the failure of a tree's code on one says nothing of the others.
    let named = sources::policies(args.policy.as_slice(), &args.tree)?.pop();
    let loaded = args.source.load(file)?;
    sources::warn_of_losses(file, &loaded);
    let mut source = loaded.source;
    let policy = match named {
        // The policy named is taken for that of the recording kernel.
        Some(policy) => {
            recover_under(&mut source, &*policy);
            policy
        }
        None => recover(&mut source).with_context(|| {
            format!("{}: no policy for its kernel; name one with --policy", file.display())
        })?,
    };
    let result = verify_timed(&source, &*policy, model)?;
    if !result.exact {
        sources::warn_of_assumptions(file, &source.settings);
    }
    Ok(result)
}

fn show(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
