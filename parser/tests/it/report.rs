//! `trace-cmd report` and the latency format: the same events whatever the switches.

use crate::common::{read_fixture, read_text, render, render_events};
use traces::capture::Capture;
use traces::units::Time;

#[test]
fn plain() {
    insta::assert_snapshot!(render(&read_fixture("linux-7.3.report.txt")));
}

#[test]
fn raw_latency_and_time_difference_switches() {
    let plain = render_events(&read_fixture("linux-7.3.report.txt"));
    for switch in ["raw", "latency", "ts-diff"] {
        let capture = read_fixture(&format!("linux-7.3.report.{switch}.txt"));
        assert!(capture.losses.0.is_empty(), "{switch}: {}", capture.losses);
        assert_eq!(render_events(&capture), plain, "{switch}");
    }
}

/// `capture` with the times that a report without `-t` shows.
fn round_to_microseconds(mut capture: Capture) -> Capture {
    for event in &mut capture.events {
        event.time = Time((event.time.0 + 500) / 1000 * 1000);
    }
    capture
}

#[test]
fn nanosecond_switch() {
    let plain = render_events(&read_fixture("linux-7.3.report.txt"));
    let precise = read_fixture("linux-7.3.report.nanoseconds.txt");
    assert_eq!(precise.events[0].time, Time(43_062_732_002));
    assert_eq!(render_events(&round_to_microseconds(precise)), plain);
}

/// The file itself has the same events as what trace-cmd prints of it.
#[test]
fn trace_dat_of_both_versions() {
    let report = render_events(&read_fixture("linux-7.3.report.nanoseconds.txt"));
    for name in ["linux-7.3.v6.trace.dat", "linux-7.3.v7.trace.dat"] {
        let capture = read_fixture(name);
        assert!(capture.losses.0.is_empty(), "{name}: {}", capture.losses);
        assert_eq!(render_events(&capture), report, "{name}");
    }
}

#[test]
fn head_of_old_reports() {
    let event = "\t   less-12 [006]  7115.449594: block_unplug:          [less] 1\n";
    let capture = read_text(&format!("version = 6\nCPU 3 is empty\ncpus=8\n{event}"));
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!((capture.events.len(), capture.header.cpus), (1, Some(8)));
}

#[test]
fn trap_failed_to_parse() {
    let prefix = "  less-12 [006]  7115.449594: ";
    let fields = "s_dev=0x800001 i_ino=0x83 index=0x2 pfn=0x1b5f9 order=2";
    let good = "mm_filemap_add_to_page_cache: dev 8:1 ino 83 pfn=0x1b5f9 ofs=8192 order=2";
    let failed = format!("mm_filemap_add_to_page_cache: [FAILED TO PARSE] {fields}");
    let event = |body: &str| render_events(&read_text(&format!("{prefix}{body}\n")));
    assert_eq!(event(&failed), event(good));
}

#[test]
fn trap_system_calls_in_reports() {
    let prefix = "  less-12 [006]  7115.449594: ";
    let event = |body: &str| render_events(&read_text(&format!("{prefix}{body}\n")));
    let enter = event("sys_pread64(fd: 3, buf: 0x7ffd, count: 0x1000, pos: 0x40)");
    let report = "fd: 0x00000003, buf: 0x7ffd, count: 0x00001000, pos: 0x00000040";
    assert_eq!(event(&format!("sys_enter_pread64:    {report}")), enter);
    let raw = "__syscall_nr=17 fd=0x3 buf=0x7ffd count=0x1000 pos=64";
    assert_eq!(event(&format!("sys_enter_pread64:     {raw}")), enter);
    let quoted = r#"fd: 3, buf: 0x7ffd "a, b: \"c\"", count: 0x1000, pos: 0x40)"#;
    assert_eq!(event(&format!("sys_pread64({quoted}")), enter);
    let bracketed = r#"fd: 3, buf: 0x7ffd (7f:45:4c, "a: 1)"), count: 0x1000, pos: 0x40)"#;
    assert_eq!(event(&format!("sys_pread64({bracketed}")), enter);

    let exit = event("sys_pread64 -> 0xfffffffffffffff5");
    assert_eq!(event("sys_exit_pread64:     0xfffffffffffffff5"), exit);
    assert_eq!(event("sys_exit_pread64:      __syscall_nr=17 ret=-11"), exit);
}

#[test]
fn latency_format_of_the_kernel() {
    let text = "\
# tracer: nop
#
# nop latency trace v1.1.5 on 6.18.44
# --------------------------------------------------------------------
# latency: 0 us, #3/10, CPU#0 | (M:PREEMPT VP:0, KP:0, SP:0 HP:0 #P:4)
#    -----------------
#    | task: -0 (uid:0 nice:0 policy:0 rt_prio:0)
#    -----------------
#
  reader-516     0..... 1234us : block_unplug: [reader] 1
  reader-516     2d..1. 1250us+: block_unplug: [reader] 2
  <idle>-0      10d.h1. 2000250us$: block_unplug: [reader] 3
";
    insta::assert_snapshot!(render(&read_text(text)));
}

#[test]
fn latency_format_with_the_verbose_option() {
    let text = "  Web Content     2711   3 0 00000002 00000001 [0000000012345678] 305.419ms (+0.001ms): \
                block_unplug: [reader] 1\n";
    let capture = read_text(text);
    let [event] = capture.events[..] else { panic!("{}", capture.losses) };
    assert_eq!(capture.comms.name(event.comm), "Web Content");
    assert_eq!((event.pid, event.cpu, event.time), (2711, 3, Time(0x1234_5678 * 1000)));
}
