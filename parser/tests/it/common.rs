//! What the tests of several formats share.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use traces::capture::Capture;

/// Path of a fixture.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The fixture `name`, parsed.
pub(crate) fn read_fixture(name: &str) -> Capture {
    parser::read_path(&fixture(name)).expect("fixture parses")
}

/// `text`, parsed.
pub(crate) fn read_text(text: &str) -> Capture {
    parser::read(text.as_bytes(), "test").expect("text parses")
}

/// The events of `capture`, one a line, so that captures of one run in several formats compare.
pub(crate) fn render_events(capture: &Capture) -> String {
    let mut text = String::new();
    for event in &capture.events {
        let (time, cpu, pid) = (event.time, event.cpu, event.pid);
        let comm = capture.comms.name(event.comm);
        writeln!(text, "{time} [{cpu}] {comm}-{pid} {:?}", event.kind).expect("write to string");
    }
    text
}

/// All of `capture`, for snapshots.
pub(crate) fn render(capture: &Capture) -> String {
    format!(
        "{:?}\nunused: {:?}\nlosses: {}\n{}",
        capture.header,
        capture.unused_events,
        capture.losses,
        render_events(capture)
    )
}
