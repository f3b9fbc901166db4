//! The native policies against kernel trees' own code, access by access, on random workloads.
//!
//! Both run their own read path, mmap path and page cache, for several open files of one file; what
//! must agree is every folio that an access puts into the cache, in order.

use analysis::tree::{TreeOptions, build};
use anyhow::Context;
use kernel::{Advice, Decided, Instance, InstanceSettings, Isolation, OpenId, Session};
use replay::log::Decision;
use replay::machine::Machine;
use replay::page_cache::Folio;
use replay::policy::{self, Policy};
use replay::trace_order::execute;
use traces::access::{Access, AccessKind, Source};
use traces::units::{ByteOffset, Order, PAGE_SIZE, PageIndex, Time};

/// Accesses between two machines: with new settings, on an empty cache.
const ROUND: u64 = 10_000;
/// Accesses given to the tree's code at once.
const BLOCK: usize = 1000;
const FILE_BYTES: u64 = (48 << 20) + 1234;
/// Open files of the file.
const OPENS: usize = 3;

pub(crate) fn run(trees: &[String], accesses: u64, policy: Option<&str>) -> anyhow::Result<()> {
    for tree in trees {
        let options = TreeOptions { in_process: true, ..TreeOptions::default() };
        let built = build(&format!("tree:{tree}"), &options)?;
        let version = built.version_guess().unwrap_or("unknown").to_owned();
        let name = policy.or_else(|| policy::for_kernel(&version));
        let name = name.with_context(|| format!("no policy for kernel {version}"))?;
        let policy = policy::parse(name)?;
        let session = Session::start(&built, &Isolation::InProcess)?;
        let (mut done, mut folios) = (0, 0);
        for round in 0..accesses.div_ceil(ROUND) {
            folios += compare(&session, &*policy, round)
                .with_context(|| format!("{tree} ({version}) and {name} part in round {round}"))?;
            done += ROUND;
        }
        anyhow::ensure!(folios > 0, "{tree}: nothing was read");
        println!("{tree} ({version}) and {name}: {done} accesses, {folios} folios, all the same");
    }
    Ok(())
}

/// A xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n.max(1)
    }
}

/// One round; the folios that were inserted.
fn compare(session: &Session, policy: &dyn Policy, round: u64) -> anyhow::Result<u64> {
    let mut random =
        Random(0x9e37_79b9_7f4a_7c15 ^ (round + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
    let source = settings(&mut random);
    let limits = &source.settings;
    let mut machine = Machine::new(policy, &source, true, true);
    let mut instance = session.instance(InstanceSettings {
        i_size: FILE_BYTES,
        ra_pages: limits.ra_pages.value as u32,
        io_pages: limits.io_pages() as u32,
        max_order: limits.order_max.value,
        ..InstanceSettings::default()
    })?;
    let opens = (0..OPENS).map(|_| instance.open()).collect::<kernel::Result<Vec<_>>>()?;
    let mut folios = 0;
    let mut positions = [0; OPENS];
    for block in 0..ROUND / BLOCK as u64 {
        let accesses: Vec<(usize, AccessKind)> = (0..BLOCK)
            .map(|_| {
                let open = random.below(OPENS as u64) as usize;
                (open, next_access(&mut random, &mut positions[open]))
            })
            .collect();
        let theirs = of_tree(&mut instance, &opens, &accesses)?;
        for (number, ((open, kind), theirs)) in accesses.iter().zip(theirs).enumerate() {
            let ours = of_machine(&mut machine, *open, *kind);
            folios += ours.len() as u64;
            let part = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
            let at = part.unwrap_or(ours.len().min(theirs.len()));
            anyhow::ensure!(
                ours == theirs,
                "access {}, open {open}, {kind:?}, ra_pages {}, io_pages {}, order_max {}: {} and {} folios; \
                 number {at} is {:?} natively, {:?} by the tree",
                block * BLOCK as u64 + number as u64,
                limits.ra_pages.value,
                limits.io_pages(),
                limits.order_max.value,
                ours.len(),
                theirs.len(),
                ours.get(at),
                theirs.get(at)
            );
        }
    }
    Ok(folios)
}

fn settings(random: &mut Random) -> Source {
    let mut source = crate::bench::one_file(FILE_BYTES);
    source.opens = vec![source.opens[0]; OPENS];
    let settings = &mut source.settings;
    settings.ra_pages.value = [32, 32, 32, 0, 96, 192, 1024][random.below(7) as usize];
    settings.max_sectors_kb.value = [128, 512, 1280, 2048][random.below(4) as usize];
    settings.order_max.value = Order(if random.below(6) == 0 { 0 } else { 9 });
    source
}

/// Mostly reads, of which most follow the one before.
fn next_access(random: &mut Random, pos: &mut u64) -> AccessKind {
    let page = PageIndex(random.below(FILE_BYTES / PAGE_SIZE));
    match random.below(100) {
        0..=54 => {
            let count_max = [4096, 65536, 300_000][random.below(3) as usize];
            let count = 1 + random.below(count_max);
            let read = AccessKind::Read { pos: ByteOffset(*pos), count };
            *pos += count;
            if *pos >= FILE_BYTES {
                *pos = 0;
            }
            read
        }
        55..=69 => {
            *pos = random.below(FILE_BYTES);
            AccessKind::Read { pos: ByteOffset(*pos), count: 1 + random.below(200_000) }
        }
        70..=84 => AccessKind::Touch { page },
        85..=87 => AccessKind::WillNeed { page, pages: 1 + random.below(700) },
        88 => AccessKind::AdviseNormal,
        89 => AccessKind::AdviseSequential,
        90 => AccessKind::AdviseRandom,
        91..=95 => AccessKind::Evict { page, order: Order(0) },
        _ => {
            let count = 1 + random.below(4 << 20);
            AccessKind::DontNeed { pos: page.offset(), count }
        }
    }
}

fn of_machine(machine: &mut Machine<'_>, open: usize, kind: AccessKind) -> Vec<Folio> {
    // An eviction takes the folio that holds the page, as reclaim would.
    if let AccessKind::Evict { page, .. } = kind {
        if let Some(folio) = machine.files[0].cache.folio_at(page) {
            machine.evict(0, folio);
        }
        return Vec::new();
    }
    let open = open as u32;
    execute(machine, &Access { time: Time(0), seq: 0, thread: 0, open, think_ns: 0, kind });
    machine.submitted.clear();
    let decisions = machine.files[0].log.decisions.replace(Vec::new()).unwrap_or_default();
    let inserted = decisions.into_iter().filter_map(|decision| match decision {
        Decision::Inserted { folio, .. } => Some(folio),
        _ => None,
    });
    inserted.collect()
}

/// What the tree's code inserts, per access.
fn of_tree(
    instance: &mut Instance,
    opens: &[OpenId],
    accesses: &[(usize, AccessKind)],
) -> anyhow::Result<Vec<Vec<Folio>>> {
    let translated = accesses.iter().map(|(open, kind)| translate(opens[*open], *kind));
    let decisions = instance.replay(&translated.collect::<Vec<_>>())?;
    let folios = |access| {
        let of_access = decisions.of(access).filter_map(|decision| match decision.what {
            Decided::Folio { index, order, .. } => Some(Folio { index, order }),
            _ => None,
        });
        of_access.collect()
    };
    Ok((0..accesses.len()).map(folios).collect())
}

fn translate(open: OpenId, kind: AccessKind) -> kernel::Access {
    let advise = |advice| kernel::Access::advise(open, advice, ByteOffset(0), 0);
    match kind {
        AccessKind::Read { pos, count } => kernel::Access::read(open, pos, count),
        AccessKind::Touch { page } | AccessKind::Fault { page, .. } => {
            kernel::Access::touch(open, page, kernel::Mapping::default())
        }
        AccessKind::WillNeed { page, pages } => {
            kernel::Access::advise(open, Advice::WillNeed, page.offset(), pages * PAGE_SIZE)
        }
        AccessKind::AdviseSequential => advise(Advice::Sequential),
        AccessKind::AdviseRandom => advise(Advice::Random),
        AccessKind::DontNeed { pos, count } => {
            kernel::Access::advise(open, Advice::DontNeed, pos, count)
        }
        AccessKind::Evict { page, .. } => kernel::Access::evict(page),
        AccessKind::AdviseNormal | AccessKind::FaultAround { .. } => advise(Advice::Normal),
    }
}
