//! `rareplay record`

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::Context;
use record::facts::{self, PagesRead};
use record::target::TargetSpec;
use record::{Format, Recording, Request};
use traces::capture::{Capture, Comms, Severity};
use traces::event::{Event, EventKind};
use traces::sidecar;

use crate::cli::{RecordArgs, RecordFormat};
use crate::exit;

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<u8> {
    let format = match args.format {
        RecordFormat::Text => Format::Text,
        RecordFormat::Raw => Format::Raw,
    };
    let request = Request {
        target: target(args),
        format,
        output: args.output.clone().unwrap_or_else(|| default_output(format)),
        command: args.command.clone(),
        buffer_bytes: args.buffer,
        drop_caches: args.drop_caches,
    };
    let recording = record::record(&request)?;
    let (capture, read) = read_back(&request.output)?;
    let sidecar = facts::sidecar(&made(&request), &recording.target, &read)?;
    let path = sidecar::path_beside(&request.output);
    std::fs::write(&path, sidecar.to_toml()?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    eprint!("{}", summary(&request, &recording, &capture, &read));
    Ok(code(recording.status, &recording, &capture))
}

fn target(args: &RecordArgs) -> TargetSpec {
    match (&args.mount, &args.dev) {
        (Some(path), _) => TargetSpec::Mount(path.clone()),
        (_, Some(path)) => TargetSpec::Device(path.clone()),
        _ if args.file.is_empty() => TargetSpec::Everything,
        _ => TargetSpec::Files(args.file.clone()),
    }
}

fn default_output(format: Format) -> PathBuf {
    PathBuf::from(match format {
        Format::Text => "rareplay.ftrace",
        Format::Raw => "rareplay.pages",
    })
}

/// The command line, for the sidecar.
fn made(request: &Request) -> String {
    let words: Vec<_> = request.command.iter().map(|word| word.to_string_lossy()).collect();
    format!("rareplay {} record -- {}", env!("CARGO_PKG_VERSION"), words.join(" "))
}

/// Reads the capture the way every other command will: how many pages of which file were read, and
/// whether anything is missing.
fn read_back(path: &Path) -> anyhow::Result<(Capture, PagesRead)> {
    let mut read = PagesRead::new();
    let mut count = |events: &[Event], _: &Comms| {
        for event in events {
            if let Some(file) = event.kind.file() {
                let pages = read.entry(file).or_default();
                if let EventKind::AddToPageCache { order, .. } = event.kind {
                    *pages += order.pages();
                }
            }
        }
    };
    let capture = parser::stream_path(path, &mut count)?;
    Ok((capture, read))
}

fn summary(
    request: &Request,
    recording: &Recording,
    capture: &Capture,
    read: &PagesRead,
) -> String {
    let mut text = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "rareplay: {line}");
    };
    for note in &recording.notes {
        say(format_args!("{note}"));
    }
    for loss in &recording.losses {
        say(format_args!(
            "CPU {} lost {} events; --format raw keeps up best, a larger --buffer (now {} MiB) helps",
            loss.cpu,
            loss.events(),
            recording.buffer_bytes >> 20
        ));
    }
    for line in capture.losses.to_string().lines() {
        say(format_args!("{line}"));
    }
    let pages: u64 = read.values().sum();
    let plural = if read.len() == 1 { "" } else { "s" };
    let (files, output) = (read.len(), request.output.display());
    say(format_args!("{pages} pages of {files} file{plural} were read; recorded in {output}"));
    text
}

/// The program's own exit code, as a shell gives it; that of data loss where it was 0 and events are
/// missing.
fn code(status: ExitStatus, recording: &Recording, capture: &Capture) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let of_program = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
    let of_program = of_program.unwrap_or(exit::OK);
    let lost =
        !recording.losses.is_empty() || capture.losses.severity() == Some(Severity::DataLoss);
    if of_program == exit::OK && lost { exit::DATA_LOSS } else { of_program }
}
