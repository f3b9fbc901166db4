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
/// Bytes of a file read at a time: more than the longest record.
const AHEAD_BYTES: usize = 256 << 10;

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

/// Byte order and version of a file.
type Flavour = (Endian, Version);

/// Byte order and version, from the magic number.
fn flavour(head: &[u8]) -> Option<Flavour> {
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
    fn read(b: &[u8], (endian, version): Flavour) -> Option<Self> {
        // One check of the length, and constant places: this runs for every record.
        match version {
            Version::V7 => Self::read_v7(b.first_chunk()?, endian),
            Version::V8 => Self::read_v8(b.first_chunk()?, endian),
        }
    }

    fn read_v7(b: &[u8; 48], endian: Endian) -> Option<Self> {
        let (action, pid) = (endian.u32_at(b, 28).into(), endian.u32_at(b, 32));
        (endian.u32_at(b, 0) == MAGIC | 7).then(|| Self::fields(b, endian, action, pid, 36))
    }

    fn read_v8(b: &[u8; 64], endian: Endian) -> Option<Self> {
        let (action, pid) = (endian.u64_at(b, 32), endian.u32_at(b, 28));
        (endian.u32_at(b, 0) == MAGIC | 8).then(|| Self::fields(b, endian, action, pid, 40))
    }

    /// The fields that both versions have, of which the last start at `after`.
    #[inline]
    fn fields<const N: usize>(
        b: &[u8; N],
        endian: Endian,
        action: u64,
        pid: u32,
        after: usize,
    ) -> Self {
        Self {
            sequence: endian.u32_at(b, 4),
            time: Time(endian.u64_at(b, 8)),
            sector: endian.u64_at(b, 16),
            bytes: endian.u32_at(b, 24),
            action,
            pid,
            device: endian.u32_at(b, after),
            cpu: endian.u32_at(b, after + 4),
            error: endian.u16_at(b, after + 8),
            pdu_bytes: endian.u16_at(b, after + 10),
        }
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
    // The kernel takes ktime_get() for them.
    assembler.capture.header.clock = Some("mono".to_owned());
    let mut run = Run::new(assembler);
    let mut files = Vec::with_capacity(inputs.len());
    for input in inputs {
        files.push(File::open(input, &mut run)?);
    }
    let mut next: BinaryHeap<_> = (0..files.len()).filter_map(|i| files[i].key(i)).collect();
    while let Some(key) = next.pop() {
        let Reverse((_, i)) = key;
        let file = &mut files[i];
        // Its records up to the first of another file.
        loop {
            if let Some(record) = &file.record {
                run.record(record, file.pdu());
            }
            file.advance(&mut run)?;
            match (file.key(i), next.peek()) {
                (Some(key), Some(other)) if key < *other => {
                    next.push(key);
                    break;
                }
                (Some(_), _) => {}
                (None, _) => break,
            }
        }
    }
    run.finish();
    Ok(())
}

/// One file with its next record.
struct File<'f, 'r> {
    input: &'f mut Input<'r>,
    flavour: Option<Flavour>,
    record: Option<Header>,
    /// Bytes read ahead, of which those from `at` on are still to come.
    ahead: Vec<u8>,
    at: usize,
    /// Position of `ahead` in the file.
    offset: u64,
}

impl<'f, 'r> File<'f, 'r> {
    fn open(input: &'f mut Input<'r>, run: &mut Run<'_, '_>) -> Result<Self, Error> {
        let flavour = flavour(input.peek(4)?);
        let offset = input.offset();
        let mut file = Self { input, flavour, record: None, ahead: Vec::new(), at: 0, offset };
        file.advance(run)?;
        Ok(file)
    }

    /// Place of the next record in the order of all files.
    fn key(&self, index: usize) -> Option<Reverse<(Time, usize)>> {
        self.record.map(|record| Reverse((record.time, index)))
    }

    /// The extra bytes of the record.
    fn pdu(&self) -> &[u8] {
        let bytes = self.record.map_or(0, |record| usize::from(record.pdu_bytes));
        &self.ahead[self.at - bytes..self.at]
    }

    /// Reads the next record, if there is a whole one.
    fn advance(&mut self, run: &mut Run<'_, '_>) -> Result<(), Error> {
        self.record = None;
        let Some(flavour) = self.flavour else {
            return self.end(run);
        };
        let header_bytes = flavour.1.header_bytes();
        self.look_ahead(header_bytes)?;
        let Some(record) = Header::read(&self.ahead[self.at..], flavour) else {
            return self.end(run);
        };
        let bytes = header_bytes + usize::from(record.pdu_bytes);
        if !self.look_ahead(bytes)? {
            return self.end(run);
        }
        self.at += bytes;
        self.record = Some(record);
        Ok(())
    }

    /// Reads ahead until there are `wanted` bytes; false if the file ends before.
    fn look_ahead(&mut self, wanted: usize) -> Result<bool, Error> {
        let left = self.ahead.len() - self.at;
        if left >= wanted {
            return Ok(true);
        }
        self.ahead.copy_within(self.at.., 0);
        self.offset += self.at as u64;
        self.at = 0;
        self.ahead.resize(AHEAD_BYTES, 0);
        let filled = self.input.read_full(&mut self.ahead[left..])?;
        self.ahead.truncate(left + filled);
        Ok(self.ahead.len() >= wanted)
    }

    /// The file ends here: well, or with a record that is cut short or is none.
    fn end(&mut self, run: &mut Run<'_, '_>) -> Result<(), Error> {
        if self.look_ahead(1)? {
            let (name, offset) = (&self.input.name, self.offset + self.at as u64);
            run.assembler.capture.losses.add(LossKind::Truncated, 1, || {
                format!("{name}: byte {offset}: expected a blktrace record")
            });
        } else {
            run.assembler.input_damage(self.input);
        }
        Ok(())
    }
}

/// What is known across the files of a run.
struct Run<'a, 's> {
    assembler: &'a mut Assembler<'s>,
    batch: Vec<Event>,
    /// Name of each thread, as the trace's notes give it.
    names: FxHashMap<u32, Comm>,
    /// The thread named last and its name: most records are of the thread before.
    name_last: Option<(u32, Comm)>,
    /// Last sequence number of each CPU but the last one.
    sequences: FxHashMap<u32, u32>,
    /// The last CPU and its last sequence number.
    sequence_last: Option<(u32, u32)>,
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
            name_last: None,
            sequences: FxHashMap::default(),
            sequence_last: None,
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
        let comm = self.comm(pid);
        self.batch.push(Event { time, cpu, pid, comm, kind });
        if self.batch.len() == BATCH_EVENTS {
            self.flush();
        }
    }

    fn comm(&mut self, pid: u32) -> Comm {
        if let Some((last, comm)) = self.name_last
            && last == pid
        {
            return comm;
        }
        let comm = self.names.get(&pid).copied().unwrap_or(self.unknown);
        self.name_last = Some((pid, comm));
        comm
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
                self.name_last = None;
            }
            NOTE_TIMESTAMP => {}
            _ => self.unused("blk_message"),
        }
    }

    /// Counts records missing between this one and the one before it of the same CPU.
    fn check_sequence(&mut self, record: &Header) {
        let Header { cpu, sequence, .. } = *record;
        let last = match self.sequence_last.replace((cpu, sequence)) {
            Some((before, last)) if before == cpu => Some(last),
            Some((before, last)) => {
                self.sequences.insert(before, last);
                self.sequences.get(&cpu).copied()
            }
            None => None,
        };
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
