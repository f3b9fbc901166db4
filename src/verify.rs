//! `rareplay verify`

use std::path::Path;

use analysis::verify::{CaptureVerify, verify};
use rayon::prelude::*;
use replay::policy;

use crate::cli::{Format, VerifyArgs};
use crate::{exit, output, sources};

pub(crate) fn run(args: &VerifyArgs) -> anyhow::Result<u8> {
    if let Some(name) = &args.policy {
        // A wrong name is the same mistake for every capture.
        policy::parse(name)?;
    }
    let files = sources::expand(&args.captures)?;
    let checked: Vec<_> = files.par_iter().map(|file| check(args, file)).collect();
    let mut captures = Vec::new();
    let mut code = exit::OK;
    for result in checked {
        match result {
            Ok(capture) => captures.push(capture),
            Err(error) => {
                eprintln!("rareplay: {error:#}");
                code = code.max(error_code(&error));
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

fn check(args: &VerifyArgs, file: &Path) -> anyhow::Result<CaptureVerify> {
    let ready = args.source.ready(file)?;
    let policy = match &args.policy {
        Some(name) => Some(policy::parse(name)?),
        None => ready.own_policy,
    };
    let policy = policy.ok_or_else(|| {
        anyhow::anyhow!("{}: no policy for its kernel; name one with --policy", file.display())
    })?;
    Ok(verify(&ready.loaded.source, &*policy)?)
}

fn error_code(error: &anyhow::Error) -> u8 {
    if error.is::<sources::DataLoss>() { exit::DATA_LOSS } else { exit::BAD_INPUT }
}

fn show(paths: &[std::path::PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
