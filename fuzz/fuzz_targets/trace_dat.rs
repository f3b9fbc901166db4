//! trace.dat files, from the version on.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Makes the input be taken for this format.
const START: &[u8] = b"\x17\x08\x44tracing";

fuzz_target!(|data: &[u8]| {
    let _ = parser::read(&[START, data].concat()[..], "fuzz");
});
