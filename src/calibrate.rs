//! `rareplay calibrate`

use analysis::calibrate::{Recording, calibrate};
use anyhow::Context;

use crate::cli::{CalibrateArgs, TableFormat};
use crate::{exit, output, sources};

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<u8> {
    args.source.check(&args.captures)?;
    let mut ready = Vec::new();
    for path in &args.captures {
        let one = args.source.ready(path)?;
        sources::warn_of_losses(path, &one.loaded);
        ready.push(one);
    }
    let recordings = ready.iter().map(|ready| Recording {
        source: &ready.loaded.source,
        policy: ready.own_policy.as_deref(),
    });
    let calibration = calibrate(&recordings.collect::<Vec<_>>())?;
    let toml = calibration.to_toml()?;
    match &args.output {
        Some(path) => {
            std::fs::write(path, toml)
                .with_context(|| format!("cannot write {}", path.display()))?;
            let report = &calibration.report;
            output::print(&match args.format {
                TableFormat::Text => report.to_string(),
                TableFormat::Markdown => reports::markdown::calibrate(report),
            })?;
        }
        None => output::print(&toml)?,
    }
    Ok(exit::OK)
}
