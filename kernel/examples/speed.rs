//! Accesses per second of a tree: `speed TREE...`. Each figure is the best of three runs.

use std::process::ExitCode;
use std::time::Instant;

use kernel::{Access, Built, InstanceSettings, Isolation, Limits, Options, Session, Tree};
use traces::units::ByteOffset;

const FILE_BYTES: u64 = 4 << 30;
/// Accesses handed over at once.
const BLOCK: usize = 1 << 14;

struct Workload {
    name: &'static str,
    bytes: u64,
    random: bool,
    count: u64,
}

const WORKLOADS: [Workload; 5] = [
    Workload { name: "sequential 4 KiB", bytes: 4 << 10, random: false, count: 1 << 20 },
    Workload { name: "sequential 64 KiB", bytes: 64 << 10, random: false, count: 1 << 16 },
    Workload { name: "sequential 1 MiB", bytes: 1 << 20, random: false, count: 1 << 12 },
    Workload { name: "random 4 KiB", bytes: 4 << 10, random: true, count: 1 << 19 },
    Workload { name: "random 64 KiB", bytes: 64 << 10, random: true, count: 1 << 16 },
];

fn main() -> ExitCode {
    if let Some(code) = kernel::run_if_asked() {
        return code;
    }
    for spec in std::env::args().skip(1) {
        if let Err(e) = measure(&spec) {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn measure(spec: &str) -> kernel::Result<()> {
    let started = Instant::now();
    let built = Built::new(&Tree::parse(spec)?, &Options::default())?;
    let how = if built.is_from_cache() { "found" } else { "built" };
    println!("{} {how} in {:.2} s", built.describe(), started.elapsed().as_secs_f64());
    let here = Session::start(&built, &Isolation::InProcess)?;
    let started = Instant::now();
    let worker = Session::start(&built, &Isolation::Worker(Limits::default()))?;
    println!("worker started in {:.2} ms", started.elapsed().as_secs_f64() * 1e3);
    println!("small files/s: {:.0} in process, {:.0} worker", files(&here)?, files(&worker)?);
    println!("{:20} {:>16} {:>16}", "accesses/s", "in process", "worker");
    for workload in &WORKLOADS {
        let rates = [best(&here, workload)?, best(&worker, workload)?];
        println!("{:20} {:>16.0} {:>16.0}", workload.name, rates[0], rates[1]);
    }
    Ok(())
}

/// Instances of a small file per second, each opened and read once.
fn files(session: &Session) -> kernel::Result<f64> {
    const FILES: u32 = 20_000;
    let started = Instant::now();
    for _ in 0..FILES {
        let settings = InstanceSettings { i_size: 20_000, ..InstanceSettings::default() };
        let mut instance = session.instance(settings)?;
        let file = instance.open()?;
        instance.replay(&[Access::read(file, ByteOffset(0), 20_000)])?;
    }
    Ok(f64::from(FILES) / started.elapsed().as_secs_f64())
}

fn best(session: &Session, workload: &Workload) -> kernel::Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..3 {
        best = best.max(run(session, workload)?);
    }
    Ok(best)
}

fn run(session: &Session, workload: &Workload) -> kernel::Result<f64> {
    let settings = InstanceSettings { i_size: FILE_BYTES, ..InstanceSettings::default() };
    let mut instance = session.instance(settings)?;
    let file = instance.open()?;
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = |i: u64| {
        if !workload.random {
            return i * workload.bytes;
        }
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % (FILE_BYTES / workload.bytes) * workload.bytes
    };
    let accesses: Vec<Access> = (0..workload.count)
        .map(|i| Access::read(file, ByteOffset(next(i)), workload.bytes))
        .collect();
    let started = Instant::now();
    for block in accesses.chunks(BLOCK) {
        instance.replay(block)?;
    }
    Ok(workload.count as f64 / started.elapsed().as_secs_f64())
}
