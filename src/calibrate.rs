//! `rareplay calibrate`

use anyhow::Context;

use crate::cli::CalibrateArgs;
use crate::{exit, output, sources};

pub(crate) fn run(args: &CalibrateArgs) -> anyhow::Result<u8> {
    args.source.check(&args.captures)?;
    let mut ready = Vec::new();
    for path in &args.captures {
        let one = args.source.ready(path)?;
        sources::warn_of_losses(path, &one.loaded);
        ready.push(one);
    }
    let sources: Vec<_> = ready.iter().map(|ready| &ready.loaded.source).collect();
    let calibration = analysis::calibrate::calibrate(&sources)?;
    let toml = calibration.to_toml()?;
    match &args.output {
        Some(path) => {
            std::fs::write(path, toml)
                .with_context(|| format!("cannot write {}", path.display()))?;
            output::print(&calibration.report.to_string())?;
        }
        None => output::print(&toml)?,
    }
    Ok(exit::OK)
}
