//! Charts and pages.

use analysis::result::ReplayReport;
use insta::assert_snapshot;
use roxmltree::{Document, Node};

use super::sample;
use crate::chart::Figure;
use crate::{chart, html, json};

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
        let width = text.chars().count() as f64 * size * 0.5;
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

fn reports() -> Vec<ReplayReport> {
    let policies = ["linux-6.18", "align-async-window-v2", "linux-6.1"];
    let illustrated = (1..=3).map(|count| sample::illustrated(&policies[..count]));
    [sample::pair(), sample::several(), sample::workload()].into_iter().chain(illustrated).collect()
}

fn chart(report: &ReplayReport, id: &str) -> Figure {
    let found = chart::of_report(report).into_iter().find(|figure| figure.id() == id);
    found.unwrap_or_else(|| panic!("no chart {id}"))
}

#[test]
fn charts_are_whole() {
    let mut figures: Vec<Figure> = reports().iter().flat_map(chart::of_report).collect();
    figures.extend(chart::corpus(&reports()));
    figures.extend(sample::sweeps().iter().map(chart::of_sweep));
    for figure in figures {
        let svg = figure.svg();
        check(&svg);
        check_self_contained(&svg);
        let parts = figure.parts("first-");
        for part in parts.panels.iter().chain([&parts.legend]) {
            check(part);
            assert!(part.contains(&format!("id=\"first-{}", figure.id())));
        }
        let columns = figure.table().groups.len() * figure.table().columns.len();
        assert!(figure.table().rows.iter().all(|row| row.cells.len() == columns));
        assert!(figure.csv().lines().count() > 1, "{} has no data", figure.id());
    }
}

#[test]
fn every_chart_is_drawn() {
    let ids = |report| chart::of_report(&report).iter().map(Figure::id).collect::<Vec<_>>();
    let two = ["linux-6.18", "align-async-window-v2"];
    let all = ["orders", "map", "ramp", "raster", "sizes", "waits", "heat", "waste"];
    assert_eq!(ids(sample::illustrated(&two)), all);
    assert_eq!(ids(sample::pair()), ["orders", "sizes", "waits", "waste"]);
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let two = ["linux-6.18", "align-async-window-v2"];
    let (first, second) = (sample::illustrated(&two), sample::illustrated(&two));
    assert_eq!(html::replay(&first), html::replay(&second));
    assert_eq!(json::replay(&first), json::replay(&second));
    for (a, b) in chart::of_report(&first).iter().zip(&chart::of_report(&second)) {
        assert_eq!((a.svg(), a.csv()), (b.svg(), b.csv()));
    }
    let orders = chart(&first, "orders");
    assert_eq!(orders.png(), chart(&second, "orders").png());
}

#[test]
fn images_show_what_the_document_shows() {
    let figure = chart(&sample::pair(), "orders");
    let svg = figure.svg();
    let document = Document::parse(&svg).expect("well-formed XML");
    let width = number(document.root_element(), "width");
    let png = figure.png();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let columns = u32::from_be_bytes([png[16], png[17], png[18], png[19]]);
    assert!((f64::from(columns) - 2.0 * width).abs() < 0.5, "{columns} for {width}");
}

#[test]
fn charts_of_nothing_have_their_axes() {
    let mut report = sample::pair();
    for result in &mut report.results {
        result.folios = sample::folios(&[0]);
        result.read_wait_quantiles_ns = Vec::new();
        result.request_sizes = Vec::new();
        result.pages.inserted = 0;
    }
    for figure in chart::of_report(&report) {
        check(&figure.svg());
    }
    assert!(chart::corpus(&[]).is_none());
}

#[test]
fn a_bar_is_as_long_as_its_logarithm() {
    let svg = chart(&sample::pair(), "orders").svg();
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
    for id in ["orders", "sizes", "waits"] {
        let figure = chart(&sample::pair(), id);
        assert_snapshot!(format!("chart_{id}"), figure.svg());
        assert_snapshot!(format!("csv_{id}"), figure.csv());
    }
}

#[test]
fn pages_need_nothing_else() {
    for report in reports() {
        let page = html::replay(&report);
        check_self_contained(&page.replace("src: url(data:", ""));
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
fn pages_of_sweeps_need_nothing_else() {
    for report in sample::sweeps() {
        let page = html::sweep(&report);
        check_self_contained(&page.replace("src: url(data:", ""));
        for advice in &report.advice {
            // Markup escapes some letters of a sentence, but none of its first words.
            let begins = advice.reason[0].split(',').next().unwrap_or_default();
            assert!(page.contains(begins), "{begins}");
        }
        for point in &report.points {
            assert!(point.values.iter().all(|value| page.contains(&format!(">{value}</th>"))));
        }
    }
}

#[test]
fn the_ring_is_at_the_value_to_take() {
    let report = sample::swept();
    let svg = chart::of_sweep(&report).svg();
    let document = Document::parse(&svg).expect("well-formed XML");
    let centres = |radius: &str| -> Vec<(f64, f64)> {
        let circles = document.descendants().filter(|node| node.has_tag_name("circle"));
        let own = circles.filter(|node| node.attribute("r") == Some(radius));
        own.map(|node| (number(node, "cx"), number(node, "cy"))).collect()
    };
    let (rings, points) = (centres("7"), centres("3"));
    let values = report.points.len();
    let panels = rings.len();
    assert!(panels > 1);
    // A ring's own dot comes after those of its curve.
    assert_eq!(points.len(), panels * (values + 1));
    let chosen = report.advice[0].point.expect("there is one");
    for (ring, curve) in rings.iter().zip(points.chunks(values + 1)) {
        assert_eq!(*ring, curve[chosen]);
    }
}

#[test]
fn the_stronger_the_colour_of_a_cell_the_worse() {
    let report = sample::swept_pair();
    let figure = chart::of_sweep(&report);
    let svg = figure.svg();
    let document = Document::parse(&svg).expect("well-formed XML");
    let cells = |level: usize| -> usize {
        let class = format!("ra-h{level}");
        let own = document.descendants().filter(|node| node.attribute("class") == Some(&class));
        own.filter_map(|node| node.attribute("d")).map(|outline| outline.matches('M').count()).sum()
    };
    // The figures are 600, 400, 300, 200, 150 and 100 ms, and one of each is in the legend.
    let expected = [1, 0, 0, 0, 1, 1, 1, 2].map(|cells| cells + 1);
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(cells), expected);
    assert_eq!(figure.table().rows.len(), 6);
}

#[test]
fn pages_look_as_they_did() {
    // The fonts are the same on every page.
    let page = html::replay(&sample::pair());
    let page: Vec<&str> = page.lines().filter(|line| !line.contains("@font-face")).collect();
    assert_snapshot!("html_replay", page.join("\n"));
    let several = html::replay(&sample::several());
    let header = several.split("<header>").nth(1).and_then(|rest| rest.split("</header>").next());
    assert_snapshot!("html_header_with_losses", header.unwrap_or_default());
    let swept = html::sweep(&sample::swept());
    let body: Vec<&str> = swept.lines().filter(|line| line.contains("<body>")).collect();
    let body = body.join("\n").split("<section class=\"chart\"").next().map(str::to_owned);
    assert_snapshot!("html_sweep_until_its_chart", body.unwrap_or_default());
}

#[test]
fn names_are_text_not_markup() {
    let mut report = sample::pair();
    report.source = "a/<b>&\"c\".trace".to_owned();
    report.results[0].policy = "<i>policy</i>".to_owned();
    let page = html::replay(&report);
    assert!(!page.contains("<b>&") && !page.contains("<i>"));
    check(&chart(&report, "orders").svg());
}

#[test]
fn a_folder_has_page_chart_data_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out");
    let two = ["linux-6.18", "align-async-window-v2"];
    crate::write_dir(&sample::illustrated(&two), &path, true).expect("writes");
    let mut names: Vec<_> = std::fs::read_dir(&path)
        .expect("is there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let charts = ["heat", "map", "orders", "ramp", "raster", "sizes", "waits", "waste"];
    let kinds = ["csv", "png", "svg"];
    let files = charts.iter().flat_map(|chart| kinds.map(|kind| format!("{chart}.{kind}")));
    let mut expected: Vec<String> = files.collect();
    expected.extend(["index.html", "report.json"].map(str::to_owned));
    expected.sort();
    assert_eq!(names, expected);
    let blocked = path.join("report.json").join("under");
    let error =
        crate::write_dir(&sample::pair(), &blocked, false).expect_err("a file is in the way");
    assert!(error.to_string().starts_with("cannot write "), "{error}");
}
