//! Every capture of the corpus under the kernel that made it: exact, in order
//! where one thread reads, and as large as its recording.

use std::path::Path;

use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::verify::{CaptureVerify, verify};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/corpus");

/// Capture, folios and data reads as the kernel recorded them.
const CAPTURES: &[(&str, u64, u64)] = &[
    ("join/ext4_issue", 2597, 95),
    ("join/ext4_mono", 2597, 95),
    ("join/ext4_whole", 2597, 95),
    ("join/xfs_issue", 2597, 94),
    ("join/xfs_mono", 2597, 94),
    ("join/xfs_whole", 2597, 94),
    ("linux-6.1/interleaved2", 2097, 2051),
    ("linux-6.1/mmap_rand", 18262, 1753),
    ("linux-6.1/seq512k_after4k_ms256", 12292, 2050),
    ("linux-6.12/interleaved2", 7544, 2050),
    ("linux-6.12/seq1m_after4k_ms1024", 15211, 520),
    ("linux-6.18/dontneed", 2769, 1521),
    ("linux-6.18/ext4_seq1m_after4k", 9721, 3327),
    ("linux-6.18/fadvrand", 7805, 1988),
    ("linux-6.18/inter2", 14394, 1027),
    ("linux-6.18/inter2fd", 1120, 1027),
    ("linux-6.18/mmapseq", 552, 513),
    ("linux-6.18/seq1m_after4k_ms512", 9721, 3327),
    ("linux-6.18/seq1m_ra768", 848, 513),
    ("linux-6.18/thr4same", 7572, 513),
    ("linux-6.18/unaligned", 553, 514),
    ("linux-6.18/willneed4", 8192, 64),
    ("linux-7.3/mmap_seq", 1064, 1025),
    ("linux-7.3/seq1m_after4k_ms1024", 2839, 1027),
    ("linux-7.3-align/seq512k_after4k_ms256", 2060, 2053),
];

fn verified(capture: &str) -> CaptureVerify {
    let path = format!("{CORPUS}/{capture}.ftrace.zst");
    let mut source = load(Path::new(&path), &LoadOptions::default()).unwrap().source;
    let policy = recover(&mut source).expect("the sidecar names the kernel");
    verify(&source, &*policy).unwrap()
}

#[test]
fn every_capture_is_exact() {
    for &(capture, folios, reads) in CAPTURES {
        let result = verified(capture);
        assert_eq!(result.first_difference, None, "{capture}");
        assert!(result.exact, "{capture}");
        assert!(result.folios.in_order && result.device_reads.in_order, "{capture}");
        assert_eq!(result.folios.matched, folios, "{capture}");
        assert_eq!(result.device_reads.matched, reads, "{capture}");
    }
}

#[test]
fn no_capture_of_the_corpus_is_left_out() {
    let mut found = 0;
    for folder in std::fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let path = file.to_string_lossy().into_owned();
            if let Some(capture) = path.strip_suffix(".ftrace.zst") {
                assert!(
                    CAPTURES.iter().any(|(name, ..)| capture.ends_with(name)),
                    "{capture} is not in the table"
                );
                found += 1;
            }
        }
    }
    assert_eq!(found, CAPTURES.len());
}

/// A policy of another kernel must not match: the comparison can fail.
#[test]
fn another_kernel_differs() {
    for (capture, policy) in [
        ("linux-6.12/interleaved2", "linux-6.1"),
        ("linux-7.3-align/seq512k_after4k_ms256", "linux-7.3"),
        ("linux-6.1/seq512k_after4k_ms256", "linux-6.7"),
    ] {
        let path = format!("{CORPUS}/{capture}.ftrace.zst");
        let source = load(Path::new(&path), &LoadOptions::default()).unwrap().source;
        let policy = replay::policy::parse(policy).unwrap();
        let result = verify(&source, &*policy).unwrap();
        assert!(!result.exact, "{capture}");
        let difference = result.first_difference.expect("where they part");
        assert_ne!(difference.recorded, difference.replayed);
    }
}

/// The figures of the mail "Skip fully overlapped range" that its captures show.
#[test]
fn forced_calls_are_counted_as_recorded() {
    let path = format!("{CORPUS}/linux-6.18/willneed4.ftrace.zst");
    let mut source = load(Path::new(&path), &LoadOptions::default()).unwrap().source;
    let policy = recover(&mut source).unwrap();
    let mut machine = replay::machine::Machine::new(&*policy, &source, true, false);
    replay::trace_order::replay(&mut machine, &source);
    let lock = machine.files[0].log.cache_lock;
    let counted = (lock.forced_calls, lock.forced_pages, lock.forced_covered);
    assert_eq!(counted, (256, 32768, 192));
    assert_eq!(machine.files[0].log.pages_inserted, 8192);
}
