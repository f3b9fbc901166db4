//! `perf script` text.

use crate::common::{read_text, render};
use traces::capture::{Capture, LossKind};
use traces::units::Time;

const FIELDS: &str = "259,0 R 4096 () 429974552 + 8 [fs-file-reader]";

fn one_event(line: &str) -> (String, u32, u32, Time) {
    let capture: Capture = read_text(&format!("{line} {FIELDS}\n"));
    assert!(capture.losses.0.is_empty(), "{line}: {}", capture.losses);
    let [event] = capture.events[..] else { panic!("{line}: one event") };
    (capture.comms.name(event.comm).to_owned(), event.pid, event.cpu, event.time)
}

#[test]
fn trap_prefixes() {
    let time = Time(3_399_871_612_000);
    let cases = [
        (
            "fs-file-reader    6439 [001]  3399.871612:   block:block_rq_issue:",
            "fs-file-reader",
            6439,
            1,
            time,
        ),
        // Process and thread.
        ("perf  7490/7496  [003]  3399.871612:    block:block_rq_issue:", "perf", 7496, 3, time),
        // With a period.
        (
            "perf  7496/7496  [003]  3399.871612:    1001001  block:block_rq_issue:",
            "perf",
            7496,
            3,
            time,
        ),
        // Without -a there is no CPU.
        ("reader  516  3399.871612: block:block_rq_issue:", "reader", 516, 0, time),
        // --ns.
        (
            "reader  516 [010] 3399.871612345: block:block_rq_issue:",
            "reader",
            516,
            10,
            Time(3_399_871_612_345),
        ),
        (
            "Web Content 12  516 [010] 3399.871612: block:block_rq_issue:",
            "Web Content 12",
            516,
            10,
            time,
        ),
    ];
    for (line, comm, pid, cpu, time) in cases {
        assert_eq!(one_event(line), (comm.to_owned(), pid, cpu, time), "{line}");
    }
}

#[test]
fn header_callchains_and_losses() {
    let text = "\
# ========
# os release : 5.10.0
# nrcpus online : 8
# ========
#
python3 3619706 [005] 3103609.736344: filemap:mm_filemap_add_to_page_cache: dev 0:62 ino 1002245af9b page=0x7daf4c pfn=0x7daf4c ofs=1048576
\tffffffff9d2a5d1e __add_to_page_cache_locked+0x2ee ([kernel.kallsyms])
\t            7f12 [unknown] (/usr/lib/libc.so.6)

python3 3619706 [005] 3103609.736350: syscalls:sys_enter_pread64: fd: 0x00000003, buf: 0x7ffd, count: 0x00001000, pos: 0x00000040
python3 3619706 [005] 3103609.736351: syscalls:sys_exit_pread64: 0x1000
python3 3619706 [005] 3103609.736352: sched:sched_switch: prev_comm=python3 prev_pid=1
python3 3619706 [005] 3103609.736353: PERF_RECORD_LOST lost 12
python3 3619706 [005] 3103609.736354:    250000 cpu-clock:
";
    let capture = read_text(text);
    assert_eq!(capture.losses.0[&LossKind::LostEvents].count, 12);
    insta::assert_snapshot!(render(&capture));
}
