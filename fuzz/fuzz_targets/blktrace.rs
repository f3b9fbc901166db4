//! Binary blktrace in both versions and byte orders; the first byte says which.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let magic = 0x6561_7400_u32 | if choice & 1 == 0 { 7 } else { 8 };
    let start = if choice & 2 == 0 { magic.to_le_bytes() } else { magic.to_be_bytes() };
    let _ = parser::read(&[&start[..], data].concat()[..], "fuzz");
});
