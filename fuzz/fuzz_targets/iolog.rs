//! Iologs of fio of either version, and the streams made of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use traces::streams::{self, StreamOptions};

fuzz_target!(|data: &[u8]| {
    for title in ["fio version 2 iolog\n", "fio version 3 iolog\n"] {
        let mut text = title.as_bytes().to_vec();
        text.extend_from_slice(data);
        if let Ok(capture) = parser::read(&text[..], "fuzz") {
            let _ = streams::build(&capture, "fuzz", &StreamOptions::default());
        }
    }
});
