//! What a fleet costs: seconds and bytes per million accesses and per GiB of capture, on one CPU and on two.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::peers::children_seconds;
use crate::program;

/// Accesses of the captures that are measured, the larger of which tells the slope.
const ACCESSES: [u64; 2] = [500_000, 1_500_000];
/// Captures of a size, so that two CPUs have something to share.
const CAPTURES: usize = 2;
const POLICY: [&str; 2] = ["--policy", "linux-6.18"];

/// A fleet that the docs derive figures for.
const FLEET: (u64, f64) = (10_000, 2.0);

/// One run over some captures.
struct Run {
    accesses: u64,
    capture_bytes: u64,
    wall_s: f64,
    cpu_s: f64,
    memory_bytes: u64,
    result_bytes: u64,
}

pub(crate) fn run(program: Option<&Path>) -> anyhow::Result<()> {
    let program = &program::built(program)?;
    println!("| CPUs | accesses | GiB | wall s | CPU s | peak MiB | result KiB |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for threads in [1, 2] {
        let runs = ACCESSES.map(|accesses| measured(program, threads, accesses));
        let [small, large] = runs;
        let (small, large) = (small?, large?);
        for run in [&small, &large] {
            println!(
                "| {threads} | {} | {:.2} | {:.1} | {:.1} | {} | {:.1} |",
                run.accesses,
                gib(run.capture_bytes),
                run.wall_s,
                run.cpu_s,
                run.memory_bytes >> 20,
                run.result_bytes as f64 / 1024.0
            );
        }
        slope(&small, &large, threads);
    }
    Ok(())
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// What one more capture costs, whatever a run costs by itself.
fn slope(small: &Run, large: &Run, threads: usize) {
    let accesses = (large.accesses - small.accesses) as f64 / 1e6;
    let size = gib(large.capture_bytes - small.capture_bytes);
    let (wall, cpu) = (large.wall_s - small.wall_s, large.cpu_s - small.cpu_s);
    let memory = large.memory_bytes.saturating_sub(small.memory_bytes) as f64 / threads as f64;
    println!(
        "\n{threads}: per million accesses {:.2} s, {:.2} CPU s, {:.0} MB of memory for a capture \
         at a time; per GiB {:.2} s, {:.2} CPU s, {:.1} MiB of results\n",
        wall / accesses,
        cpu / accesses,
        memory / (accesses / CAPTURES as f64) / 1e6,
        wall / size,
        cpu / size,
        large.result_bytes as f64 / f64::from(1 << 20) / gib(large.capture_bytes),
    );
    let (captures, each) = FLEET;
    let total = captures as f64 * each;
    println!(
        "{captures} captures of {each} GiB: {:.0} CPU hours, {:.0} GiB read, {:.1} GiB of memory a capture\n",
        total * cpu / size / 3600.0,
        total,
        memory / (size / CAPTURES as f64) * each / f64::from(1 << 30),
    );
}

/// Replays some captures of as many accesses.
fn measured(program: &Path, threads: usize, accesses: u64) -> anyhow::Result<Run> {
    let place = tempfile::tempdir()?;
    let mut list = "source\n".to_owned();
    let mut capture_bytes = 0;
    for number in 0..CAPTURES {
        let path = place.path().join(format!("{number}.trace"));
        capture(&path, accesses, number as u64).with_context(|| path.display().to_string())?;
        capture_bytes += fs::metadata(&path)?.len();
        list += &format!("{}\n", path.display());
    }
    let (list_path, results) = (place.path().join("list.csv"), place.path().join("results"));
    fs::write(&list_path, list)?;
    let before = children_seconds()?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["replay", "--from-list"])
        .arg(&list_path)
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
    let tables: Vec<PathBuf> =
        fs::read_dir(&results)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    let sizes: Result<Vec<u64>, _> =
        tables.iter().map(|table| table.metadata().map(|metadata| metadata.len())).collect();
    let accesses = accesses * CAPTURES as u64;
    let result_bytes = sizes?.iter().sum();
    Ok(Run { accesses, capture_bytes, wall_s, cpu_s, memory_bytes, result_bytes })
}

/// The most memory a process had, as the kernel counts it until its end.
fn peak_bytes(child: &mut std::process::Child) -> anyhow::Result<u64> {
    let path = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    while child.try_wait()?.is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = peak_kib.max(kib.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(peak_kib << 10)
}

/// A capture as ftrace writes it: 64 KiB reads of a file one after the other, with the folios and the
/// device reads of a real one, at the bytes a real one has for each access.
fn capture(path: &Path, accesses: u64, seed: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "# tracer: nop\n#")?;
    let size = accesses << 16;
    for read in 0..accesses {
        let us = seed + read * 50;
        let mut event = |after_us: u64, text: std::fmt::Arguments<'_>| {
            let us = 1_000_000 + us + after_us;
            let (seconds, us) = (us / 1_000_000, us % 1_000_000);
            writeln!(out, "           app-100     [000] .....  {seconds}.{us:06}: {text}")
        };
        let (pos, sector) = (read << 16, 2048 + (read << 7));
        event(
            0,
            format_args!(
                "xfs_file_buffered_read: dev 7:0 ino 0x83 disize {size:#x} pos {pos:#x} bytecount 0x10000"
            ),
        )?;
        event(1, format_args!("mm_filemap_get_pages: dev 7:0 ino 83 ofs={pos}-{}", pos + 65535))?;
        for folio in 0..4_u64 {
            let (offset, pfn) = (pos + (folio << 14), 0x1000 + (read << 4) + (folio << 2));
            event(
                2,
                format_args!(
                    "mm_filemap_add_to_page_cache: dev 7:0 ino 83 pfn={pfn:#x} ofs={offset} order=2"
                ),
            )?;
        }
        if read % 2 == 0 {
            event(
                3,
                format_args!("block_rq_issue: 7,0 RA 131072 () {sector} + 256 none,0,0 [app]"),
            )?;
            event(30, format_args!("block_rq_complete: 7,0 RA () {sector} + 256 none,0,0 [0]"))?;
        }
    }
    out.flush()
}
