//! `rareplay gate` through the program: every exit code, verdict file and refusal.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

const MAINLINE: &str = "linux-6.18";
const ALIGNED: &str = "linux-7.3+align-async-window-v2";

/// Noon of 2026-12-01.
const TODAY: &str = "1796126400";

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/corpus").join(name)
}

fn workload(name: &str) -> String {
    corpus(&format!("workloads/{name}.workload.toml")).display().to_string()
}

/// A folder to run the gate in.
struct Place(TempDir);

/// What a run of the gate left.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    /// The first two lines of the verdict file.
    verdict: String,
}

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("rareplay").expect("the program");
        command.current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", TODAY).args(args);
        command
    }

    /// Runs the gate with a verdict file.
    fn gate(&self, args: &[&str]) -> Run {
        let mut command = self.command(&["gate", "--verdict-file", "verdict"]);
        let output = command.args(args).output().expect("it starts");
        let lines: Vec<String> = self.read("verdict").lines().take(2).map(str::to_owned).collect();
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
            verdict: lines.join(" "),
        }
    }
}

impl Run {
    #[track_caller]
    fn assert(&self, code: i32, verdict: &str) {
        let expected = (Some(code), format!("verdict={verdict} exit_code={code}"));
        assert_eq!((self.code, self.verdict.clone()), expected, "{}{}", self.stdout, self.stderr);
    }
}

/// Without the lines of modelled times, which change with the model.
fn without_times(text: &str) -> String {
    let is_time = |line: &&str| line.contains("_ns") || line.contains("\"device.");
    text.lines().filter(|line| !is_time(line)).collect::<Vec<_>>().join("\n")
}

/// A capture of 16 reads of 16 KiB, so far apart, each served by folios of an order.
fn capture(apart_us: u64, order: u32) -> String {
    let mut text = "# tracer: nop\n#\n".to_owned();
    for read in 0..16_u64 {
        let time_us = 1_000_000 + read * apart_us;
        let time = format!("{}.{:06}", time_us / 1_000_000, time_us % 1_000_000);
        let pos = read << 14;
        let _ = writeln!(
            text,
            " app-100 [000] ..... {time}: xfs_file_buffered_read: dev 7:0 ino 0x83 disize 0x40000 \
             pos {pos:#x} bytecount 0x4000"
        );
        for folio in 0..4 >> order {
            let offset = pos + (folio << (12 + order));
            let _ = writeln!(
                text,
                " app-100 [000] ..... {time}: mm_filemap_add_to_page_cache: dev 7:0 ino 83 \
                 pfn=0x1000 ofs={offset} order={order}"
            );
        }
    }
    text
}

fn with_losses(capture: &str) -> String {
    let (head, tail) = capture.split_at(capture.rfind(" app-100").expect("an event"));
    format!("{head}CPU:0 [LOST 7 EVENTS]\n{tail}")
}

fn runs(place: &Place, folder: &str, apart_us: &[u64], order: u32) {
    for (run, apart_us) in apart_us.iter().enumerate() {
        place.write(&format!("{folder}/app/{run}.trace"), &capture(*apart_us, order));
    }
}

#[test]
fn a_pass_exits_with_0() {
    let place = Place::new();
    let sources = ["seq1m_ms512", "seq64k_ms512", "rand4k", "rand64k"].map(workload);
    let mut args: Vec<&str> = sources.iter().map(String::as_str).collect();
    args.extend(["--baseline", ALIGNED, "--candidate", MAINLINE]);
    let run = place.gate(&args);
    run.assert(0, "pass");
    insta::assert_snapshot!(without_times(&run.stdout));
}

#[test]
fn mainline_exits_with_10_against_aligned_windows() {
    let place = Place::new();
    let source = workload("seq1m_after4k_ms512");
    let run = place.gate(&[&source, "--baseline", ALIGNED, "--candidate", MAINLINE]);
    run.assert(10, "regressed");
    insta::assert_snapshot!(without_times(&run.stdout));
}

#[test]
fn aligned_windows_are_an_improvement_on_mainline() {
    let place = Place::new();
    let source = workload("seq1m_after4k_ms512");
    let run = place.gate(&[&source, "--baseline", MAINLINE, "--candidate", ALIGNED]);
    run.assert(0, "pass");
    insta::assert_snapshot!(without_times(&run.stdout));
}

#[test]
fn noisy_runs_exit_with_11() {
    let place = Place::new();
    runs(&place, "base", &[1000, 1100, 950, 1040, 990], 2);
    runs(&place, "new", &[1030, 1150, 980, 1090, 1020], 2);
    let run = place.gate(&["--baseline", "base", "--candidate", "new"]);
    run.assert(11, "inconclusive");
    assert!(run.stdout.contains("runs a side would settle it"), "{}", run.stdout);
}

#[test]
fn recorded_runs_pass_and_fail_by_their_statistics() {
    let place = Place::new();
    runs(&place, "base", &[1000, 1004, 997, 1002, 999], 2);
    runs(&place, "same", &[1001, 1003, 998, 1000, 996], 2);
    runs(&place, "slow", &[1188, 1190, 1185, 1192, 1187], 2);
    runs(&place, "small", &[1000, 1004, 997, 1002, 999], 0);
    place.gate(&["--baseline", "base", "--candidate", "same"]).assert(0, "pass");
    let slow = place.gate(&["--baseline", "base", "--candidate", "slow"]);
    slow.assert(10, "regressed");
    assert!(slow.stdout.contains("+18.8 %"), "{}", slow.stdout);
    let small = place.gate(&["--baseline", "base", "--candidate", "small"]);
    small.assert(10, "regressed");
    assert!(small.stdout.contains("bytes in order 2: 100.0 % to 0.0 %"), "{}", small.stdout);
}

#[test]
fn a_missing_baseline_exits_with_12_until_one_is_accepted() {
    let place = Place::new();
    let source = workload("interleaved2");
    let args = [source.as_str(), "--baseline", "base.toml", "--candidate", MAINLINE];
    place.gate(&args).assert(12, "baseline-missing");
    let accepted = place.gate(&[&args[..], &["--accept"]].concat());
    accepted.assert(0, "pass");
    assert!(accepted.stdout.contains("accepted: the candidate is the baseline from now on"));
    place.gate(&args).assert(0, "pass");
    insta::assert_snapshot!(without_times(&place.read("base.toml")));
    let more = workload("seq1m_ms512");
    place.gate(&[&args[..], &[&more]].concat()).assert(12, "baseline-missing");
}

#[test]
fn what_does_not_compare_exits_with_13() {
    let place = Place::new();
    let (one, two) = (workload("interleaved2"), workload("seq1m_ms512"));
    let sides = ["--baseline", "base.toml", "--candidate", MAINLINE];
    place.gate(&[&[one.as_str(), &two], &sides[..], &["--accept"]].concat()).assert(0, "pass");
    let missing = place.gate(&[&[one.as_str()], &sides[..]].concat());
    missing.assert(13, "not-comparable");
    assert!(missing.stdout.contains("missing: only the baseline has it"), "{}", missing.stdout);
    let both = [&[one.as_str(), &two], &sides[..]].concat();
    let other = place.gate(&[&both[..], &["--set", "read_ahead_kb=256"]].concat());
    other.assert(13, "not-comparable");
    assert!(other.stdout.contains("other settings: read_ahead_kb 128 and 256"));
    let device = place.gate(&[&both[..], &["--device", "hdd"]].concat());
    device.assert(13, "not-comparable");
    // The same name and settings, another content.
    let text = std::fs::read_to_string(&two).expect("the corpus");
    place.write("seq1m_ms512.workload.toml", &format!("{text}\n# changed\n"));
    let changed = [&[one.as_str(), "seq1m_ms512.workload.toml"], &sides[..]].concat();
    let changed = place.gate(&changed);
    changed.assert(13, "not-comparable");
    assert!(changed.stdout.contains("its content changed"), "{}", changed.stdout);
    place.write("base.toml", "schema = \"rareplay.baseline/2\"\n");
    place.gate(&both).assert(13, "not-comparable");
}

#[test]
fn lost_events_exit_with_14_unless_allowed() {
    let place = Place::new();
    place.write("lossy.trace", &with_losses(&capture(1000, 2)));
    let args = ["lossy.trace", "--baseline", "base.toml", "--candidate", MAINLINE, "--accept"];
    place.gate(&args).assert(14, "data-loss");
    assert!(!place.0.path().join("base.toml").exists());
    let args = ["lossy.trace", "--baseline", MAINLINE, "--candidate", MAINLINE];
    let run = place.gate(&args);
    run.assert(14, "data-loss");
    assert!(run.stdout.contains("events lost by the tracer: 7"), "{}", run.stdout);
    place.gate(&[&args[..], &["--allow-loss"]].concat()).assert(0, "pass");
}

#[test]
fn a_wrong_command_line_exits_with_64() {
    let place = Place::new();
    let source = workload("interleaved2");
    let wrong: [&[&str]; 4] = [
        &[&source, "--baseline", "linux-0.01", "--candidate", MAINLINE],
        &["--baseline", MAINLINE, "--candidate", MAINLINE],
        &[&source, "--baseline", "a.toml", "--candidate", "b.toml"],
        &[&source, "--baseline", MAINLINE, "--candidate", MAINLINE, "--accept"],
    ];
    for args in wrong {
        place.gate(args).assert(64, "error");
    }
    let by_clap = [&source, "--baseline", MAINLINE, "--accept", "--bisect"];
    place.command(&["gate"]).args(by_clap).assert().code(64);
}

#[test]
fn bad_input_exits_with_65() {
    let place = Place::new();
    let sides = ["--baseline", MAINLINE, "--candidate", MAINLINE];
    place.write("empty/README.md", "");
    let empty = place.gate(&[&["empty"], &sides[..]].concat());
    empty.assert(65, "bad-input");
    place.write("odd.workload.toml", "[file]\nsize = 1");
    place.gate(&[&["odd.workload.toml"], &sides[..]].concat()).assert(65, "bad-input");
    place.gate(&[&["none.trace"], &sides[..]].concat()).assert(65, "bad-input");
    place.write("base.toml", "schema = \"rareplay.baseline/1\"\nname = 1");
    let source = workload("interleaved2");
    let broken = [source.as_str(), "--baseline", "base.toml", "--candidate", MAINLINE];
    place.gate(&broken).assert(65, "bad-input");
    place.write("gate.toml", "[default]\nsoft = 1");
    place
        .gate(&[&[source.as_str(), "--budget", "gate.toml"], &sides[..]].concat())
        .assert(65, "error");
}

#[test]
fn bisect_exits_with_0_1_and_125() {
    let place = Place::new();
    let source = workload("seq1m_after4k_ms512");
    let gate = |baseline: &str, candidate: &str| {
        place.gate(&[&source, "--bisect", "--baseline", baseline, "--candidate", candidate])
    };
    gate(MAINLINE, ALIGNED).assert(0, "pass");
    gate(ALIGNED, MAINLINE).assert(1, "regressed");
    gate("none.toml", MAINLINE).assert(125, "baseline-missing");
    gate("linux-0.01", MAINLINE).assert(125, "error");
}

#[test]
fn the_self_test_fails_with_10() {
    let place = Place::new();
    let source = workload("interleaved2");
    let args = [source.as_str(), "--baseline", MAINLINE, "--self-test"];
    place.gate(&args).assert(10, "regressed");
    place.write("gate.toml", "[default]\nsoft_percent = 1000");
    place.gate(&[&args[..], &["--budget", "gate.toml"]].concat()).assert(65, "bad-input");
}

#[test]
fn budgets_decide_until_they_expire() {
    let place = Place::new();
    let source = workload("seq1m_after4k_ms512");
    let budget = |expires: &str| {
        let text = format!(
            "[source.\"seq1m_after4k_ms512.workload.toml\"]\nsoft_percent = 2000\n\
             reason = \"known since v6.16\"\nexpires = {expires}\n\
             [metric.\"folios.mean_order\"]\nfloor = 3\n"
        );
        place.write("gate.toml", &text);
        let sides = ["--baseline", ALIGNED, "--candidate", MAINLINE, "--budget", "gate.toml"];
        place.gate(&[&[source.as_str()], &sides[..]].concat())
    };
    budget("2026-12-01").assert(0, "pass");
    let expired = budget("2026-11-30");
    expired.assert(10, "regressed");
    assert!(expired.stdout.contains("expired on 2026-11-30 and is out of force"));
}

#[test]
fn saved_results_are_a_side() {
    let place = Place::new();
    let source = workload("seq1m_after4k_ms512");
    for (policy, file) in [(ALIGNED, "aligned.json"), (MAINLINE, "mainline.json")] {
        let replay = ["replay", "--format", "json", "--policy", policy, &source];
        let output = place.command(&replay).output().expect("it starts");
        place.write(file, &String::from_utf8(output.stdout).expect("text"));
    }
    place
        .gate(&["--baseline", "aligned.json", "--candidate", "mainline.json"])
        .assert(10, "regressed");
    place.gate(&["--baseline", "mainline.json", "--candidate", "aligned.json"]).assert(0, "pass");
    place
        .gate(&[&source, "--baseline", "mainline.json", "--candidate", MAINLINE])
        .assert(0, "pass");
}

#[test]
fn the_history_grows_by_what_changed() {
    let place = Place::new();
    let source = workload("interleaved2");
    for label in ["v1", "v2"] {
        let history = ["--history", "history.txt", "--history-label", label];
        let sides = [source.as_str(), "--baseline", MAINLINE, "--candidate", MAINLINE];
        place.gate(&[&sides[..], &history].concat()).assert(0, "pass");
    }
    let history = place.read("history.txt");
    assert!(history.starts_with("# rareplay.history/1\nrun v1\ninterleaved2.workload.toml\t"));
    assert!(history.ends_with("\nrun v2\n"), "{history}");
}

#[test]
fn every_format_is_the_same_over_runs_and_threads() {
    let place = Place::new();
    runs(&place, "base", &[1000, 1100, 950, 1040, 990], 2);
    runs(&place, "new", &[1030, 1150, 980, 1090, 1020], 1);
    let folder = corpus("workloads").display().to_string();
    let gates: [&[&str]; 2] = [
        &[&folder, "--baseline", ALIGNED, "--candidate", MAINLINE],
        &["--baseline", "base", "--candidate", "new"],
    ];
    for gate in gates {
        for format in ["text", "json", "junit", "ktap", "markdown"] {
            let run = |threads: &str| {
                let mut command = place.command(&["gate", "--format", format]);
                let output = command.env("RAYON_NUM_THREADS", threads).args(gate).output();
                output.expect("it starts").stdout
            };
            let one = run("1");
            assert!(one == run("4") && one == run("3"), "{format} of {gate:?} differs");
        }
    }
}

#[test]
fn results_can_go_to_a_file() {
    let place = Place::new();
    let source = workload("interleaved2");
    let sides = [source.as_str(), "--baseline", MAINLINE, "--candidate", MAINLINE];
    let run = place.gate(&[&sides[..], &["--format", "junit", "-o", "junit.xml"]].concat());
    run.assert(0, "pass");
    assert!(run.stdout.is_empty());
    assert!(place.read("junit.xml").starts_with("<?xml"));
}

/// The shell blocks of a page.
fn shell_blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

fn has_program(name: &str) -> bool {
    std::process::Command::new(name).arg("--version").output().is_ok()
}

#[test]
fn the_recipes_run_as_they_are_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ci.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let place = Place::new();
    let link = place.0.path().join("traces/corpus");
    std::fs::create_dir_all(link.parent().expect("a folder")).expect("made");
    std::os::unix::fs::symlink(corpus(""), link).expect("linked");
    let seq = std::fs::read_to_string(workload("seq1m_after4k_ms512")).expect("the corpus");
    place.write("seq.workload.toml", &seq);
    let program = assert_cmd::cargo::cargo_bin("rareplay");
    let programs = program.parent().expect("a folder").display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
    for block in shell_blocks(&page) {
        let needs = ["jq", "git"].iter().find(|name| block.contains(&format!("{name} ")));
        if needs.is_some_and(|name| !has_program(name)) {
            eprintln!("not run, for want of a program: {block}");
            continue;
        }
        let mut command = Command::new("sh");
        let output = command.args(["-eu", "-c", block]).current_dir(place.0.path());
        let output = output.env("PATH", &path).output().expect("a shell");
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{shown}");
        if block.contains("bisect run") {
            let found = String::from_utf8_lossy(&output.stdout);
            assert!(found.contains("is the first bad commit"), "{found}");
            assert!(found.contains("    linux-6.18"), "{found}");
        }
    }
}
