//! What a fleet costs: seconds and bytes per million accesses and per GiB of capture, on one CPU and on
//! two, over the captures of the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use analysis::gate::{SourceFile, expand};
use analysis::load::{LoadOptions, load};
use anyhow::{Context, ensure};
use traces::workload::is_workload;

use crate::peers::children_seconds;
use crate::program;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/corpus");
/// How often the corpus is listed; the difference tells the slope.
const TIMES: [u64; 2] = [2, 12];
const POLICY: [&str; 2] = ["--policy", "linux-6.18"];

/// A fleet that the docs derive figures for.
const FLEET: (u64, f64) = (10_000, 2.0);

/// One run over some captures.
struct Run {
    captures: u64,
    accesses: u64,
    capture_bytes: u64,
    wall_s: f64,
    cpu_s: f64,
    memory_bytes: u64,
    result_bytes: u64,
}

pub(crate) fn run(program: Option<&Path>) -> anyhow::Result<()> {
    let program = &program::built(program)?;
    let corpus = Corpus::new()?;
    println!(
        "| CPUs | captures | accesses | GiB unpacked | wall s | CPU s | peak MiB | result MiB |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut slopes = Vec::new();
    for threads in [1, 2] {
        let [few, many] = TIMES.map(|times| measured(program, &corpus, threads, times));
        let (few, many) = (few?, many?);
        for run in [&few, &many] {
            println!(
                "| {threads} | {} | {} | {:.2} | {:.1} | {:.1} | {} | {:.2} |",
                run.captures,
                run.accesses,
                gib(run.capture_bytes),
                run.wall_s,
                run.cpu_s,
                run.memory_bytes >> 20,
                run.result_bytes as f64 / f64::from(1 << 20)
            );
        }
        slopes.push(slope(&few, &many, threads));
    }
    println!("\n{}", slopes.concat());
    Ok(())
}

/// The captures of the corpus that say what the program asked for.
struct Corpus {
    paths: Vec<PathBuf>,
    /// Of all of them, unpacked.
    bytes: u64,
    accesses: u64,
}

impl Corpus {
    fn new() -> anyhow::Result<Self> {
        let sources = expand(&[Path::new(CORPUS).canonicalize()?])?;
        let captures = sources.into_iter().filter(|source| !is_workload(&source.path));
        let mut corpus = Self { paths: Vec::new(), bytes: 0, accesses: 0 };
        for SourceFile { path, .. } in captures {
            corpus.bytes += std::io::copy(&mut parser::open(&path)?, &mut std::io::sink())?;
            corpus.accesses += load(&path, &LoadOptions::default())?.source.accesses.len() as u64;
            corpus.paths.push(path);
        }
        Ok(corpus)
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// What one more capture costs, whatever a run costs by itself.
fn slope(few: &Run, many: &Run, threads: usize) -> String {
    let accesses = (many.accesses - few.accesses) as f64 / 1e6;
    let size = gib(many.capture_bytes - few.capture_bytes);
    let (wall, cpu) = (many.wall_s - few.wall_s, many.cpu_s - few.cpu_s);
    let (captures, each) = FLEET;
    let total = captures as f64 * each;
    format!(
        "{threads} CPUs: {:.1} s and {:.1} CPU s per million accesses, {:.1} s and {:.1} CPU s per GiB; \
         {captures} captures of {each} GiB take {:.1} CPU hours\n",
        wall / accesses,
        cpu / accesses,
        wall / size,
        cpu / size,
        total * cpu / size / 3600.0,
    )
}

/// Replays the corpus so many times, each time of another host.
fn measured(program: &Path, corpus: &Corpus, threads: usize, times: u64) -> anyhow::Result<Run> {
    let place = tempfile::tempdir()?;
    let lines = (0..times).flat_map(|host| {
        corpus.paths.iter().map(move |path| format!("{},host{host}\n", path.display()))
    });
    let (list, results) = (place.path().join("list.csv"), place.path().join("results"));
    fs::write(&list, "source,host\n".to_owned() + &lines.collect::<String>())?;
    let before = children_seconds()?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["replay", "--from-list"])
        .arg(&list)
        .args(POLICY)
        .arg("-o")
        .arg(&results)
        .env("RAYON_NUM_THREADS", threads.to_string())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| program.display().to_string())?;
    let memory_bytes = peak_bytes(&mut child)?;
    let output = child.wait_with_output()?;
    let (wall_s, cpu_s) = (begun.elapsed().as_secs_f64(), children_seconds()? - before);
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {said}", output.status);
    let mut result_bytes = 0;
    for entry in fs::read_dir(&results)? {
        result_bytes += entry?.metadata()?.len();
    }
    Ok(Run {
        captures: corpus.paths.len() as u64 * times,
        accesses: corpus.accesses * times,
        capture_bytes: corpus.bytes * times,
        wall_s,
        cpu_s,
        memory_bytes,
        result_bytes,
    })
}

/// The most memory a process had, as the kernel counts it until its end.
fn peak_bytes(child: &mut Child) -> anyhow::Result<u64> {
    let path = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait()?.is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        sleep(Duration::from_millis(20));
    }
    Ok(peak_kib << 10)
}
