//! Captures described in one pass, without their events in memory.
//!
//! Some things take more. What a run joined from several files or given a list of accesses is made of
//! has to be there as a whole. A filter on threads or files passes over the capture once more
//! beforehand, for which what comes from standard input is kept.

use std::path::Path;

use traces::capture::{Capture, Comms};
use traces::event::Event;
use traces::streams::{self, Pass, StreamOptions};

use super::files::Follower;
use super::survey::{Requests, Survey};
use super::{Filter, InspectReport, Seen, Streams, inspect};
use crate::feed::Feed;
use crate::load::{LoadError, LoadOptions, Stated, with_accesses};

/// Events that the accesses of a pass wait for: twice, for what they were and for their open file.
pub(super) const WINDOW_EVENTS: u64 = 1 << 17;

/// Describes the capture at `path`, or the part of it that `filter` keeps.
pub fn inspect_path(
    path: &Path,
    options: &LoadOptions,
    filter: &Filter,
) -> Result<InspectReport, LoadError> {
    let stated = Stated::read(path, options)?;
    let feed = Feed::open(path, &stated.joined, stated.clock.clone())?;
    let feed = feed.only(filter.times_alone());
    inspect_feed(&path.display().to_string(), feed, stated, filter, WINDOW_EVENTS)
}

pub(super) fn inspect_feed(
    name: &str,
    mut feed: Feed,
    mut stated: Stated,
    filter: &Filter,
    window_events: u64,
) -> Result<InspectReport, LoadError> {
    stated.add(feed.stated()?)?;
    let options = stated.stream_options();
    let requests = survey(&mut feed, filter, &options)?;
    let mut kept = Vec::new();
    let mut view = filter.view(0, 0);
    let mut inspection = Inspection::new(&options, window_events);
    let keeps_events = stated.accesses.is_some();
    let streamed = feed.run(&mut |events: &[Event], comms: &Comms| {
        view.events_total += events.len() as u64;
        for event in events.iter().filter(|event| filter.keeps(event, comms, &requests)) {
            view.events_kept += 1;
            if keeps_events {
                kept.push(*event);
            } else {
                inspection.event(event);
            }
        }
    })?;
    view.events_total += streamed.passed_over;
    let mut capture = streamed.capture;
    if capture.iolog.is_some() && !filter.is_empty() {
        return Err(LoadError::NothingToFilter { name: name.to_owned() });
    }
    let mut report = if keeps_events || capture.iolog.is_some() {
        capture.events = kept;
        whole(name, capture, &options, stated)
    } else {
        inspection.finish(name, capture)
    };
    report.filter = (!filter.is_empty()).then_some(view);
    Ok(report)
}

/// Finds out whose the requests are, where the filter asks for it.
fn survey(
    feed: &mut Feed,
    filter: &Filter,
    options: &StreamOptions,
) -> Result<Requests, LoadError> {
    let Some(mut survey) = Survey::new(filter, options) else { return Ok(Requests::default()) };
    feed.keep()?;
    let streamed = feed.run(&mut |events: &[Event], comms: &Comms| {
        for event in events {
            survey.event(event, comms);
        }
    })?;
    Ok(survey.finish(&streamed.capture))
}

/// Describes a capture that is in memory, with the accesses of a list if one is stated.
fn whole(
    name: &str,
    mut capture: Capture,
    options: &StreamOptions,
    stated: Stated,
) -> InspectReport {
    let source = streams::build(&capture, name, options).map_err(LoadError::from);
    let source = source.and_then(|source| with_accesses(source, stated.accesses));
    if let Ok(source) = &source {
        capture.losses = source.losses.clone();
    }
    inspect(name, &capture, source.as_ref().map_err(ToString::to_string))
}

/// A capture as its events come.
pub(super) struct Inspection<'a> {
    seen: Seen,
    streams: Pass<'a, Follower>,
    /// Streams of what readahead did, as long as nothing shows what was asked for.
    inferred: Option<Pass<'a, Follower>>,
}

impl<'a> Inspection<'a> {
    pub(super) fn new(options: &'a StreamOptions, window_events: u64) -> Self {
        let pass = || Pass::windowed(options, Follower::default(), window_events);
        let inferred = options.allow_inferred.then(|| pass().inferring());
        Self { seen: Seen::default(), streams: pass(), inferred }
    }

    pub(super) fn event(&mut self, event: &Event) {
        self.seen.event(event);
        self.streams.event(event);
        if self.streams.has_accesses() {
            self.inferred = None;
        }
        if let Some(inferred) = &mut self.inferred {
            inferred.event(event);
        }
    }

    pub(super) fn finish(self, name: &str, mut capture: Capture) -> InspectReport {
        let streams = self.inferred.unwrap_or(self.streams);
        let streams = match streams.finish(&capture, name) {
            Ok(passed) => {
                capture.losses = passed.source.losses.clone();
                Ok(Streams::followed(passed))
            }
            Err(why) => Err(why.to_string()),
        };
        self.seen.report(name, &capture, streams)
    }
}
