//! The program end to end: real captures in, tables, JSON and exit codes out.

mod common;

use std::path::PathBuf;

use serde_json::Value;

use common::{CORPUS, failure, json, rareplay, stdout};

/// A file with some bytes in it, gone with the folder.
fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

const CAPTURE: &str = "linux-6.18/seq1m_after4k_ms512.ftrace.zst";

/// What a report says without the modelled time, which is pinned with the device models.
fn without_time(text: &str) -> String {
    let timed =
        ["model", "Time (", "elapsed", "read wait", "device busy", "device read", "in flight"];
    let is_time = |line: &str| timed.iter().any(|begin| line.trim_start().starts_with(begin));
    let is_parameter = |line: &str| line.contains("_ns=") || line.contains("_per_s=");
    let mut kept = Vec::new();
    let mut in_errors = false;
    for line in text.lines() {
        in_errors = line.starts_with("  time: ") || (in_errors && line.starts_with("  "));
        if !in_errors && !is_time(line) && !is_parameter(line) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

#[test]
fn compare_shows_the_change_and_the_proof() {
    let args = ["compare", CAPTURE, "--policy", "linux-6.18", "--policy", "align-async-window-v2"];
    insta::assert_snapshot!(without_time(&stdout(&args)));
}

#[test]
fn compare_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let policies = ["--policy", "linux-6.18", "--policy", "align-async-window-v2"];
    stdout(&[&["compare", CAPTURE, "-o", &out][..], &policies].concat());
    let page = std::fs::read_to_string(PathBuf::from(&out).join("index.html")).unwrap();
    assert!(page.contains("<svg"), "the page has its chart inline");
    for outside in ["http://", "https://", "<script"] {
        let own = page.replace("http://www.w3.org/", "");
        assert!(!own.contains(outside), "the page needs {outside}");
    }
}

#[test]
fn verify_gives_the_contract_fields() {
    let report = json(&["verify", "linux-6.18", "--format", "json"]);
    assert_eq!(report["schema"], "rareplay.verify/1");
    let captures = report["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 11);
    for capture in captures {
        assert_eq!(capture["exact"], true, "{capture}");
        assert_eq!(capture["first_difference"], Value::Null);
        for counts in [&capture["folios"], &capture["device_reads"]] {
            assert!(counts["recorded"].as_u64().unwrap() > 0);
            assert_eq!(counts["recorded"], counts["matched"]);
            assert_eq!(counts["recorded"], counts["replayed"]);
        }
        assert!(capture["timing"]["recorded_ns"].is_u64());
        assert!(capture["timing"]["predicted_ns"].is_u64());
    }
}

#[test]
fn verify_against_another_kernel_fails() {
    let args = ["verify", "linux-6.12/interleaved2.ftrace.zst", "--policy", "linux-6.1"];
    let output = rareplay(&args).assert().code(10).get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("differ"), "{text}");
}

/// Every pinned row, through the binary.
#[test]
fn replay_reproduces_the_tables() {
    let table = include_str!("../analysis/tests/pinned.txt");
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let workload = format!("workloads/{}.workload.toml", words[0]);
        let report = json(&["replay", &workload, "--policy", words[1], "--format", "json"]);
        let result = &report["results"][0];
        let by_order: Vec<u64> = words[3..].iter().map(|word| word.parse().unwrap()).collect();
        assert_eq!(result["folios"]["by_order"], serde_json::json!(by_order), "{line}");
        assert_eq!(result["device_reads"]["count"].to_string(), words[2], "{line}");
        rows += 1;
    }
    assert!(rows > 30);
}

#[test]
fn replay_gives_the_contract_fields() {
    let report = json(&[
        "replay",
        CAPTURE,
        "--policy",
        "linux-6.12",
        "--policy",
        "linux-7.3",
        "--format",
        "json",
    ]);
    assert_eq!(report["schema"], "rareplay.replay/1");
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        for field in ["policy", "folios", "device_reads", "pages", "elapsed_ns", "read_wait_ns"] {
            assert!(!result[field].is_null(), "{field}");
        }
        for field in ["acquisitions", "contended", "insert_conflicts"] {
            assert!(result["cache_lock"][field].is_u64(), "{field}");
        }
        assert!(result["windows"].as_u64().unwrap() > 0);
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let args = ["replay", CAPTURE, "--policy", "linux-6.18", "--policy", "linux-6.12"];
    let one = rareplay(&args).env("RAYON_NUM_THREADS", "1").output().unwrap().stdout;
    let two = rareplay(&args).env("RAYON_NUM_THREADS", "2").output().unwrap().stdout;
    assert!(!one.is_empty());
    assert_eq!(one, two);
}

#[test]
fn explain_names_the_alignment_cause_of_ab4443fe3ca6() {
    let workload = "workloads/dd4k_12g.workload.toml";
    let args = ["explain", workload, "--policy", "linux-6.7", "--policy", "linux-6.8"];
    insta::assert_snapshot!(stdout(&args));
}

#[test]
fn explain_names_the_windows_cut_short() {
    let policies = ["--policy", "linux-6.18", "--policy", "align-async-window-v2"];
    insta::assert_snapshot!(stdout(&[&["explain", CAPTURE][..], &policies].concat()));
}

#[test]
fn verify_names_losses_and_assumed_settings() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# tracer: nop\n\
        reader-9 ( 9) [000] ..... 1.000001: xfs_file_buffered_read: dev 7:0 ino 0x83 disize 0x100000 pos 0x0 bytecount 0x1000\n\
        reader-9 ( 9) [000] ..... 1.000002: mm_filemap_add_to_page_cache: dev 7:0 ino 83 pfn=0x1 ofs=20480 order=0\n\
        reader-9 ( 9) [000] ..garbage\n";
    let capture = file(&folder, "damaged.txt", text.as_bytes());
    let (code, stderr) = failure(&["verify", &capture]);
    assert_eq!(code, 10, "{stderr}");
    assert!(
        stderr.contains("damaged.txt: lines or records not understood: 1 (first: line 4:"),
        "{stderr}"
    );
    assert!(
        stderr.contains("damaged.txt: assumed, --set or a sidecar says otherwise: fs=unknown,"),
        "{stderr}"
    );
}

#[test]
fn explain_says_that_no_window_was_on_large_folios() {
    let source = "linux-6.18/fadvrand.ftrace.zst";
    let policies = ["--policy", "linux-6.12", "--policy", "linux-7.3"];
    insta::assert_snapshot!(stdout(&[&["explain", source][..], &policies].concat()));
}

#[test]
fn policy_list_and_show() {
    insta::assert_snapshot!(stdout(&["policy", "list"]));
    insta::assert_snapshot!(stdout(&["policy", "show", "align-async-window-v2"]));
}

#[test]
fn inspect_says_what_is_in_a_capture() {
    let text = stdout(&["inspect", "linux-6.18/willneed4.ftrace.zst"]);
    insta::assert_snapshot!(text);
}

#[test]
fn input_that_is_no_capture_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let capture = std::fs::read(format!("{CORPUS}/{CAPTURE}")).unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("binary", &[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]),
        ("prose", b"This is not a trace.\nNor is this.\n"),
        ("frame", &capture[..12]),
    ] {
        let path = file(&folder, name, bytes);
        let (code, message) = failure(&["verify", &path]);
        assert_eq!(code, 65, "{name}: {message}");
        assert!(message.contains(&path), "{name}: {message}");
    }
}

#[test]
fn a_truncated_capture_is_data_loss() {
    let folder = tempfile::tempdir().unwrap();
    let capture = std::fs::read(format!("{CORPUS}/{CAPTURE}")).unwrap();
    let path = file(&folder, "cut.ftrace.zst", &capture[..capture.len() / 2]);
    let (code, message) = failure(&["verify", &path]);
    assert_eq!(code, 14, "{message}");
    assert!(message.contains("cut short"), "{message}");
    // What came before the cut is still there.
    let text = rareplay(&["inspect", &path]).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(text).unwrap().contains("page_cache_async_ra"));
}

#[test]
fn a_capture_without_accesses_says_what_to_record() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# tracer: nop\n#\n            dd-1234    [000] .....  12.000001: block_rq_issue: \
                7,0 R 4096 () 128 + 8 [dd]\n";
    let path = file(&folder, "blocks.txt", text.as_bytes());
    let (code, message) = failure(&["verify", &path]);
    assert_eq!(code, 65);
    for event in ["xfs_file_buffered_read", "mm_filemap_add_to_page_cache", "trace-cmd record"] {
        assert!(message.contains(event), "{message}");
    }
}

#[test]
fn usage_errors() {
    for args in [
        &["compare", CAPTURE, "--policy", "linux-6.18"][..],
        &["verify", CAPTURE, "--policy", "linux-9.9"],
        &["verify", CAPTURE, "--set", "colour=blue"],
        &["policy", "show", "none-such"],
        &["policy", "build"],
        &["frobnicate"],
    ] {
        let (code, message) = failure(args);
        assert_eq!(code, 64, "{args:?}: {message}");
    }
}

#[test]
fn settings_can_be_overridden() {
    let workload = "workloads/seq1m_after4k_ms512.workload.toml";
    let set = ["--set", "max_sectors_kb=1024", "--policy", "linux-6.18", "--format", "json"];
    let report = json(&[&["replay", workload][..], &set].concat());
    assert_eq!(report["results"][0]["folios"]["total"], 2839);
    let settings = report["settings"].as_array().unwrap();
    let given = settings.iter().find(|setting| setting["key"] == "max_sectors_kb").unwrap();
    assert_eq!((&given["value"], &given["origin"]), (&"1024".into(), &"given".into()));
}

/// A tree of our own, with a readahead that is not Linux's.
const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kernel/tests/tree");

#[test]
fn a_kernel_tree_is_a_policy() {
    let cache = tempfile::tempdir().unwrap();
    let spec = format!("tree:{TREE}");
    let workload =
        "[file]\nsize = \"16M\"\n[[stream]]\nsteps = [{ read = \"sequential\", size = \"64K\" }]\n";
    let workload = file(&cache, "small.workload.toml", workload.as_bytes());
    let args = ["replay", &workload, "--policy", &spec, "--format", "json"];
    let output = rareplay(&args).env("XDG_CACHE_HOME", cache.path()).assert().success();
    let report: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let result = &report["results"][0];
    assert_eq!(result["policy"], spec);
    assert_eq!(result["pages"]["inserted"], 4096);
    assert_eq!(result["device_reads"]["bytes"], 16 << 20);
    let built = rareplay(&["policy", "build", TREE]).env("XDG_CACHE_HOME", cache.path()).assert();
    let text = String::from_utf8(built.success().get_output().stdout.clone()).unwrap();
    assert!(text.contains("version: 9.1.0-rc2") && text.contains("object: found built"), "{text}");
}

#[test]
fn a_kernel_tree_that_does_not_build_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let patch = "--- a/mm/readahead.c\n+++ b/mm/readahead.c\n@@ -1,1 +1,1 @@\n-no such line\n+x\n";
    let patch = file(&folder, "bad.patch", patch.as_bytes());
    let spec = format!("tree:{TREE},patch={patch}");
    let (code, message) = failure(&["verify", CAPTURE, "--policy", &spec]);
    assert_eq!(code, 65, "{message}");
    assert!(message.contains("mm/readahead.c"), "{message}");
    let (code, message) = failure(&["verify", CAPTURE, "--policy", "tree:/nowhere"]);
    assert_eq!(code, 65, "{message}");
    assert!(message.contains("/nowhere"), "{message}");
}

#[test]
fn two_captures_compare() {
    let (new, old) = ("linux-6.12/interleaved2.ftrace.zst", "linux-6.1/interleaved2.ftrace.zst");
    let report = json(&["compare", new, old, "--format", "json"]);
    assert_eq!(report["schema"], "rareplay.gate/1");
    let checks = report["checks"].as_array().unwrap();
    let folios = checks.iter().find(|check| check["metric"] == "folios.total").unwrap();
    assert_eq!((&folios["baseline"], &folios["candidate"]), (&7544.into(), &2097.into()));
    assert_eq!(folios["verdict"], "improved");
    // Captures of different filesystems say nothing of each other.
    let other = "linux-6.18/ext4_seq1m_after4k.ftrace.zst";
    assert_eq!(json(&["compare", CAPTURE, other, "--format", "json"])["verdict"], "not-comparable");
}

#[test]
fn an_error_that_quotes_its_cause_says_it_once() {
    let (code, text) = failure(&["verify", "/nowhere"]);
    assert_eq!(code, 65);
    assert_eq!(text, "rareplay: /nowhere: No such file or directory (os error 2)\n");
}
