//! The text of blkparse and of the blk tracer.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// Makes the input be taken for this format.
const START: &[u8] = b"8,0    0     0.000000000     1  Q   R 0 + 8 [a]\n";

fuzz_target!(|data: &[u8]| {
    let _ = parser::read(&[START, data].concat()[..], "fuzz");
});
