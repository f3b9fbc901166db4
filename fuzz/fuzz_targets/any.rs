//! Any bytes: recognition of formats, and compression.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = parser::read(data, "fuzz");
});
