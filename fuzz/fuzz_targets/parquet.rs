//! Tables: what `convert` writes, and anything that claims to be one.
#![no_main]

use analysis::events::{EVER, stream};
use libfuzzer_sys::fuzz_target;
use parser::Input;
use traces::capture::Comms;
use traces::event::Event;

fuzz_target!(|data: &[u8]| {
    let input = Input::open(data, "fuzz").expect("memory can be read");
    let _ = stream(input, &EVER, &mut |_: &[Event], _: &Comms| {});
});
