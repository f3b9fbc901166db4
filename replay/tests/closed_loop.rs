//! What must hold of every run on virtual time: nothing is lost, nothing waits for ever.

use proptest::prelude::*;
use replay::device::{DeviceFile, Scheduler, presets};
use replay::policy;
use replay::run::{CpuCosts, RunOptions, run};
use traces::access::Source;
use traces::settings::{Origin, Settings};
use traces::units::{PAGE_SIZE, Time};
use traces::workload;

/// Readers of one file: whether in order, KiB per read, reads.
type Readers = Vec<(bool, u64, u64)>;

fn source(readers: &Readers, set: &[(&str, String)]) -> Source {
    let mut text = "[file]\nsize = \"16M\"\n".to_owned();
    for (seed, (in_order, kib, count)) in readers.iter().enumerate() {
        let step = if *in_order {
            format!("read = \"sequential\", size = \"{kib}K\"")
        } else {
            format!("read = \"random\", size = \"{kib}K\", count = {count}, seed = {seed}")
        };
        text += &format!("[[stream]]\nsteps = [{{ {step} }}]\n");
    }
    let mut settings = Settings::default();
    for (key, value) in set {
        settings.set(key, value, Origin::Given).expect("it is a setting");
    }
    workload::parse(&text, "readers", &settings).expect("the workload is right")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_lose_nothing_and_end(
        readers in prop::collection::vec((any::<bool>(), 1..600_u64, 1..60_u64), 1..5),
        which in 0..presets::all().count(),
        depth in 1..40_u64,
        nr_requests in 1..60_u64,
        is_sorted in any::<bool>(),
        chunk_pages in 0..64_u64,
    ) {
        let scheduler = if is_sorted { Scheduler::MqDeadline } else { Scheduler::None };
        let source = source(&readers, &[
            ("scheduler", scheduler.name().to_owned()),
            ("nr_requests", nr_requests.to_string()),
            ("chunk_sectors", (chunk_pages * 8).to_string()),
        ]);
        let (_, text) = presets::all().nth(which).expect("in range");
        let mut file = DeviceFile::parse(text, "preset").expect("presets are tested");
        file.queue.depth = depth.try_into().expect("not 0");
        let options = RunOptions {
            cpu: CpuCosts::default(),
            queue: file.queue,
            think: true,
            keep_reads: true,
            keep_history: false,
        };
        let policy = policy::parse("linux-7.3").expect("a policy");
        let (machine, timeline) = run(&source, &*policy, &mut *file.build(), &options);

        let reads: u64 = timeline.streams.iter().map(|stream| stream.reads).sum();
        prop_assert_eq!(reads, source.accesses.len() as u64, "a read never ended");
        let inserted: u64 = machine.files.iter().map(|file| file.log.pages_inserted).sum();
        prop_assert_eq!(timeline.queue.request_bytes, inserted * PAGE_SIZE);
        prop_assert_eq!(timeline.queue.requests, timeline.requests_completed);
        let sizes: u64 = timeline.queue.request_sizes.iter().map(|(bytes, count)| bytes * count).sum();
        prop_assert_eq!(sizes, timeline.queue.request_bytes);

        let bound = if is_sorted { depth } else { depth.min(nr_requests) };
        prop_assert!(timeline.queue.depth_max <= bound);
        let mut before = Time(0);
        for change in &timeline.queue.depth {
            prop_assert!(change.time >= before && u64::from(change.in_flight) <= bound);
            before = change.time;
        }
        let last = timeline.queue.depth.last().map(|change| (change.in_flight, change.waiting));
        prop_assert_eq!(last, Some((0, 0)), "a request never completed");
        prop_assert!(timeline.queue.busy_ns <= before.0, "busier than there was time");
        for read in &timeline.reads {
            prop_assert!(read.began <= read.ready && read.ready.0 <= timeline.elapsed_ns);
        }
    }
}
