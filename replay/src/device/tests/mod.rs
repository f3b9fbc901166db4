//! Devices in closed loops.

mod models;
mod queue;
mod reference;

use traces::settings::Settings;
use traces::units::{PageIndex, Sector, Time};

use super::DeviceFile;
use super::queue::{Begun, DeviceQueue, QueueUse};
use crate::block::{QueueLimits, Request};

/// Bytes that random reads are spread over: 200 GB, and for the sizes of disks 1.8 TB.
const SPAN_SECTORS: u64 = 200_000_000_000 / 512;
const DISK_SECTORS: u64 = 1_800_000_000_000 / 512;

fn preset(name: &str) -> DeviceFile {
    DeviceFile::load(name).expect("a preset")
}

fn request(sector: u64, bytes: u64) -> Request {
    Request {
        file: 0,
        page: PageIndex(0),
        sector: Sector(sector),
        sectors: bytes >> 9,
        segments: 1,
    }
}

fn limits() -> QueueLimits {
    QueueLimits::new(&Settings::default())
}

/// Places of requests.
struct Places {
    state: u64,
    random_in: Option<u64>,
    next: u64,
}

impl Places {
    fn sequential() -> Self {
        Self { state: 0, random_in: None, next: 0 }
    }

    fn sequential_from(next: u64) -> Self {
        Self { state: 0, random_in: None, next }
    }

    fn random(sectors: u64) -> Self {
        Self { state: 1, random_in: Some(sectors), next: 0 }
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let Some(sectors) = self.random_in else {
            self.next += bytes >> 9;
            return self.next - (bytes >> 9);
        };
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((u128::from(self.state) * u128::from(sectors)) >> 64) as u64 & !7
    }
}

/// What a run of requests gave.
struct Measured {
    requests: u64,
    bytes: u64,
    elapsed: Time,
    usage: QueueUse,
    latencies_ns: Vec<u64>,
}

impl Measured {
    fn iops(&self) -> f64 {
        self.requests as f64 / self.elapsed.0 as f64 * 1e9
    }

    fn megabytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed.0 as f64 * 1e3
    }

    fn latency_us(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.requests as f64 / 1e3
    }
}

/// Keeps `depth` requests of `bytes` under way until `requests` have completed.
fn closed_loop(
    file: &DeviceFile,
    depth: u64,
    bytes: u64,
    requests: u64,
    mut places: Places,
) -> Measured {
    let arrivals: Vec<(u64, u64)> = (0..requests).map(|_| (places.take(bytes), bytes)).collect();
    run(file, &arrivals, |begun| begun < depth)
}

/// Submits requests in order whenever `may` allows one more under way.
fn run(file: &DeviceFile, arrivals: &[(u64, u64)], may: impl Fn(u64) -> bool) -> Measured {
    let mut device = file.build();
    let mut queue = DeviceQueue::new(&mut *device, file.queue, limits());
    let mut submitted: Vec<Time> = Vec::new();
    let mut under_way: Vec<Begun> = Vec::new();
    let mut begun = Vec::new();
    let (mut now, mut open) = (Time(0), 0);
    let mut latencies_ns = Vec::new();
    loop {
        while submitted.len() < arrivals.len() && may(open) {
            let (sector, bytes) = arrivals[submitted.len()];
            queue.submit(now, request(sector, bytes), submitted.len() as u32);
            submitted.push(now);
            open += 1;
        }
        queue.dispatch(now, &mut begun);
        under_way.append(&mut begun);
        under_way.sort_by_key(|begun| std::cmp::Reverse((begun.completes, begun.queued.id)));
        let Some(first) = under_way.pop() else { break };
        assert!(
            first.completes >= submitted[first.queued.id as usize],
            "completed before its issue"
        );
        now = first.completes;
        let mut completed = Vec::new();
        queue.complete(now, first.queued.id, &mut completed);
        for id in completed {
            latencies_ns.push(now - submitted[id as usize]);
            open -= 1;
        }
    }
    let bytes = arrivals.iter().map(|(_, bytes)| bytes).sum();
    Measured {
        requests: latencies_ns.len() as u64,
        bytes,
        elapsed: now,
        usage: queue.into_use(),
        latencies_ns,
    }
}

fn within(measured: f64, published: f64, percent: f64, what: &str) {
    let error = (measured / published - 1.0) * 100.0;
    assert!(error.abs() <= percent, "{what}: {measured:.1} against {published}, {error:+.1} %");
}
