//! Blktrace in all its formats.

use std::fs;

use crate::common::{fixture, read_fixture, read_text, render, render_events};
use traces::capture::{Capture, LossKind};
use traces::event::{Comm, EventKind, Rwbs};
use traces::units::Time;

const NAME: &str = "linux-6.12.blktrace.0";

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Little,
    Big,
}

/// One record, as the kernel's `struct blk_io_trace` or `blk_io_trace2`.
#[derive(Clone)]
struct Record {
    sequence: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u64,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    pdu: Vec<u8>,
}

impl Record {
    fn to_bytes(&self, order: Order, version: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut put = |value: u64, size: usize| match order {
            Order::Little => bytes.extend_from_slice(&value.to_le_bytes()[..size]),
            Order::Big => bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]),
        };
        put(0x6561_7400 | u64::from(version), 4);
        put(self.sequence.into(), 4);
        put(self.time, 8);
        put(self.sector, 8);
        put(self.bytes.into(), 4);
        if version == 7 {
            put(self.action, 4);
            put(self.pid.into(), 4);
        } else {
            put(self.pid.into(), 4);
            put(self.action, 8);
        }
        put(self.device.into(), 4);
        put(self.cpu.into(), 4);
        put(self.error.into(), 2);
        put(self.pdu.len() as u64, 2);
        if version == 8 {
            put(0, 8);
            put(0, 4);
        }
        bytes.extend_from_slice(&self.pdu);
        bytes
    }
}

/// The records of the fixture, which is little-endian version 7.
fn records() -> Vec<Record> {
    let bytes = fs::read(fixture(NAME)).expect("fixture");
    let mut rest = &bytes[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let u32_at = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().expect("8 bytes"));
        let pdu_bytes = (u32_at(44) >> 16) as usize;
        records.push(Record {
            sequence: u32_at(4),
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28).into(),
            pid: u32_at(32),
            device: u32_at(36),
            cpu: u32_at(40),
            error: u32_at(44) as u16,
            pdu: rest[48..48 + pdu_bytes].to_vec(),
        });
        rest = &rest[48 + pdu_bytes..];
    }
    records
}

fn dump(records: &[Record], order: Order, version: u8) -> Vec<u8> {
    records.iter().flat_map(|record| record.to_bytes(order, version)).collect()
}

fn read_bytes(bytes: &[u8]) -> Capture {
    parser::read(bytes, "run").expect("parses")
}

#[test]
fn binary() {
    insta::assert_snapshot!(render(&read_fixture(NAME)));
}

#[test]
fn trap_both_versions_in_both_byte_orders() {
    let expected = render_events(&read_fixture(NAME));
    for version in [7, 8] {
        for order in [Order::Little, Order::Big] {
            let capture = read_bytes(&dump(&records(), order, version));
            assert!(capture.losses.0.is_empty(), "{}", capture.losses);
            assert_eq!(render_events(&capture), expected, "version {version}");
        }
    }
}

/// Events of a capture as blkparse shows them: times from the first, no name at completions.
fn as_blkparse(mut capture: Capture) -> String {
    let start = capture.events[0].time;
    let unknown = capture.comms.intern("<...>");
    for event in &mut capture.events {
        event.time = Time(event.time - start);
        if matches!(event.kind, EventKind::RqComplete { .. }) {
            event.comm = unknown;
        }
    }
    render_events(&capture)
}

#[test]
fn blkparse_text_has_the_same_events() {
    let expected = as_blkparse(read_fixture(NAME));
    for name in ["linux-6.12.blkparse.txt", "linux-6.12.blkparse-t.txt"] {
        let capture = read_fixture(name);
        assert!(capture.losses.0.is_empty(), "{name}: {}", capture.losses);
        assert_eq!(as_blkparse(capture), expected, "{name}");
    }
}

/// `-f "%D %2c %8s %5T.%9t %5p %2a %3d %S %n %N %C\n"` leaves out only how many requests an unplug
/// let go.
#[test]
fn blkparse_text_in_a_format_with_spaces() {
    let mut binary = read_fixture(NAME);
    for event in &mut binary.events {
        if let EventKind::Unplug { requests } = &mut event.kind {
            *requests = 0;
        }
    }
    let capture = read_fixture("linux-6.12.blkparse-f.txt");
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!(as_blkparse(capture), as_blkparse(binary));
}

/// `-f "%5T.%9t, %p, %C, %a, %S, %n, %N\n"` has neither device nor direction.
#[test]
fn blkparse_text_in_a_format_with_commas() {
    let (binary, text) = (read_fixture(NAME), read_fixture("linux-6.12.blkparse-f-comma.txt"));
    assert!(text.losses.0.is_empty(), "{}", text.losses);
    assert_eq!(text.events.len(), binary.events.len());
    let start = binary.events[0].time;
    for (text, binary) in text.events.iter().zip(&binary.events) {
        assert_eq!((text.time.0, text.pid), (binary.time - start, binary.pid));
        if let (EventKind::RqIssue { extent: text, rwbs }, EventKind::RqIssue { extent, .. }) =
            (text.kind, binary.kind)
        {
            assert_eq!((text.sector, text.sectors), (extent.sector, extent.sectors));
            assert_eq!(rwbs, Rwbs::default());
        }
    }
}

/// The fixture spread over the files of several CPUs in a new directory.
fn per_cpu_files(cpus: u32) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("directory");
    let mut sequences = vec![0; cpus as usize];
    let mut files = vec![Vec::new(); cpus as usize];
    for (i, mut record) in records().into_iter().enumerate() {
        let cpu = i % cpus as usize;
        record.cpu = cpu as u32;
        if record.sequence > 0 {
            sequences[cpu] += 1;
            record.sequence = sequences[cpu];
        }
        files[cpu].extend(record.to_bytes(Order::Little, 7));
    }
    for (cpu, bytes) in files.iter().enumerate() {
        fs::write(directory.path().join(format!("sda.blktrace.{cpu}")), bytes).expect("writes");
    }
    directory
}

fn times_and_kinds(capture: &Capture) -> Vec<(Time, EventKind)> {
    capture.events.iter().map(|event| (event.time, event.kind)).collect()
}

#[test]
fn per_cpu_files_are_merged_by_time() {
    let directory = per_cpu_files(4);
    let capture = parser::read_path(directory.path()).expect("parses");
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!(times_and_kinds(&capture), times_and_kinds(&read_fixture(NAME)));
}

#[test]
fn trap_missing_cpu_file() {
    let directory = per_cpu_files(4);
    fs::remove_file(directory.path().join("sda.blktrace.1")).expect("removes");
    let capture = parser::read_path(directory.path()).expect("parses");
    insta::assert_snapshot!(capture.losses);
}

#[test]
fn directory_without_a_capture() {
    let directory = tempfile::tempdir().expect("directory");
    let error = parser::read_path(directory.path()).expect_err("no capture").to_string();
    insta::assert_snapshot!(error.replace(&*directory.path().to_string_lossy(), "DIR"));
}

#[test]
fn trap_cpu_field_differs_from_the_file() {
    let mut records = records();
    for record in &mut records {
        record.cpu = 12;
    }
    let capture = read_bytes(&dump(&records, Order::Little, 7));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert!(capture.events.iter().all(|event| event.cpu == 12));
}

#[test]
fn trap_header_line_in_blkparse_text() {
    let header = "#Maj,Mn CPU   SeqNo     Seconds     PID  Evt Typ Sector   +Len Description\n\
                  #------ --- ------- --------------- -----|--|---|---------+---\n";
    let event = "259,1    0        1     0.000000000   733  Q  RA 128 + 32 [DataXceiver for]\n";
    let capture = read_text(&format!("{header}{event}"));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!(capture.comms.name(capture.events[0].comm), "DataXceiver for");
}

#[test]
fn trap_missing_sequence_numbers_are_lost_events() {
    let mut records = records();
    records.drain(40..43);
    let capture = read_bytes(&dump(&records, Order::Little, 7));
    insta::assert_snapshot!(capture.losses);
}

#[test]
fn record_cut_short() {
    let bytes = fs::read(fixture(NAME)).expect("fixture");
    let capture = read_bytes(&bytes[..bytes.len() - 20]);
    insta::assert_snapshot!(capture.losses);
}

#[test]
fn garbage_after_records() {
    let mut bytes = fs::read(fixture(NAME)).expect("fixture");
    bytes.extend_from_slice(&[0xee; 100]);
    let capture = read_bytes(&bytes);
    assert_eq!(capture.events.len(), read_fixture(NAME).events.len());
    insta::assert_snapshot!(capture.losses);
}

/// The record of the fixture with this action (7 for an issue).
fn record_of(action: u64) -> Record {
    let records = records();
    let found = records.iter().find(|record| record.action & 0xff == action && record.sequence > 0);
    found.expect("in the fixture").clone()
}

#[test]
fn trap_cgroup_id_in_front_of_the_extra_bytes() {
    let plain = record_of(10);
    let mut marked = plain.clone();
    marked.action |= 0x100;
    marked.pdu.splice(0..0, [1; 8]);
    let [plain, marked] = [plain, marked].map(|r| read_bytes(&dump(&[r], Order::Little, 7)));
    assert_eq!(times_and_kinds(&marked), times_and_kinds(&plain));
    assert_eq!(plain.events.len(), 1);
}

#[test]
fn trap_error_is_the_low_half_of_an_errno() {
    let mut record = record_of(8);
    record.error = 0xfffb;
    let capture = read_bytes(&dump(&[record], Order::Big, 8));
    assert!(matches!(capture.events[0].kind, EventKind::RqComplete { error: -5, .. }));
    let text = "259,1    0        1     0.000000000     0  C  RA 128 + 32 [65531]\n";
    let capture = read_text(text);
    assert!(matches!(capture.events[0].kind, EventKind::RqComplete { error: -5, .. }));
}

#[test]
fn trap_extra_bytes_are_big_endian() {
    let mut record = record_of(7);
    record.action = (record.action & !0xffff) | 0xd;
    record.pdu = (record.sector + 8).to_be_bytes().to_vec();
    for order in [Order::Little, Order::Big] {
        let capture = read_bytes(&dump(std::slice::from_ref(&record), order, 7));
        let EventKind::BioSplit { extent, rest, .. } = capture.events[0].kind else {
            panic!("{:?}", capture.events);
        };
        assert_eq!((extent.sectors, rest.0), (8, record.sector + 8));
    }
}

#[test]
fn trap_messages_have_sequence_zero_and_are_no_events() {
    let mut message = record_of(7);
    (message.sequence, message.action, message.pdu) = (0, 0x400_0002, b"cfq said".to_vec());
    let mut all = records();
    all.insert(50, message);
    let capture = read_bytes(&dump(&all, Order::Little, 7));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!(capture.unused_events["blk_message"], 1);
}

/// The events of lines in blkparse's default format, without what all lines have in common.
fn kinds(lines: &[&str]) -> Vec<EventKind> {
    let line = |line| format!("259,1    0        1     0.000000000   733 {line}\n");
    let text: String = lines.iter().map(line).collect();
    let capture = read_text(&text);
    assert!(capture.losses.0.is_empty(), "{lines:?}: {}", capture.losses);
    capture.events.iter().map(|event| event.kind).collect()
}

#[test]
fn blkparse_line_shapes() {
    let kinds = kinds(&[
        " Q  RA 128 + 32 [reader]",
        " M   R 160 + 32 [Web Content]",
        " X   R 128 / 144 [dd [1]]",
        " U   N [reader] 3",
        "UT   N [reader] 4",
        " D  FN [kworker/0:1H]",
        " C  FN [0]",
        " A   W 746579600 + 8 <- (253,3) 578805392",
        " m   N cfq733 / alloced",
    ]);
    let lines: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn trap_split_prints_the_low_half_of_the_sector() {
    let [EventKind::BioSplit { extent, rest, .. }] =
        kinds(&[" X   R 8589934600 / 16 [reader]"])[..]
    else {
        panic!("a split");
    };
    assert_eq!((extent.sectors, rest.0), (8, 0x2_0000_0010));
}

#[test]
fn trap_skipped_events_of_the_summary() {
    let event = "259,1    0        1     0.000000000   733  Q  RA 128 + 32 [reader]\n";
    let capture = read_text(&format!("{event}\nSkips: 2 forward (1,017 -  45.5%)\n"));
    assert_eq!(capture.losses.0[&LossKind::LostEvents].count, 1017);
}

/// The lines of the `blk` tracer with its options `blk_cgroup` and `verbose` are the same events.
#[test]
fn trap_blk_tracer_text() {
    let prefix = "          reader-516     [000] .....   338.804755: ";
    let plain = format!("# tracer: blk\n{prefix}  8,0    Q  RA 2048 + 8 [reader]\n");
    let expected = render_events(&read_text(&plain));
    assert!(expected.contains("[0] reader-516 BioQueue"), "{expected}");
    for body in [
        "  8,0   1,42   Q  RA 2048 + 8 [reader]",
        "  8,0 /user.slice/x  Q  RA 2048 + 8 [reader]",
        "  8,0   queue  RA 2048 + 8 [reader]",
    ] {
        let text = format!("# tracer: blk\n{prefix}{body}\n");
        assert_eq!(render_events(&read_text(&text)), expected, "{body}");
    }
}

/// With `blk_classic` the tracer prints blkparse's lines without the sequence number.
#[test]
fn trap_blk_tracer_classic() {
    let header = "# tracer: blk\n#\n# DEV   CPU TIMESTAMP     PID ACT FLG\n#  |     |     |           |   |   |\n";
    let line = "  8,0    2     0.000012345   516  Q  RA 2048 + 8 [reader]\n";
    let capture = read_text(&format!("{header}{line}"));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    let [event] = capture.events[..] else { panic!("one event") };
    assert_eq!((event.cpu, event.pid, event.time), (2, 516, Time(12_345)));
    assert_eq!((event.comm, capture.comms.name(event.comm)), (Comm(0), "reader"));
}
