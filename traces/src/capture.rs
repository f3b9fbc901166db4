//! A capture as the parsers deliver it: events, what else the file said, and what was lost.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::event::{Comm, Event};
use crate::iolog::Iolog;
use crate::join::Join;

/// How bad a [`Loss`] is for a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing that a replay needs is missing.
    Info,
    /// Lines or events were not understood; what they said is unknown.
    Warning,
    /// Events that were recorded are missing: counts and replays may be wrong.
    DataLoss,
}

/// Every way in which a capture can hold less than what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// A line or record that no parser understood.
    Unparsed,
    /// An event this program knows whose fields could not be read.
    BadFields,
    /// Time stamps that go backwards by the order of the file.
    OutOfOrder,
    /// The tracer said that it lost events (`[LOST n EVENTS]`, `[n EVENTS DROPPED]`).
    LostEvents,
    /// The header counts more entries written than are in the buffer.
    Overwritten,
    /// The input ends in the middle of a line, record or compressed frame.
    Truncated,
    /// A per-CPU file or buffer is missing.
    MissingCpu,
    /// Writes and other accesses that change what is cached, and that no replay makes.
    NotReplayed,
}

impl LossKind {
    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            Self::OutOfOrder => Severity::Info,
            Self::Unparsed | Self::BadFields | Self::NotReplayed => Severity::Warning,
            Self::LostEvents | Self::Overwritten | Self::Truncated | Self::MissingCpu => {
                Severity::DataLoss
            }
        }
    }

    /// What the counter counts, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Unparsed => "lines or records not understood",
            Self::BadFields => "known events with unreadable fields",
            Self::OutOfOrder => "events earlier than the one before",
            Self::LostEvents => "events lost by the tracer",
            Self::Overwritten => "events overwritten in the trace buffer",
            Self::Truncated => "input cut short",
            Self::MissingCpu => "per-CPU files missing",
            Self::NotReplayed => "writes and trims, which are not replayed",
        }
    }
}

/// One loss counter with its first occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// How often, in the unit [`LossKind::describe`] names.
    pub count: u64,
    /// Where it first happened and what stood there.
    pub first: String,
}

/// All losses of a capture. Empty is good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Losses(pub BTreeMap<LossKind, Loss>);

impl Losses {
    /// Counts `count` more of `kind`; `first` is evaluated only for the first one.
    pub fn add(&mut self, kind: LossKind, count: u64, first: impl FnOnce() -> String) {
        self.0
            .entry(kind)
            .and_modify(|loss| loss.count += count)
            .or_insert_with(|| Loss { count, first: first() });
    }

    /// Adds the counters of another file of the run, whose places get `prefix` in front.
    pub fn merge(&mut self, other: Self, prefix: &str) {
        for (kind, loss) in other.0 {
            self.add(kind, loss.count, || format!("{prefix}{}", loss.first));
        }
    }

    /// The worst severity among the counters.
    pub fn severity(&self) -> Option<Severity> {
        self.0.keys().map(|kind| kind.severity()).max()
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, loss) in &self.0 {
            writeln!(f, "{}: {} (first: {})", kind.describe(), loss.count, loss.first)?;
        }
        Ok(())
    }
}

/// Names of threads, each stored once.
#[derive(Clone, Debug, Default)]
pub struct Comms {
    names: Vec<String>,
    ids: FxHashMap<String, Comm>,
}

impl Comms {
    /// The id of `name`, new or known.
    pub fn intern(&mut self, name: &str) -> Comm {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = Comm(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The id of `name`, if it is known.
    pub fn find(&self, name: &str) -> Option<Comm> {
        self.ids.get(name).copied()
    }

    /// How many names there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The name behind `id`.
    pub fn name(&self, id: Comm) -> &str {
        self.names.get(id.0 as usize).map_or("<...>", String::as_str)
    }
}

/// What a capture says about itself apart from its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Format the file was recognised as, such as `ftrace text`.
    pub format: String,
    /// The tracer named in the header (`nop` for plain events).
    pub tracer: Option<String>,
    /// Kernel release, where the format records one.
    pub kernel: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// Clock of the time stamps, by the name tracefs gives it.
    pub clock: Option<String>,
}

/// A parsed capture.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// What the file says about itself.
    pub header: Header,
    /// Events in time order; ties keep the order of the file.
    pub events: Vec<Event>,
    /// Names of the threads.
    pub comms: Comms,
    /// Events this program does not use, by name.
    pub unused_events: BTreeMap<String, u64>,
    /// What is missing.
    pub losses: Losses,
    /// Further files of the run that were joined to the first.
    pub joins: Vec<Join>,
    /// Accesses of a format that lists these instead of events.
    pub iolog: Option<Iolog>,
}
