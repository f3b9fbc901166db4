//! `rareplay report` end to end.

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use common::rareplay;

const SOURCES: [&str; 2] =
    ["linux-6.18/seq1m_after4k_ms512.ftrace.zst", "linux-6.18/fadvrand.ftrace.zst"];
const PAIR: [&str; 4] = ["--baseline", "align-async-window-v2", "--candidate", "linux-7.3"];

/// Writes a report and returns its page.
fn report(folder: &Path, args: &[&str]) -> String {
    let out = folder.display().to_string();
    rareplay(&[&["report", "-o", &out][..], args].concat()).assert().success();
    std::fs::read_to_string(folder.join("index.html")).unwrap()
}

/// Values of an attribute, in order.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn many_sources_are_one_page_with_a_verdict_and_folded_sections() {
    let folder = tempfile::tempdir().unwrap();
    let page = report(folder.path(), &[&SOURCES[..], &PAIR].concat());
    for needed in ["Verdict: regressed", "Causes", "Settings", "Folios by order", "exact"] {
        assert!(page.contains(needed), "{needed}");
    }
    assert_eq!(page.matches("<details").count(), SOURCES.len());
    let own = page.replace("http://www.w3.org/", "");
    for outside in ["http://", "https://", "<script", "url(http"] {
        assert!(!own.contains(outside), "the page needs {outside}");
    }
    let gate: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("gate.json")).unwrap()).unwrap();
    assert_eq!(gate["verdict"], "regressed");
    for name in ["seq1m_after4k_ms512.ftrace.zst", "fadvrand.ftrace.zst"] {
        for file in ["report.json", "orders.csv", "orders.svg"] {
            assert!(folder.path().join(name).join(file).is_file(), "{name}/{file}");
        }
    }
    let figures = std::fs::read_to_string(folder.path().join("figures.csv")).unwrap();
    assert!(SOURCES.iter().all(|source| figures.contains(source)));
}

#[test]
fn names_on_a_page_are_unique_and_links_lead_somewhere() {
    let folder = tempfile::tempdir().unwrap();
    let page = report(folder.path(), &[&SOURCES[..], &PAIR].concat());
    let ids = values(&page, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len());
    for link in values(&page, "href") {
        match link.strip_prefix('#') {
            Some(id) => assert!(unique.contains(id), "{link}"),
            None => assert!(link == "data:," || folder.path().join(link).is_file(), "{link}"),
        }
    }
    for labels in values(&page, "aria-labelledby") {
        assert!(labels.split(' ').all(|id| unique.contains(id)), "{labels}");
    }
}

#[test]
fn one_source_is_not_folded_and_needs_no_policy() {
    let folder = tempfile::tempdir().unwrap();
    let page = report(folder.path(), &SOURCES[..1]);
    assert!(!page.contains("<details"));
    assert!(page.contains("linux-6.18"));
    assert!(!folder.path().join("gate.json").exists());
}

#[test]
fn the_same_bytes_whatever_the_number_of_threads() {
    let page = |threads| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().display().to_string();
        let args = [&["report", "-o", &out][..], &SOURCES, &PAIR].concat();
        rareplay(&args).env("RAYON_NUM_THREADS", threads).assert().success();
        std::fs::read(folder.path().join("index.html")).unwrap()
    };
    assert!(page("1") == page("3"));
}

#[test]
fn a_source_that_gives_no_figures_is_on_the_page_and_in_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.ftrace");
    std::fs::write(&broken, "This is not a trace.\n").unwrap();
    let out = folder.path().join("out").display().to_string();
    let args = ["report", SOURCES[1], broken.to_str().unwrap(), "-o", &out];
    let output = rareplay(&args).assert().code(65);
    let message = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(message.contains("broken.ftrace"), "{message}");
    let page = std::fs::read_to_string(folder.path().join("out/index.html")).unwrap();
    assert!(page.contains("broken.ftrace"));
}

#[test]
fn a_saved_baseline_judges_one_policy() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("baseline.toml").display().to_string();
    let accept = ["gate", SOURCES[0], "--baseline", &saved, "--candidate", "linux-7.3", "--accept"];
    rareplay(&accept).assert().success();
    let judge = ["--baseline", &saved, "--candidate", "align-async-window-v2"];
    let page = report(&folder.path().join("out"), &[&SOURCES[..1], &judge].concat());
    assert!(page.contains("Verdict: improved"), "no verdict of a source");
    let out = folder.path().join("out").display().to_string();
    rareplay(&["report", SOURCES[0], "-o", &out, "--baseline", &saved]).assert().code(64);
}
