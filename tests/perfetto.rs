//! `--format perfetto`: a timeline that holds what the report counts.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use common::{json, rareplay, stdout};

/// Slices of one policy's process, as a viewer pairs them up.
#[derive(Default)]
struct Process {
    name: String,
    threads: BTreeSet<u64>,
    /// Slices of threads: name, nanoseconds from and to, arguments.
    slices: Vec<(String, u64, u64, Value)>,
    instants: Vec<(String, Value)>,
    /// Requests: nanoseconds from and to, arguments.
    requests: Vec<(u64, u64, Value)>,
}

fn text<'v>(event: &'v Value, field: &str) -> &'v str {
    event[field].as_str().unwrap_or_default()
}

/// Nanoseconds of a time in microseconds; no more digits than that may be there.
fn nanoseconds(event: &Value) -> u64 {
    let shown = event["ts"].to_string();
    let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
    assert!(fraction.len() <= 3, "{event}");
    format!("{whole}{fraction:0<3}").parse().unwrap_or_else(|_| panic!("{event}"))
}

/// Reads a timeline as viewers do, and fails where one of them could not.
fn read(timeline: &Value) -> Vec<Process> {
    let mut processes: BTreeMap<u64, Process> = BTreeMap::new();
    let mut open: BTreeMap<(u64, u64), Vec<(&Value, u64)>> = BTreeMap::new();
    let mut last: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut under_way: BTreeMap<&str, (&Value, u64)> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for event in timeline["traceEvents"].as_array().unwrap() {
        let pid = event["pid"].as_u64().unwrap();
        let process = processes.entry(pid).or_default();
        let phase = text(event, "ph");
        let thread = || (pid, event["tid"].as_u64().unwrap_or_else(|| panic!("{event}")));
        if matches!(phase, "B" | "E" | "i") {
            let before = last.insert(thread(), nanoseconds(event));
            assert!(before.is_none_or(|before| before <= nanoseconds(event)), "{event}");
            assert!(process.threads.contains(&thread().1), "a thread without a name: {event}");
        }
        match phase {
            "M" if text(event, "name") == "process_name" => {
                text(&event["args"], "name").clone_into(&mut process.name);
            }
            "M" => assert!(process.threads.insert(thread().1), "{event}"),
            "B" => open.entry(thread()).or_default().push((event, nanoseconds(event))),
            "E" => {
                let (begin, from) = open.get_mut(&thread()).and_then(Vec::pop).unwrap();
                let name = text(begin, "name").to_owned();
                process.slices.push((name, from, nanoseconds(event), begin["args"].clone()));
            }
            "i" => {
                assert_eq!(event["s"], "t");
                let depth = open.get(&thread()).map_or(0, Vec::len);
                assert_eq!(depth, 1, "outside of a call, or inside a wait: {event}");
                process.instants.push((text(event, "name").to_owned(), event["args"].clone()));
            }
            "b" => {
                assert!(ids.insert(text(event, "id")), "{event}");
                under_way.insert(text(event, "id"), (event, nanoseconds(event)));
            }
            "e" => {
                let (begin, from) = under_way.remove(text(event, "id")).unwrap();
                for same in ["pid", "cat", "name"] {
                    assert_eq!(begin[same], event[same]);
                }
                let to = nanoseconds(event);
                assert!(from <= to, "{begin} to {event}");
                process.requests.push((from, to, begin["args"].clone()));
            }
            _ => panic!("{event}"),
        }
    }
    assert!(open.values().all(Vec::is_empty) && under_way.is_empty());
    let threads: Vec<u64> = processes.values().flat_map(|own| own.threads.clone()).collect();
    let unique: BTreeSet<u64> = threads.iter().copied().chain(processes.keys().copied()).collect();
    assert_eq!(unique.len(), threads.len() + processes.len(), "some readers know them by number");
    processes.into_values().collect()
}

fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.sum()
}

fn field(args: &Value, name: &str) -> u64 {
    args[name].as_u64().unwrap_or_else(|| panic!("{name} of {args}"))
}

/// Holds a process against the policy's figures in `rareplay.replay/1`.
fn check(process: &Process, result: &Value) {
    assert_eq!(process.name, result["policy"]);
    let reads = &result["device_reads"];
    assert_eq!(process.requests.len() as u64, reads["count"]);
    assert_eq!(
        sum(process.requests.iter().map(|(_, _, args)| field(args, "bytes"))),
        reads["bytes"]
    );
    let use_of = &result["device_use"];
    let in_flight_ns = sum(process.requests.iter().map(|(from, to, _)| to - from));
    let mean = in_flight_ns.checked_div(process.requests.len() as u64).unwrap_or(0);
    assert_eq!(mean, use_of["request_ns"]);

    let named = |name: &'static str| process.instants.iter().filter(move |(own, _)| own == name);
    assert_eq!(named("window").count() as u64, result["windows"]);
    let submitted = sum(named("submit").map(|(_, args)| field(args, "pages")));
    assert_eq!(submitted, result["pages"]["inserted"]);
    for (order, folios) in result["folios"]["by_order"].as_array().unwrap().iter().enumerate() {
        let order = order.to_string();
        let own = named("submit").filter_map(|(_, args)| args["folios_by_order"][&order].as_u64());
        assert_eq!(sum(own), folios.as_u64().unwrap(), "order {order}");
    }

    let is_read = |name: &str| matches!(name, "read" | "touch" | "fault");
    let reads = process.slices.iter().filter(|(name, ..)| is_read(name));
    let streams = use_of["streams"].as_array().unwrap();
    let counted = sum(streams.iter().map(|stream| field(stream, "reads")));
    assert_eq!(reads.clone().count() as u64, counted);
    let longest = reads.map(|(_, _, _, args)| field(args, "waited_ns")).max().unwrap_or(0);
    assert_eq!(longest, result["read_wait_ns"]["max"]);
    let waited = |is_wait: bool| {
        let own = process.slices.iter().filter(move |(name, ..)| (name == "wait") == is_wait);
        own.map(
            move |(_, from, to, args)| {
                if is_wait { to - from } else { field(args, "waited_ns") }
            },
        )
    };
    assert_eq!(sum(waited(true)), sum(waited(false)), "waits are what calls waited");
    assert!(waited(true).all(|ns| ns > 0));
    let ends = process.slices.iter().map(|(_, _, to, _)| *to).max().unwrap_or(0);
    assert_eq!(ends, result["elapsed_ns"]);
}

#[test]
fn a_timeline_holds_what_the_report_counts() {
    let pair = ["--policy", "linux-6.18", "--policy", "align-async-window-v2"];
    let rest: [&[&str]; 8] = [
        &["linux-6.18/seq1m_after4k_ms512.ftrace.zst"],
        &["linux-6.18/inter2fd.ftrace.zst", "--device", "hdd"],
        &["linux-6.18/willneed4.ftrace.zst", "--device", "sata-ssd"],
        &["linux-6.18/thr4same.ftrace.zst", "--set", "scheduler=mq-deadline"],
        &["linux-6.18/mmapseq.ftrace.zst"],
        &["linux-6.1/mmap_rand.ftrace.zst"],
        &["linux-6.18/dontneed.ftrace.zst", "--set", "memory=16M"],
        &["workloads/regions2m.workload.toml", "--device", "network"],
    ];
    for rest in rest {
        let command = [&["replay"], rest, &pair].concat();
        let timeline = json(&[&command[..], &["--format", "perfetto"]].concat());
        let report = json(&[&command[..], &["--format", "json"]].concat());
        let processes = read(&timeline);
        let results = report["results"].as_array().unwrap();
        assert_eq!(processes.len(), results.len());
        for (process, result) in processes.iter().zip(results) {
            assert!(!process.slices.is_empty() && !process.requests.is_empty());
            check(process, result);
        }
        let about = &timeline["otherData"];
        assert!(text(about, "source").contains(rest[0]), "{about}");
        for what in ["settings", "streams", "model", "check"] {
            assert!(!text(about, what).is_empty(), "{what}");
        }
    }
}

#[test]
fn the_same_bytes_whatever_the_number_of_threads() {
    let args = ["compare", "linux-6.18/unaligned.ftrace.zst", "--policy", "linux-6.18"];
    let args = [&args[..], &["--policy", "linux-6.1", "--format", "perfetto"]].concat();
    let one = rareplay(&args).env("RAYON_NUM_THREADS", "1").output().unwrap().stdout;
    let three = rareplay(&args).env("RAYON_NUM_THREADS", "3").output().unwrap().stdout;
    assert!(!one.is_empty());
    assert!(one == three);
}

#[test]
fn a_page_can_be_written_beside_a_timeline() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let args = ["compare", "linux-6.18/unaligned.ftrace.zst", "--policy", "linux-6.18"];
    let rest = ["--policy", "linux-6.1", "--format", "perfetto", "-o", &out];
    assert!(stdout(&[&args[..], &rest].concat()).starts_with("{\"traceEvents\":["));
    assert!(folder.path().join("index.html").is_file());
}

#[test]
fn several_sources_are_no_timeline() {
    let sources = ["linux-6.18/unaligned.ftrace.zst", "linux-6.18/inter2.ftrace.zst"];
    let replay = [&["replay"], &sources[..], &["--policy", "linux-7.3"]].concat();
    let compare = [&["compare"], &sources[..]].concat();
    for args in [replay, compare] {
        rareplay(&[&args[..], &["--format", "perfetto"]].concat()).assert().code(64);
    }
}
