//! Events per second of the parsers, beside the programs people use, over the same files in one run.
//!
//! CPU time, so that what else runs on the machine does not count. Ours is one thread's.

#[path = "../../parser/benches/inputs/mod.rs"]
mod inputs;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;
use cpu_time::ProcessTime;
use rayon::{ThreadPool, ThreadPoolBuilder};
use traces::capture::Comms;
use traces::event::Event;

/// What a program did in some CPU time.
struct Measured {
    name: String,
    events: u64,
    bytes: u64,
    cpu_s: f64,
}

/// Times each is run; the best one counts.
const RUNS: usize = 3;

pub(crate) fn run(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    println!("{:28} {:>12} {:>14} {:>10} {:>8}", "", "events", "events/s", "MB/s", "times");
    row(folder, "trace.dat", "bench.trace.dat", &inputs::trace_dat_bytes(), |path| {
        command("trace-cmd", &["report", path])
    })?;
    row(folder, "blktrace", "bench.blktrace.0", &inputs::blktrace_bytes(), |path| {
        command("blkparse", &["-q", "-i", path.trim_end_matches(".blktrace.0")])
    })?;
    let text = inputs::text().repeat(8).into_bytes();
    row(folder, "ftrace text", "bench.trace.txt", &text, |path| command("wc", &["-l", path]))?;
    threads(&text)
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Measures ours and the peer's over one file.
fn row(
    folder: &Path,
    name: &str,
    file: &str,
    bytes: &[u8],
    peer: impl Fn(&str) -> Command,
) -> anyhow::Result<()> {
    let path = folder.join(file);
    std::fs::write(&path, bytes)?;
    let pool = pool(1)?;
    let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
    let mut events = 0;
    let mut program = peer(&path.display().to_string());
    for _ in 0..RUNS {
        let begin = ProcessTime::now();
        events = pool.install(|| count_events(&path))?;
        ours = ours.min(begin.elapsed().as_secs_f64());
        theirs = theirs.min(child_seconds(&mut program)?);
    }
    std::fs::remove_file(&path)?;
    let bytes = bytes.len() as u64;
    let peer_name = program.get_program().to_string_lossy().into_owned();
    let of = |name: String, cpu_s| Measured { name, events, bytes, cpu_s };
    show(&of(name.to_owned(), ours), None);
    show(&of(format!("  {peer_name}"), theirs), Some(theirs / ours));
    Ok(())
}

fn show(measured: &Measured, times: Option<f64>) {
    let Measured { name, events, bytes, cpu_s } = measured;
    let times = times.map_or(String::new(), |times| format!("{times:.2}"));
    let (rate, megabytes) = (*events as f64 / cpu_s, *bytes as f64 / cpu_s / 1e6);
    println!("{name:28} {events:12} {rate:14.0} {megabytes:10.1} {times:>8}");
}

/// The same text on one core and on two, by the clock on the wall.
fn threads(text: &[u8]) -> anyhow::Result<()> {
    let wall = |threads: usize| -> anyhow::Result<f64> {
        let pool = pool(threads)?;
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let begin = Instant::now();
            let mut sink = |_: &[Event], _: &Comms| {};
            pool.install(|| parser::stream(text, "bench", &mut sink))?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    println!("two threads: {:.2} times one, on the wall", wall(1)? / wall(2)?);
    Ok(())
}

fn pool(threads: usize) -> anyhow::Result<ThreadPool> {
    Ok(ThreadPoolBuilder::new().num_threads(threads).build()?)
}

fn count_events(path: &Path) -> anyhow::Result<u64> {
    let mut count = 0;
    let mut sink = |events: &[Event], _: &Comms| count += events.len() as u64;
    parser::stream_path(path, &mut sink)?;
    Ok(count)
}

/// CPU time of a child, in user and system: run as often as it takes for ticks to tell.
fn child_seconds(command: &mut Command) -> anyhow::Result<f64> {
    const SECONDS_MIN: f64 = 0.5;
    let before = children_seconds()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let mut runs = 0.0;
    loop {
        let status = command.status().with_context(|| format!("cannot run {program}"))?;
        anyhow::ensure!(status.success(), "{program} failed");
        runs += 1.0;
        let seconds = children_seconds()? - before;
        if seconds >= SECONDS_MIN {
            return Ok(seconds / runs);
        }
    }
}

/// CPU time of all children that ended: `cutime` and `cstime` of `/proc/self/stat`, which a name in
/// brackets precedes.
pub(crate) fn children_seconds() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let ticks: Result<Vec<u64>, _> = fields.skip(13).take(2).map(str::parse).collect();
    // USER_HZ has been 100 on every architecture that matters for 20 years.
    Ok(ticks?.iter().sum::<u64>() as f64 / 100.0)
}
