//! `rareplay convert`

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use analysis::events::{Converted, convert};
use analysis::gate::{SourceFile, expand};
use anyhow::Context;
use rayon::prelude::*;
use traces::workload::is_workload;

use crate::cli::{ConvertArgs, UsageError};
use crate::{exit, output, sources};

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<u8> {
    let jobs = jobs(&args.captures, &args.output)?;
    let done: Vec<_> = jobs.par_iter().map(|(from, to)| write(args, from, to)).collect();
    let mut code = exit::OK;
    for ((from, to), converted) in jobs.iter().zip(done) {
        match converted {
            Ok(Converted { events, losses }) => {
                sources::warn_of(from, &losses);
                output::print(&format!("{}: {events} events\n", to.display()))?;
            }
            Err(error) => {
                eprintln!("rareplay: {error:#}");
                code = code.max(exit::of_error(&error));
            }
        }
    }
    Ok(code)
}

/// What is read and what is written: one file for one capture, or a file in a folder for each.
fn jobs(captures: &[PathBuf], output: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let found = expand(captures)?;
    if let ([named], [SourceFile { path, .. }]) = (captures, &found[..])
        && named == path
        && !output.is_dir()
    {
        return Ok(vec![(path.clone(), output.to_owned())]);
    }
    if output.is_file() {
        let what = format!("-o {}: several captures need a folder", output.display());
        return Err(UsageError(what).into());
    }
    let captures = found.into_iter().filter(|found| !is_workload(&found.path));
    let jobs: Vec<_> =
        captures.map(|SourceFile { key, path }| (path, output.join(table_name(&key)))).collect();
    let mut taken = BTreeSet::new();
    if let Some((_, twice)) = jobs.iter().find(|(_, to)| !taken.insert(to)) {
        let what = format!("two captures would become {}", twice.display());
        return Err(UsageError(what).into());
    }
    Ok(jobs)
}

/// The name of a capture's table: its own without a compression's ending.
fn table_name(key: &str) -> String {
    let endings = [".zst", ".gz", ".xz", ".parquet"];
    let stem = endings.iter().find_map(|ending| key.strip_suffix(ending));
    format!("{}.parquet", stem.unwrap_or(key))
}

/// Writes one table. It gets its name when it is whole.
fn write(args: &ConvertArgs, from: &Path, to: &Path) -> anyhow::Result<Converted> {
    let cannot = || format!("cannot write {}", to.display());
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    let mut part = to.to_owned();
    part.as_mut_os_string().push(".part");
    let converted = write_part(args, from, &part, to);
    match converted {
        Ok(_) => fs::rename(&part, to).with_context(cannot)?,
        // What is wrong is said already.
        Err(_) => drop(fs::remove_file(&part)),
    }
    converted
}

fn write_part(
    args: &ConvertArgs,
    from: &Path,
    part: &Path,
    to: &Path,
) -> anyhow::Result<Converted> {
    let name = to.display().to_string();
    let cannot = || format!("cannot write {name}");
    let mut file = BufWriter::new(File::create(part).with_context(cannot)?);
    let converted = convert(from, &args.source.options(), &mut file, &name)?;
    file.flush().with_context(cannot)?;
    Ok(converted)
}
