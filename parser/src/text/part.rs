//! What one block of lines says, before it joins the rest.

use memchr::memchr_iter;
use rustc_hash::FxHashMap;
use traces::capture::LossKind;
use traces::event::{Comm, Event, EventKind};
use traces::units::Time;

use super::excerpt;
use super::scan::Scan;
use crate::assemble::Assembler;

/// Bytes of a line in which its prefix is looked for. Names of threads have at most 15 bytes, or some
/// 70 where a vendor's kernel prints those of Android packages; paths of files may stand in front.
const PREFIX_WITHIN: usize = 1024;

/// Finds the prefix of a line: what the first piece behind a `separator` is that `columns` reads.
///
/// The separator stands between the name of a thread and the columns behind it, and may be part of
/// the name.
pub(crate) fn find_prefix<'a, C>(
    line: &'a [u8],
    separator: u8,
    columns: impl Fn(&'a [u8]) -> Scan<'a, C>,
) -> Option<(&'a [u8], C, &'a [u8])> {
    let head = &line[..line.len().min(PREFIX_WITHIN)];
    memchr_iter(separator, head).find_map(|at| {
        let (body, columns) = columns(&line[at + 1..]).ok()?;
        Some((&line[..at], columns, body))
    })
}

/// What stands in front of every event of a text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix<'a> {
    /// Name of the thread.
    pub(crate) comm: &'a [u8],
    /// Thread.
    pub(crate) pid: u32,
    /// CPU.
    pub(crate) cpu: u32,
    /// When.
    pub(crate) time: Time,
}

/// What a header or comment line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note<'a> {
    /// The tracer.
    Tracer(&'a [u8]),
    /// Number of CPUs.
    Cpus(u32),
    /// Kernel release.
    Kernel(&'a [u8]),
}

/// A loss within the block; its line counts from the start of the block.
struct PartLoss<'a> {
    kind: LossKind,
    count: u64,
    line: u64,
    text: &'a [u8],
}

/// The events, names, losses and notes of one block.
#[derive(Default)]
pub(crate) struct Part<'a> {
    events: Vec<Event>,
    comms: FxHashMap<&'a [u8], Comm>,
    comm_names: Vec<&'a [u8]>,
    comm_last: Option<(&'a [u8], Comm)>,
    unused: FxHashMap<&'a [u8], u64>,
    notes: Vec<Note<'a>>,
    /// First and total of each kind; few kinds, so a list.
    losses: Vec<PartLoss<'a>>,
    lines: u64,
}

impl<'a> Part<'a> {
    /// An empty part that uses the memory of `events`.
    pub(crate) fn new(mut events: Vec<Event>) -> Self {
        events.clear();
        Self { events, ..Self::default() }
    }

    /// Counts a line: what is added next comes from it.
    pub(crate) fn begin_line(&mut self) {
        self.lines += 1;
    }

    /// Adds an event.
    pub(crate) fn event(&mut self, prefix: &Prefix<'a>, kind: EventKind) {
        let comm = self.intern(prefix.comm);
        let Prefix { pid, cpu, time, .. } = *prefix;
        self.events.push(Event { time, cpu, pid, comm, kind });
    }

    /// Counts an event that is not used.
    pub(crate) fn unused(&mut self, name: &'a [u8]) {
        *self.unused.entry(name).or_default() += 1;
    }

    /// Keeps what a header line says.
    pub(crate) fn note(&mut self, note: Note<'a>) {
        self.notes.push(note);
    }

    /// Counts the line as not understood.
    pub(crate) fn unparsed(&mut self, line: &'a [u8]) {
        self.loss(LossKind::Unparsed, 1, line);
    }

    /// Counts a piece of a line that is too long; the rest of it follows in the next block.
    pub(crate) fn unparsed_piece(&mut self, piece: &'a [u8]) {
        self.begin_line();
        self.unparsed(piece);
        self.lines -= 1;
    }

    /// Counts a loss that the current line tells of.
    pub(crate) fn loss(&mut self, kind: LossKind, count: u64, text: &'a [u8]) {
        match self.losses.iter_mut().find(|loss| loss.kind == kind) {
            Some(loss) => loss.count = loss.count.saturating_add(count),
            None => self.losses.push(PartLoss { kind, count, line: self.lines, text }),
        }
    }

    /// Whether any line was an event, used or not.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.unused.is_empty()
    }

    fn intern(&mut self, comm: &'a [u8]) -> Comm {
        if let Some((name, id)) = self.comm_last
            && name == comm
        {
            return id;
        }
        let next = Comm(self.comm_names.len() as u32);
        let id = *self.comms.entry(comm).or_insert(next);
        if id == next {
            self.comm_names.push(comm);
        }
        self.comm_last = Some((comm, id));
        id
    }

    /// Hands everything to `assembler`; `line` is the number of the block's first line. Returns the
    /// number of the line after the block, and the memory of the events.
    pub(crate) fn deliver(mut self, line: u64, assembler: &mut Assembler<'_>) -> (u64, Vec<Event>) {
        let names = self.comm_names.iter();
        let comms: Vec<Comm> = names.map(|name| assembler.comm(name)).collect();
        for event in &mut self.events {
            event.comm = comms[event.comm.0 as usize];
        }
        for note in self.notes {
            note.apply(assembler);
        }
        assembler.events(&self.events);
        for (name, count) in self.unused {
            assembler.unused(name, count);
        }
        for loss in self.losses {
            assembler.capture.losses.add(loss.kind, loss.count, || {
                format!("line {}: {}", line + loss.line - 1, excerpt(loss.text))
            });
        }
        (line + self.lines, self.events)
    }
}

impl Note<'_> {
    fn apply(self, assembler: &mut Assembler<'_>) {
        let header = &mut assembler.capture.header;
        match self {
            Self::Tracer(name) => header.tracer = Some(String::from_utf8_lossy(name).into_owned()),
            Self::Kernel(name) => header.kernel = Some(String::from_utf8_lossy(name).into_owned()),
            Self::Cpus(n) => header.cpus = Some(n),
        }
    }
}
