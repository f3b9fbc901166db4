//! Binary blktrace, versions 7 and 8, as per-CPU files or as one merged dump.
//!
//! A file is a sequence of records: a header of 48 bytes (version 8: 64, with a 64-bit action), then
//! `pdu_len` bytes that depend on the action. Its byte order is that of the machine traced, but for
//! what the kernel puts into the extra bytes, which is always big-endian.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use traces::capture::LossKind;
use traces::event::{Comm, Device, Event, EventKind, Extent, Rwbs};
use traces::units::{Sector, Time};

use super::Action;
use crate::Error;
use crate::assemble::{Assembler, COMM_UNKNOWN};
use crate::bytes::{Endian, until_nul};
use crate::input::Input;

/// Upper three bytes of the magic number; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
/// Events handed on at a time.
const BATCH_EVENTS: usize = 4096;

/// Set in an action when the extra bytes start with a cgroup id.
const ACTION_CGROUP: u64 = 0x100;
const CGROUP_BYTES: usize = 8;

/// Bits of the category, which stands above the action.
const CATEGORY_SHIFT: u32 = 16;
const CATEGORY_WRITE: u64 = 1 << 1;
const CATEGORY_NOTIFY: u64 = 1 << 10;
const CATEGORY_AHEAD: u64 = 1 << 11;
const CATEGORY_META: u64 = 1 << 12;
const CATEGORY_DISCARD: u64 = 1 << 13;

/// Notes instead of actions: the name of a process.
const NOTE_PROCESS: u64 = 0;
/// The wall-clock time the trace started.
const NOTE_TIMESTAMP: u64 = 1;

/// Layout of one version's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V7,
    V8,
}

impl Version {
    fn header_bytes(self) -> usize {
        match self {
            Self::V7 => 48,
            Self::V8 => 64,
        }
    }
}

/// Byte order and version, from the magic number.
fn flavour(head: &[u8]) -> Option<(Endian, Version)> {
    [Endian::Little, Endian::Big].into_iter().find_map(|endian| {
        let magic = endian.u32(head, 0)?;
        match magic.checked_sub(MAGIC)? {
            7 => Some((endian, Version::V7)),
            8 => Some((endian, Version::V8)),
            _ => None,
        }
    })
}

/// Whether the input starts with a record.
pub(crate) fn recognise(head: &[u8]) -> bool {
    flavour(head).is_some()
}

/// A record's header, whatever its version.
#[derive(Clone, Copy, Debug)]
struct Header {
    sequence: u32,
    time: Time,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    pdu_bytes: u16,
}

impl Header {
    /// Reads a header; None where `b` is too short or its magic number is not `flavour`'s.
    fn read(b: &[u8], (endian, version): (Endian, Version)) -> Option<Self> {
        if flavour(b)? != (endian, version) {
            return None;
        }
        let (action, pid, after) = match version {
            Version::V7 => (endian.u32(b, 28)?.into(), endian.u32(b, 32)?, 36),
            Version::V8 => (endian.u64(b, 32)?, endian.u32(b, 28)?, 40),
        };
        Some(Self {
            sequence: endian.u32(b, 4)?,
            time: Time(endian.u64(b, 8)?),
            sector: endian.u64(b, 16)?,
            bytes: endian.u32(b, 24)?,
            action,
            pid,
            device: endian.u32(b, after)?,
            cpu: endian.u32(b, after + 4)?,
            error: endian.u16(b, after + 8)?,
            pdu_bytes: endian.u16(b, after + 10)?,
        })
    }

    fn has(&self, category: u64) -> bool {
        (self.action >> CATEGORY_SHIFT) & category != 0
    }

    /// The action without category and marks.
    fn code(&self) -> u64 {
        self.action & 0xffff & !ACTION_CGROUP
    }

    fn extent(&self) -> Extent {
        let device = Device { major: self.device >> 20, minor: self.device & 0xf_ffff };
        Extent { device, sector: Sector(self.sector), sectors: u64::from(self.bytes >> 9) }
    }

    fn rwbs(&self) -> Rwbs {
        let (write, discard) = (self.has(CATEGORY_WRITE), self.has(CATEGORY_DISCARD));
        Rwbs {
            read: !write && !discard && self.bytes > 0,
            write: write && !discard,
            ahead: self.has(CATEGORY_AHEAD),
            meta: self.has(CATEGORY_META),
        }
    }
}

/// The action behind its number.
fn action(code: u64) -> Action {
    match code {
        1 => Action::Queue,
        2 | 3 => Action::Merge,
        4 => Action::Unused("block_getrq"),
        5 => Action::Unused("block_sleeprq"),
        6 => Action::Unused("block_rq_requeue"),
        7 => Action::Issue,
        8 => Action::Complete,
        9 => Action::Unused("block_plug"),
        10 | 11 => Action::Unplug,
        12 => Action::Unused("block_rq_insert"),
        13 => Action::Split,
        14 => Action::Unused("block_bio_bounce"),
        15 => Action::Unused("block_bio_remap"),
        _ => Action::Unused("blk_other"),
    }
}

/// Reads one file.
pub(crate) fn read(input: &mut Input<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    read_merged(std::slice::from_mut(input), assembler)
}

/// Reads the per-CPU files of one run, merged by time.
pub(crate) fn read_merged(
    inputs: &mut [Input<'_>],
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let mut run = Run::new(assembler);
    let mut files = Vec::with_capacity(inputs.len());
    for input in inputs {
        files.push(File::open(input, &mut run)?);
    }
    let mut next: BinaryHeap<_> = (0..files.len()).filter_map(|i| files[i].key(i)).collect();
    while let Some(Reverse((_, i))) = next.pop() {
        let file = &mut files[i];
        if let Some(record) = file.record.take() {
            run.record(&record, &file.pdu);
        }
        file.advance(&mut run)?;
        next.extend(file.key(i));
    }
    run.finish();
    Ok(())
}

/// One file with its next record.
struct File<'f, 'r> {
    input: &'f mut Input<'r>,
    flavour: Option<(Endian, Version)>,
    record: Option<Header>,
    pdu: Vec<u8>,
}

impl<'f, 'r> File<'f, 'r> {
    fn open(input: &'f mut Input<'r>, run: &mut Run<'_, '_>) -> Result<Self, Error> {
        let flavour = flavour(input.peek(4)?);
        let mut file = Self { input, flavour, record: None, pdu: Vec::new() };
        file.advance(run)?;
        Ok(file)
    }

    /// Place of the next record in the order of all files.
    fn key(&self, index: usize) -> Option<Reverse<(Time, usize)>> {
        self.record.map(|record| Reverse((record.time, index)))
    }

    /// Reads the next record, if there is a whole one.
    fn advance(&mut self, run: &mut Run<'_, '_>) -> Result<(), Error> {
        let offset = self.input.offset();
        let Some(flavour) = self.flavour else {
            return self.end_early(offset, run);
        };
        let header = self.input.take(flavour.1.header_bytes())?;
        if header.is_empty() {
            run.assembler.input_damage(self.input);
            return Ok(());
        }
        let Some(record) = Header::read(header, flavour) else {
            return self.end_early(offset, run);
        };
        let pdu_bytes = usize::from(record.pdu_bytes);
        self.pdu.clear();
        self.pdu.extend_from_slice(self.input.take(pdu_bytes)?);
        if self.pdu.len() < pdu_bytes {
            return self.end_early(offset, run);
        }
        self.record = Some(record);
        Ok(())
    }

    /// Counts a record that is cut short or is none.
    fn end_early(&mut self, offset: u64, run: &mut Run<'_, '_>) -> Result<(), Error> {
        if offset == self.input.offset() && self.input.peek(1)?.is_empty() {
            return Ok(());
        }
        let name = &self.input.name;
        run.assembler.capture.losses.add(LossKind::Truncated, 1, || {
            format!("{name}: byte {offset}: expected a blktrace record")
        });
        Ok(())
    }
}

/// What is known across the files of a run.
struct Run<'a, 's> {
    assembler: &'a mut Assembler<'s>,
    batch: Vec<Event>,
    /// Name of each thread, as the trace's notes give it.
    names: FxHashMap<u32, Comm>,
    /// Last sequence number of each CPU.
    sequences: FxHashMap<u32, u32>,
    unknown: Comm,
    /// Counts of unused events; few different ones, so a list.
    unused: Vec<(&'static str, u64)>,
}

impl<'a, 's> Run<'a, 's> {
    fn new(assembler: &'a mut Assembler<'s>) -> Self {
        let unknown = assembler.comm(COMM_UNKNOWN.as_bytes());
        Self {
            assembler,
            batch: Vec::with_capacity(BATCH_EVENTS),
            names: FxHashMap::default(),
            sequences: FxHashMap::default(),
            unknown,
            unused: Vec::new(),
        }
    }

    fn record(&mut self, record: &Header, pdu: &[u8]) {
        let has_cgroup = record.action & ACTION_CGROUP != 0;
        let pdu = pdu.get(if has_cgroup { CGROUP_BYTES } else { 0 }..).unwrap_or_default();
        if record.has(CATEGORY_NOTIFY) {
            return self.note(record, pdu);
        }
        self.check_sequence(record);
        let action = action(record.code());
        if let Action::Unused(name) = action {
            return self.unused(name);
        }
        match kind(action, record, pdu) {
            Some(kind) => self.event(record, kind),
            None => self.assembler.capture.losses.add(LossKind::BadFields, 1, || {
                format!("record {} of CPU {}: {:#x}", record.sequence, record.cpu, record.action)
            }),
        }
    }

    fn unused(&mut self, name: &'static str) {
        match self.unused.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.unused.push((name, 1)),
        }
    }

    fn event(&mut self, record: &Header, kind: EventKind) {
        let Header { time, cpu, pid, .. } = *record;
        let comm = self.names.get(&pid).copied().unwrap_or(self.unknown);
        self.batch.push(Event { time, cpu, pid, comm, kind });
        if self.batch.len() == BATCH_EVENTS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.assembler.events(&self.batch);
        self.batch.clear();
    }

    fn finish(mut self) {
        self.flush();
        for (name, count) in self.unused {
            self.assembler.unused(name.as_bytes(), count);
        }
    }

    fn note(&mut self, record: &Header, pdu: &[u8]) {
        match record.code() {
            NOTE_PROCESS => {
                let comm = self.assembler.comm(until_nul(pdu));
                self.names.insert(record.pid, comm);
            }
            NOTE_TIMESTAMP => {}
            _ => self.unused("blk_message"),
        }
    }

    /// Counts records missing between this one and the one before it of the same CPU.
    fn check_sequence(&mut self, record: &Header) {
        let Header { cpu, sequence, .. } = *record;
        let last = self.sequences.insert(cpu, sequence);
        let missing = last.map_or(0, |last| sequence.saturating_sub(last).saturating_sub(1));
        if missing > 0 {
            self.assembler.capture.losses.add(LossKind::LostEvents, missing.into(), || {
                format!("before record {sequence} of CPU {cpu}")
            });
        }
    }
}

fn kind(action: Action, record: &Header, pdu: &[u8]) -> Option<EventKind> {
    let (extent, rwbs) = (record.extent(), record.rwbs());
    Some(match action {
        Action::Queue => EventKind::BioQueue { extent, rwbs },
        Action::Merge => EventKind::BioMerge { extent, rwbs },
        Action::Issue => EventKind::RqIssue { extent, rwbs },
        // The field holds the low half of a negative errno.
        Action::Complete => {
            EventKind::RqComplete { extent, rwbs, error: record.error.cast_signed().into() }
        }
        Action::Unplug => {
            let requests = u32::try_from(Endian::Big.u64(pdu, 0)?).ok()?;
            EventKind::Unplug { requests }
        }
        Action::Split => {
            let rest = Endian::Big.u64(pdu, 0)?;
            let sectors = rest.checked_sub(extent.sector.0)?;
            EventKind::BioSplit { extent: Extent { sectors, ..extent }, rest: Sector(rest), rwbs }
        }
        Action::Unused(_) => return None,
    })
}
