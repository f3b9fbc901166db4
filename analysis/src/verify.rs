//! Holds a replay under the recording kernel's policy against what the capture recorded.
//!
//! Folios are compared per file, requests over the whole device; both as
//! multisets (`matched`) and as sequences (`in_order`). Threads that insert
//! folios of one file at the same time record them in an order that is not the
//! order of insertion, since the event is written after the lock is released,
//! so such a capture can match completely and still not be in order.

use std::collections::BTreeMap;

use replay::block::{BlockLayer, ExtentMap, QueueLimits, Request};
use replay::log::Decision;
use replay::machine::Machine;
use replay::page_cache::Folio;
use replay::policy::Policy;
use replay::readahead::FileRa;
use replay::trace_order;
use rustc_hash::FxHashMap;
use serde::Serialize;
use traces::access::{Fidelity, File, Recorded, Source};
use traces::capture::Losses;
use traces::units::{PAGE_SIZE, PageIndex, Sector};

use crate::result::{SettingView, view_settings};

/// Counts of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// In the capture.
    pub recorded: u64,
    /// In the replay.
    pub replayed: u64,
    /// In both.
    pub matched: u64,
    /// Whether both give the same sequence.
    pub in_order: bool,
}

impl Matched {
    /// Whether nothing is missing on either side. Nothing recorded is no match.
    pub fn is_complete(&self) -> bool {
        self.recorded > 0 && self.recorded == self.replayed && self.recorded == self.matched
    }

    /// Share of the recorded that is matched, 0 to 1.
    pub fn share(&self) -> f64 {
        if self.recorded == 0 { 0.0 } else { self.matched as f64 / self.recorded as f64 }
    }
}

/// The first place where capture and replay differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The file, as `DEVICE/0xINODE`.
    pub file: String,
    /// Position among the folios of the file, or among the device reads.
    pub position: u64,
    /// What was recorded there.
    pub recorded: String,
    /// What was replayed there.
    pub replayed: String,
    /// The last trigger of the replay before, and the readahead state it met.
    pub state_before: String,
}

/// A recorded time and its prediction. A recorded time of 0 was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// In the capture.
    pub recorded_ns: u64,
    /// In the replay.
    pub predicted_ns: u64,
}

impl Pair {
    /// Predicted over recorded, less one.
    pub fn error(self) -> f64 {
        if self.recorded_ns == 0 {
            return 0.0;
        }
        self.predicted_ns as f64 / self.recorded_ns as f64 - 1.0
    }

    /// Whether there are two times to compare.
    pub fn is_known(self) -> bool {
        self.recorded_ns > 0 && self.predicted_ns > 0
    }
}

/// Recorded and predicted time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timing {
    /// From the first access to the last access of the capture.
    #[serde(flatten)]
    pub elapsed: Pair,
    /// Median time from the call of a read to its last batch of folios.
    pub read_p50: Pair,
    /// The same, 99th percentile.
    pub read_p99: Pair,
    /// Mean time of a device read from its issue to its completion.
    pub device_read: Pair,
    /// Device reads of a size or at a depth that the device model knows nothing about.
    pub extrapolated: u64,
}

/// One capture under one policy: an entry of `rareplay.verify/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaptureVerify {
    /// The capture.
    pub source: String,
    /// The policy it was held against.
    pub policy: String,
    /// Level of its streams.
    pub stream: Fidelity,
    /// Folios.
    pub folios: Matched,
    /// Device reads without metadata.
    pub device_reads: Matched,
    /// Data reads the capture shows queued but not issued: their issue was not recorded.
    pub unrecorded_reads: u64,
    /// Folios and device reads match completely.
    pub exact: bool,
    /// Where the first difference is, if there is one.
    pub first_difference: Option<Difference>,
    /// Time.
    pub timing: Timing,
    /// Settings of the replay and where each came from.
    pub settings: Vec<SettingView>,
    /// What the capture lost.
    pub losses: Losses,
}

/// A source that cannot be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It is a workload description or a list of accesses.
    #[error("{name} is no recording of a kernel: there is nothing to verify against")]
    NothingRecorded {
        /// The source.
        name: String,
    },
    /// The policy's own code failed.
    #[error("{name}: {failure}")]
    PolicyFailed {
        /// The source.
        name: String,
        /// How.
        failure: String,
    },
    /// No folio was recorded, so that no replay can be wrong.
    #[error(
        "{name} records no folio of the files that are read: record \
         filemap:mm_filemap_add_to_page_cache from a cold cache"
    )]
    NoFolios {
        /// The source.
        name: String,
    },
}

/// Replays `source` in trace order under `policy` and compares.
pub fn verify(source: &Source, policy: &dyn Policy) -> Result<CaptureVerify, VerifyError> {
    let name = || source.name.clone();
    let recorded =
        source.recorded.as_ref().ok_or_else(|| VerifyError::NothingRecorded { name: name() })?;
    if recorded.folios.is_empty() {
        return Err(VerifyError::NoFolios { name: name() });
    }
    let mut machine = trace_order::run(source, policy);
    if let Some(failure) = machine.failure.take() {
        return Err(VerifyError::PolicyFailed { name: name(), failure });
    }
    let (folios, folio_difference) = compare_folios(source, recorded, &machine);
    let (device_reads, unrecorded_reads, read_difference) =
        compare_reads(source, recorded, &machine);
    // A capture without block events says nothing about device reads.
    let reads_agree = recorded.reads.is_empty() || device_reads.is_complete();
    let exact = folios.is_complete() && reads_agree;
    let differs = !exact || !folios.in_order;
    Ok(CaptureVerify {
        source: name(),
        policy: policy.name().to_owned(),
        stream: source.fidelity,
        folios,
        device_reads,
        unrecorded_reads,
        exact,
        first_difference: folio_difference.or(read_difference).filter(|_| differs),
        timing: Timing::default(),
        settings: view_settings(&source.settings),
        losses: source.losses.clone(),
    })
}

/// Folios and device reads that match; more is better.
pub type Score = (u64, u64);

/// What a trial replay matches.
#[derive(Clone)]
pub(crate) struct Trial {
    /// Folios, per file.
    pub(crate) files: Vec<Matched>,
    /// Device reads.
    pub(crate) reads: Matched,
}

impl Trial {
    /// Replays `source` under `policy` and compares.
    pub(crate) fn run(source: &Source, policy: &dyn Policy) -> Self {
        let Some(recorded) = &source.recorded else {
            return Self { files: Vec::new(), reads: Matched::default() };
        };
        let machine = trace_order::run(source, policy);
        let of_file = recorded_by_file(source, recorded);
        let files = of_file.iter().zip(&machine.files).map(|(recorded, file)| {
            let decisions = file.log.decisions.as_deref().unwrap_or_default();
            match_folios(recorded, &decisions.iter().filter_map(inserted).collect::<Vec<_>>())
        });
        Self { files: files.collect(), reads: compare_reads(source, recorded, &machine).0 }
    }

    /// Folios, then device reads that match.
    pub(crate) fn score(&self) -> Score {
        (self.files.iter().map(|file| file.matched).sum(), self.reads.matched)
    }

    /// Whether nothing is left to improve.
    pub(crate) fn is_complete(&self) -> bool {
        let complete = |m: &Matched| m.recorded == m.matched && m.replayed == m.matched;
        self.files.iter().all(complete) && (self.reads.recorded == 0 || complete(&self.reads))
    }
}

fn recorded_by_file(source: &Source, recorded: &Recorded) -> Vec<Vec<Folio>> {
    let mut of_file: Vec<Vec<Folio>> = vec![Vec::new(); source.files.len()];
    for folio in &recorded.folios {
        of_file[folio.file as usize].push(Folio { index: folio.page, order: folio.order });
    }
    of_file
}

fn match_folios(recorded: &[Folio], replayed: &[Folio]) -> Matched {
    let in_order = recorded == replayed;
    Matched {
        recorded: recorded.len() as u64,
        replayed: replayed.len() as u64,
        matched: if in_order { recorded.len() as u64 } else { common(recorded, replayed) },
        in_order,
    }
}

fn compare_folios(
    source: &Source,
    recorded: &Recorded,
    machine: &Machine<'_>,
) -> (Matched, Option<Difference>) {
    let mut total = Matched { in_order: true, ..Matched::default() };
    let mut first = None;
    for (file, recorded) in recorded_by_file(source, recorded).iter().enumerate() {
        let decisions = machine.files[file].log.decisions.as_deref().unwrap_or_default();
        let replayed: Vec<Folio> = decisions.iter().filter_map(inserted).collect();
        let matched = match_folios(recorded, &replayed);
        total.recorded += matched.recorded;
        total.replayed += matched.replayed;
        total.matched += matched.matched;
        total.in_order &= matched.in_order;
        if !matched.in_order && first.is_none() {
            first = Some(folio_difference(source, file, recorded, &replayed, decisions));
        }
    }
    (total, first)
}

fn inserted(decision: &Decision) -> Option<Folio> {
    match decision {
        Decision::Inserted { folio, .. } => Some(*folio),
        _ => None,
    }
}

/// Elements that two sequences share, each as often as it is in both.
fn common<T: std::hash::Hash + Eq>(a: &[T], b: &[T]) -> u64 {
    let mut counts: FxHashMap<&T, u64> = FxHashMap::default();
    for item in a {
        *counts.entry(item).or_default() += 1;
    }
    let mut shared = 0;
    for item in b {
        if let Some(count) = counts.get_mut(item).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    shared
}

fn folio_difference(
    source: &Source,
    file: usize,
    recorded: &[Folio],
    replayed: &[Folio],
    decisions: &[Decision],
) -> Difference {
    let position = recorded.iter().zip(replayed).position(|(a, b)| a != b);
    let position = position.unwrap_or(recorded.len().min(replayed.len()));
    let show = |folio: Option<&Folio>| {
        folio.map_or("nothing".to_owned(), |folio| {
            format!("page {} order {}", folio.index, folio.order)
        })
    };
    Difference {
        file: source.files[file].name(),
        position: position as u64,
        recorded: show(recorded.get(position)),
        replayed: show(replayed.get(position)),
        state_before: state_before(decisions, position),
    }
}

/// The last trigger before the `position`th insertion.
fn state_before(decisions: &[Decision], position: usize) -> String {
    let mut inserted = 0;
    let mut state = "no trigger before".to_owned();
    for decision in decisions {
        match decision {
            Decision::Inserted { .. } if inserted == position => break,
            Decision::Inserted { .. } => inserted += 1,
            Decision::Triggered { trigger, index, req_count, ra } => {
                state =
                    format!("{trigger:?} at page {index}, {req_count} pages asked; {}", show(ra));
            }
            _ => {}
        }
    }
    state
}

fn show(ra: &FileRa) -> String {
    format!(
        "start={} size={} async_size={} order={} ra_pages={} mmap_miss={} prev_pos={}",
        ra.start, ra.size, ra.async_size, ra.order, ra.ra_pages, ra.mmap_miss, ra.prev_pos
    )
}

/// The requests of a replay. Physical adjacency of folios is the capture's where it tells.
pub fn requests(source: &Source, machine: &Machine<'_>) -> Vec<Request> {
    let recorded = source.recorded.iter().flat_map(|recorded| &recorded.folios);
    let pfns: FxHashMap<(u32, PageIndex), u64> =
        recorded.filter(|f| f.pfn != 0).map(|f| ((f.file, f.page), f.pfn)).collect();
    let maps: Vec<ExtentMap> =
        source.files.iter().map(|file| ExtentMap::new(file.extents.clone())).collect();
    let mut layer = BlockLayer::new(QueueLimits::new(&source.settings));
    let mut requests = Vec::new();
    for (run, folios) in machine.submitted.iter() {
        let file = &source.files[run.file as usize];
        let adjacent = |a: Folio, b: Folio| {
            let pfn = |folio: Folio| pfns.get(&(run.file, folio.index));
            matches!((pfn(a), pfn(b)), (Some(a_pfn), Some(b_pfn)) if a_pfn + a.pages() == *b_pfn)
        };
        let pages = file.size_bytes.div_ceil(PAGE_SIZE);
        layer.submit(run, folios, pages, &maps[run.file as usize], adjacent, &mut requests);
    }
    requests
}

fn compare_reads(
    source: &Source,
    recorded: &Recorded,
    machine: &Machine<'_>,
) -> (Matched, u64, Option<Difference>) {
    let of_files = recorded.reads.iter().filter(|read| read.target.is_some());
    let expected: Vec<(Sector, u64)> = of_files.map(|read| (read.sector, read.sectors)).collect();
    let unissued: BTreeMap<Sector, u64> = recorded.unissued.iter().copied().collect();
    let is_unissued = |request: &Request| {
        let before = unissued.range(..=request.sector).next_back();
        before.is_some_and(|(sector, sectors)| request.sector.0 < sector.0 + sectors)
    };
    let (unrecorded, replayed): (Vec<Request>, Vec<Request>) =
        requests(source, machine).into_iter().partition(is_unissued);
    let got: Vec<(Sector, u64)> = replayed.iter().map(|r| (r.sector, r.sectors)).collect();
    let in_order = expected == got;
    let matched = Matched {
        recorded: expected.len() as u64,
        replayed: got.len() as u64,
        matched: if in_order { got.len() as u64 } else { common(&expected, &got) },
        in_order,
    };
    let difference = (!in_order).then(|| read_difference(source, &expected, &got, &replayed));
    (matched, unrecorded.len() as u64, difference)
}

fn read_difference(
    source: &Source,
    expected: &[(Sector, u64)],
    got: &[(Sector, u64)],
    requests: &[Request],
) -> Difference {
    let position = expected.iter().zip(got).position(|(a, b)| a != b);
    let position = position.unwrap_or(expected.len().min(got.len()));
    let show = |read: Option<&(Sector, u64)>| {
        read.map_or("nothing".to_owned(), |(sector, sectors)| format!("{sector} + {sectors}"))
    };
    let file = requests.get(position).map_or(0, |request| request.file as usize);
    Difference {
        file: source.files.get(file).map_or(String::new(), File::name),
        position: position as u64,
        recorded: format!("device read {}", show(expected.get(position))),
        replayed: format!("device read {}", show(got.get(position))),
        state_before: String::new(),
    }
}
