//! Bytes of ftrace text and events of binary formats a second.

mod inputs;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rayon::{ThreadPool, ThreadPoolBuilder};
use traces::capture::Comms;
use traces::event::Event;

use inputs::{blktrace_bytes, text, trace_dat_bytes};

/// Events of a capture, without keeping them.
fn count_events(bytes: &[u8]) -> usize {
    let mut count = 0;
    let mut sink = |events: &[Event], _: &Comms| count += events.len();
    parser::stream(bytes, "bench", &mut sink).expect("parses");
    black_box(count)
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

fn ftrace(criterion: &mut Criterion) {
    let text = text();
    let mut group = criterion.benchmark_group("ftrace");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    for threads in [1, 2] {
        let pool = pool(threads);
        group.bench_function(BenchmarkId::new("stream", threads), |bencher| {
            bencher.iter(|| pool.install(|| count_events(text.as_bytes())));
        });
    }
    group.bench_function("read/1", |bencher| {
        let pool = pool(1);
        bencher.iter(|| pool.install(|| parser::read(text.as_bytes(), "bench").expect("parses")));
    });
    group.finish();
}

fn binary(criterion: &mut Criterion) {
    for (name, bytes) in [("blktrace", blktrace_bytes()), ("trace_dat", trace_dat_bytes())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(count_events(&bytes) as u64)).sample_size(10);
        for threads in [1, 2] {
            let pool = pool(threads);
            group.bench_function(BenchmarkId::new("stream", threads), |bencher| {
                bencher.iter(|| pool.install(|| count_events(&bytes)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, ftrace, binary);
criterion_main!(benches);
