//! Captures to tables and back, with the program: the same results, and clear refusals.

mod common;

use std::fs;
use std::path::Path;

use serde_json::Value;

use common::{json, stdout};

const CAPTURE: &str = "linux-6.18/seq1m_after4k_ms512.ftrace.zst";

/// Exit code and standard error of a run that fails, without the folder's name.
fn failure(args: &[&str], folder: &Path) -> (i32, String) {
    let (code, stderr) = common::failure(args);
    (code, stderr.replace(&*folder.to_string_lossy(), "FOLDER"))
}

/// A result without the name of its source.
fn nameless(args: &[&str]) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("source");
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = json(args);
    strip(&mut value);
    value
}

/// The table of [`CAPTURE`].
fn table(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("run.parquet").display().to_string();
    assert_eq!(stdout(&["convert", CAPTURE, "-o", &path]), format!("{path}: 28886 events\n"));
    path
}

#[test]
fn a_table_is_a_source_like_its_capture() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder);
    let policies = ["--policy", "linux-6.18", "--policy", "align-async-window-v2"];
    let runs: [(&str, &[&str]); 4] =
        [("inspect", &[]), ("verify", &[]), ("replay", &policies), ("compare", &policies)];
    for (command, more) in runs {
        let of = |source| nameless(&[&[command, source, "--format", "json"], more].concat());
        assert_eq!(of(&table), of(CAPTURE), "{command}");
    }
    // Two runs of one thing.
    stdout(&["compare", CAPTURE, &table]);
    stdout(&["gate", &table, "--baseline", "linux-6.18", "--candidate", "linux-6.18"]);
}

/// What was given when it was converted holds, until something else is given.
#[test]
fn settings_given_stay_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet").display().to_string();
    stdout(&["convert", CAPTURE, "--set", "read_ahead_kb=4096", "-o", &path]);
    let ra = |args: &[&str]| {
        let inspected = nameless(&[&["inspect", &path, "--format", "json"], args].concat());
        let settings = inspected["streams"]["settings"].as_array().unwrap().clone();
        let found = settings.into_iter().find(|setting| setting["key"] == "read_ahead_kb").unwrap();
        (found["value"].as_str().unwrap().to_owned(), found["origin"].as_str().unwrap().to_owned())
    };
    assert_eq!(ra(&[]), ("4096".to_owned(), "given".to_owned()));
    assert_eq!(ra(&["--set", "read_ahead_kb=64"]), ("64".to_owned(), "given".to_owned()));
}

#[test]
fn a_folder_becomes_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("tables").display().to_string();
    let printed = stdout(&["convert", "linux-6.12", "linux-7.3/mmap_seq.ftrace.zst", "-o", &to]);
    let names: Vec<_> =
        printed.lines().map(|line| line.split(':').next().unwrap().replace(&to, "")).collect();
    assert_eq!(
        names,
        [
            "/interleaved2.ftrace.parquet",
            "/mmap_seq.ftrace.parquet",
            "/seq1m_after4k_ms1024.ftrace.parquet"
        ]
    );
    stdout(&["verify", &to]);
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(table(&folder)).unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (code, stderr) = failure(&["inspect", &path.display().to_string()], folder.path());
        assert_eq!(code, 65, "{stderr}");
        stderr
    };
    let mut footer = bytes.clone();
    let end = footer.len();
    footer[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut page = bytes.clone();
    page[1000] ^= 0x10;
    insta::assert_snapshot!(
        [
            refused("cut.parquet", &bytes[..bytes.len() / 2]),
            refused("start.parquet", &bytes[..6]),
            refused("footer.parquet", &footer),
            refused("page.parquet", &page),
        ]
        .concat()
    );
    let to_itself = folder.path().join("none/x.parquet").display().to_string();
    let (code, _) = failure(&["convert", "README.md", "-o", &to_itself], folder.path());
    assert_eq!(code, 65);
    assert!(!Path::new(&to_itself).exists(), "nothing is left behind");
    let (code, stderr) =
        failure(&["convert", CAPTURE, "linux-6.1", "-o", &table(&folder)], folder.path());
    assert_eq!(
        (code, &*stderr),
        (64, "rareplay: -o FOLDER/run.parquet: several captures need a folder\n")
    );
}

/// A list of accesses has no events that a table could hold.
#[test]
fn an_iolog_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet");
    let iolog = "../../parser/tests/fixtures/fio-3.33.iolog";
    let (code, error) = failure(&["convert", iolog, "-o", path.to_str().unwrap()], folder.path());
    assert_eq!(code, 65);
    assert!(error.contains("lists accesses instead of events"), "{error}");
    assert!(!path.exists());
}

/// The table of a capture that is joined from two files has the events of both.
#[test]
fn a_joined_capture_becomes_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.parquet").display().to_string();
    let capture = "join/xfs_issue.ftrace.zst";
    stdout(&["convert", capture, "-o", &path]);
    for command in ["inspect", "verify"] {
        let of = |source| nameless(&[command, source, "--format", "json"]);
        assert_eq!(of(&path), of(capture), "{command}");
    }
}

/// Groups that are passed over count as events that were left out.
#[test]
fn a_part_of_a_table_is_that_part_of_its_capture() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(&folder);
    let first = nameless(&["inspect", CAPTURE, "--format", "json"])["first_ns"].as_u64().unwrap();
    for (seconds_later, has_events) in [(0.1, true), (1e6, false)] {
        let from = format!("{}", first as f64 / 1e9 + seconds_later);
        let of = |source| nameless(&["inspect", source, "--from", &from, "--format", "json"]);
        let (mut part, mut of_table) = (of(CAPTURE), of(&table));
        for report in [&mut part, &mut of_table] {
            // Why there are none names the source.
            report.as_object_mut().unwrap().remove("no_streams");
        }
        assert_eq!(of_table, part);
        assert_eq!(part["filter"]["events_total"], 28886);
        assert_eq!(part["filter"]["events_kept"].as_u64().unwrap() > 0, has_events);
    }
}
