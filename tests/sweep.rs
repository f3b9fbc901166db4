//! `rareplay sweep` end to end.

mod common;

use common::{json, rareplay};

const CAPTURE: &str = "linux-6.18/unaligned.ftrace.zst";

#[test]
fn a_capture_is_swept_under_its_own_kernel() {
    let report = json(&["sweep", CAPTURE, "--set", "read_ahead_kb=0,64..512", "--format", "json"]);
    assert_eq!(report["schema"], "rareplay.sweep/1");
    assert_eq!(report["policies"], serde_json::json!(["linux-6.18"]));
    let points = report["points"].as_array().unwrap();
    let values: Vec<&str> =
        points.iter().map(|point| point["values"][0].as_str().unwrap()).collect();
    assert_eq!(values, ["0", "64", "128", "256", "512"]);
    // Where the sweep meets the recording, it gives what was recorded.
    let current = points.iter().find(|point| point["is_current"] == true).unwrap();
    assert_eq!(current["values"][0], "128");
    assert_eq!(current["results"][0]["folios"]["total"], 553);
    assert_eq!(current["results"][0]["device_reads"]["count"], 514);
    assert_eq!(report["verify"]["exact"], true);
    assert!(report["verify"]["timing"]["recorded_ns"].as_u64().unwrap() > 0);
    assert!(report["advice"][0]["reason"].as_array().unwrap().len() > 1);
}

#[test]
fn every_format_names_the_value() {
    let sweep = ["sweep", CAPTURE, "--set", "read_ahead_kb=64..256", "--policy", "linux-7.3"];
    for format in ["text", "markdown", "mail", "csv"] {
        let args = [&sweep[..], &["--format", format]].concat();
        let output = rareplay(&args).assert().success().get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("read_ahead_kb") && text.contains("linux-7.3"), "{text}");
    }
}

#[test]
fn single_values_and_the_device_are_settings_of_every_point() {
    let set = ["--set", "memory=1M", "--set", "read_ahead_kb=64,128", "--device", "hdd"];
    let args = [&["sweep", CAPTURE, "--format", "json"][..], &set].concat();
    let report = json(&args);
    let mut settings = report["settings"].as_array().unwrap().iter();
    let memory = settings.find(|setting| setting["key"] == "memory").unwrap();
    assert_eq!((&memory["value"], &memory["origin"]), (&"1024K".into(), &"given".into()));
    assert_eq!(report["device"]["model"], "hdd");
}

#[test]
fn the_same_bytes_whatever_the_number_of_threads() {
    let set = ["--set", "device=hdd,nvme", "--set", "read_ahead_kb=64..256"];
    let args = [&["sweep", CAPTURE, "linux-6.18/inter2.ftrace.zst"][..], &set].concat();
    let one = rareplay(&args).env("RAYON_NUM_THREADS", "1").output().unwrap().stdout;
    let three = rareplay(&args).env("RAYON_NUM_THREADS", "3").output().unwrap().stdout;
    assert!(!one.is_empty());
    assert_eq!(one, three);
}

#[test]
fn what_is_no_sweep_is_a_usage_error() {
    for (set, expected) in [
        ("read_ahead_kb=128", "one or two settings with several values"),
        ("read_ahead_kb=4096..64", "from the larger value"),
        ("fs=xfs,ext4", "cannot be swept"),
        ("device=nvme,none-such", "none-such"),
        ("colour=red,blue", "unknown setting"),
    ] {
        let output = rareplay(&["sweep", CAPTURE, "--set", set]).assert().code(64);
        let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(message.contains(expected), "{set}: {message}");
    }
    // A workload description has no kernel of its own.
    let workload = "workloads/rand4k.workload.toml";
    let output = rareplay(&["sweep", workload, "--set", "read_ahead_kb=64,128"]).assert().code(65);
    let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(message.contains("--policy"), "{message}");
}

/// A capture of 6.18 states the readahead of its device, which `--set` overrides all the same.
#[test]
fn read_ahead_can_be_overridden_where_it_is_recorded() {
    let windows = |set: &str| {
        let args = ["replay", CAPTURE, "--policy", "linux-6.18", "--set", set, "--format", "json"];
        json(&args)["results"][0]["device_reads"]["count"].as_u64().unwrap()
    };
    let (small, large) = (windows("read_ahead_kb=64"), windows("read_ahead_kb=1024"));
    assert!(small > 4 * large, "{small} reads with 64 KiB, {large} with 1 MiB");
}

#[test]
fn a_sweep_is_a_page_with_its_chart_and_data() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let set = ["--set", "read_ahead_kb=64..512", "--png", "-o", &out];
    rareplay(&[&["sweep", CAPTURE][..], &set].concat()).assert().success();
    let file = |name: &str| std::fs::read(folder.path().join("out").join(name)).unwrap();
    let page = String::from_utf8(file("index.html")).unwrap();
    let own = page.replace("http://www.w3.org/", "");
    for outside in ["http://", "https://", "<script", "url(http"] {
        assert!(!own.contains(outside), "the page needs {outside}");
    }
    let report: serde_json::Value = serde_json::from_slice(&file("sweep.json")).unwrap();
    let reason = report["advice"][0]["reason"][0].as_str().unwrap();
    assert!(page.contains(reason), "{reason}");
    // The value to take is marked in the data, once for each figure of the chart.
    let chosen = report["advice"][0]["point"].as_u64().unwrap() as usize;
    let value = report["points"][chosen]["values"][0].as_str().unwrap();
    let data = String::from_utf8(file("sweep.csv")).unwrap();
    let marked: Vec<&str> = data.lines().filter(|line| line.contains("chosen")).collect();
    assert_eq!(marked.len(), 5, "{data}");
    assert!(marked.iter().all(|line| line.contains(&format!(",read_ahead_kb,{value},"))));
    assert!(String::from_utf8(file("figures.csv")).unwrap().lines().count() > 4);
    assert!(file("sweep.svg").len() < 300_000 && file("sweep.png").starts_with(b"\x89PNG"));
    let two = ["sweep", CAPTURE, CAPTURE, "--set", "read_ahead_kb=64,128", "-o", &out];
    rareplay(&two).assert().code(64);
}
