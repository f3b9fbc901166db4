//! The text of blkparse and of the blk tracer.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Makes the input be taken for this format.
const START: &[u8] = b"8,0    0     0.000000000     1  Q   R 0 + 8 [a]\n";

fuzz_target!(|data: &[u8]| {
    // Real captures, as they are to start from, may have it already.
    let data = data.strip_prefix(START).unwrap_or(data);
    let _ = parser::read(&[START, data].concat()[..], "fuzz");
});
