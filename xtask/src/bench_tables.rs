//! Captures as tables: their size, and events per second of CPU time written and read, beside what
//! the capture's own parser takes.

use std::fs::{self, File};
use std::path::Path;

use analysis::events::{EVER, convert, stream};
use analysis::load::LoadOptions;
use cpu_time::ProcessTime;
use traces::capture::Comms;
use traces::event::Event;

/// Runs of which the fastest counts.
const RUNS: usize = 3;

pub(crate) fn run(captures: &[impl AsRef<Path>]) -> anyhow::Result<()> {
    println!("million events per second of CPU time, best of {RUNS}; sizes in KiB");
    println!(
        "{:40} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8}",
        "capture", "events", "file", "table", "parse", "convert", "read"
    );
    for capture in captures {
        one(capture.as_ref())?;
    }
    Ok(())
}

fn one(capture: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.parquet");
    let options = LoadOptions::default();
    let (events, parse) = fastest(|| {
        let mut count = 0;
        parser::stream_path(capture, &mut |events: &[Event], _: &Comms| count += events.len())?;
        Ok(count as u64)
    })?;
    let (written, write) =
        fastest(|| Ok(convert(capture, &options, File::create(&path)?, "run.parquet")?.events))?;
    let (read_back, read) = fastest(|| {
        let mut count = 0;
        let mut sink = |events: &[Event], _: &Comms| count += events.len();
        stream(parser::open(&path)?, &EVER, &mut sink)?;
        Ok(count as u64)
    })?;
    anyhow::ensure!(written == events && read_back == events, "{written}, {read_back} of {events}");
    let name = capture.file_name().unwrap_or_default().to_string_lossy();
    let kib = |path: &Path| anyhow::Ok(fs::metadata(path)?.len() >> 10);
    let (from, to) = (kib(capture)?, kib(&path)?);
    println!("{name:40} {events:9} {from:9} {to:9} {parse:8.2} {write:8.2} {read:8.2}");
    Ok(())
}

/// Events of a run and millions of them per second.
fn fastest(mut run: impl FnMut() -> anyhow::Result<u64>) -> anyhow::Result<(u64, f64)> {
    let mut best = f64::MAX;
    let mut events = 0;
    for _ in 0..RUNS {
        let begin = ProcessTime::now();
        events = run()?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    Ok((events, events as f64 / best / 1e6))
}
