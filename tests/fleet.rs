//! `replay --from-list`, `merge`, and commands over results, with the program.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use common::rareplay;

const POLICIES: [&str; 4] =
    ["--policy", "linux-6.18", "--policy", "linux-7.3+align-async-window-v2"];

/// Good sources, a capture cut short in the middle of its first block, and one that is not there.
const LIST: &str = "\
source,host,workload,set
seq1m.trace.zst,web1,table scan,
seq1m.trace.zst,web1,table scan,read_ahead_kb=256
inter2.trace.zst,web2,two scans,
rand4k.workload.toml,db1,lookups,
corrupt.trace.zst,db1,lookups,
missing.trace,db2,lookups,
";

/// A folder with the list and its sources.
struct Place(TempDir);

/// What a run left.
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let corpus = Path::new(common::CORPUS);
        for (from, to) in [
            ("linux-6.18/seq1m_after4k_ms512.ftrace.zst", "seq1m.trace.zst"),
            ("linux-6.18/seq1m_after4k_ms512.meta.toml", "seq1m.meta.toml"),
            ("linux-6.18/inter2.ftrace.zst", "inter2.trace.zst"),
            ("linux-6.18/inter2.meta.toml", "inter2.meta.toml"),
            ("workloads/rand4k.workload.toml", "rand4k.workload.toml"),
        ] {
            fs::copy(corpus.join(from), place.path(to)).unwrap();
        }
        fs::write(place.path("corrupt.trace.zst"), [0x28, 0xb5, 0x2f, 0xfd, 4, 0, 7]).unwrap();
        fs::write(place.path("list.csv"), LIST).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Run {
        let output = rareplay(args).current_dir(self.0.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap();
        Run { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    fn replay(&self, list: &str, args: &[&str]) -> Run {
        self.run(&[&["replay", "--from-list", list], &POLICIES[..], args].concat())
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout
    }

    /// Names and bytes of the files in a folder.
    fn files(&self, folder: &str) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        files
    }
}

fn sorted(lines: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_list_gives_a_line_per_source_and_goes_on_past_bad_ones() {
    let place = Place::new();
    let run = place.replay("list.csv", &[]);
    assert_eq!(run.code, 65);
    insta::assert_snapshot!("messages_of_a_list", sorted(&run.stderr).join("\n"));
    let lines: Vec<Value> =
        sorted(&run.stdout).into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    let errors: Vec<_> = lines.iter().filter(|line| !line["error"].is_null()).collect();
    let named: Vec<_> = errors.iter().map(|line| line["source"].as_str().unwrap()).collect();
    assert_eq!(named, ["corrupt.trace.zst", "missing.trace"]);
    assert!(lines.iter().all(|line| line["schema"] == "rareplay.result/1"));
    assert!(lines.iter().all(|line| line["results"].as_array().unwrap().len() == 2));
    // The figures are those of `replay`.
    let alone =
        place.ok(&[&["replay", "seq1m.trace.zst", "--format", "json"], &POLICIES[..]].concat());
    let alone: Value = serde_json::from_str(&alone).unwrap();
    let line = lines
        .iter()
        .find(|line| {
            line["source"] == "seq1m.trace.zst"
                && line["results"][0]["settings_given"].as_array().unwrap().is_empty()
        })
        .unwrap();
    for i in 0..2 {
        let (expected, row) = (&alone["results"][i], &line["results"][i]);
        assert_eq!(row["policy"], expected["policy"]);
        assert_eq!(row["folios_by_order"], expected["folios"]["by_order"]);
        assert_eq!(row["device_reads"], expected["device_reads"]["count"]);
        assert_eq!(row["elapsed_ns"], expected["elapsed_ns"]);
        assert_eq!(row["read_wait_ns_p99"], expected["read_wait_ns"]["p99"]);
        assert_eq!(row["pages_unused"], expected["pages"]["unused"]);
    }
}

#[test]
fn one_thread_gives_the_same_lines_and_standard_input_is_a_list() {
    let place = Place::new();
    let many = place.replay("list.csv", &[]).stdout;
    let mut command = rareplay(&[&["replay", "--from-list", "-"], &POLICIES[..]].concat());
    let output = command
        .current_dir(place.0.path())
        .env("RAYON_NUM_THREADS", "1")
        .write_stdin(LIST)
        .output()
        .unwrap();
    let one = String::from_utf8(output.stdout).unwrap();
    assert_eq!(sorted(&one), sorted(&many));
    // One thread takes the list from its beginning to its end.
    let first: Value = serde_json::from_str(one.lines().next().unwrap()).unwrap();
    assert_eq!(first["source"], "seq1m.trace.zst");
}

#[test]
fn results_that_are_there_are_not_done_again() {
    let place = Place::new();
    let first = place.replay("list.csv", &["-o", "results"]);
    assert_eq!((first.code, first.stdout.as_str()), (65, ""));
    let files = place.files("results");
    assert_eq!(files.len(), 12, "a table for each source and policy");
    let changed =
        |name: &str| fs::metadata(place.path("results").join(name)).unwrap().modified().unwrap();
    let times: Vec<_> = files.iter().map(|(name, _)| changed(name)).collect();
    let again = place.replay("list.csv", &["-o", "results"]);
    assert_eq!(again.code, 65);
    insta::assert_snapshot!("messages_of_a_list_done_before", sorted(&again.stderr).join("\n"));
    assert_eq!(place.files("results"), files);
    // Only those of the two bad sources were written again.
    let written = files.iter().zip(times).filter(|((name, _), time)| changed(name) != *time);
    assert_eq!(written.count(), 4);

    // What is lost or damaged is made again.
    fs::remove_file(place.path("results").join(&files[3].0)).unwrap();
    fs::write(place.path("results").join(&files[7].0), "PAR1").unwrap();
    place.replay("list.csv", &["-o", "results"]);
    assert_eq!(place.files("results"), files);

    // Another content has another result, in the same place.
    let workload = place.path("rand4k.workload.toml");
    let text = fs::read_to_string(&workload).unwrap();
    fs::write(&workload, text.clone() + "\n# the same\n").unwrap();
    let other = place.replay("list.csv", &["-o", "results"]);
    assert!(
        other.stderr.contains("6 sources listed: 1 replayed, 3 there before"),
        "{}",
        other.stderr
    );
    assert_eq!(place.files("results").len(), 12);
    // A source that is gone leaves its result.
    fs::remove_file(&workload).unwrap();
    let gone = place.replay("list.csv", &["-o", "results"]);
    assert!(gone.stderr.contains("cannot read rand4k.workload.toml"), "{}", gone.stderr);
    let report = place.ok(&["inspect", "results", "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["policies"][0]["all"]["sources"], 4);
}

#[test]
fn results_put_together_are_those_of_one_run() {
    let place = Place::new();
    place.replay("list.csv", &["-o", "whole.parquet"]);
    let whole = fs::read(place.path("whole.parquet")).unwrap();
    // Two machines have a part of the list each; one entry is in both.
    let mut lines = LIST.lines();
    let head = lines.next().unwrap();
    let lines: Vec<&str> = lines.collect();
    let part = |lines: &[&str]| [&[head], lines].concat().join("\n") + "\n";
    fs::write(place.path("a.csv"), part(&lines[..3])).unwrap();
    fs::write(place.path("b.csv"), part(&lines[2..])).unwrap();
    place.replay("a.csv", &["-o", "a"]);
    fs::write(place.path("b.ndjson"), place.replay("b.csv", &[]).stdout).unwrap();
    assert_eq!(
        place.ok(&["merge", "a", "b.ndjson", "-o", "ab.parquet"]),
        "ab.parquet: 12 results\n"
    );
    place.ok(&["merge", "b.ndjson", "a", "a", "-o", "ba.parquet"]);
    assert_eq!(fs::read(place.path("ab.parquet")).unwrap(), whole);
    assert_eq!(fs::read(place.path("ba.parquet")).unwrap(), whole);
    // A run into a table that has some only adds the others.
    let more = place.replay("list.csv", &["-o", "a.parquet"]);
    assert!(
        more.stderr.contains("6 sources listed: 4 replayed, 0 there before"),
        "{}",
        more.stderr
    );
    assert_eq!(fs::read(place.path("a.parquet")).unwrap(), whole);
    let again = place.replay("list.csv", &["-o", "a.parquet"]);
    assert!(
        again.stderr.contains("6 sources listed: 0 replayed, 4 there before"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_fleet_by_label() {
    let place = Place::new();
    place.replay("list.csv", &["-o", "results"]);
    insta::assert_snapshot!("a_fleet_by_host", place.ok(&["inspect", "results"]));
    let by = |by: &str, format: &str| {
        place.ok(&[
            "inspect",
            "results",
            "--by",
            by,
            "--metric",
            "device_reads.count",
            "--format",
            format,
        ])
    };
    insta::assert_snapshot!("a_fleet_by_workload_as_markdown", by("workload", "markdown"));
    let csv = by("kernel", "csv");
    assert!(csv.contains("linux-6.18,6.18.44,device_reads.count,count,"), "{csv}");
    let json: Value = serde_json::from_str(&by("kernel", "json")).unwrap();
    assert_eq!((&json["schema"], &json["by"]), (&"rareplay.fleet/1".into(), &"kernel".into()));
    let run = place.run(&["inspect", "results", "--format", "mail"]);
    assert_eq!(run.code, 64);
    let top = place.ok(&["inspect", "results", "--top", "1"]);
    assert!(top.contains("and 3 more by host, which are better"), "{top}");
}

#[test]
fn the_gate_over_results() {
    let place = Place::new();
    place.replay("list.csv", &["-o", "all"]);
    let good: String = LIST.lines().take(5).map(|line| format!("{line}\n")).collect();
    fs::write(place.path("good.csv"), good).unwrap();
    assert_eq!(place.replay("good.csv", &["-o", "good"]).code, 0);
    let [mainline, aligned] = [POLICIES[1], POLICIES[3]];
    let gate = |results: &str, from: &str, to: &str, more: &[&str]| {
        let args = ["gate", results, "--baseline", from, "--candidate", to];
        place.run(&[&args, more].concat())
    };
    // Both bad sources are in the whole list's.
    assert_eq!(gate("all", mainline, aligned, &[]).code, 65);
    assert_eq!(gate("good", mainline, mainline, &[]).code, 0);
    assert_eq!(gate("good", aligned, mainline, &[]).code, 10);
    let by_host = gate("good", aligned, mainline, &["--by", "host"]);
    assert_eq!(by_host.code, 10);
    insta::assert_snapshot!("the_gate_by_host", by_host.stdout);
    let unknown = gate("good", "linux-5.15", mainline, &[]);
    assert_eq!(unknown.code, 64, "{}", unknown.stderr);

    // Baselines are files of their own, and so are results of one policy.
    assert_eq!(gate("good", "base.toml", mainline, &[]).code, 12);
    assert_eq!(gate("good", "base.toml", aligned, &["--accept"]).code, 0);
    assert_eq!(gate("good", "base.toml", aligned, &[]).code, 0);
    assert_eq!(gate("good", "base.toml", mainline, &[]).code, 10);
    let only = ["replay", "--from-list", "good.csv", "--policy", aligned, "-o", "aligned.parquet"];
    place.ok(&only);
    assert_eq!(gate("good", "aligned.parquet", mainline, &[]).code, 10);
    let self_test = place.run(&["gate", "good", "--baseline", mainline, "--self-test"]);
    assert_eq!(self_test.code, 10);

    let compared = place
        .ok(&["compare", "good", "--policy", aligned, "--policy", mainline, "--by", "workload"]);
    assert!(compared.contains("table scan"), "{compared}");
    place.ok(&["compare", "aligned.parquet", "aligned.parquet"]);
    let run =
        place.run(&["report", "all", "--baseline", aligned, "--candidate", mainline, "-o", "page"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = fs::read_to_string(place.path("page/index.html")).unwrap();
    for text in ["web1", "Sources without figures", "corrupt.trace.zst", "What changed"] {
        assert!(page.contains(text), "{text}");
    }
    for name in ["fleet.json", "gate.json", "figures.csv"] {
        assert!(place.path("page").join(name).exists(), "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let run = place.run(args);
        format!("{}: {}", run.code, run.stderr)
    };
    fs::write(place.path("wrong.csv"), "source,hots\na,b\n").unwrap();
    fs::write(place.path("other.parquet"), "no table").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    let replay = ["replay", "--policy", "linux-6.18", "--from-list"];
    let list = [
        refused(&[&replay[..], &["none.csv"]].concat()),
        refused(&[&replay[..], &["wrong.csv"]].concat()),
        refused(&[&replay[..], &["list.csv", "-o", "other.parquet"]].concat()),
        refused(&[&replay[..], &["list.csv", "--join", "sda"]].concat()),
        refused(&["merge", "empty", "-o", "x.parquet"]),
        refused(&["merge", "list.csv", "-o", "x.parquet"]),
        refused(&["merge", "none", "-o", "x.parquet"]),
        refused(&["compare", "inter2.trace.zst", "inter2.trace.zst", "--by", "host"]),
        refused(&[
            "gate",
            "inter2.trace.zst",
            "--baseline",
            "linux-6.18",
            "--candidate",
            "linux-7.3",
            "--by",
            "host",
        ]),
    ];
    insta::assert_snapshot!("refusals", list.concat());
    let both = place.run(&[&replay[..], &["list.csv", "inter2.trace.zst"]].concat());
    assert_eq!(both.code, 64);
    let none = place.run(&["replay", "--policy", "linux-6.18"]);
    assert_eq!(none.code, 64);
    for args in [
        &["inspect", "inter2.trace.zst", "--by", "host"][..],
        &["inspect", "inter2.trace.zst", "--metric", "windows"],
        &["report", "inter2.trace.zst", "--by", "host", "-o", "page"],
        &["inspect", "inter2.trace.zst", "--metric", "none"],
    ] {
        assert_eq!(place.run(args).code, 64, "{args:?}");
    }
    fs::write(place.path("url.csv"), "source\ns3://bucket/run.trace\n").unwrap();
    if cfg!(not(feature = "remote")) {
        let url = refused(&[&replay[..], &["url.csv"]].concat());
        assert!(url.contains("which needs rareplay built with `--features remote`"), "{url}");
        let url = refused(&["inspect", "s3://bucket/results"]);
        assert!(url.starts_with("65: rareplay: s3://bucket/results is a URL"), "{url}");
    }
}
