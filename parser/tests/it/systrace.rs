//! Traces inside HTML and behind atrace's compression.

use std::io::Write as _;

use crate::common::{read_text, render, render_events};
use traces::capture::LossKind;

const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 2/2   #P:8
#
 MediaStoreImpor-27212 (27176) [000] .... 16136.595194: block_bio_queue: 8,1 RA 2048 + 8 [x]
           <...>-12    (-----) [001] d..2 16136.595200: sched_switch: prev_comm=x
";

fn page(body: &str) -> String {
    let scripts = "<script>\n  if (line.match('# tracer:')) {}\n# tracer: none\n</script>";
    format!("<!DOCTYPE html>\n<html>\n<body>\n{scripts}\n{body}</body>\n</html>\n")
}

fn data(text: &str) -> String {
    format!("<script class=\"trace-data\" type=\"application/text\">\n{text}  </script>\n")
}

#[test]
fn trap_html_with_several_data_blocks() {
    let processes = data("USER PID PPID VSIZE\nroot 1 0 8904\n");
    let json = data("{\"traceEvents\": [{\"name\": \"-1 [000] 1.0: x\"}]}\n");
    let html = page(&format!("<!-- BEGIN TRACE -->\n{processes}{}{json}", data(TRACE)));
    let capture = read_text(&html);
    assert_eq!(capture.header.format, "systrace HTML");
    assert!(capture.losses.0.is_empty(), "{}", capture.losses);
    assert_eq!(render_events(&capture), render_events(&read_text(TRACE)));
    insta::assert_snapshot!(render(&capture));
}

#[test]
fn trap_legacy_html() {
    let escaped = TRACE.replace('\n', "\\n\\\n");
    for text in [TRACE, &escaped] {
        let html = page(&format!("<script>\n  var linuxPerfData = \"\\\n{text}\";\n</script>\n"));
        let html = html.replace("html>", "HTML>").replace("\";\n</", "  </");
        let capture = read_text(&html);
        assert!(capture.losses.0.is_empty(), "{}", capture.losses);
        assert_eq!(render_events(&capture), render_events(&read_text(TRACE)));
    }
}

#[test]
fn line_numbers_are_those_of_the_page() {
    let html = page(&data(&format!("{TRACE}what is this\n")));
    let number = html.lines().position(|line| line == "what is this").expect("in the page") + 1;
    let loss = &read_text(&html).losses.0[&LossKind::Unparsed];
    assert_eq!(loss.first, format!("line {number}: what is this"));
}

#[test]
fn html_without_a_trace() {
    let error = parser::read(page("").as_bytes(), "page.html").expect_err("no trace");
    insta::assert_snapshot!(error.to_string());
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("compresses");
    encoder.finish().expect("compresses")
}

#[test]
fn trap_atrace_plain_and_compressed() {
    let expected = render_events(&read_text(TRACE));
    for front in ["TRACE:\n", "capturing trace... done\nTRACE:\n"] {
        let packed = [front.as_bytes(), &compressed(TRACE)].concat();
        for bytes in [packed, format!("{front}{TRACE}").into_bytes()] {
            let capture = parser::read(&bytes[..], "atrace").expect("parses");
            assert!(capture.losses.0.is_empty(), "{}", capture.losses);
            assert_eq!(render_events(&capture), expected);
        }
    }
}

#[test]
fn compressed_atrace_cut_short() {
    let packed = compressed(&TRACE.repeat(1000));
    let bytes = [b"TRACE:\n", &packed[..packed.len() / 2]].concat();
    let capture = parser::read(&bytes[..], "atrace").expect("parses");
    assert!(!capture.events.is_empty());
    assert!(capture.losses.0.contains_key(&LossKind::Truncated));
}
