//! Accesses and insertions on their way from the events to whoever takes them.
//!
//! What an access was, and which open file it went through, later events may tell. So accesses wait
//! here before their open file is chosen, and again until no later one can claim them for another.
//! A pass that keeps everything lets them wait to its end; one that passes everything on lets them
//! wait for a number of events, twice.

use std::collections::VecDeque;

use super::opens::{Opens, Raw};
use crate::access::{Access, FileExtent, RecordedFolio, RecordedRead};

/// Takes what a pass over events finds, in the order in which it happened. Numbers of files, open
/// files and threads are those of the pass.
pub trait Taker {
    /// An access to `file`, which has `size_bytes` as far as is known.
    fn access(&mut self, file: u32, size_bytes: u64, access: &Access);
    /// A folio was put into the page cache.
    fn folio(&mut self, folio: &RecordedFolio);
    /// A request to a device that files lie on.
    fn read(&mut self, read: &RecordedRead);
    /// Some of `file` lies there, as a bio tells.
    fn extent(&mut self, _file: u32, _extent: FileExtent) {}
}

/// What names an access that waits: its place among the events, and a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    seq: u64,
    id: u64,
}

/// What is known of the size of a file by its number in the pass.
pub(super) trait Sizes {
    /// As an event states it.
    fn stated(&self, file: u32) -> Option<u64>;
    /// As well as anything tells.
    fn likely(&self, file: u32) -> u64;
}

/// The accesses that wait.
pub(super) struct Window<T> {
    taker: T,
    /// Events that an access waits for, each time; `None` for all there are.
    events: Option<u64>,
    waiting: VecDeque<(Key, Raw)>,
    /// How many of these have their open file.
    assigned: usize,
    folios: VecDeque<RecordedFolio>,
    opens: Opens,
    pushed: u64,
    /// Accesses before this event have their open file.
    assigned_to: u64,
}

impl<T: Taker> Window<T> {
    pub(super) fn new(taker: T, events: Option<u64>) -> Self {
        Self {
            taker,
            events,
            waiting: VecDeque::new(),
            assigned: 0,
            folios: VecDeque::new(),
            opens: Opens::default(),
            pushed: 0,
            assigned_to: 0,
        }
    }

    /// Takes in an access that may have begun at an earlier event than others did.
    pub(super) fn push(&mut self, raw: Raw) -> Key {
        self.pushed += 1;
        // One that comes this late is taken to have begun later.
        let key = Key { seq: raw.access.seq.max(self.assigned_to), id: self.pushed };
        let place = match self.waiting.back() {
            Some((last, _)) if *last > key => {
                self.waiting.partition_point(|(before, _)| *before < key)
            }
            _ => self.waiting.len(),
        };
        self.waiting.insert(place, (key, raw));
        key
    }

    /// The access of this name, as long as it waits.
    pub(super) fn get(&mut self, key: Key) -> Option<&mut Raw> {
        let place = self.waiting.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(&mut self.waiting[place].1)
    }

    pub(super) fn folio(&mut self, folio: RecordedFolio) {
        self.folios.push_back(folio);
    }

    /// Whoever takes what is found.
    pub(super) fn taker(&mut self) -> &mut T {
        &mut self.taker
    }

    /// The first event whose accesses wait, when `now` is the next one.
    pub(super) fn settled(&self, now: u64) -> u64 {
        self.events.map_or(0, |events| now.saturating_sub(events))
    }

    /// Passes on what has waited long enough when `now` is the next event.
    pub(super) fn settle(&mut self, now: u64, sizes: &impl Sizes) {
        let assign_to = self.settled(now);
        self.assign(assign_to, sizes);
        self.pass_on(self.settled(assign_to), sizes);
    }

    /// Passes on everything.
    pub(super) fn finish(mut self, sizes: &impl Sizes) -> (T, Opens) {
        self.assign(u64::MAX, sizes);
        self.pass_on(u64::MAX, sizes);
        (self.taker, self.opens)
    }

    /// Chooses the open files of accesses before the event `end`.
    fn assign(&mut self, end: u64, sizes: &impl Sizes) {
        self.assigned_to = end;
        while self.waiting.get(self.assigned).is_some_and(|(key, _)| key.seq < end) {
            self.opens.assign(&mut self.waiting, self.assigned, sizes);
            self.assigned += 1;
        }
    }

    /// Hands out what happened before the event `end`, accesses before what they insert.
    fn pass_on(&mut self, end: u64, sizes: &impl Sizes) {
        loop {
            let access = self.waiting.front().map_or(u64::MAX, |(key, _)| key.seq);
            let folio = self.folios.front().map_or(u64::MAX, |folio| folio.seq);
            if access.min(folio) >= end {
                return;
            }
            if access <= folio {
                if let Some((_, raw)) = self.waiting.pop_front() {
                    self.assigned -= 1;
                    self.taker.access(raw.file, sizes.likely(raw.file), &raw.access);
                }
            } else if let Some(folio) = self.folios.pop_front() {
                self.taker.folio(&folio);
            }
        }
    }
}
