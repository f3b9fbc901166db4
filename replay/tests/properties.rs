//! What must hold of every policy on every access stream.

use std::num::NonZeroU64;

use proptest::prelude::*;
use replay::block::Request;
use replay::device::{Device, QueueParameters, Scheduler};
use replay::log::Decision;
use replay::machine::Machine;
use replay::policy::{self, ENTRIES, Policy};
use replay::run::{CpuCosts, RunOptions, run};
use replay::trace_order;
use traces::access::{Access, AccessKind, File, Open, Source};
use traces::event::FileId;
use traces::settings::Settings;
use traces::units::{ByteOffset, Order, PAGE_SIZE, PageIndex, Time};

#[derive(Clone, Debug)]
struct Case {
    size_bytes: u64,
    ra_pages: u64,
    io_kb: u64,
    order_min: u8,
    order_max: u8,
    accesses: Vec<AccessKind>,
}

fn access(pages: u64) -> impl Strategy<Value = AccessKind> {
    let read = (0..pages * PAGE_SIZE, 1_u64..2_000_000)
        .prop_map(|(pos, count)| AccessKind::Read { pos: ByteOffset(pos), count });
    let page = (0..pages).prop_map(PageIndex);
    prop_oneof![
        20 => read,
        4 => page.clone().prop_map(|page| AccessKind::Touch { page }),
        2 => (page.clone(), 1_u64..3000)
            .prop_map(|(page, pages)| AccessKind::WillNeed { page, pages }),
        1 => Just(AccessKind::AdviseNormal),
        1 => Just(AccessKind::AdviseSequential),
        1 => Just(AccessKind::AdviseRandom),
        1 => (page.clone(), 0_u64..4_000_000)
            .prop_map(|(page, count)| AccessKind::DontNeed { pos: page.offset(), count }),
        1 => page.prop_map(|page| AccessKind::Evict { page, order: Order(0) }),
    ]
}

/// Runs of reads that follow each other, between accesses anywhere.
fn accesses(pages: u64) -> impl Strategy<Value = Vec<AccessKind>> {
    let run = (access(pages), 1_usize..12, 1_u64..600_000).prop_map(|(first, length, count)| {
        let mut accesses = vec![first];
        if let AccessKind::Read { mut pos, count: first } = first {
            pos += first;
            for _ in 1..length {
                accesses.push(AccessKind::Read { pos, count });
                pos += count;
            }
        }
        accesses
    });
    proptest::collection::vec(run, 1..14).prop_map(|runs| runs.concat())
}

fn case() -> impl Strategy<Value = Case> {
    let ra_pages = prop_oneof![Just(0_u64), Just(32), Just(192), Just(96), 1_u64..600];
    let orders = prop_oneof![Just((0_u8, 9_u8)), Just((0, 0)), Just((2, 9)), Just((0, 4))];
    (1_u64..6000, 0_u64..PAGE_SIZE, ra_pages, 4_u64..3000, orders).prop_flat_map(
        |(pages, tail, ra_pages, io_kb, (order_min, order_max))| {
            accesses(pages).prop_map(move |accesses| Case {
                size_bytes: pages * PAGE_SIZE - tail,
                ra_pages,
                io_kb,
                order_min,
                order_max,
                accesses,
            })
        },
    )
}

fn source(case: &Case) -> Source {
    let mut settings = Settings::default();
    settings.ra_pages.value = case.ra_pages;
    settings.max_sectors_kb.value = case.io_kb;
    settings.order_min.value = Order(case.order_min);
    settings.order_max.value = Order(case.order_max);
    let accesses = case.accesses.iter().enumerate().map(|(seq, kind)| Access {
        time: Time(0),
        seq: seq as u64,
        thread: 0,
        open: 0,
        think_ns: 0,
        kind: *kind,
    });
    let mut source = Source::generated("generated", settings);
    source.files.push(File {
        id: FileId::default(),
        path: None,
        size_bytes: case.size_bytes,
        cached: Vec::new(),
        extents: Vec::new(),
    });
    source.opens.push(Open::new(0));
    source.threads.push("thread".to_owned());
    source.accesses = accesses.collect();
    source
}

/// Changes are stacked on the newest generation.
fn policies() -> Vec<std::sync::Arc<dyn Policy>> {
    let names = ENTRIES.iter().map(|entry| match entry.base() {
        Some(_) => format!("linux-7.3+{}", entry.name),
        None => entry.name.to_owned(),
    });
    names.map(|name| policy::parse(&name).unwrap()).collect()
}

/// Generations before 6.11 know no smallest order.
fn supports(policy: &dyn Policy, case: &Case) -> bool {
    let old = ["linux-5.15", "linux-6.1", "linux-6.7", "linux-6.8"];
    case.order_min == 0 || !old.contains(&policy.name())
}

fn check(case: &Case, policy: &dyn Policy) -> Result<(), TestCaseError> {
    let source = source(case);
    let mut machine = Machine::new(policy, &source, true, true);
    let file_pages = case.size_bytes.div_ceil(PAGE_SIZE);
    let end_max = file_pages.next_multiple_of(1 << case.order_min);
    let window_max = (2 * case.ra_pages).max(case.io_kb / 4).max(1024);
    for access in &source.accesses {
        trace_order::execute(&mut machine, access);
        if let AccessKind::Read { pos, count } = access.kind {
            let end = ByteOffset((pos.0 + count).min(case.size_bytes)).page_up();
            let read = machine.files[0].cache.contains_all(pos.page(), end.max(pos.page()));
            // Nothing is looked at where a read begins behind the last byte, be it in its page.
            let is_behind = pos.0 >= case.size_bytes;
            prop_assert!(read || is_behind, "{} left {access:?} unread", policy.name());
        }
    }
    let state = &machine.files[0];
    for decision in state.log.decisions.as_ref().unwrap() {
        match decision {
            Decision::Inserted { folio, .. } => {
                prop_assert_eq!(folio.index.0 % folio.pages(), 0, "{}", policy.name());
                prop_assert!(folio.end().0 <= end_max, "{}: {folio:?}", policy.name());
                prop_assert!(folio.order.0 >= case.order_min, "{}: {folio:?}", policy.name());
                prop_assert!(folio.order.0 <= case.order_max.max(case.order_min));
            }
            Decision::Window { ra, .. } => {
                prop_assert!(ra.size <= window_max, "{}: {ra:?}", policy.name());
            }
            _ => {}
        }
    }
    let submitted: u64 = machine.submitted.runs.iter().map(|run| run.pages).sum();
    prop_assert_eq!(submitted, state.log.pages_inserted, "inserted but not read, or read twice");
    Ok(())
}

/// A device that takes the same time for everything.
struct Fixed;

impl Device for Fixed {
    fn read(&mut self, now: Time, _request: &Request) -> Time {
        now + 50_000
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold(case in case()) {
        for policy in policies() {
            if supports(&*policy, &case) {
                check(&case, &*policy)?;
            }
        }
    }

    /// One thread decides the same whether data takes time or not, and everything it asks for
    /// completes.
    #[test]
    fn time_does_not_change_what_one_thread_reads(case in case()) {
        let mut source = source(&case);
        source.accesses.retain(|access| matches!(access.kind, AccessKind::Read { .. }));
        for policy in policies() {
            if !supports(&*policy, &case) {
                continue;
            }
            let mut untimed = Machine::new(&*policy, &source, true, false);
            trace_order::replay(&mut untimed, &source);
            let options = RunOptions {
                cpu: CpuCosts::default(),
                queue: QueueParameters {
                    depth: NonZeroU64::MAX,
                    scheduler: Scheduler::None,
                    nr_requests: None,
                },
                think: false,
                keep_reads: false,
                keep_history: false,
            };
            let (timed, timeline) = run(&source, &*policy, &mut Fixed, &options);
            prop_assert_eq!(
                untimed.files[0].log.folios_by_order,
                timed.files[0].log.folios_by_order,
                "{}", policy.name()
            );
            prop_assert_eq!(timeline.queue.requests, timeline.requests_completed);
            let mut states = timed.opens[0].ra;
            states.mmap_miss = untimed.opens[0].ra.mmap_miss;
            prop_assert_eq!(states, untimed.opens[0].ra, "{}", policy.name());
        }
    }
}
