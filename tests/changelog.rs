//! The changelog of the patch "mm/readahead: align the async window in `page_cache_ra_order`()" (v2),
//! as its author measured it, against `--format mail`.

mod common;

use common::{json, stdout};

/// What the mail states of one workload: its name, what it is, device reads and folios before and
/// after, and the order that the folios are counted by, with as many before and after.
struct Stated {
    workload: &'static str,
    what: &'static str,
    reads: [u64; 2],
    folios: [u64; 2],
    order: usize,
    of_order: [u64; 2],
}

/// Device reads that the mail counts and a replay does not make: metadata of the filesystem.
const METADATA_READS: u64 = 2;

const STATED: [Stated; 5] = [
    Stated {
        workload: "seq1m_after4k_ms512",
        what: "max_sectors_kb 512, one 4 KiB read at offset 0, then 1 MiB reads",
        reads: [3329, 1031],
        folios: [9721, 1039],
        order: 7,
        of_order: [0, 1021],
    },
    Stated {
        workload: "seq512k_after4k_ms256",
        what: "max_sectors_kb 256, one 4 KiB read at offset 0, then 512 KiB reads",
        reads: [6147, 2055],
        folios: [15_867, 2060],
        order: 6,
        of_order: [0, 2045],
    },
    Stated {
        workload: "seq1m_after4k_ms1024",
        what: "max_sectors_kb 1024, one 4 KiB read at offset 0, then 1 MiB reads",
        reads: [1029, 1030],
        folios: [2839, 1039],
        order: 7,
        of_order: [766, 1021],
    },
    Stated {
        workload: "seq1m_after4k_ms2048",
        what: "max_sectors_kb 2048, one 4 KiB read at offset 0, then 1 MiB reads",
        reads: [1029, 1030],
        folios: [2839, 1039],
        order: 7,
        of_order: [766, 1021],
    },
    Stated {
        workload: "seq3m_after4k_ms2048",
        what: "max_sectors_kb 2048, one 4 KiB read at offset 0, then 3 MiB reads",
        reads: [273, 265],
        folios: [315, 277],
        order: 9,
        of_order: [249, 252],
    },
];

/// Workloads of which the mail states that device reads and bytes stay within 0.1 %.
const UNCHANGED: [&str; 6] =
    ["seq1m_ms512", "seq64k_ms512", "rand4k", "rand64k", "interleaved2", "regions2m"];

const PATCH: &str = "align-async-window-v2";

fn file(workload: &str) -> String {
    format!("workloads/{workload}.workload.toml")
}

/// `9721 (none of order 7)`.
fn folios(folios: u64, of_order: u64, order: usize) -> String {
    match of_order {
        0 => format!("{folios} (none of order {order})"),
        _ => format!("{folios} ({of_order} of order {order})"),
    }
}

/// The sources in a mail, a line each.
fn paragraphs(mail: &str) -> Vec<String> {
    let paragraphs = mail.split("\n\n").filter_map(|text| text.strip_prefix("- "));
    paragraphs.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn mail(base: &str, sources: &[String]) -> Vec<String> {
    let mut args = vec!["replay", "--policy", base, "--policy", PATCH, "--format", "mail"];
    args.extend(sources.iter().map(String::as_str));
    paragraphs(&stdout(&args))
}

/// Line by line: what it is, the reads and the folios, in the words and the order of the mail.
fn holds(paragraph: &str, stated: &Stated) {
    let Stated { what, reads, folios: total, order, of_order, .. } = stated;
    assert!(paragraph.starts_with(what), "{paragraph}\n{what}");
    let [before, after] =
        reads.map(|reads| format!(" s and {} device reads", reads - METADATA_READS));
    let (_, rest) = paragraph.split_once(&format!("{before} before, ")).unwrap_or_else(|| {
        panic!("{paragraph}\n{before}");
    });
    let after = after.replace(" device reads", " after");
    let (_, rest) = rest.split_once(&after).unwrap_or_else(|| panic!("{paragraph}\n{after}"));
    let [before, after] = [0, 1].map(|side| folios(total[side], of_order[side], *order));
    let drop = format!(". Folios drop from {before} to {after}.");
    assert!(rest.ends_with(&drop), "{rest}\n{drop}");
}

#[test]
fn a_mail_gives_the_figures_of_the_changelog_line_by_line() {
    let sources: Vec<String> = STATED.iter().map(|stated| file(stated.workload)).collect();
    for base in ["linux-6.16", "linux-6.18", "linux-7.3"] {
        let paragraphs = mail(base, &sources);
        assert_eq!(paragraphs.len(), STATED.len());
        for (paragraph, stated) in paragraphs.iter().zip(&STATED) {
            holds(paragraph, stated);
        }
    }
}

/// Its first workload was recorded again, on 6.18 with a loop device: the same lines from a capture.
#[test]
fn a_capture_gives_them_too() {
    let capture = "linux-6.18/seq1m_after4k_ms512.ftrace.zst".to_owned();
    let paragraphs = mail("linux-6.18", &[capture]);
    // Its sidecar does not say where the first read is.
    let what = "max_sectors_kb 512, read_ahead_kb 128, one 4 KiB read, then 1 MiB reads";
    holds(&paragraphs[0], &Stated { what, ..STATED[0] });
}

#[test]
fn what_the_changelog_finds_unchanged_is() {
    let sources: Vec<String> = UNCHANGED.iter().map(|workload| file(workload)).collect();
    for source in &sources {
        let args = ["replay", source, "--policy", "linux-7.3", "--policy", PATCH];
        let report = json(&[&args[..], &["--format", "json"]].concat());
        for figure in ["count", "bytes"] {
            let [before, after] =
                [0, 1].map(|n| report["results"][n]["device_reads"][figure].as_f64().unwrap());
            assert!((after / before - 1.0).abs() <= 0.001, "{source}: {before} to {after}");
        }
    }
}
