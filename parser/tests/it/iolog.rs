//! Iologs of fio.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use traces::access::{AccessKind, Source};
use traces::capture::{Capture, LossKind, Severity};
use traces::settings::{Origin, Settings};
use traces::streams::{self, StreamError, StreamOptions};
use traces::units::{ByteOffset, Time};

use crate::common::{read_fixture, read_text};

fn source(capture: &Capture) -> Source {
    streams::build(capture, "test", &StreamOptions::default()).expect("a source")
}

/// The accesses of a log, one a line.
fn render(capture: &Capture) -> String {
    let source = source(capture);
    let mut text = format!("{:?}, {:?}\n", capture.header.format, source.fidelity);
    let paths = capture.iolog.iter().flat_map(|iolog| &iolog.files);
    for (file, logged) in source.files.iter().zip(paths) {
        writeln!(text, "{} {} bytes {:?}", logged.path, file.size_bytes, file.extents).expect("ok");
    }
    writeln!(text, "unused {:?}\n{}", capture.unused_events, capture.losses).expect("ok");
    for access in &source.accesses {
        let file = source.opens[access.open as usize].file;
        let (time, think_ns, open) = (access.time, access.think_ns, access.open);
        writeln!(text, "{time} +{think_ns} open {open} file {file} {:?}", access.kind).expect("ok");
    }
    text
}

#[test]
fn version_3_as_fio_writes_it() {
    insta::assert_snapshot!(render(&read_fixture("fio-3.33.iolog")));
}

#[test]
fn version_2_without_times() {
    let capture = read_text(
        "fio version 2 iolog\n/data/a b add\n/data/a b open\n/data/a b read 0 4096\n\
         /data/a b read 4096 65536\n/data/a b sync 0 0\n/data/a b close\n\
         /data/a b open\n/data/a b read 8192 4096\n",
    );
    insta::assert_snapshot!(render(&capture));
}

#[test]
fn waits_of_version_2_count_milliseconds_from_the_start() {
    let capture = read_text(
        "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 400 0\nf read 4096 4096\n\
         f wait 700 0\nf read 8192 4096\nf wait 300 0\nf read 12288 4096\n",
    );
    let source = source(&capture);
    let thinks: Vec<u64> = source.accesses.iter().map(|access| access.think_ns).collect();
    // The last wait is over before it begins.
    assert_eq!(thinks, [0, 400_000_000, 300_000_000, 0]);
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
}

#[test]
fn times_of_version_3_count_microseconds() {
    let capture = read_text("fio version 3 iolog\n7 f open\n9 f read 0 1\n309 f read 1 1\n");
    let source = source(&capture);
    assert_eq!((source.accesses[0].time, source.accesses[0].think_ns), (Time(9_000), 0));
    assert_eq!(source.accesses[1].think_ns, 300_000);
}

#[test]
fn file_sizes_are_the_highest_end_or_given() {
    let capture = read_text("fio version 2 iolog\nf read 0 4096\nf write 8192 100\n");
    assert_eq!(source(&capture).files[0].size_bytes, 8292);
    let mut settings = Settings::default();
    settings.set("file_size", "1M", Origin::Given).expect("a size");
    let options = StreamOptions { settings, ..StreamOptions::default() };
    let source = streams::build(&capture, "test", &options).expect("a source");
    assert_eq!(source.files[0].size_bytes, 1 << 20);
}

#[test]
fn what_is_not_replayed_is_counted() {
    let capture = read_text(
        "fio version 2 iolog\nf read 0 4096\nf write 0 4096\nf trim 0 4096\nf datasync 0 0\n",
    );
    let loss = &capture.losses.0[&LossKind::NotReplayed];
    assert_eq!((loss.count, &*loss.first), (2, "line 3: f write 0 4096"));
    assert_eq!(capture.losses.severity(), Some(Severity::Warning));
    let unused: Vec<_> = capture.unused_events.iter().map(|(name, n)| (&**name, *n)).collect();
    assert_eq!(unused, [("datasync", 1), ("trim", 1), ("write", 1)]);
}

#[test]
fn lines_that_are_not_understood_are_counted_with_their_number() {
    let capture = read_text(
        "fio version 3 iolog\n1 f open\n2 f read 0 4096\nf read 0 4096\n3 f wait 7 0\n\
         4 f read 18446744073709551615 4096\n5 f frob 0 1\n2 f read 0 1\n9 f read 0 40",
    );
    let losses = &capture.losses.0;
    assert_eq!(losses[&LossKind::Unparsed].count, 4);
    assert_eq!(losses[&LossKind::Unparsed].first, "line 4: f read 0 4096");
    assert_eq!(losses[&LossKind::OutOfOrder].first, "line 8: 2 f read 0 1");
    assert_eq!(losses[&LossKind::Truncated].first, "line 9: 9 f read 0 40");
    assert_eq!(source(&capture).accesses.len(), 2);
}

#[test]
fn other_versions_are_refused() {
    let error = parser::read(&b"fio version 4 iolog\n0 f open\n"[..], "x.log").expect_err("none");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn a_log_without_reads_is_no_source() {
    let capture = read_text("fio version 2 iolog\nf write 0 4096\n");
    let error = streams::build(&capture, "x.log", &StreamOptions::default()).expect_err("none");
    assert!(matches!(error, StreamError::NoReads { .. }));
    insta::assert_snapshot!(error.to_string());
}

proptest! {
    /// What a log says is what the accesses are, whatever the paths.
    #[test]
    fn reads_come_back(
        path in "[^\\s\\pC]([^\\pC\\s]| ){0,20}[^\\s\\pC]",
        reads in vec((0..1_u64 << 40, 0..1_u64 << 32, 0..10_000_u64), 1..20),
    ) {
        let mut text = format!("fio version 3 iolog\n0 {path} open\n");
        let mut now_us = 0;
        for (pos, count, think_us) in &reads {
            now_us += think_us;
            writeln!(text, "{now_us} {path} read {pos} {count}").expect("ok");
        }
        let capture = read_text(&text);
        prop_assert!(capture.losses.0.is_empty(), "{}", capture.losses);
        let source = source(&capture);
        prop_assert_eq!(&capture.iolog.as_ref().expect("a log").files[0].path, &path);
        let kinds: Vec<_> = source.accesses.iter().map(|access| access.kind).collect();
        let written = reads.iter().map(|(pos, count, _)| AccessKind::Read { pos: ByteOffset(*pos), count: *count });
        prop_assert_eq!(kinds, written.collect::<Vec<_>>());
        let thinks: Vec<_> = source.accesses.iter().skip(1).map(|access| access.think_ns).collect();
        prop_assert_eq!(thinks, reads[1..].iter().map(|(.., us)| us * 1000).collect::<Vec<_>>());
    }
}
