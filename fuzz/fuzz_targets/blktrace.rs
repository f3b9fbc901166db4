//! Binary blktrace in both versions and byte orders. The first byte says which; the other three that
//! hold the magic number in real captures do not matter.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_at_checked(4) else { return };
    // The low byte of the magic number of version 7 is odd.
    let magic = 0x6561_7400_u32 | if choice[0] & 1 == 1 { 7 } else { 8 };
    let start = if choice[0] & 0x80 == 0 { magic.to_le_bytes() } else { magic.to_be_bytes() };
    let _ = parser::read(&[&start[..], data].concat()[..], "fuzz");
});
