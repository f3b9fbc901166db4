//! Sources of every kind end to end: iologs, standard input, files of one run, parts of a capture,
//! histograms, damage.

mod common;

use serde_json::Value;

use common::{CORPUS, failure, rareplay, stdout};

const IOLOG: &str = "../../parser/tests/fixtures/fio-3.33.iolog";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(&[args, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn an_iolog_is_a_source() {
    insta::assert_snapshot!(stdout(&["inspect", IOLOG]));
    let report = json(&["replay", IOLOG, "--policy", "linux-6.18"]);
    assert_eq!(report["fidelity"], "exact");
    assert_eq!(report["streams"]["accesses"], 24);
    assert_eq!(report["losses"]["not-replayed"]["count"], 8);
    let (code, error) = failure(&["verify", IOLOG, "--policy", "linux-6.18"]);
    assert_eq!(code, 65);
    assert!(error.contains("nothing to verify against"), "{error}");
}

#[test]
fn compressed_standard_input() {
    let file = format!("{CORPUS}/linux-6.18/mmapseq.ftrace.zst");
    let set = ["--set", "kernel=6.18.44", "--set", "max_sectors_kb=512"];
    let args = [&["verify", "-", "--format", "json"][..], &set].concat();
    let output = rareplay(&args).pipe_stdin(file).unwrap().assert().success();
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(report["captures"][0]["exact"], true);
    assert_eq!(report["captures"][0]["losses"], serde_json::json!({}));
    let settings = report["captures"][0]["settings"].as_array().unwrap();
    assert!(settings.iter().any(|setting| setting["origin"] == "given"), "{settings:?}");
}

/// What `verify` finds of a run, whatever it was joined from.
fn verified(args: &[&str]) -> Value {
    let report = json(&[&["verify"], args].concat());
    let capture = report["captures"][0].clone();
    assert_eq!(capture["exact"], true, "{capture}");
    serde_json::json!([capture["folios"], capture["device_reads"], capture["stream"]])
}

#[test]
fn a_joined_run_is_the_run() {
    for fs in ["xfs", "ext4"] {
        let whole = verified(&[&format!("join/{fs}_whole.ftrace.zst")]);
        // The sidecars name the file to join.
        assert_eq!(verified(&[&format!("join/{fs}_issue.ftrace.zst")]), whole, "{fs}");
        assert_eq!(verified(&[&format!("join/{fs}_mono.ftrace.zst")]), whole, "{fs}");
    }
}

#[test]
fn a_folder_has_joined_files_once() {
    let report = json(&["verify", "join"]);
    assert_eq!(report["captures"].as_array().unwrap().len(), 6);
}

#[test]
fn joins_are_shown() {
    let args = ["inspect", "join/xfs_issue.ftrace.zst"];
    let join = json(&args)["joins"][0].clone();
    assert_eq!(join["aligned_by"], "events");
    assert!(join["residual_ns"].as_u64().unwrap() < 1_000_000, "{join}");
    let text = stdout(&args);
    let line = text.lines().find(|line| line.contains("joined")).unwrap();
    assert!(line.contains("xfs_run.blktrace.zst, aligned by"), "{line}");
    let join = json(&["inspect", "join/xfs_mono.ftrace.zst"])["joins"][0].clone();
    assert_eq!((&join["aligned_by"], &join["offset_ns"]), (&"clock".into(), &0.into()));
}

#[test]
fn a_join_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("run.ftrace.zst").display().to_string();
    std::fs::copy(format!("{CORPUS}/join/xfs_mono.ftrace.zst"), &copy).unwrap();
    let blktrace = "join/xfs_run.blktrace.zst";
    let (code, error) = failure(&["inspect", &copy, "--join", blktrace]);
    assert_eq!(code, 65);
    assert!(
        error.contains("--clock mono") && error.contains("trace-cmd record -C mono"),
        "{error}"
    );
    let report = json(&["inspect", &copy, "--join", blktrace, "--clock", "mono"]);
    assert_eq!(report["format"], "ftrace text + blktrace");
    let (code, error) = failure(&["inspect", &copy, &copy, "--join", blktrace]);
    assert_eq!((code, error.contains("one capture")), (64, true), "{error}");
}

const PART: &str = "linux-6.18/thr4same.ftrace.zst";

#[test]
fn parts_of_a_capture() {
    let whole = json(&["inspect", PART]);
    let requests = whole["devices"][0]["data_reads"]["count"].as_u64().unwrap();
    assert_eq!(whole["filter"], Value::Null);
    let of = |args: &[&str]| json(&[&["inspect", PART], args].concat());

    let first = whole["first_ns"].as_u64().unwrap();
    let middle = first + whole["span_ns"].as_u64().unwrap() / 2;
    let seconds = format!("{}.{:09}", middle / 1_000_000_000, middle % 1_000_000_000);
    let (before, after) = (of(&["--to", &seconds]), of(&["--from", &seconds]));
    let total = |report: &Value| report["events"]["total"].as_u64().unwrap();
    let on_the_edge = total(&before) + total(&after) - total(&whole);
    assert!(on_the_edge <= 1);
    assert_eq!(before["filter"]["events_total"], whole["events"]["total"]);
    assert_eq!(before["losses"], serde_json::json!({}));

    let file = whole["files"][0]["file"].as_str().unwrap();
    let inode = file.rsplit('/').next().unwrap();
    // All but the reads of metadata.
    let of_file = of(&["--inode", inode]);
    assert_eq!(of_file["devices"][0]["data_reads"]["count"], requests);
    assert_eq!(of_file["devices"][0]["metadata_reads"], 0);
    assert_eq!(total(&of(&["--inode", "1"])), 0);
    assert_eq!(total(&of(&["--dev", "1:1"])), 0);
    assert_eq!(total(&of(&["--comm", "nobody"])), 0);
    assert_eq!(of(&["--dev", "7:0"])["devices"][0]["data_reads"]["count"], requests);
}

#[test]
fn a_thread_with_its_requests() {
    let path = "../../parser/tests/fixtures/linux-6.18-xfs.trace.txt";
    let text = std::fs::read_to_string(format!("{CORPUS}/{path}")).unwrap();
    let line = text.lines().find(|line| line.contains("xfs_file_buffered_read")).unwrap();
    let pid = line.split('[').next().unwrap().trim().rsplit('-').next().unwrap();
    let report = json(&["inspect", path, "--pid", pid]);
    assert_eq!(report["streams"]["threads"], 1);
    let completed = report["devices"][0]["issue_to_complete_ns"]["count"].as_u64().unwrap();
    assert!(completed > 0, "completions belong to the thread whose bios they are");
    insta::assert_snapshot!(stdout(&["inspect", path, "--pid", pid]));
}

#[test]
fn top_files() {
    let report = json(&["inspect", IOLOG, "--top", "1"]);
    assert_eq!(report["files"].as_array().unwrap().len(), 1);
    assert_eq!(report["files"][0]["file"], "b.dat");
    assert_eq!(report["files_omitted"], 1);
    assert!(stdout(&["inspect", IOLOG, "--top", "1"]).contains("and 1 more file"));
    let (code, error) = failure(&["inspect", IOLOG, "--pid", "1"]);
    assert_eq!((code, error.contains("nothing to filter by")), (65, true), "{error}");
}

#[test]
fn a_histogram_is_a_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.txt").display().to_string();
    // The orders of the capture, as bpftrace's count() by order prints them, less 16 of order 0.
    std::fs::write(&path, "Attaching 1 probe...\n\n@[0]: 16\n@[2]: 8\n@[4]: 2\n@[5]: 510\n")
        .unwrap();
    let capture = "linux-6.18/mmapseq.ftrace.zst";
    insta::assert_snapshot!(
        stdout(&["compare", &path, capture]).replace(&folder.path().display().to_string(), "DIR")
    );
    let report = json(&["compare", capture, &path]);
    let rows = report["sources"][0]["orders"]["by_order"].as_array().unwrap();
    assert_eq!((&rows[0]["baseline"], &rows[0]["candidate"]), (&32.into(), &16.into()));
    std::fs::write(&path, "@:\n[0, 1)  16 |@@|\n[4, 8)   2 |@|\n").unwrap();
    let report = json(&["compare", capture, &path]);
    assert_eq!(report["verdict"], "bad-input");
    let reason = report["sources"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("lhist(order, 0, 12, 1)"), "{reason}");
}

#[test]
fn a_capture_without_streams_shows_what_it_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lost.txt").display().to_string();
    let insertion = "mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1 ofs=0 order=2";
    let text = format!("CPU:1 [LOST 4711 EVENTS]\n  less-9 [001] .....  72.531607: {insertion}\n");
    std::fs::write(&path, text).unwrap();
    for command in [&["verify"][..], &["replay", "--policy", "linux-6.18"]] {
        let (code, error) = failure(&[command, &[&path]].concat());
        assert_eq!(code, 65);
        assert!(error.contains("events lost by the tracer: 4711"), "{error}");
    }
    let gate = ["gate", &path, "--baseline", "linux-6.12", "--candidate", "linux-6.18"];
    let output = rareplay(&[&gate[..], &["--format", "json"]].concat()).assert().failure();
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let reason = report["sources"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("4711"), "{reason}");
}
