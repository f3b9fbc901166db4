//! One run saved in every format that ftrace can be saved in gives the same events.

use traces::capture::Capture;
use traces::units::Time;

use crate::common::{read_fixture, render_events};

/// The events, with times in whole microseconds, to which ftrace text rounds them.
fn in_microseconds(mut capture: Capture) -> String {
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    for event in &mut capture.events {
        event.time = Time((event.time.0 + 500) / 1000 * 1000);
    }
    render_events(&capture)
}

/// What each thread did in turn, whenever it did it.
fn without_times(capture: &Capture) -> Vec<(u32, String)> {
    let of_event = |event: &traces::event::Event| {
        (event.pid, format!("{} {:?}", capture.comms.name(event.comm), event.kind))
    };
    let mut events: Vec<_> = capture.events.iter().map(of_event).collect();
    events.sort_by_key(|(pid, _)| *pid);
    events
}

#[test]
fn one_run_in_every_format() {
    let pages = read_fixture("golden.tracefs");
    assert_eq!(pages.events.len(), 226);
    assert_eq!(pages.header.clock.as_deref(), Some("mono"));
    let precise = render_events(&pages);
    for name in ["golden.v6.trace.dat", "golden.v7.trace.dat", "golden.report.txt"] {
        assert!(render_events(&read_fixture(name)) == precise, "{name}");
    }
    let text = in_microseconds(read_fixture("golden.trace.txt"));
    assert!(text == in_microseconds(pages), "golden.trace.txt");
}

/// Perf's own buffer has the events at times of its own, some nanoseconds apart.
#[test]
fn one_run_recorded_by_perf() {
    let perf = read_fixture("golden.perf.txt");
    assert!(without_times(&perf) == without_times(&read_fixture("golden.tracefs")));
}

#[test]
fn the_clock_is_what_the_file_says() {
    for name in ["golden.v6.trace.dat", "golden.v7.trace.dat"] {
        assert_eq!(read_fixture(name).header.clock.as_deref(), Some("mono"), "{name}");
    }
    assert_eq!(read_fixture("golden.trace.txt").header.clock, None);
}
