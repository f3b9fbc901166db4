//! From batches of events to a capture: the one place where losses and names come together.

use std::collections::BTreeMap;

use traces::capture::{Capture, Comms, LossKind};
use traces::event::{Comm, Event};
use traces::units::Time;

use crate::input::Input;

/// Distinct names of unused events kept; the rest is counted together. Real kernels have some 2000.
const UNUSED_NAMES_MAX: usize = 8192;
/// What stands for the names beyond [`UNUSED_NAMES_MAX`].
const UNUSED_OTHER: &str = "(others)";

/// Distinct names of threads kept. A machine that runs for months does not see as many.
const COMMS_MAX: usize = 1 << 20;
/// Name of a thread whose name is not known, as ftrace prints it.
pub(crate) const COMM_UNKNOWN: &str = "<...>";

/// Receives the events of a capture as they are parsed.
pub trait Sink {
    /// Takes the next events in the order of the file; `comms` names all threads seen so far.
    fn events(&mut self, events: &[Event], comms: &Comms);
}

impl<F: FnMut(&[Event], &Comms)> Sink for F {
    fn events(&mut self, events: &[Event], comms: &Comms) {
        self(events, comms);
    }
}

/// What a parser writes to: passes events on and keeps everything else.
pub(crate) struct Assembler<'s> {
    sink: &'s mut dyn Sink,
    /// Everything but the events. Parsers add names, losses and header fields directly.
    pub(crate) capture: Capture,
    latest: Time,
}

impl<'s> Assembler<'s> {
    pub(crate) fn new(format: &str, sink: &'s mut dyn Sink) -> Self {
        let mut capture = Capture::default();
        format.clone_into(&mut capture.header.format);
        Self { sink, capture, latest: Time(0) }
    }

    /// Passes `events` on, counting those earlier than one before.
    pub(crate) fn events(&mut self, events: &[Event]) {
        let mut backwards = 0;
        let mut first = None;
        for event in events {
            if event.time < self.latest {
                backwards += 1;
                first.get_or_insert((event.time, self.latest));
            } else {
                self.latest = event.time;
            }
        }
        if let Some((time, latest)) = first {
            self.capture.losses.add(LossKind::OutOfOrder, backwards, || {
                format!("event at {time} ns after one at {latest} ns")
            });
        }
        if !events.is_empty() {
            self.sink.events(events, &self.capture.comms);
        }
    }

    /// The id of a thread's name.
    pub(crate) fn comm(&mut self, name: &[u8]) -> Comm {
        let name = String::from_utf8_lossy(name);
        let comms = &mut self.capture.comms;
        match comms.find(&name) {
            Some(known) => known,
            None if comms.count() >= COMMS_MAX => comms.intern(COMM_UNKNOWN),
            None => comms.intern(&name),
        }
    }

    /// Counts `count` events called `name` that this program does not use.
    pub(crate) fn unused(&mut self, name: &[u8], count: u64) {
        let name = String::from_utf8_lossy(name);
        let unused: &mut BTreeMap<String, u64> = &mut self.capture.unused_events;
        let full = unused.len() >= UNUSED_NAMES_MAX && !unused.contains_key(&*name);
        let key = if full { UNUSED_OTHER } else { &name };
        *unused.entry(key.to_owned()).or_default() += count;
    }

    /// Records that `input` ended early, if it did.
    pub(crate) fn input_damage(&mut self, input: &Input<'_>) {
        if let Some(damage) = input.damage() {
            self.capture.losses.add(LossKind::Truncated, 1, || {
                let offset = input.offset();
                let (compression, reason) = (damage.compression, &damage.reason);
                format!("byte {offset} of the unpacked data: {compression} data: {reason}")
            });
        }
    }

    /// Everything but the events.
    pub(crate) fn finish(self) -> Capture {
        self.capture
    }
}

/// The sink behind [`read`](crate::read): keeps all events.
#[derive(Debug, Default)]
pub struct Collector {
    events: Vec<Event>,
}

impl Sink for Collector {
    fn events(&mut self, events: &[Event], _: &Comms) {
        self.events.extend_from_slice(events);
    }
}

impl Collector {
    /// The whole capture, its events in time order; ties keep the order of the file.
    pub fn finish(mut self, capture: Capture) -> Capture {
        if !self.events.is_sorted_by_key(|event| event.time) {
            self.events.sort_by_key(|event| event.time);
        }
        Capture { events: self.events, ..capture }
    }
}
