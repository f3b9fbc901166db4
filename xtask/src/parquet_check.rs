//! Runs the queries of docs/parquet.md, and holds what `DuckDB` and polars count against `inspect`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use analysis::events::convert;
use analysis::load::{LoadOptions, open};
use anyhow::{Context, ensure};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/parquet.md");

/// What is run around the queries, in a folder that has `run.parquet`.
const SCRIPT: &str = r#"
import json, sys
import duckdb, polars

queries = json.load(open("queries.json"))
for language, text in queries:
    if language == "sql":
        rows = duckdb.sql(text).fetchall()
    else:
        names = {}
        exec(text, names)
        rows = names["result"].rows()
    assert rows, "no rows from\n" + text
    print(text, *rows[:10], "", sep="\n")

by_duckdb = duckdb.sql("SELECT event, count(*) FROM 'run.parquet' GROUP BY event").fetchall()
by_polars = polars.read_parquet("run.parquet").group_by("event").len().rows()
expected = json.load(open("events.json"))
assert dict(by_duckdb) == expected, by_duckdb
assert dict(by_polars) == expected, by_polars
print("events by name are those of inspect, by DuckDB", duckdb.__version__, "and polars", polars.__version__)
"#;

pub(crate) fn run(capture: &Path, python: &Path) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.parquet");
    let name = path.display().to_string();
    convert(capture, &LoadOptions::default(), File::create(&path)?, &name)?;
    let text = fs::read_to_string(DOCUMENT).context(DOCUMENT)?;
    let queries = queries(&text);
    ensure!(queries.len() > 4, "{DOCUMENT}: {} queries", queries.len());
    write_json(&folder.path().join("queries.json"), &queries)?;
    let options = LoadOptions::default();
    let opened = open(capture, &options)?;
    let report = analysis::inspect::inspect("run", &opened.capture, Err(String::new()));
    write_json(&folder.path().join("events.json"), &report.events.by_kind)?;
    let status = Command::new(python)
        .args(["-c", SCRIPT])
        .current_dir(folder.path())
        .status()
        .with_context(|| python.display().to_string())?;
    ensure!(status.success(), "{}: {status}", python.display());
    Ok(())
}

fn write_json(path: &PathBuf, value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(fs::write(path, serde_json::to_vec(value)?)?)
}

/// The fenced blocks that are queries: language and text.
fn queries(document: &str) -> Vec<(&str, &str)> {
    let fenced = document.split("```").skip(1).step_by(2);
    fenced
        .filter_map(|block| block.split_once('\n'))
        .filter(|(language, _)| ["sql", "python"].contains(language))
        .collect()
}
