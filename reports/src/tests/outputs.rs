//! Snapshots.

use insta::assert_snapshot;

use super::sample;
use crate::text::Style;
use crate::{csv, json, mail, markdown, text};

const PLAIN: Style = Style { colour: false, width: 100 };
const NARROW: Style = Style { colour: false, width: 80 };

/// No report may carry trailing spaces, and each ends with one line feed.
fn checked(text: String) -> String {
    for line in text.lines() {
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    text
}

#[test]
fn text_replay() {
    assert_snapshot!("text_replay_pair", checked(text::replay(&sample::pair(), &PLAIN)));
    assert_snapshot!("text_replay_several", checked(text::replay(&sample::several(), &NARROW)));
    assert_snapshot!("text_replay_workload", checked(text::replay(&sample::workload(), &PLAIN)));
}

#[test]
fn text_replay_in_colour() {
    let style = Style { colour: true, width: 100 };
    let coloured = text::replay(&sample::pair(), &style);
    assert_snapshot!("text_replay_colour", coloured.replace('\u{1b}', "ESC"));
}

#[test]
fn text_verify() {
    let wide = Style { colour: false, width: 140 };
    assert_snapshot!("text_verify_wide", checked(text::verify(&sample::verified(), &wide)));
    assert_snapshot!("text_verify_narrow", checked(text::verify(&sample::verified(), &PLAIN)));
}

#[test]
fn text_inspect() {
    assert_snapshot!("text_inspect", checked(text::inspect(&sample::inspected(), &PLAIN)));
    let block_only = sample::inspected_block_only();
    assert_snapshot!("text_inspect_block_only", checked(text::inspect(&block_only, &PLAIN)));
    let part = sample::inspected_part();
    assert_snapshot!("text_inspect_part", checked(text::inspect(&part, &PLAIN)));
}

#[test]
fn text_sweep() {
    assert_snapshot!("text_sweep", checked(text::sweep(&sample::swept(), &PLAIN)));
    let narrow = Style { colour: false, width: 72 };
    assert_snapshot!("text_sweep_devices", checked(text::sweep(&sample::swept_devices(), &narrow)));
    let coloured = text::sweep(&sample::swept(), &Style { colour: true, width: 100 });
    assert_snapshot!("text_sweep_colour", coloured.replace('\u{1b}', "ESC"));
}

#[test]
fn mails_fit_72_columns() {
    let mails = [
        ("mail_replay_pair", mail::replay(&[sample::pair()])),
        ("mail_replay_several", mail::replay(&[sample::several()])),
        ("mail_changelog", mail::replay(&[sample::pair(), sample::workload()])),
        ("mail_verify", mail::verify(&sample::verified())),
        ("mail_sweep", mail::sweep(&sample::swept())),
        ("mail_sweep_devices", mail::sweep(&sample::swept_devices())),
    ];
    for (name, mail) in mails {
        for line in mail.lines() {
            assert!(line.chars().count() <= 72, "{line}");
        }
        assert_snapshot!(name, checked(mail));
    }
}

#[test]
fn markdown_tables() {
    assert_snapshot!("markdown_replay", checked(markdown::replay(&sample::pair())));
    assert_snapshot!("markdown_verify", checked(markdown::verify(&sample::verified())));
    assert_snapshot!("markdown_inspect", checked(markdown::inspect(&sample::inspected())));
    assert_snapshot!("markdown_sweep", checked(markdown::sweep(&sample::swept())));
}

#[test]
fn csv_lines() {
    assert_snapshot!("csv_replay", checked(csv::replay(&sample::pair())));
    assert_snapshot!("csv_verify", checked(csv::verify(&sample::verified())));
    assert_snapshot!("csv_inspect", checked(csv::inspect(&sample::inspected())));
    assert_snapshot!("csv_sweep", checked(csv::sweep(&sample::swept_devices())));
}

#[test]
fn json_documents() {
    assert_snapshot!("json_replay", checked(json::replay(&sample::pair())));
    assert_snapshot!("json_verify", checked(json::verify(&sample::verified())));
    assert_snapshot!("json_inspect", checked(json::inspect(&sample::inspected())));
    assert_snapshot!("json_sweep", checked(json::sweep(&sample::swept())));
}
