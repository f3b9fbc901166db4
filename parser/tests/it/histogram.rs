//! Histograms of orders from other tools.

use parser::{OrderHistograms, read_histograms};
use traces::capture::LossKind;

fn read(text: &str) -> OrderHistograms {
    read_histograms(text.as_bytes(), "orders.txt").expect("a histogram")
}

/// Histograms, one a line: the name, then first and last order and count of each bucket.
fn render(found: &OrderHistograms) -> Vec<String> {
    let line = |histogram: &parser::OrderHistogram| {
        let bucket = |b: &parser::OrderBucket| format!("{}-{}:{}", b.first, b.last, b.count);
        let buckets: Vec<String> = histogram.buckets.iter().map(bucket).collect();
        format!("{} {}", histogram.name, buckets.join(" "))
    };
    found.histograms.iter().map(line).collect()
}

#[test]
fn bpftrace_counts_by_order() {
    let found = read("Attaching 1 probe...\n^C\n\n@orders[2]: 64\n@orders[0]: 1280\n\n");
    assert!(found.losses.0.is_empty(), "{}", found.losses);
    assert_eq!(render(&found), ["@orders 2-2:64 0-0:1280"]);
    assert_eq!(render(&read("@[5]: 7\n")), ["@ 5-5:7"]);
}

#[test]
fn bpftrace_counts_with_further_keys() {
    let found = read("@orders[reader, 0]: 5\n@orders[my, app, 2]: 6\n@orders[reader, 3]: 7\n");
    assert_eq!(render(&found), ["@orders[my, app] 2-2:6", "@orders[reader] 0-0:5 3-3:7"]);
}

#[test]
fn bpftrace_linear_histogram() {
    let found = read(
        "@orders: \n\
         (..., 0)              0 |                                     |\n\
         [0, 1)             1280 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n\
         [1, 2)                0 |                                     |\n\
         [2, 3)               64 |@                                    |\n\
         [9, ...)              3 |                                     |\n",
    );
    assert!(found.losses.0.is_empty(), "{}", found.losses);
    assert_eq!(render(&found), ["@orders 0-0:1280 2-2:64 9-15:3"]);
}

#[test]
fn bpftrace_logarithmic_histogram() {
    let found = read("@o:\n[0]      1280 |@@@@|\n[1]        8 |    |\n[2, 4)    64 |@   |\n");
    assert_eq!(render(&found), ["@o 0-0:1280 1-1:8 2-3:64"]);
}

#[test]
fn bcc_histograms() {
    let found = read(
        "Tracing... Hit Ctrl-C to end.\n^C\n\
         \x20    order         : count     distribution\n\
         \x20        0         : 1280     |****************************************|\n\
         \x20        1         : 0        |                                        |\n\
         \x20        2         : 64       |**                                      |\n\n\
         \x20    log2 order          : count     distribution\n\
         \x20        0 -> 1          : 12       |****|\n\
         \x20        4 -> 7          : 33       |****|\n",
    );
    assert!(found.losses.0.is_empty(), "{}", found.losses);
    assert_eq!(render(&found), ["order 0-0:1280 2-2:64", "log2 order 0-1:12 4-7:33"]);
}

#[test]
fn what_is_not_understood_is_counted() {
    let found = read("@orders[0]: 5\n@orders[77]: 6\nLost 12 events\n");
    assert_eq!(found.losses.0[&LossKind::BadFields].first, "line 2: @orders[77]: 6");
    assert_eq!(found.losses.0[&LossKind::Unparsed].first, "line 3: Lost 12 events");
}

#[test]
fn no_histogram() {
    let error = read_histograms(&b"nothing of the kind\n"[..], "orders.txt").expect_err("none");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn histogram_instead_of_a_capture() {
    let error = parser::read(&b"@orders[0]: 5\n"[..], "orders.txt").expect_err("no events");
    insta::assert_snapshot!(error.to_string());
}
