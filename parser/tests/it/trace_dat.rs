//! `trace.dat` files, written here in every version, byte order, word size and compression.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::common::{read_text, render, render_events};
use proptest::collection::vec;
use proptest::prelude::*;
use traces::capture::{Capture, LossKind};

const PAGE_BYTES: usize = 4096;

/// How a file is written.
#[derive(Clone, Copy, Debug)]
struct Flavour {
    version: u8,
    is_big_endian: bool,
    /// Bytes of a `long` in the kernel traced.
    long_bytes: usize,
    compression: &'static str,
    /// Bytes in a page of the buffer, which can be larger than one of memory.
    page_bytes: usize,
}

const PLAIN: Flavour = Flavour {
    version: 6,
    is_big_endian: false,
    long_bytes: 8,
    compression: "none",
    page_bytes: PAGE_BYTES,
};

/// Bytes in the order of a flavour.
#[derive(Clone)]
struct Bytes {
    flavour: Flavour,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(flavour: Flavour) -> Self {
        Self { flavour, bytes: Vec::new() }
    }

    fn uint(mut self, value: u64, size: usize) -> Self {
        if self.flavour.is_big_endian {
            self.bytes.extend_from_slice(&value.to_be_bytes()[8 - size..]);
        } else {
            self.bytes.extend_from_slice(&value.to_le_bytes()[..size]);
        }
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn pad_to(mut self, length: usize) -> Self {
        assert!(self.bytes.len() <= length);
        self.bytes.resize(length, 0);
        self
    }

    /// A text behind its length of `size` bytes.
    fn text(self, text: &[u8], size: usize) -> Self {
        self.uint(text.len() as u64, size).raw(text)
    }
}

const COMMON: &str = "format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";

/// A `format` file; fields as declaration, offset, size and sign.
fn format(name: &str, id: u16, fields: &[(&str, usize, usize, bool)]) -> String {
    let mut text = format!("name: {name}\nID: {id}\n{COMMON}\n");
    for (declaration, offset, size, signed) in fields {
        let signed = u8::from(*signed);
        writeln!(text, "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};")
            .expect("write to string");
    }
    text + "\nprint fmt: \"ID: 1\"\n"
}

const FORMAT_ADD: u16 = 500;
const FORMAT_ISSUE: u16 = 600;
const FORMAT_PREAD: u16 = 700;
const FORMAT_OTHER: u16 = 800;

fn formats() -> Vec<(&'static str, Vec<String>)> {
    let add = format(
        "mm_filemap_add_to_page_cache",
        FORMAT_ADD,
        &[
            ("unsigned long i_ino", 8, 8, false),
            ("unsigned long pfn", 16, 8, false),
            ("unsigned long index", 24, 8, false),
            ("dev_t s_dev", 32, 4, false),
            ("unsigned char order", 36, 1, false),
        ],
    );
    let issue = format(
        "block_rq_issue",
        FORMAT_ISSUE,
        &[
            ("dev_t dev", 8, 4, false),
            ("sector_t sector", 16, 8, false),
            ("unsigned int nr_sector", 24, 4, false),
            ("unsigned int bytes", 28, 4, false),
            ("char rwbs[8]", 32, 8, false),
            ("__data_loc char[] cmd", 40, 4, false),
        ],
    );
    let pread = format(
        "sys_enter_pread64",
        FORMAT_PREAD,
        &[
            ("int __syscall_nr", 8, 4, true),
            ("unsigned int fd", 16, 8, false),
            ("char * buf", 24, 8, false),
            ("size_t count", 32, 8, false),
            ("loff_t pos", 40, 8, false),
        ],
    );
    let other = format("sched_switch", FORMAT_OTHER, &[("int x", 8, 4, true)]);
    vec![
        ("filemap", vec![add]),
        ("block", vec![issue]),
        ("syscalls", vec![pread]),
        ("sched", vec![other]),
    ]
}

fn record(flavour: Flavour, id: u16, pid: u32) -> Bytes {
    Bytes::new(flavour).uint(id.into(), 2).uint(0, 2).uint(pid.into(), 4)
}

fn add(flavour: Flavour, pid: u32, index: u64, order: u64) -> Vec<u8> {
    let record = record(flavour, FORMAT_ADD, pid).uint(0x83, 8).uint(0x1b5f9, 8).uint(index, 8);
    record.uint(8 << 20 | 1, 4).uint(order, 1).pad_to(40).bytes
}

fn issue(flavour: Flavour, pid: u32, sector: u64) -> Vec<u8> {
    let record = record(flavour, FORMAT_ISSUE, pid).uint(8 << 20 | 1, 4).uint(0, 4);
    let record = record.uint(sector, 8).uint(8, 4).uint(4096, 4);
    record.raw(b"RA\0\0\0\0\0\0").uint(44, 4).pad_to(44).bytes
}

fn pread(flavour: Flavour, pid: u32, pos: u64) -> Vec<u8> {
    let record = record(flavour, FORMAT_PREAD, pid).uint(17, 4).uint(0, 4).uint(3, 8);
    record.uint(0x7ffd, 8).uint(0x1000, 8).uint(pos, 8).bytes
}

/// One page of the ring buffer, written record by record.
struct Page {
    flavour: Flavour,
    time: u64,
    start: u64,
    data: Bytes,
    /// Marks above the length in the commit field.
    marks: u64,
    /// Bytes behind the data that do not count as such.
    tail: Vec<u8>,
}

impl Page {
    fn new(flavour: Flavour, time: u64) -> Self {
        let data = Bytes::new(flavour);
        Self { flavour, time, start: time, data, marks: 0, tail: Vec::new() }
    }

    fn word(&mut self, word: u64) {
        self.data = self.data.clone().uint(word, 4);
    }

    fn head(&mut self, kind: u64, delta: u64) {
        let big = self.flavour.is_big_endian;
        self.word(if big { kind << 27 | delta } else { delta << 5 | kind });
    }

    /// Appends an event, with a time extension in front where the step is too large for its head.
    fn event(mut self, time: u64, record: &[u8]) -> Self {
        let mut delta = time - self.time;
        if delta >= 1 << 27 {
            self.head(30, delta & ((1 << 27) - 1));
            self.word(delta >> 27);
            delta = 0;
        }
        self.head(record.len() as u64 / 4, delta);
        self.data = self.data.raw(record);
        self.time = time;
        self
    }

    /// Appends an event with its length in a word of its own.
    fn long_event(mut self, time: u64, record: &[u8]) -> Self {
        self.head(0, time - self.time);
        self.word(record.len() as u64 + 4);
        self.data = self.data.raw(record);
        self.time = time;
        self
    }

    fn to_bytes(&self) -> Vec<u8> {
        let commit = self.data.bytes.len() as u64 | self.marks;
        let page = Bytes::new(self.flavour).uint(self.start, 8);
        let page = page.uint(commit, self.flavour.long_bytes).raw(&self.data.bytes);
        page.raw(&self.tail).pad_to(self.flavour.page_bytes).bytes
    }
}

/// A whole file.
struct File {
    flavour: Flavour,
    cpus: Vec<Vec<Page>>,
    options: Vec<(u16, Vec<u8>)>,
}

impl File {
    fn new(flavour: Flavour, cpus: Vec<Vec<Page>>) -> Self {
        Self { flavour, cpus, options: Vec::new() }
    }

    fn start(&self) -> Bytes {
        let Flavour { version, is_big_endian, .. } = self.flavour;
        // The size of a long in the file is that of the program that wrote it.
        Bytes::new(self.flavour)
            .raw(b"\x17\x08\x44tracing")
            .raw(&[b'0' + version, 0, u8::from(is_big_endian), 8])
            .uint(PAGE_BYTES as u64, 4)
    }

    fn header_page(&self) -> String {
        let long = self.flavour.long_bytes;
        let data = 8 + long;
        format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{};\tsigned:1;\n",
            self.flavour.page_bytes - data
        )
    }

    fn header_info(&self, bytes: Bytes) -> Bytes {
        let text = self.header_page();
        bytes.raw(b"header_page\0").text(text.as_bytes(), 8).raw(b"header_event\0").text(b"", 8)
    }

    fn event_formats(bytes: Bytes) -> Bytes {
        let systems = formats();
        systems.iter().fold(bytes.uint(systems.len() as u64, 4), |bytes, (name, formats)| {
            let bytes = bytes.raw(name.as_bytes()).raw(&[0]).uint(formats.len() as u64, 4);
            formats.iter().fold(bytes, |bytes, format| bytes.text(format.as_bytes(), 8))
        })
    }

    fn pages(&self, cpu: usize) -> Vec<u8> {
        self.cpus[cpu].iter().flat_map(Page::to_bytes).collect()
    }

    fn to_bytes(&self) -> Vec<u8> {
        if self.flavour.version == 6 { self.version_6() } else { self.version_7() }
    }

    fn version_6(&self) -> Vec<u8> {
        let bytes = self.header_info(self.start()).uint(0, 4);
        let bytes = Self::event_formats(bytes).text(b"symbols", 4).text(b"printk", 4);
        let bytes = bytes.text(COMMS, 8).uint(self.cpus.len() as u64, 4);
        let mut bytes = bytes.raw(b"options  \0");
        for (id, data) in &self.options {
            bytes = bytes.uint((*id).into(), 2).text(data, 4);
        }
        bytes = bytes.uint(0, 2).raw(b"flyrecord\0");
        let mut at = bytes.bytes.len() + self.cpus.len() * 16;
        for cpu in 0..self.cpus.len() {
            let length = self.cpus[cpu].len() * self.flavour.page_bytes;
            bytes = bytes.uint(at as u64, 8).uint(length as u64, 8);
            at += length;
        }
        (0..self.cpus.len()).fold(bytes, |bytes, cpu| bytes.raw(&self.pages(cpu))).bytes
    }

    fn pack(&self, data: &[u8]) -> Vec<u8> {
        match self.flavour.compression {
            "zstd" => zstd::encode_all(data, 1).expect("compresses"),
            "zlib" => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(data).expect("compresses");
                encoder.finish().expect("compresses")
            }
            other => panic!("no compression {other}"),
        }
    }

    fn chunk(&self, bytes: Bytes, data: &[u8]) -> Bytes {
        let packed = self.pack(data);
        bytes.uint(packed.len() as u64, 4).uint(data.len() as u64, 4).raw(&packed)
    }

    fn is_packed(&self) -> bool {
        self.flavour.compression != "none"
    }

    /// Appends a section; returns where it starts.
    fn section(&self, bytes: Bytes, id: u16, content: &[u8]) -> (Bytes, u64) {
        let at = bytes.bytes.len() as u64;
        let packed = self.is_packed() && id != 0;
        let bytes = bytes.uint(id.into(), 2).uint(packed.into(), 2).uint(0, 4);
        if packed {
            let chunk = self.chunk(Bytes::new(self.flavour), content).bytes;
            (bytes.uint(chunk.len() as u64, 8).raw(&chunk), at)
        } else {
            (bytes.uint(content.len() as u64, 8).raw(content), at)
        }
    }

    fn version_7(&self) -> Vec<u8> {
        let new = || Bytes::new(self.flavour);
        let bytes = self.start().raw(self.flavour.compression.as_bytes()).raw(b"\x001.0\0");
        let options_at = bytes.bytes.len();
        let bytes = bytes.uint(0, 8);
        let (bytes, header) = self.section(bytes, 16, &self.header_info(new()).bytes);
        let (bytes, formats) = self.section(bytes, 18, &Self::event_formats(new()).bytes);
        let (mut bytes, comms) = self.section(bytes, 21, &new().text(COMMS, 8).bytes);

        let mut buffer = new().uint(0, 8).raw(b"\0local\0").uint(self.flavour.page_bytes as u64, 4);
        buffer = buffer.uint(self.cpus.len() as u64, 4);
        for cpu in 0..self.cpus.len() {
            let (at, pages) = (bytes.bytes.len() as u64, self.pages(cpu));
            bytes = if self.is_packed() {
                let chunks = pages.chunks(self.flavour.page_bytes);
                let start = bytes.uint(chunks.len() as u64, 4);
                chunks.fold(start, |bytes, page| self.chunk(bytes, page))
            } else {
                bytes.raw(&pages)
            };
            let length = bytes.bytes.len() as u64 - at;
            buffer = buffer.uint(cpu as u64, 4).uint(at, 8).uint(length, 8);
        }

        let mut second = new().uint(3, 2).text(&buffer.bytes, 4);
        second = second.uint(0, 2).uint(8, 4).uint(0, 8);
        let (bytes, second) = self.section(bytes, 0, &second.bytes);
        let mut first = new();
        for (id, at) in [(16, header), (18, formats), (21, comms)] {
            first = first.uint(id, 2).uint(8, 4).uint(at, 8);
        }
        for (id, data) in &self.options {
            first = first.uint((*id).into(), 2).text(data, 4);
        }
        first = first.uint(0, 2).uint(8, 4).uint(second, 8);
        let (bytes, first) = self.section(bytes, 0, &first.bytes);
        let mut bytes = bytes.bytes;
        let patch = new().uint(first, 8).bytes;
        bytes[options_at..options_at + 8].copy_from_slice(&patch);
        bytes
    }

    fn read(&self) -> Capture {
        parser::read(&self.to_bytes()[..], "trace.dat").expect("parses")
    }
}

const COMMS: &[u8] = b"516 reader\n517 Web Content\n";

/// Two CPUs, three pages, times that interleave, one step of more than a second.
fn sample(flavour: Flavour) -> File {
    let long = Page::new(flavour, 1_000_000_000)
        .event(1_000_000_100, &pread(flavour, 516, 0x40))
        .event(1_000_000_300, &add(flavour, 516, 2, 2))
        .event(3_000_000_000, &add(flavour, 517, 6, 0));
    let next = Page::new(flavour, 3_000_000_500).event(3_000_000_500, &issue(flavour, 0, 2048));
    let other = Page::new(flavour, 1_000_000_200)
        .long_event(1_000_000_200, &issue(flavour, 518, 1024))
        .event(1_000_000_250, &record(flavour, FORMAT_OTHER, 1).uint(5, 4).bytes);
    let mut file = File::new(flavour, vec![vec![long, next], vec![other]]);
    file.options.push((5, b"Linux host 6.18.44 x86_64\0".to_vec()));
    file
}

/// The sample as text.
const SAMPLE_TEXT: &str = "
  reader-516 [000] 1.000000100: sys_pread64(fd: 3, buf: 0x7ffd, count: 0x1000, pos: 0x40)
  <...>-518 [001] 1.000000200: block_rq_issue: 8,1 RA 4096 () 1024 + 8 [x]
  reader-516 [000] 1.000000300: mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1b5f9 ofs=8192 order=2
  Web Content-517 [000] 3.000000000: mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1b5f9 ofs=24576 order=0
  <idle>-0 [000] 3.000000500: block_rq_issue: 8,1 RA 4096 () 2048 + 8 [x]
";

#[test]
fn trap_versions_byte_orders_word_sizes_and_compressions() {
    let expected = render_events(&read_text(SAMPLE_TEXT));
    for (version, compression) in [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")] {
        for is_big_endian in [false, true] {
            for long_bytes in [4, 8] {
                let flavour = Flavour { version, is_big_endian, long_bytes, compression, ..PLAIN };
                let capture = sample(flavour).read();
                assert!(capture.losses.0.is_empty(), "{flavour:?}: {}", capture.losses);
                assert_eq!(render_events(&capture), expected, "{flavour:?}");
            }
        }
    }
}

#[test]
fn trap_buffer_pages_larger_than_memory_pages() {
    let expected = render_events(&read_text(SAMPLE_TEXT));
    for (version, compression) in [(6, "none"), (7, "none"), (7, "zstd")] {
        let flavour = Flavour { version, compression, page_bytes: 16384, ..PLAIN };
        assert_eq!(render_events(&sample(flavour).read()), expected, "{flavour:?}");
    }
    let directory = tracefs(&sample(Flavour { page_bytes: 16384, ..PLAIN }));
    let capture = parser::read_path(directory.path()).expect("parses");
    assert_eq!(render_events(&capture), expected);
}

#[test]
fn header_and_unused_events() {
    insta::assert_snapshot!(render(&sample(PLAIN).read()));
}

/// From a plain file only what is needed is read; a stream gives the same.
#[test]
fn file_and_stream_agree() {
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join("run");
    std::fs::write(&path, sample(PLAIN).to_bytes()).expect("writes");
    let capture = parser::read_path(&path).expect("parses");
    assert_eq!(render_events(&capture), render_events(&sample(PLAIN).read()));
}

#[test]
fn trap_lost_events_before_a_page() {
    let mut file = sample(PLAIN);
    let counted = &mut file.cpus[0][1];
    counted.marks = 1 << 31 | 1 << 30;
    counted.tail = 17_u64.to_le_bytes().to_vec();
    assert_eq!(file.read().losses.0[&LossKind::LostEvents].count, 17);
    file.cpus[0][1].marks = 1 << 31;
    let capture = file.read();
    assert_eq!(capture.losses.0[&LossKind::LostEvents].count, 1);
    insta::assert_snapshot!(capture.losses);
}

#[test]
fn trap_overrun_in_the_cpu_statistics() {
    let mut file = sample(PLAIN);
    let stats = |cpu, overrun, dropped| {
        format!(
            "CPU: {cpu}\nentries: 10\noverrun: {overrun}\ncommit overrun: 0\nbytes: 5\n\
             dropped events: {dropped}\nread events: 0\n"
        )
    };
    file.options.push((2, stats(0, 0, 0).into_bytes()));
    file.options.push((2, stats(1, 90, 3).into_bytes()));
    insta::assert_snapshot!(file.read().losses);
}

/// Record types that hold no event: discarded records, absolute times and the rest of a page.
#[test]
fn trap_record_types() {
    let mut page = Page::new(PLAIN, 5_000).event(5_100, &issue(PLAIN, 0, 8));
    page.head(29, 50);
    page.word(8);
    page.word(0xdead_beef);
    page.head(31, 7_000);
    page.word(0);
    page.time = 7_000;
    let mut page = page.event(7_001, &issue(PLAIN, 0, 16));
    page.head(29, 0);
    page.word(0xffff_ffff);
    let capture = File::new(PLAIN, vec![vec![page]]).read();
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    let times: Vec<u64> = capture.events.iter().map(|event| event.time.0).collect();
    assert_eq!(times, [5_100, 7_001]);
}

/// Found by fuzzing.
#[test]
fn absolute_time_behind_the_end_of_the_clock() {
    let mut page = Page::new(PLAIN, u64::MAX - 5);
    page.head(31, 7);
    page.word(0);
    page.time = 0;
    let page = page.event(1, &issue(PLAIN, 0, 16));
    assert_eq!(File::new(PLAIN, vec![vec![page]]).read().events[0].time.0, 8);
}

#[test]
fn trap_clock_that_counts_ticks() {
    let mut file = sample(PLAIN);
    let scale = Bytes::new(PLAIN).uint(3, 4).uint(1, 4).uint(0, 8);
    file.options.push((14, scale.bytes));
    assert_eq!(file.read().events[0].time.0, 1_000_000_100 * 3 / 2);
}

#[test]
fn event_without_a_format() {
    let mut file = sample(PLAIN);
    let page = Page::new(PLAIN, 5).event(5, &record(PLAIN, 999, 1).bytes);
    file.cpus.push(vec![page]);
    insta::assert_snapshot!(file.read().losses);
}

#[test]
fn file_cut_short() {
    let bytes = sample(PLAIN).to_bytes();
    let capture = parser::read(&bytes[..bytes.len() - PAGE_BYTES], "trace.dat").expect("parses");
    assert_eq!(capture.events.len(), 4);
    insta::assert_snapshot!(capture.losses);
}

#[test]
fn file_cut_short_in_a_compressed_chunk() {
    let flavour = Flavour { version: 7, compression: "zstd", ..PLAIN };
    let mut bytes = sample(flavour).to_bytes();
    let frames: Vec<usize> = memchr::memmem::find_iter(&bytes, b"\x28\xb5\x2f\xfd").collect();
    let last = frames.last().expect("a frame");
    bytes[last + 4..last + 12].fill(0xff);
    let capture = parser::read(&bytes[..], "trace.dat").expect("parses");
    assert_eq!(capture.events.len(), 4);
    assert!(capture.losses.0[&LossKind::Truncated].first.contains("CPU 1"), "{}", capture.losses);
}

#[test]
fn head_cut_short() {
    let bytes = sample(PLAIN).to_bytes();
    let error = parser::read(&bytes[..400], "trace.dat").expect_err("no head");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn hostile_length() {
    let mut bytes = sample(PLAIN).to_bytes();
    let at = memchr::memmem::find(&bytes, b"header_page\0").expect("in the head") + 12;
    bytes[at..at + 8].fill(0x7f);
    let error = parser::read(&bytes[..], "trace.dat").expect_err("impossible");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn cpus_that_share_their_data() {
    let mut bytes = sample(PLAIN).to_bytes();
    let first = memchr::memmem::find(&bytes, b"flyrecord\0").expect("in the head") + 10;
    bytes.copy_within(first..first + 8, first + 16);
    let error = parser::read(&bytes[..], "trace.dat").expect_err("shared data");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn other_memory_pages_are_refused() {
    let mut bytes = sample(PLAIN).to_bytes();
    bytes[14..18].copy_from_slice(&16384_u32.to_le_bytes());
    let error = parser::read(&bytes[..], "trace.dat").expect_err("pages of 16 KiB");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn unknown_version() {
    let mut bytes = sample(PLAIN).to_bytes();
    bytes[10] = b'9';
    let error = parser::read(&bytes[..], "trace.dat").expect_err("version 9");
    insta::assert_snapshot!(error.to_string());
}

/// Pages and formats as a directory that is laid out like tracefs.
fn tracefs(file: &File) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("directory");
    let write = |path: &str, bytes: &[u8]| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("creates");
        std::fs::write(path, bytes).expect("writes");
    };
    write("events/header_page", file.header_page().as_bytes());
    write("saved_cmdlines", COMMS);
    for (system, formats) in formats() {
        for (i, format) in formats.iter().enumerate() {
            write(&format!("events/{system}/event{i}/format"), format.as_bytes());
        }
    }
    for cpu in 0..file.cpus.len() {
        write(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), &file.pages(cpu));
        write(&format!("per_cpu/cpu{cpu}/stats"), b"entries: 5\noverrun: 0\ndropped events: 0\n");
    }
    directory
}

#[test]
fn raw_pages_in_both_byte_orders_and_word_sizes() {
    let expected = render_events(&read_text(SAMPLE_TEXT));
    for is_big_endian in [false, true] {
        for long_bytes in [4, 8] {
            let flavour = Flavour { is_big_endian, long_bytes, ..PLAIN };
            let directory = tracefs(&sample(flavour));
            let capture = parser::read_path(directory.path()).expect("parses");
            assert!(capture.losses.0.is_empty(), "{flavour:?}: {}", capture.losses);
            assert_eq!(render_events(&capture), expected, "{flavour:?}");
        }
    }
}

#[test]
fn raw_pages_with_losses() {
    let directory = tracefs(&sample(PLAIN));
    let per_cpu = directory.path().join("per_cpu");
    std::fs::write(per_cpu.join("cpu0/stats"), "entries: 5\noverrun: 12\n").expect("writes");
    std::fs::remove_file(per_cpu.join("cpu1/trace_pipe_raw")).expect("removes");
    let capture = parser::read_path(directory.path()).expect("parses");
    let losses = capture.losses.to_string();
    insta::assert_snapshot!(losses.replace(&*directory.path().to_string_lossy(), "DIR"));
}

proptest! {
    /// Whatever is changed or missing, the reader says so or reads on, and does not panic.
    #[test]
    fn damaged_files(
        version in 6..=7_u8,
        is_big_endian in any::<bool>(),
        compression in prop::sample::select(vec!["none", "zlib", "zstd"]),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in any::<prop::sample::Index>(),
    ) {
        let compression = if version == 6 { "none" } else { compression };
        let flavour = Flavour { version, is_big_endian, compression, ..PLAIN };
        let mut bytes = sample(flavour).to_bytes();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(length.index(2 * bytes.len()));
        let _ = parser::read(&bytes[..], "trace.dat");
    }
}
