//! trace.dat files, from the version on.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Makes the input be taken for this format.
const START: &[u8] = b"\x17\x08\x44tracing";

fuzz_target!(|data: &[u8]| {
    // Real captures, as they are to start from, may have it already.
    let data = data.strip_prefix(START).unwrap_or(data);
    let _ = parser::read(&[START, data].concat()[..], "fuzz");
});
