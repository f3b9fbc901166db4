//! Histograms of orders from bpftrace and bcc.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = parser::read_histograms(data, "fuzz");
});
