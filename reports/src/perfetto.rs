//! Replays of a source as a timeline: JSON in the trace event format, as the Perfetto UI and
//! `chrome://tracing` open it.
//!
//! A process is a policy, its threads are those of the source. Reads, faults and other calls are
//! slices of a thread, with the waits for folios inside; windows, and runs of pages handed to the
//! filesystem, are instants within the call that caused them. Requests of the device overlap, so
//! they are asynchronous slices of the process, from the tag to the completion. Times are virtual
//! and begin with the first access. Nothing is summed up: there is an event for everything, written
//! as it comes.
//!
//! Begin and end of a slice are events of their own, as readers that round a time and a length apart
//! would take neighbours for overlapping. `traceEvents` comes first, since some readers stop at the
//! first field that they do not know.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::result::ReplayReport;
use replay::page_cache::Folio;
use replay::run::{AccessTimes, ChosenWindow, History, RequestTimes, Sent, WaitTimes};
use serde::Serialize;
use traces::access::{AccessKind, Source};
use traces::units::{SECTOR_SHIFT, Time};

use crate::words;

/// Writes the timelines of a report on `source`, of which `histories` has one per result.
pub fn replay(
    out: &mut impl Write,
    source: &Source,
    report: &ReplayReport,
    histories: &[History],
) -> io::Result<()> {
    let mut events = Events { out, is_first: true };
    events.out.write_all(b"{\"traceEvents\":[")?;
    let files: Vec<String> = source.files.iter().map(traces::access::File::name).collect();
    for (place, (result, history)) in report.results.iter().zip(histories).enumerate() {
        // Some readers know threads by their number alone, and take a thread with that of its
        // process for the main one.
        let threads_before = report.results.len() + place * source.threads.len();
        let process = Process {
            source,
            files: &files,
            history,
            pid: place as u32 + 1,
            first_tid: threads_before as u32 + 1,
        };
        process.write(&result.policy, &mut events)?;
    }
    events.out.write_all(b"\n],\n\"otherData\":")?;
    serde_json::to_writer(&mut *events.out, &about(report))?;
    events.out.write_all(b"}\n")
}

/// What a reader has to know of the figures, by name.
fn about(report: &ReplayReport) -> BTreeMap<&'static str, String> {
    let verify = report.verify.as_ref();
    let mut about = BTreeMap::from([
        ("program", concat!("rareplay ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("source", report.source.clone()),
        ("streams", words::streams(report.fidelity, &report.streams)),
        ("settings", words::settings(&report.settings)),
        ("model", words::device(&report.device)),
        ("check", verify.map_or(words::NOT_VERIFIED.to_owned(), words::verify)),
    ]);
    if let Some(errors) = verify.and_then(words::time_errors) {
        about.insert("time", errors);
    }
    if !report.losses.0.is_empty() {
        about.insert("losses", report.losses.to_string().trim_end().to_owned());
    }
    about
}

/// An array of events.
struct Events<'o, W> {
    out: &'o mut W,
    is_first: bool,
}

impl<W: Write> Events<'_, W> {
    fn push<A: Serialize>(&mut self, event: &Event<'_, A>) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.is_first) { b"\n" } else { b",\n" })?;
        Ok(serde_json::to_writer(&mut *self.out, event)?)
    }
}

/// An event, with the names of the format.
#[derive(Serialize)]
struct Event<'a, A> {
    ph: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    /// In microseconds. Nanoseconds are exact: a double holds those of a hundred days.
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The scope of an instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<A>,
}

impl<A> Event<'_, A> {
    fn new(ph: &'static str, pid: u32) -> Self {
        let (tid, ts, cat, name, id, s, args) = (None, None, None, None, None, None, None);
        Self { ph, pid, tid, ts, cat, name, id, s, args }
    }
}

fn microseconds(time: Time) -> f64 {
    time.0 as f64 / 1000.0
}

/// What happens on a thread at a moment. Within an access and a moment, things come in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Begins,
    /// Of the access before it, so that two in a row are not taken for one inside the other.
    WaitEnds,
    Window,
    Submission,
    WaitBegins,
    Ends,
}

/// A step, in the order of a thread: the accesses of a thread follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    thread: u32,
    access: u32,
    time: Time,
    step: Step,
    /// Its place in the list of the history that has it.
    place: usize,
}

/// The run of a policy.
struct Process<'a> {
    source: &'a Source,
    files: &'a [String],
    history: &'a History,
    pid: u32,
    first_tid: u32,
}

impl<'a> Process<'a> {
    fn write<W: Write>(&self, policy: &str, events: &mut Events<'_, W>) -> io::Result<()> {
        events.push(&self.names("process_name", None, policy))?;
        for (thread, name) in self.source.threads.iter().enumerate() {
            events.push(&self.names("thread_name", Some(self.tid(thread as u32)), name))?;
        }
        let folios = folios_of(self.history);
        for moment in self.moments() {
            self.write_moment(&moment, &folios, events)?;
        }
        for (number, request) in self.history.requests.iter().enumerate() {
            self.write_request(number, request, events)?;
        }
        Ok(())
    }

    fn tid(&self, thread: u32) -> u32 {
        self.first_tid + thread
    }

    fn names<'n>(&self, what: &'n str, tid: Option<u32>, name: &'n str) -> Event<'n, Name<'n>> {
        Event { tid, name: Some(what), args: Some(Name { name }), ..Event::new("M", self.pid) }
    }

    /// All that happens on threads, thread by thread.
    fn moments(&self) -> Vec<Moment> {
        let history = self.history;
        let mut moments = Vec::new();
        let mut add = |place: usize, access: u32, time: Time, step: Step| {
            let thread = self.source.accesses[access as usize].thread;
            moments.push(Moment { thread, access, time, step, place });
        };
        for (place, times) in self.calls().enumerate() {
            add(place, times.access, times.began, Step::Begins);
            add(place, times.access, times.ended, Step::Ends);
        }
        for (place, wait) in history.waits.iter().enumerate() {
            add(place, wait.access, wait.from, Step::WaitBegins);
            add(place, wait.access, wait.until, Step::WaitEnds);
        }
        for (place, window) in history.windows.iter().enumerate() {
            add(place, window.access, window.time, Step::Window);
        }
        for (place, sent) in history.sent.iter().enumerate() {
            add(place, sent.access, sent.time, Step::Submission);
        }
        moments.sort_unstable();
        moments
    }

    fn calls(&self) -> impl Iterator<Item = &'a AccessTimes> {
        self.history.accesses.iter().chain(&self.history.calls)
    }

    fn call(&self, place: usize) -> &'a AccessTimes {
        let reads = self.history.accesses.len();
        self.history.accesses.get(place).unwrap_or_else(|| &self.history.calls[place - reads])
    }

    fn write_moment<W: Write>(
        &self,
        moment: &Moment,
        folios: &[&[Folio]],
        events: &mut Events<'_, W>,
    ) -> io::Result<()> {
        let history = self.history;
        match moment.step {
            Step::Begins => {
                let (name, args) = self.describe(self.call(moment.place));
                events.push(&self.event("B", moment, "access", name, args))
            }
            Step::WaitBegins => {
                let WaitTimes { page, .. } = history.waits[moment.place];
                events.push(&self.event("B", moment, "wait", "wait", Page { page: page.0 }))
            }
            Step::WaitEnds | Step::Ends => {
                let (tid, ts) = (Some(self.tid(moment.thread)), Some(microseconds(moment.time)));
                events.push(&Event::<()> { tid, ts, ..Event::new("E", self.pid) })
            }
            Step::Window => {
                let args = Window::new(&history.windows[moment.place]);
                let event = self.event("i", moment, "readahead", "window", args);
                events.push(&Event { s: Some("t"), ..event })
            }
            Step::Submission => {
                let sent = &history.sent[moment.place];
                let args = self.submission(sent, folios[moment.place]);
                let event = self.event("i", moment, "readahead", "submit", args);
                events.push(&Event { s: Some("t"), ..event })
            }
        }
    }

    fn event<'n, A>(
        &self,
        ph: &'static str,
        moment: &Moment,
        cat: &'static str,
        name: &'n str,
        args: A,
    ) -> Event<'n, A> {
        Event {
            tid: Some(self.tid(moment.thread)),
            ts: Some(microseconds(moment.time)),
            cat: Some(cat),
            name: Some(name),
            args: Some(args),
            ..Event::new(ph, self.pid)
        }
    }

    fn describe(&self, times: &AccessTimes) -> (&'static str, Call<'a>) {
        let access = &self.source.accesses[times.access as usize];
        let file = &self.files[self.source.opens[access.open as usize].file as usize];
        let call = Call {
            access: times.access,
            file,
            open: access.open,
            waited_ns: times.waited_ns,
            ..Call::default()
        };
        let bytes = |pos, count| Call { pos: Some(pos), count: Some(count), ..call };
        let pages = |page, pages| Call { page: Some(page), pages: Some(pages), ..call };
        match access.kind {
            AccessKind::Read { pos, count } => ("read", bytes(pos.0, count)),
            AccessKind::Touch { page } => ("touch", pages(page.0, 1)),
            AccessKind::Fault { page, .. } => ("fault", pages(page.0, 1)),
            AccessKind::FaultAround { first, last, .. } => {
                ("fault-around", pages(first.0, last + 1 - first))
            }
            AccessKind::WillNeed { page, pages: count } => ("willneed", pages(page.0, count)),
            AccessKind::DontNeed { pos, count } => ("dontneed", bytes(pos.0, count)),
            AccessKind::AdviseNormal => ("fadvise normal", call),
            AccessKind::AdviseSequential => ("fadvise sequential", call),
            AccessKind::AdviseRandom => ("fadvise random", call),
            AccessKind::Evict { page, order } => ("evict", pages(page.0, order.pages())),
        }
    }

    fn submission(&self, sent: &Sent, folios: &[Folio]) -> Submission<'a> {
        let mut by_order = BTreeMap::new();
        for folio in folios {
            *by_order.entry(folio.order.0).or_insert(0) += 1;
        }
        Submission {
            file: &self.files[sent.run.file as usize],
            page: sent.run.index.0,
            pages: sent.run.pages,
            folios_by_order: by_order,
        }
    }

    fn write_request<W: Write>(
        &self,
        number: usize,
        times: &RequestTimes,
        events: &mut Events<'_, W>,
    ) -> io::Result<()> {
        let request = &times.request;
        let args = Request {
            access: times.access,
            file: &self.files[request.file as usize],
            page: request.page.0,
            sector: request.sector.0,
            bytes: request.sectors << SECTOR_SHIFT,
            queued_ns: times.issued - times.submitted,
        };
        let end = Event::<()> {
            ts: Some(microseconds(times.completed)),
            cat: Some("device"),
            name: Some("device read"),
            id: Some(format!("{}.{number}", self.pid)),
            ..Event::new("e", self.pid)
        };
        events.push(&Event {
            ts: Some(microseconds(times.issued)),
            cat: end.cat,
            name: end.name,
            id: end.id.clone(),
            args: Some(args),
            ..Event::new("b", self.pid)
        })?;
        events.push(&end)
    }
}

/// The folios of each submission.
fn folios_of(history: &History) -> Vec<&[Folio]> {
    let mut rest = &history.folios[..];
    let own = history.sent.iter().map(|sent| {
        let (own, after) = rest.split_at(sent.run.folios as usize);
        rest = after;
        own
    });
    own.collect()
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

/// A read, fault or other call.
#[derive(Clone, Copy, Default, Serialize)]
struct Call<'a> {
    access: u32,
    file: &'a str,
    open: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pos: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<u64>,
    waited_ns: u64,
}

#[derive(Serialize)]
struct Page {
    page: u64,
}

#[derive(Serialize)]
struct Window {
    index: u64,
    size: u64,
    async_size: u64,
    order: u32,
}

impl Window {
    fn new(window: &ChosenWindow) -> Self {
        let ChosenWindow { index, ra, order, .. } = *window;
        Self { index, size: ra.size, async_size: ra.async_size, order }
    }
}

#[derive(Serialize)]
struct Submission<'a> {
    file: &'a str,
    page: u64,
    pages: u64,
    folios_by_order: BTreeMap<u8, u64>,
}

#[derive(Serialize)]
struct Request<'a> {
    access: u32,
    file: &'a str,
    page: u64,
    sector: u64,
    bytes: u64,
    queued_ns: u64,
}
