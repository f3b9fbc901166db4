//! `integrations/spark` on a standalone cluster of this machine: a master, two workers, 200 captures, and
//! one worker killed in the middle. What comes out has to be what one run on one machine gives.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use analysis::gate::expand;
use anyhow::{Context, ensure};
use serde_json::Value;

use crate::program;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/corpus");
const SCRIPT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../integrations/spark/rareplay_spark.py");

/// Entries of the list.
const ENTRIES: usize = 200;
/// Values of `read_ahead_kb` that the corpus is repeated with.
const READ_AHEAD_KB: [u64; 6] = [64, 128, 256, 512, 1024, 4096];
const POLICIES: [&str; 4] =
    ["--policy", "linux-6.18", "--policy", "linux-7.3+align-async-window-v2"];

/// How long anything may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn run(python: &Path, program: Option<&Path>) -> anyhow::Result<()> {
    let program = program::built(program)?;
    let place = tempfile::tempdir()?;
    let list = place.path().join("captures.csv");
    fs::write(&list, entries(place.path())?)?;

    let single = place.path().join("single");
    let status = Command::new(&program)
        .args(["replay", "--from-list"])
        .arg(&list)
        .args(POLICIES)
        .arg("-o")
        .arg(&single)
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.code() == Some(65), "the run on one machine ended with {status}");

    let cluster = Cluster::start(python, place.path())?;
    let results = place.path().join("results");
    let killed = replay(&cluster, &program, &list, &results, place.path())?;
    hold(&program, &single, &results)?;
    roll_up(&cluster, &program, &results, place.path())?;
    println!("{ENTRIES} captures, {killed}: what one machine gives, byte for byte");
    Ok(())
}

/// The corpus, again and again with other settings, one capture that is corrupt and one that is not there.
fn entries(place: &Path) -> anyhow::Result<String> {
    let corrupt = place.join("corrupt.trace.zst");
    fs::write(&corrupt, [0x28, 0xb5, 0x2f, 0xfd, 4, 0, 7])?;
    let corpus = Path::new(CORPUS).canonicalize()?;
    let sources = expand(&[corpus])?;
    let mut lines = vec!["source,host,workload,set".to_owned()];
    let good = READ_AHEAD_KB.iter().flat_map(|kb| sources.iter().map(move |source| (kb, source)));
    for (at, (kb, source)) in good.take(ENTRIES - 2).enumerate() {
        let workload = source.key.split('.').next().unwrap_or_default();
        let (path, host) = (source.path.display(), at % 10);
        lines.push(format!("{path},host{host},{workload},read_ahead_kb={kb}"));
    }
    ensure!(lines.len() == ENTRIES - 1, "the corpus has only {} sources", sources.len());
    lines.insert(40, format!("{},host3,none,", corrupt.display()));
    lines.insert(160, format!("{},host4,none,", place.join("missing.trace").display()));
    Ok(lines.join("\n") + "\n")
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed before.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A standalone cluster: each of its parts is a process of its own.
struct Cluster {
    python: PathBuf,
    /// What `pip install pyspark` unpacked.
    spark: PathBuf,
    url: String,
    workers: Vec<Process>,
    _master: Process,
}

impl Cluster {
    fn start(python: &Path, place: &Path) -> anyhow::Result<Self> {
        let find = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";
        let found = Command::new(python).args(["-c", find]).output();
        let found = found.with_context(|| python.display().to_string())?;
        ensure!(found.status.success(), "{} has no pyspark", python.display());
        let spark = PathBuf::from(String::from_utf8(found.stdout)?.trim());
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let start = |class: &str, log: &str, args: &[&str]| -> anyhow::Result<Process> {
            let log = File::create(place.join(log))?;
            let child = Command::new(spark.join("bin/spark-class"))
                .arg(format!("org.apache.spark.deploy.{class}"))
                .args(args)
                .envs([("SPARK_LOCAL_IP", "127.0.0.1"), ("SPARK_DAEMON_MEMORY", "512m")])
                .env("PYSPARK_PYTHON", python)
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()?;
            Ok(Process(child))
        };
        let port = port.to_string();
        let master = ["--host", "127.0.0.1", "--port", &port, "--webui-port", "0"];
        let master = start("master.Master", "master.log", &master)?;
        wait_for("the master", || TcpStream::connect(format!("127.0.0.1:{port}")).is_ok())?;
        let url = format!("spark://127.0.0.1:{port}");
        let mut workers = Vec::new();
        for number in 0..2 {
            let work = place.join(format!("work{number}")).display().to_string();
            let args = [
                &url,
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                &work,
            ];
            workers.push(start("worker.Worker", &format!("worker{number}.log"), &args)?);
        }
        let log = || fs::read_to_string(place.join("master.log")).unwrap_or_default();
        wait_for("two workers", || log().matches("Registering worker").count() == 2)?;
        Ok(Self { python: python.to_owned(), spark, url, workers, _master: master })
    }

    /// The command that submits the script with some arguments.
    fn submit(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.spark.join("bin/spark-submit"));
        command
            .args(["--master", &self.url, "--conf", "spark.executor.memory=512m"])
            .args(["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false"])
            .arg(SCRIPT)
            .args(args)
            .env("SPARK_LOCAL_IP", "127.0.0.1")
            .envs([("PYSPARK_PYTHON", &self.python), ("PYSPARK_DRIVER_PYTHON", &self.python)]);
        command
    }
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !is_there() {
        ensure!(begun.elapsed() < PATIENCE, "no sign of {what}");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs the job, kills a worker when a quarter of the results is there, and says what became of it.
fn replay(
    cluster: &Cluster,
    program: &Path,
    list: &Path,
    results: &Path,
    place: &Path,
) -> anyhow::Result<String> {
    let [program, list, output] = [program, list, results].map(|path| path.display().to_string());
    let mut args = vec!["replay", "--program", &program, "--list", &list, "--output", &output];
    args.extend(POLICIES);
    args.extend(["--per-task", "4"]);
    let log_path = place.join("job.log");
    let log = File::create(&log_path)?;
    let mut job = Process(cluster.submit(&args).stdout(log.try_clone()?).stderr(log).spawn()?);
    let count = || fs::read_dir(results).map_or(0, Iterator::count);
    let said = || fs::read_to_string(&log_path).unwrap_or_default();
    let quarter = ENTRIES * POLICIES.len() / 2 / 4;
    wait_for("results", || count() >= quarter || job.0.try_wait().is_ok_and(|end| end.is_some()))?;
    let victim = cluster.workers[0].0.id();
    let before = count();
    // The worker's executor ends when it is gone.
    let killed = Command::new("kill").args(["-KILL", &victim.to_string()]).status()?;
    ensure!(killed.success(), "worker {victim} cannot be killed");
    let ended = job.0.wait()?;
    let log = said();
    ensure!(ended.code() == Some(65), "the job ended with {ended}:\n{log}");
    ensure!(log.contains("Lost executor"), "the job lost no executor:\n{log}");
    let mut reported: Vec<&str> =
        log.lines().filter(|line| line.starts_with("rareplay: ")).collect();
    let summary = reported.pop().context("the job says nothing")?;
    ensure!(summary.contains(&format!("{ENTRIES} sources listed")), "{summary}");
    ensure!(summary.ends_with("2 without figures"), "{summary}");
    let is_named = |name: &str| reported.iter().filter(|line| line.contains(name)).count() == 1;
    ensure!(
        reported.len() == 2 && is_named("corrupt.trace.zst") && is_named("missing.trace"),
        "{reported:?}"
    );
    println!("{summary}");
    Ok(format!("worker {victim} killed after {before} results"))
}

/// The same files with the same bytes, and the same when they are put together.
fn hold(program: &Path, single: &Path, results: &Path) -> anyhow::Result<()> {
    let expected = files(single)?;
    let found = files(results)?;
    ensure!(expected.len() == ENTRIES * POLICIES.len() / 2, "{} results", expected.len());
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    ensure!(names(&found) == names(&expected), "other results: {} files", found.len());
    for (name, bytes) in &expected {
        ensure!(found[name] == *bytes, "{name} differs");
    }
    let merged = |folder: &Path| {
        let path = folder.with_extension("parquet");
        let status = Command::new(program)
            .arg("merge")
            .arg(folder)
            .arg("-o")
            .arg(&path)
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "merging ended with {status}");
        Ok(fs::read(path)?)
    };
    ensure!(merged(single)? == merged(results)?, "the merged tables differ");
    Ok(())
}

/// The files in a folder, but for those that a process wrote when it was killed.
fn files(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.insert(name, fs::read(path)?);
        }
    }
    Ok(files)
}

/// What Spark SQL adds up is what `inspect` does.
fn roll_up(cluster: &Cluster, program: &Path, results: &Path, place: &Path) -> anyhow::Result<()> {
    let path = results.display().to_string();
    let rolled = cluster
        .submit(&["rollup", "--results", &path, "--by", "host"])
        .stderr(File::create(place.join("rollup.log"))?)
        .output()?;
    let log = fs::read_to_string(place.join("rollup.log"))?;
    ensure!(rolled.status.success(), "the rollup ended with {}:\n{log}", rolled.status);
    let mut by_spark = BTreeMap::new();
    for line in String::from_utf8(rolled.stdout)?.lines().filter(|line| line.starts_with('{')) {
        let group: Value = serde_json::from_str(line)?;
        by_spark.insert((text(&group["policy"]), text(&group["host"])), group);
    }
    let inspected = Command::new(program)
        .args(["inspect", &path, "--by", "host", "--format", "json"])
        .output()?;
    let report: Value = serde_json::from_slice(&inspected.stdout)?;
    let mut groups = 0;
    for policy in report["policies"].as_array().context("no policies")? {
        for group in policy["groups"].as_array().context("no groups")? {
            groups += 1;
            let key = (text(&policy["policy"]), text(&group["name"]));
            let found = by_spark.get(&key).with_context(|| format!("Spark has no {key:?}"))?;
            for (name, value) in [
                ("sources", &group["sources"]),
                ("failed", &group["failed"]),
                ("exact", &group["exact"]),
                ("folios", &group["folios"]["total"]),
                ("folios_by_order", &group["folios"]["by_order"]),
                ("device_reads", &group["device_reads"]["count"]),
                ("device_read_bytes", &group["device_reads"]["bytes"]),
                ("pages_unused", &group["pages_unused"]),
                ("elapsed_ns", &group["elapsed_ns"]),
                ("read_wait_ns_p50", &group["read_wait_ns"]["p50"]),
                ("read_wait_ns_p99", &group["read_wait_ns"]["p99"]),
                ("read_wait_ns_max", &group["read_wait_ns"]["max"]),
            ] {
                ensure!(
                    found[name] == *value,
                    "{key:?}: {name} is {} by Spark, {value}",
                    found[name]
                );
            }
        }
    }
    ensure!(
        groups == by_spark.len() && groups == 20,
        "{groups} groups, {} by Spark",
        by_spark.len()
    );
    println!("{groups} groups add up by Spark SQL as by inspect");
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
