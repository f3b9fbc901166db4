//! Settings that only a replay can tell.
//!
//! What a capture does not state can still show in what the kernel did: of the
//! possible values, one makes the recording kernel's own policy insert the
//! recorded folios. The value is kept as *recovered*; a value from the sidecar
//! or from `--set` is never replaced.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use replay::policy::{self, Policy};
use rustc_hash::FxHashMap;
use traces::access::{AccessKind, Source};
use traces::settings::{Origin, Settings};
use traces::units::ByteOffset;

use crate::verify::{Matched, Score, Trial};

/// `max_sectors_kb` values that devices and drivers come with.
const USUAL_MAX_SECTORS_KB: [u64; 10] = [64, 128, 256, 512, 768, 1024, 1280, 2048, 4096, 8192];

/// `read_ahead_kb` of 0, 64, 128 (doubled by `POSIX_FADV_SEQUENTIAL`), 512, 1024 and 4096.
const USUAL_RA_PAGES: [u64; 7] = [0, 16, 32, 64, 128, 256, 1024];

/// Recovers what can be; returns the policy of the kernel that made the capture.
///
/// `None` for a workload description, which no kernel made, unless it names one.
pub fn recover(source: &mut Source) -> Option<Arc<dyn Policy>> {
    let named = &source.settings.policy.value;
    let of_release = policy::for_kernel(&source.settings.kernel.value);
    if let Some(name) = Some(named.as_str()).filter(|name| !name.is_empty()).or(of_release) {
        let policy = policy::parse(name).ok()?;
        recover_under(source, &*policy);
        return Some(policy);
    }
    source.recorded.as_ref()?;
    let mut best: Option<(Trial, Arc<dyn Policy>, Source)> = None;
    for name in candidates(source) {
        let policy = policy::parse(name).ok()?;
        let mut tried = source.clone();
        let trial = best_trial(&mut tried, &*policy);
        if best.as_ref().is_none_or(|(most, _, _)| trial.score() > most.score()) {
            best = Some((trial, policy, tried));
        }
        // No other one can match more.
        if best.as_ref().is_some_and(|(most, _, _)| most.is_complete()) {
            break;
        }
    }
    let (_, policy, recovered) = best?;
    *source = recovered;
    let release = policy.name().trim_start_matches("linux-").to_owned();
    source.settings.kernel.offer(release, Origin::Recovered);
    Some(policy)
}

/// Generations that can have made the capture, by the events it holds.
fn candidates(source: &Source) -> &'static [&'static str] {
    match source.kernel_min {
        (6, 18) => &["linux-6.18", "linux-7.3"],
        (6, 12) => &["linux-6.12", "linux-6.16"],
        (5, 18) => &["linux-6.1", "linux-6.7", "linux-6.12"],
        _ => &["linux-5.15", "linux-6.1"],
    }
}

/// Recovers settings under one policy, taken for that of the recording kernel; returns how well it
/// then matches.
pub fn recover_under(source: &mut Source, policy: &dyn Policy) -> Score {
    best_trial(source, policy).score()
}

/// Trials under one policy, each made once.
struct Trials<'p> {
    policy: &'p dyn Policy,
    made: Mutex<FxHashMap<Tried, Trial>>,
}

/// What trials of one source differ in: `ra_pages`, `max_sectors_kb`, and which opens are random.
type Tried = (u64, u64, Vec<bool>);

impl Trials<'_> {
    fn run(&self, source: &Source) -> Trial {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let Settings { ra_pages, max_sectors_kb, .. } = &source.settings;
        let random = source.opens.iter().map(|open| open.random).collect();
        let tried = (ra_pages.value, max_sectors_kb.value, random);
        let known = made().get(&tried).cloned();
        known.unwrap_or_else(|| {
            let trial = Trial::run(source, self.policy);
            made().insert(tried, trial.clone());
            trial
        })
    }
}

fn best_trial(source: &mut Source, policy: &dyn Policy) -> Trial {
    let trials = Trials { policy, made: Mutex::default() };
    let mut best = trials.run(source);
    if source.recorded.is_none() {
        return best;
    }
    // Values that only together match do not show one by one, so each stage begins anew.
    let stages: [&[Stage]; 5] = [
        &[recover_max_sectors],
        &[recover_random],
        &[recover_ra_pages],
        &[recover_random, recover_max_sectors],
        &[recover_ra_pages, recover_max_sectors],
    ];
    let as_found = source.clone();
    for stage in stages {
        if best.is_complete() {
            break;
        }
        let mut tried = as_found.clone();
        let mut trial = trials.run(&tried);
        for step in stage {
            step(&mut tried, &trials, &mut trial);
        }
        if trial.score() > best.score() || trial.is_complete() {
            best = trial;
            *source = tried;
        }
    }
    best
}

/// Recovers one setting from where the trial stands.
type Stage = fn(&mut Source, &Trials<'_>, &mut Trial);

/// Tries values of a setting and keeps the one that matches best, the earlier of equal ones.
fn try_values(
    source: &mut Source,
    trials: &Trials<'_>,
    best: &mut Trial,
    values: &[u64],
    set: impl Fn(&mut Settings, u64) + Sync,
) {
    let as_found = source.clone();
    // As many at a time as there are CPUs, since the first ones often match.
    for values in values.chunks(rayon::current_num_threads()) {
        let tried = values.par_iter().map(|value| {
            let mut tried = as_found.clone();
            set(&mut tried.settings, *value);
            let trial = trials.run(&tried);
            (tried.settings, trial)
        });
        for (settings, trial) in tried.collect::<Vec<_>>() {
            if !best.is_complete() && trial.score() > best.score() {
                *best = trial;
                source.settings = settings;
            }
        }
        if best.is_complete() {
            break;
        }
    }
}

/// Kernels before 6.18 record no `ra_pages`.
fn recover_ra_pages(source: &mut Source, trials: &Trials<'_>, best: &mut Trial) {
    if source.settings.ra_pages.origin < Origin::Sidecar {
        try_values(source, trials, best, &USUAL_RA_PAGES, |settings, pages| {
            settings.ra_pages.offer(pages, Origin::Recovered);
        });
    }
}

/// `max_sectors_kb` bounds the windows of requests beyond `ra_pages`.
fn recover_max_sectors(source: &mut Source, trials: &Trials<'_>, best: &mut Trial) {
    if source.settings.max_sectors_kb.origin >= Origin::Sidecar || !has_large_requests(source) {
        return;
    }
    let reads = source.recorded.iter().flat_map(|recorded| &recorded.reads);
    let largest_kb = reads.map(|read| read.sectors / 2).max().unwrap_or(0);
    let possible: Vec<u64> =
        USUAL_MAX_SECTORS_KB.into_iter().filter(|kb| *kb >= largest_kb).collect();
    try_values(source, trials, best, &possible, |settings, kb| {
        settings.max_sectors_kb.offer(kb, Origin::Recovered);
    });
}

fn has_large_requests(source: &Source) -> bool {
    let ra_pages = source.settings.ra_pages.value;
    source.accesses.iter().any(|access| match access.kind {
        AccessKind::Read { pos, count } => {
            ByteOffset(pos.0.saturating_add(count)).page_up() - pos.page() > ra_pages
        }
        _ => false,
    })
}

/// Opens that never got a window may be under `POSIX_FADV_RANDOM`.
fn recover_random(source: &mut Source, trials: &Trials<'_>, best: &mut Trial) {
    if best.is_complete() {
        return;
    }
    // Without readahead events nothing tells whether an open had windows.
    let untold = source.kernel_min < (6, 18);
    let as_before = source.opens.clone();
    for open in source.opens.iter_mut().filter(|open| open.windowless || untold) {
        open.random = true;
    }
    let random = trials.run(source);
    for (open, before) in source.opens.iter_mut().zip(&as_before) {
        let file = open.file as usize;
        if misses(random.files[file]) >= misses(best.files[file]) {
            *open = *before;
        }
    }
    *best = trials.run(source);
}

/// Folios on either side without a partner.
fn misses(file: Matched) -> u64 {
    file.recorded + file.replayed - 2 * file.matched
}
