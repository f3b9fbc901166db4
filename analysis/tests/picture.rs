//! Pictures add up to the figures they belong to.

use analysis::picture::Pictures;
use analysis::replay::{Model, illustrated_report, report};
use analysis::result::ReplayReport;
use replay::policy;
use traces::access::Source;
use traces::capture::Losses;
use traces::settings::Settings;
use traces::workload;

/// One open file, read in order and then here and there.
const SEQUENTIAL: &str = r#"
what = "1 MiB reads after one of 4 KiB"
[file]
size = "32M"
[[stream]]
steps = [
  { read = "sequential", size = "4K", count = 1 },
  { read = "sequential", size = "1M" },
]
"#;

/// Two open files, which force each other's pages out of a small memory.
const CROWDED: &str = r#"
what = "two readers in little memory"
[file]
size = "16M"
[settings]
memory = "1M"
[[stream]]
steps = [{ read = "sequential", size = "64K" }]
[[stream]]
steps = [{ read = "random", size = "4K", count = 500, seed = 3 }]
"#;

fn source(text: &str) -> Source {
    workload::parse(text, "a workload", &Settings::default()).expect("a workload")
}

fn illustrated(source: &Source) -> (ReplayReport, Pictures) {
    let names = ["linux-6.18", "align-async-window-v2"];
    let policies = names.map(|name| policy::parse(name).expect("a policy"));
    let model = Model::default();
    let drawn = illustrated_report(source, &policies, &model, None, Losses::default());
    let plain = report(source, &policies, &model, None, Losses::default());
    assert_eq!(drawn.results, plain.results, "looking changes nothing");
    let pictures = drawn.pictures.clone().expect("asked for");
    (drawn, pictures)
}

#[test]
fn a_picture_shows_every_page_once() {
    let (report, pictures) = illustrated(&source(SEQUENTIAL));
    for (n, result) in report.results.iter().enumerate() {
        let map = &pictures.map.by_policy[n];
        assert_eq!(map.parts.iter().flatten().sum::<u64>(), result.pages.inserted);
        for (order, folios) in result.folios.by_order.iter().enumerate() {
            let pages: u64 = map.parts.iter().filter_map(|part| part.get(order)).sum();
            assert_eq!(pages, folios << order, "{} order {order}", result.policy);
        }
        let cells = &pictures.raster.by_policy[n];
        assert_eq!(cells.iter().map(|cell| cell.inserted).sum::<u64>(), result.pages.inserted);
        // The pages of the first read are asked for again by the read after it or not at all.
        let asked: u64 = cells.iter().map(|cell| cell.asked).sum();
        assert!((pictures.file.pages..=pictures.file.pages + 1).contains(&asked), "{asked}");
        assert_eq!(pictures.ramp.by_policy[n].windows, result.windows);
    }
    assert_eq!(pictures.file.pages, 8192);
}

#[test]
fn the_stretch_begins_where_policies_differ() {
    let (_, pictures) = illustrated(&source(SEQUENTIAL));
    let stretch = pictures.map.stretch;
    let [before, after] = &pictures.map.by_policy[..] else { panic!("two policies") };
    assert_ne!(before.folios, after.folios);
    for folios in [&before.folios, &after.folios] {
        let mut end = stretch.first_page;
        for (page, order) in folios {
            assert_eq!(*page, end, "no hole and no overlap");
            end = page + (1 << order);
        }
        assert!(end >= stretch.end_page());
    }
}

#[test]
fn waits_are_all_there_and_in_the_same_columns() {
    for text in [SEQUENTIAL, CROWDED] {
        let source = source(text);
        let (report, pictures) = illustrated(&source);
        let waits = &pictures.waits;
        assert_eq!(waits.accesses, source.accesses.len() as u64);
        let columns = |slices: &[Vec<u64>]| -> Vec<u64> {
            slices.iter().map(|bands| bands.iter().sum()).collect()
        };
        assert_eq!(columns(&waits.by_policy[0]), columns(&waits.by_policy[1]));
        for (result, slices) in report.results.iter().zip(&waits.by_policy) {
            assert_eq!(columns(slices).iter().sum::<u64>(), waits.accesses);
            let waited = slices.iter().map(|bands| bands[1..].iter().sum::<u64>()).sum::<u64>();
            let quantiles = &result.read_wait_quantiles_ns;
            let share = quantiles.iter().filter(|ns| **ns > 0).count() as f64 / 101.0;
            let expected = share * waits.accesses as f64;
            assert!((waited as f64 - expected).abs() <= waits.accesses as f64 / 50.0 + 1.0);
        }
    }
}

#[test]
fn pages_that_come_again_are_drawn_once() {
    let (report, pictures) = illustrated(&source(CROWDED));
    for (result, map) in report.results.iter().zip(&pictures.map.by_policy) {
        let drawn: u64 = map.parts.iter().flatten().sum();
        assert!(drawn <= pictures.file.pages && drawn < result.pages.inserted, "{drawn}");
        for part in &map.parts {
            assert!(part.iter().sum::<u64>() <= pictures.map.part_pages);
        }
    }
}

#[test]
fn a_source_without_accesses_has_empty_pictures() {
    let mut empty = source(SEQUENTIAL);
    empty.accesses.clear();
    let (_, pictures) = illustrated(&empty);
    assert_eq!(pictures.waits.accesses, 0);
    assert!(pictures.raster.by_policy.iter().all(Vec::is_empty));
    assert!(pictures.ramp.by_policy.iter().all(|policy| policy.first.is_empty()));
}
