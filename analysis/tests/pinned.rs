//! Pinned tables: every policy on every workload whose counts are known from a
//! kernel, a capture or a mail. See `pinned.txt`.

use std::path::Path;

use analysis::load::{LoadOptions, load};
use analysis::replay::{Model, replay_one};
use replay::machine::Machine;
use replay::{policy, trace_order};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/corpus");

struct Row<'a> {
    workload: &'a str,
    policy: &'a str,
    reads: u64,
    by_order: Vec<u64>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = include_str!("pinned.txt").lines().filter(|line| !line.starts_with('#'));
    let rows: Vec<_> = lines
        .map(|line| {
            let mut words = line.split_ascii_whitespace();
            let workload = words.next().unwrap();
            let policy = words.next().unwrap();
            let reads = words.next().unwrap().parse().unwrap();
            let by_order = words.map(|word| word.parse().unwrap()).collect();
            Row { workload, policy, reads, by_order }
        })
        .collect();
    assert!(rows.len() > 30, "the table is {} rows", rows.len());
    rows
}

fn source(workload: &str) -> traces::access::Source {
    let path = format!("{CORPUS}/workloads/{workload}.workload.toml");
    load(Path::new(&path), &LoadOptions::default()).unwrap().source
}

#[test]
fn every_row_is_exact() {
    for row in rows() {
        let policy = policy::parse(row.policy).unwrap();
        let result = replay_one(&source(row.workload), &*policy, &Model::default());
        let got = (result.folios.by_order, result.device_reads.count);
        assert_eq!(got, (row.by_order, row.reads), "{} under {}", row.workload, row.policy);
    }
}

#[test]
fn every_policy_is_pinned_or_verified() {
    let verified_by_captures = ["randread-readahead-disabled", "skip-fully-overlapped"];
    let rows = rows();
    for entry in policy::ENTRIES {
        let pinned = rows.iter().any(|row| row.policy.split('+').any(|part| part == entry.name));
        let verified = verified_by_captures.contains(&entry.name);
        assert!(pinned || verified, "{} has no row", entry.name);
    }
}

/// The tracer of the published table counted allocations, of which some find their page taken.
#[test]
fn ab4443fe3ca6_pair_allocates_what_was_published() {
    let source = source("dd4k_12g");
    let allocated = |name: &str| {
        let policy = policy::parse(name).unwrap();
        let mut machine = Machine::new(&*policy, &source, true, false);
        trace_order::replay(&mut machine, &source);
        let log = &machine.files[0].log;
        let orders = log.folios_by_order.iter().zip(&log.conflicts_by_order);
        orders.map(|(inserted, conflicts)| inserted + conflicts).take(6).collect::<Vec<_>>()
    };
    assert_eq!(allocated("linux-6.7"), [36, 0, 20, 2, 4, 98300]);
    assert_eq!(allocated("linux-6.8"), [0, 0, 196_615, 98303, 98303, 0]);
}

/// With readahead off, the change reads each request whole where mainline reads page by page.
#[test]
fn randread_readahead_disabled() {
    let source = source("rand4k_128k_ra0");
    let run = |name: &str| {
        let policy = policy::parse(name).unwrap();
        replay_one(&source, &*policy, &Model::default())
    };
    let mainline = run("linux-7.3");
    let changed = run("linux-7.3+randread-readahead-disabled");
    assert_eq!(mainline.folios, changed.folios);
    assert_eq!(mainline.device_reads.count, mainline.pages.read);
    assert_eq!(mainline.device_reads.bytes, changed.device_reads.bytes);
    assert!(changed.device_reads.count < 2000, "{} reads", changed.device_reads.count);
}
