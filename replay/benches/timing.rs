//! What time costs: 1 MiB sequential reads of a 512 MiB file, untimed and on virtual time.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use replay::device::DeviceFile;
use replay::machine::Machine;
use replay::run::{CpuCosts, RunOptions, run};
use replay::{policy, trace_order};
use traces::access::Source;
use traces::settings::Settings;
use traces::workload;

const WORKLOAD: &str = r#"
[file]
size = "512M"
[settings]
read_ahead_kb = 128
max_sectors_kb = 512
[[stream]]
steps = [{ read = "sequential", size = "1M" }]
"#;

fn source() -> Source {
    workload::parse(WORKLOAD, "seq1m", &Settings::default()).expect("the workload is right")
}

fn untimed_and_timed(criterion: &mut Criterion) {
    let source = source();
    let policy = policy::parse("linux-6.18").expect("a policy");
    let mut group = criterion.benchmark_group("seq1m");
    group.throughput(Throughput::Bytes(source.files[0].size_bytes));
    group.bench_function("untimed", |bencher| {
        bencher.iter(|| {
            let mut machine = Machine::new(&*policy, &source, true, false);
            trace_order::replay(&mut machine, &source);
            black_box(machine.files.len())
        });
    });
    for device in ["nvme", "hdd"] {
        let file = DeviceFile::load(device).expect("a preset");
        let options = RunOptions {
            cpu: CpuCosts::default(),
            queue: file.queue,
            think: false,
            keep_reads: false,
            keep_history: false,
        };
        group.bench_function(device, |bencher| {
            bencher.iter(|| {
                let mut device = file.build();
                black_box(run(&source, &*policy, &mut *device, &options).1.elapsed_ns)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, untimed_and_timed);
criterion_main!(benches);
