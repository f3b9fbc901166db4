//! The events of a capture in the order of their times, more than once where that is asked for.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use parser::{Collector, Input, Sink};
use traces::capture::{Capture, Comms};
use traces::event::Event;
use traces::units::Time;

use crate::events::{self, EVER, Streamed};
use crate::load::{LoadError, read_joined, stream, stream_input};

/// Events among which those that come late are put in their place. Text that a tracer merges from the
/// buffers of its CPUs has them a few lines apart; what comes later than this is taken as it comes.
const LATE_EVENTS_MAX: usize = 1 << 16;

/// Takes events in the order of their times.
pub(crate) type Taker<'t> = dyn FnMut(&[Event], &Comms) + 't;

/// A capture to pass over.
pub(crate) struct Feed {
    from: From,
    times: RangeInclusive<Time>,
    /// Clock of the time stamps, where the capture does not say.
    clock: Option<String>,
}

enum From {
    /// Can be read again.
    Path(PathBuf),
    /// Can not. Nothing is left once it was read.
    Once(Option<Input<'static>>),
    /// Has its events in memory.
    Memory(Box<Streamed>),
}

impl Feed {
    /// Opens a capture. With further files of the run it has to be read as a whole.
    pub(crate) fn open(
        path: &Path,
        joined: &[PathBuf],
        clock: Option<String>,
    ) -> Result<Self, LoadError> {
        let from = if !joined.is_empty() {
            From::Memory(Box::new(read_joined(path, joined, clock.clone())?))
        } else if path.is_dir() || path.is_file() {
            From::Path(path.to_owned())
        } else {
            From::Once(Some(parser::open(path)?))
        };
        Ok(Self { from, times: EVER, clock })
    }

    /// Passes over what has none of these times, where that can be known before it is read.
    pub(crate) fn only(self, times: RangeInclusive<Time>) -> Self {
        Self { times, ..self }
    }

    /// What a table says of its capture; nothing if it is none.
    pub(crate) fn stated(&mut self) -> Result<events::Stated, LoadError> {
        let is_table = match &mut self.from {
            From::Path(path) if path.is_dir() => false,
            From::Path(path) => {
                let mut input = parser::open(path)?;
                if events::is_table(&mut input)? {
                    return Ok(events::stated(input)?);
                }
                false
            }
            From::Once(input) => match input {
                Some(input) => events::is_table(input)?,
                None => false,
            },
            From::Memory(streamed) => return Ok(streamed.stated.clone()),
        };
        if !is_table {
            return Ok(events::Stated::default());
        }
        // What says it stands at its end.
        self.keep()?;
        self.stated()
    }

    /// Makes sure that it can be passed over again.
    pub(crate) fn keep(&mut self) -> Result<(), LoadError> {
        if let From::Once(_) = self.from {
            let mut collector = Collector::default();
            let streamed = self.read(&mut collector)?;
            let capture = collector.finish(streamed.capture);
            self.from = From::Memory(Box::new(Streamed { capture, ..streamed }));
        }
        Ok(())
    }

    /// Hands out all events. The capture that is returned has everything else.
    pub(crate) fn run(&mut self, taker: &mut Taker<'_>) -> Result<Streamed, LoadError> {
        if let From::Memory(streamed) = &mut self.from {
            let events = std::mem::take(&mut streamed.capture.events);
            taker(&events, &streamed.capture.comms);
            let rest = Streamed::clone(streamed);
            streamed.capture.events = events;
            return Ok(rest);
        }
        let mut in_order = InOrder { taker, events: Vec::new() };
        let streamed = self.read(&mut in_order)?;
        in_order.hand_out(0, &streamed.capture.comms);
        Ok(streamed)
    }

    fn read(&mut self, sink: &mut dyn Sink) -> Result<Streamed, LoadError> {
        let mut streamed = match &mut self.from {
            From::Path(path) => stream(path, &self.times, sink)?,
            From::Once(input) => match input.take() {
                Some(input) => stream_input(input, &self.times, sink)?,
                None => Capture::default().into(),
            },
            From::Memory(_) => Capture::default().into(),
        };
        let header = &mut streamed.capture.header;
        header.clock = header.clock.take().or(self.clock.clone());
        Ok(streamed)
    }
}

/// Puts events that come late in their place; ties keep the order of the file.
struct InOrder<'t, 's> {
    taker: &'t mut Taker<'s>,
    events: Vec<Event>,
}

impl Sink for InOrder<'_, '_> {
    fn events(&mut self, events: &[Event], comms: &Comms) {
        self.events.extend_from_slice(events);
        if self.events.len() >= 2 * LATE_EVENTS_MAX {
            self.hand_out(LATE_EVENTS_MAX, comms);
        }
    }
}

impl InOrder<'_, '_> {
    /// Hands out all events but the last `left`.
    fn hand_out(&mut self, left: usize, comms: &Comms) {
        if !self.events.is_sorted_by_key(|event| event.time) {
            self.events.sort_by_key(|event| event.time);
        }
        let count = self.events.len() - left;
        (self.taker)(&self.events[..count], comms);
        self.events.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use traces::event::{Comm, EventKind};

    use super::*;

    fn order(times: impl Iterator<Item = u64>) -> Vec<(u64, u32)> {
        let kind = EventKind::Unplug { requests: 1 };
        let event = |(time, cpu)| Event { time: Time(time), cpu, pid: 1, comm: Comm(0), kind };
        let events: Vec<Event> = times.zip(0..).map(event).collect();
        let mut handed = Vec::new();
        let mut take = |events: &[Event], _: &Comms| {
            handed.extend(events.iter().map(|event| (event.time.0, event.cpu)));
        };
        let mut in_order = InOrder { taker: &mut take, events: Vec::new() };
        for batch in events.chunks(4096) {
            in_order.events(batch, &Comms::default());
        }
        in_order.hand_out(0, &Comms::default());
        handed
    }

    #[test]
    fn late_events_find_their_place_and_ties_keep_theirs() {
        let count = 5 * LATE_EVENTS_MAX as u64;
        let times = |n: u64| if n % 1000 == 999 { n.saturating_sub(50_000) } else { n / 2 * 2 };
        let handed = order((0..count).map(times));
        assert_eq!(handed.len() as u64, count);
        assert!(handed.is_sorted());
    }

    #[test]
    fn no_event_is_lost_that_comes_too_late() {
        let count = 5 * LATE_EVENTS_MAX as u64;
        let handed = order((0..count).rev());
        let mut times: Vec<u64> = handed.iter().map(|(time, _)| *time).collect();
        assert!(!times.is_sorted());
        times.sort_unstable();
        assert!(times.into_iter().eq(0..count));
    }
}
