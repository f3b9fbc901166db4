//! Charts and pages.

use insta::assert_snapshot;
use roxmltree::{Document, Node};

use super::sample;
use crate::{chart, html};

/// Where a text stands, as far as its letters' average width tells.
#[derive(Debug)]
struct Label {
    text: String,
    left: f64,
    right: f64,
    middle: f64,
    height: f64,
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let value = node.attribute(name).unwrap_or_else(|| panic!("no {name} in {node:?}"));
    value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number"))
}

fn labels(svg: &Document<'_>) -> Vec<Label> {
    let texts = svg.descendants().filter(|node| node.has_tag_name("text"));
    let label = |node: Node<'_, '_>| {
        let text = node.text().unwrap_or_default().trim().to_owned();
        let (x, size) = (number(node, "x"), number(node, "font-size"));
        let width = text.chars().count() as f64 * size * 0.56;
        let left = match node.attribute("text-anchor") {
            Some("middle") => x - width / 2.0,
            Some("end") => x - width,
            _ => x,
        };
        Label { text, left, right: left + width, middle: number(node, "y"), height: size }
    };
    texts.map(label).collect()
}

fn overlap(a: &Label, b: &Label) -> bool {
    let apart = a.right <= b.left || b.right <= a.left;
    !apart && (a.middle - b.middle).abs() < f64::midpoint(a.height, b.height) * 0.85
}

/// Every chart has to pass this.
fn check(svg: &str) {
    assert!(svg.len() < 300_000, "{} bytes", svg.len());
    let document = Document::parse(svg).expect("well-formed XML");
    let root = document.root_element();
    let (width, height) = (number(root, "width"), number(root, "height"));
    for name in ["title", "desc"] {
        let node = root.children().find(|node| node.has_tag_name(name));
        let node = node.unwrap_or_else(|| panic!("no {name}"));
        assert!(node.text().is_some_and(|text| !text.trim().is_empty()));
        let named = root.attribute("aria-labelledby").unwrap_or_default();
        assert!(named.split(' ').any(|id| Some(id) == node.attribute("id")), "{named}");
    }
    let labels = labels(&document);
    assert!(!labels.is_empty());
    for (n, label) in labels.iter().enumerate() {
        assert!(label.left >= 0.0 && label.right <= width, "cut: {label:?}");
        assert!(label.middle >= label.height / 2.0, "cut: {label:?}");
        assert!(label.middle + label.height / 2.0 <= height, "cut: {label:?}");
        for other in &labels[..n] {
            assert!(!overlap(label, other), "`{}` over `{}`", label.text, other.text);
        }
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "a coordinate is no number");
}

/// No request leaves the page: nothing but names of namespaces looks like an address.
fn check_self_contained(text: &str) {
    let without_namespace = text.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "<script", "@import", "//cdn"] {
        assert!(!without_namespace.contains(outside), "{outside}");
    }
}

#[test]
fn charts_are_whole() {
    for report in [sample::pair(), sample::several(), sample::workload()] {
        for chart in [chart::orders, chart::sizes, chart::waits] {
            let svg = chart(&report);
            check(&svg);
            check_self_contained(&svg);
            assert_eq!(svg, chart(&report), "the same bytes each time");
        }
        let panels = [chart::order_panels(&report), chart::size_panels(&report)];
        for panel in panels.concat().iter().chain([&chart::wait_panel(&report)]) {
            check(panel);
        }
    }
}

#[test]
fn charts_of_nothing_have_their_axes() {
    let mut report = sample::pair();
    for result in &mut report.results {
        result.folios = sample::folios(&[0]);
        result.read_wait_quantiles_ns = Vec::new();
        result.request_sizes = Vec::new();
    }
    for chart in [chart::orders, chart::sizes, chart::waits] {
        check(&chart(&report));
    }
}

#[test]
fn a_bar_is_as_long_as_its_logarithm() {
    let svg = chart::orders(&sample::pair());
    let document = Document::parse(&svg).expect("well-formed XML");
    let bars: Vec<f64> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect") && node.attribute("class") == Some("ra-s0"))
        .map(|node| number(node, "width"))
        .skip(1)
        .collect();
    // After the legend the first seven are counts: 516 768 3067 1278 2554 1024 514, from a half to 10000.
    let unit = bars[2] / (3067.0_f64 / 0.5).log10();
    for (bar, count) in bars.iter().zip([516.0_f64, 768.0, 3067.0, 1278.0, 2554.0, 1024.0, 514.0]) {
        assert!((bar - unit * (count / 0.5).log10()).abs() <= 1.0, "{count}: {bar}");
    }
}

#[test]
fn charts_look_as_they_did() {
    assert_snapshot!("chart_orders", chart::orders(&sample::pair()));
    assert_snapshot!("chart_sizes", chart::sizes(&sample::pair()));
    assert_snapshot!("chart_waits", chart::waits(&sample::pair()));
}

#[test]
fn pages_need_nothing_else() {
    for report in [sample::pair(), sample::several(), sample::workload()] {
        let page = html::replay(&report);
        check_self_contained(&page);
        for result in &report.results {
            assert!(page.contains(&result.policy));
        }
        let ids: Vec<_> = page.match_indices(" id=\"").map(|(at, _)| &page[at..at + 40]).collect();
        let ids: Vec<_> = ids.iter().filter_map(|id| id.split('"').nth(1)).collect();
        let unique: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "ids are unique: {ids:?}");
    }
}

#[test]
fn pages_look_as_they_did() {
    assert_snapshot!("html_replay", html::replay(&sample::pair()));
    let several = html::replay(&sample::several());
    let header = several.split("<header>").nth(1).and_then(|rest| rest.split("</header>").next());
    assert_snapshot!("html_header_with_losses", header.unwrap_or_default());
}

#[test]
fn names_are_text_not_markup() {
    let mut report = sample::pair();
    report.source = "a/<b>&\"c\".trace".to_owned();
    report.results[0].policy = "<i>policy</i>".to_owned();
    let page = html::replay(&report);
    assert!(!page.contains("<b>&") && !page.contains("<i>"));
    check(&chart::orders(&report));
}

#[test]
fn a_folder_has_page_chart_data_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    crate::write_dir(&sample::pair(), &path).expect("writes");
    let mut names: Vec<_> = std::fs::read_dir(&path)
        .expect("is there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let expected = [
        "index.html",
        "orders.csv",
        "orders.svg",
        "report.json",
        "sizes.csv",
        "sizes.svg",
        "waits.csv",
        "waits.svg",
    ];
    assert_eq!(names, expected);
    let blocked = path.join("report.json").join("under");
    let error = crate::write_dir(&sample::pair(), &blocked).expect_err("a file is in the way");
    assert!(error.to_string().starts_with("cannot write "), "{error}");
}
