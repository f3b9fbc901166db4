//! The pages of all CPUs, as one sequence of events in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use traces::event::Event;
use traces::units::Time;

use super::{Decoder, PageEvents};
use crate::Error;
use crate::assemble::Assembler;

/// The pages of one CPU, a group at a time.
pub(crate) trait Pages {
    /// The CPU.
    fn cpu(&self) -> u32;

    /// Bytes in a page.
    fn page_bytes(&self) -> usize;

    /// Puts some more whole pages, or the rest, into `group`; nothing at the end.
    fn next_group(
        &mut self,
        group: &mut Vec<u8>,
        assembler: &mut Assembler<'_>,
    ) -> Result<(), Error>;

    /// Where page `index` of the group returned last stands, for messages.
    fn place(&self, index: usize) -> String;
}

/// One CPU's events read ahead.
struct Lane<P> {
    pages: P,
    group: Vec<u8>,
    /// What the pages of the group say.
    read: Vec<PageEvents>,
    events: Vec<Event>,
    next: usize,
}

impl<P: Pages> Lane<P> {
    fn new(pages: P) -> Self {
        Self { pages, group: Vec::new(), read: Vec::new(), events: Vec::new(), next: 0 }
    }

    /// Its place in the order of all lanes, if it has events left.
    fn key(&self, index: usize) -> Option<Reverse<(Time, usize)>> {
        self.events.get(self.next).map(|event| Reverse((event.time, index)))
    }

    /// Reads groups until there is an event or nothing is left.
    fn refill(&mut self, decoder: &Decoder, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        while self.next == self.events.len() {
            self.pages.next_group(&mut self.group, assembler)?;
            if self.group.is_empty() {
                break;
            }
            self.events.clear();
            self.next = 0;
            let cpu = self.pages.cpu();
            let pages = self.group.par_chunks(self.pages.page_bytes().max(1));
            self.read.resize_with(pages.len(), PageEvents::default);
            let read = self.read.par_iter_mut();
            pages.zip(read).for_each(|(page, out)| decoder.page(page, cpu, out));
            for (index, page) in self.read.iter_mut().enumerate() {
                let place = || self.pages.place(index);
                page.settle(decoder, &mut self.events, assembler, &place);
            }
        }
        Ok(())
    }
}

/// Reads all `cpus` and hands their events to `assembler` in time order.
pub(crate) fn merge<P: Pages>(
    cpus: Vec<P>,
    decoder: &Decoder,
    assembler: &mut Assembler<'_>,
) -> Result<(), Error> {
    let mut lanes = Vec::with_capacity(cpus.len());
    for pages in cpus {
        let mut lane = Lane::new(pages);
        lane.refill(decoder, assembler)?;
        lanes.push(lane);
    }
    let mut order: BinaryHeap<_> =
        lanes.iter().enumerate().filter_map(|(i, lane)| lane.key(i)).collect();
    let mut batch = Vec::new();
    while let Some(Reverse((_, i))) = order.pop() {
        let until = order.peek().map(|&Reverse((time, _))| time);
        let lane = &mut lanes[i];
        let run = run_until(&lane.events[lane.next..], until);
        batch.extend_from_slice(run);
        lane.next += run.len();
        if lane.next == lane.events.len() {
            assembler.events(&batch);
            batch.clear();
            lane.refill(decoder, assembler)?;
        }
        order.extend(lane.key(i));
    }
    assembler.events(&batch);
    Ok(())
}

/// The events up to a time: at least one, whatever their order.
fn run_until(events: &[Event], until: Option<Time>) -> &[Event] {
    let Some(until) = until else { return events };
    let length = events.iter().take_while(|event| event.time <= until).count();
    &events[..length.max(1)]
}
