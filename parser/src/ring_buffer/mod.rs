//! Records of the trace ring buffer, in `trace.dat` files and in pages copied from tracefs.

pub(crate) mod format;
mod merge;
mod page;
mod stats;

use memchr::memchr;
use rustc_hash::FxHashMap;
use traces::capture::LossKind;
use traces::event::{Comm, Event};
use traces::units::Time;

use crate::assemble::{Assembler, COMM_UNKNOWN};
use crate::bytes::Endian;
use crate::events::{Decoded, Shape, Side, Slots, is_call_number, shape};
use format::{Field, Format};

pub(crate) use merge::{Pages, merge};
pub(crate) use page::Layout;
pub(crate) use stats::count_losses;

/// How the events of one id are read.
enum Plan {
    /// Not used.
    Unused,
    /// An event of the model; fields by slot.
    Shape(&'static Shape, Vec<Option<Field>>),
    /// A system call; its fields in order.
    Syscall(Side, Vec<Field>),
}

impl Plan {
    fn new(format: &Format) -> Self {
        let name = format.name.as_bytes();
        if let Some(shape) = shape(name) {
            let fields = shape.names.iter().map(|name| format.field(name).cloned()).collect();
            return Self::Shape(shape, fields);
        }
        let Some(side) = Side::of_event(name) else {
            return Self::Unused;
        };
        let is_argument = |field: &&Field| !field.is_common() && !is_call_number(field.name());
        Self::Syscall(side, format.fields.iter().filter(is_argument).cloned().collect())
    }
}

/// The fields of one record, by slot.
struct Record<'a> {
    fields: &'a [Option<Field>],
    bytes: &'a [u8],
    endian: Endian,
}

impl Slots for Record<'_> {
    fn int(&self, slot: usize) -> Option<u64> {
        self.fields[slot].as_ref()?.int(self.bytes, self.endian)
    }

    fn text(&self, slot: usize) -> Option<&[u8]> {
        self.fields[slot].as_ref()?.text(self.bytes, self.endian)
    }
}

/// How the clock of a buffer becomes nanoseconds: `time * mult >> shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockScale {
    pub(crate) mult: u32,
    pub(crate) shift: u32,
}

impl ClockScale {
    /// A clock that counts nanoseconds.
    pub(crate) const NANOSECONDS: Self = Self { mult: 1, shift: 0 };

    fn apply(self, time: Time) -> Time {
        let scaled = u128::from(time.0) * u128::from(self.mult);
        Time(scaled.checked_shr(self.shift).unwrap_or(0) as u64)
    }
}

/// Everything needed to read pages: where fields stand, and the names of threads.
pub(crate) struct Decoder {
    layout: Layout,
    clock: ClockScale,
    /// Plans by event id.
    plans: FxHashMap<u16, Plan>,
    event_names: FxHashMap<u16, String>,
    type_field: Field,
    pid_field: Field,
    comms: FxHashMap<u32, Comm>,
    idle: Comm,
    unknown: Comm,
}

impl Decoder {
    /// Makes a decoder for events of `formats`; `saved_cmdlines` has `PID COMM` lines.
    pub(crate) fn new(
        layout: Layout,
        clock: ClockScale,
        formats: &[Format],
        saved_cmdlines: &[u8],
        assembler: &mut Assembler<'_>,
    ) -> Self {
        let common = |name: &str| formats.iter().find_map(|format| format.field(name)).cloned();
        Self {
            layout,
            clock,
            plans: formats.iter().map(|format| (format.id, Plan::new(format))).collect(),
            event_names: formats.iter().map(|format| (format.id, format.name.clone())).collect(),
            type_field: common("common_type").unwrap_or_else(|| Field::number(0, 2)),
            pid_field: common("common_pid").unwrap_or_else(|| Field::number(4, 4)),
            comms: comms(saved_cmdlines, assembler),
            idle: assembler.comm(b"<idle>"),
            unknown: assembler.comm(COMM_UNKNOWN.as_bytes()),
        }
    }

    /// Reads all records of a page into `out`, which is empty.
    fn page(&self, page: &[u8], cpu: u32, out: &mut PageEvents) {
        let Some(mut page) = self.layout.open(page) else {
            out.is_cut = !page.is_empty();
            return;
        };
        out.lost = page.lost;
        while let Some((time, record)) = page.next_record() {
            self.record(self.clock.apply(time), cpu, record, out);
        }
        out.is_cut = page.is_cut;
    }

    fn record(&self, time: Time, cpu: u32, bytes: &[u8], out: &mut PageEvents) {
        let endian = self.layout.endian;
        let id = self.type_field.int(bytes, endian).map(|id| id as u16);
        let plan = id.and_then(|id| Some((id, self.plans.get(&id)?)));
        let Some((id, plan)) = plan else {
            return out.unknown.count(id.unwrap_or(0));
        };
        match self.kind(plan, bytes) {
            Decoded::Event(kind) => {
                let pid = self.pid_field.int(bytes, endian).unwrap_or(0) as u32;
                out.events.push(Event { time, cpu, pid, comm: self.comm(pid), kind });
            }
            Decoded::BadFields => out.bad.count(id),
            Decoded::Unused => out.unused.count(id),
        }
    }

    fn kind(&self, plan: &Plan, bytes: &[u8]) -> Decoded {
        let endian = self.layout.endian;
        Decoded::fields(match plan {
            Plan::Unused => return Decoded::Unused,
            Plan::Shape(shape, fields) => (shape.build)(&Record { fields, bytes, endian }),
            Plan::Syscall(side, fields) => {
                side.event(fields.iter().filter_map(|field| field.int(bytes, endian)))
            }
        })
    }

    fn comm(&self, pid: u32) -> Comm {
        let fallback = if pid == 0 { self.idle } else { self.unknown };
        self.comms.get(&pid).copied().unwrap_or(fallback)
    }

    fn event_name(&self, id: u16) -> &[u8] {
        self.event_names.get(&id).map_or(b"", String::as_bytes)
    }
}

fn comms(saved_cmdlines: &[u8], assembler: &mut Assembler<'_>) -> FxHashMap<u32, Comm> {
    let mut entry = |line: &[u8]| {
        let (pid, comm) = line.split_at(memchr(b' ', line)?);
        let pid = std::str::from_utf8(pid).ok()?.parse().ok()?;
        Some((pid, assembler.comm(&comm[1..])))
    };
    saved_cmdlines.split(|&b| b == b'\n').filter_map(&mut entry).collect()
}

/// Counts by event id. A page holds few different ones.
#[derive(Debug, Default)]
struct Counts(Vec<(u16, u64)>);

impl Counts {
    fn count(&mut self, id: u16) {
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, count)) => *count += 1,
            None => self.0.push((id, 1)),
        }
    }
}

/// What one page says.
#[derive(Debug, Default)]
struct PageEvents {
    events: Vec<Event>,
    /// Events of the formats that are not used.
    unused: Counts,
    /// Events of the model that could not be read.
    bad: Counts,
    /// Events without a format.
    unknown: Counts,
    lost: u64,
    is_cut: bool,
}

impl PageEvents {
    /// Counts everything but the events, and moves those to `events`. `place` says which page this
    /// is. Nothing remains but the memory.
    fn settle(
        &mut self,
        decoder: &Decoder,
        events: &mut Vec<Event>,
        assembler: &mut Assembler<'_>,
        place: &dyn Fn() -> String,
    ) {
        events.append(&mut self.events);
        for (id, count) in self.unused.0.drain(..) {
            assembler.unused(decoder.event_name(id), count);
        }
        let losses = &mut assembler.capture.losses;
        for (id, count) in self.bad.0.drain(..) {
            losses.add(LossKind::BadFields, count, || {
                let name = String::from_utf8_lossy(decoder.event_name(id));
                format!("{}: {name}", place())
            });
        }
        for (id, count) in self.unknown.0.drain(..) {
            losses.add(LossKind::Unparsed, count, || {
                format!("{}: event {id} has no format", place())
            });
        }
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            losses.add(LossKind::LostEvents, lost, || format!("{}: before it", place()));
        }
        if std::mem::take(&mut self.is_cut) {
            let first = || format!("{}: the page ends in a record", place());
            losses.add(LossKind::Truncated, 1, first);
        }
    }
}
