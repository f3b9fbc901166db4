//! Compression, damage and input that is no capture.

use std::io::Write as _;

use crate::common::{fixture, read_fixture, render_events};
use traces::capture::{LossKind, Severity};

const FIXTURE: &str = "linux-6.18-xfs.trace.txt";

fn fixture_bytes() -> Vec<u8> {
    std::fs::read(fixture(FIXTURE)).expect("fixture")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("compresses")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

fn message(bytes: &[u8]) -> String {
    parser::read(bytes, "run.txt").expect_err("no capture").to_string()
}

#[test]
fn compression_is_recognised_by_content() {
    let plain = render_events(&read_fixture(FIXTURE));
    let bytes = fixture_bytes();
    let two_frames = [zstd(&bytes[..1000]), zstd(&bytes[1000..])].concat();
    let two_streams = [xz(&bytes[..1000]), xz(&bytes[1000..])].concat();
    let nested = zstd(&gzip(&bytes));
    for packed in [zstd(&bytes), gzip(&bytes), xz(&bytes), nested, two_frames, two_streams] {
        let capture = parser::read(&packed[..], "run.txt").expect("parses");
        assert_eq!(render_events(&capture), plain);
        assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    }
}

#[test]
fn empty_input() {
    insta::assert_snapshot!(message(b""));
    insta::assert_snapshot!(message(&zstd(b"")));
}

#[test]
fn binary_input() {
    insta::assert_snapshot!(message(b"\x7fELF\x02\x01\x01\x00\x00\x00"));
}

#[test]
fn perf_data() {
    insta::assert_snapshot!(message(b"PERFILE2h\0\0\0\0\0\0\0"));
}

#[test]
fn other_text() {
    insta::assert_snapshot!(message(b"\n# A title\n\nSome text - about 12 [things].\n"));
}

#[test]
fn missing_file() {
    let error = parser::read_path("no/such/file".as_ref()).expect_err("missing");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn line_cut_short() {
    let bytes = fixture_bytes();
    let cut = &bytes[..bytes.len() - 10];
    let capture = parser::read(cut, "run.txt").expect("parses");
    assert_eq!(capture.events.len() + 1, read_fixture(FIXTURE).events.len());
    insta::assert_snapshot!(capture.losses.to_string());
    assert_eq!(capture.losses.severity(), Some(Severity::DataLoss));
}

/// A cut line that still reads as an event must not become one with other numbers.
#[test]
fn number_cut_short() {
    let text = "  a-1 [000] ..... 1.000000: mm_filemap_fault: dev=8:1 ino=83 ofs=8192\n\
                  a-1 [000] ..... 1.000001: mm_filemap_fault: dev=8:1 ino=83 ofs=8";
    let capture = parser::read(text.as_bytes(), "run.txt").expect("parses");
    assert_eq!(capture.events.len(), 1);
    assert!(capture.losses.0.contains_key(&LossKind::Truncated));
}

#[test]
fn compressed_frame_cut_short() {
    let line = |i: u64| {
        let (time, ofs) = (i * 37 % 999_983, i * i % 999_999_937);
        format!("  a-1 [000] ..... 1.{time:06}: mm_filemap_fault: dev=8:1 ino=83 ofs={ofs}\n")
    };
    let bytes: Vec<u8> = (0..20_000).flat_map(|i| line(i).into_bytes()).collect();
    for packed in [zstd(&bytes), gzip(&bytes), xz(&bytes)] {
        let cut = &packed[..packed.len() * 3 / 4];
        let capture = parser::read(cut, "run.txt").expect("parses");
        assert!(!capture.events.is_empty());
        let loss = &capture.losses.0[&LossKind::Truncated];
        assert!(loss.first.contains("unpacked data") || loss.first.contains("line"), "{loss:?}");
    }
}

#[test]
fn compressed_frame_damaged_from_the_start() {
    let mut packed = zstd(&fixture_bytes());
    packed.truncate(10);
    insta::assert_snapshot!(message(&packed));
}

/// A line longer than a block costs that line, not the rest, and no memory for all of it.
#[test]
fn line_of_a_megabyte() {
    let event = "  a-1 [000] ..... 1.000000: mm_filemap_fault: dev=8:1 ino=83 ofs=8192\n";
    let long = "x".repeat(1 << 20);
    let cut = event.trim_end();
    let text = format!("{event}{long}\n{event}{cut}");
    let capture = parser::read(text.as_bytes(), "run.txt").expect("parses");
    assert_eq!(capture.events.len(), 2);
    assert!(capture.losses.0[&LossKind::Unparsed].first.starts_with("line 2: xxx"));
    assert!(capture.losses.0[&LossKind::Truncated].first.starts_with("line 4: "));
}
