//! What the returns of system calls tell, see `fixtures/calls/README.md`.

use std::path::Path;
use std::sync::Arc;

use analysis::load::{LoadOptions, load};
use analysis::recover::recover;
use analysis::replay::Model;
use analysis::timing::predict;
use analysis::verify::verify;
use replay::policy::Policy;
use traces::access::Source;

fn fixture(name: &str) -> (Source, Arc<dyn Policy>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/calls");
    let path = folder.join(format!("{name}.ftrace.txt.zst"));
    let mut source = load(&path, &LoadOptions::default()).expect("the fixture loads").source;
    let policy = recover(&mut source).expect("the fixture tells its kernel");
    (source, policy)
}

/// Two reads through one open file have their last batches in one order and return in the other:
/// which of them the readahead state remembers, the returns decide.
#[test]
fn a_read_leaves_its_position_when_it_returns() {
    let (source, policy) = fixture("shared_fd");
    let result = verify(&source, &*policy).expect("it is a recording");
    assert_eq!((result.folios.recorded, result.folios.matched), (330, 330));
    assert_eq!((result.device_reads.recorded, result.device_reads.matched), (106, 106));
    assert!(result.exact);
}

/// A program thinks from the return of a read to its next one, not from the call to its first event.
#[test]
fn the_time_between_calls_is_the_programs() {
    let (source, policy) = fixture("sleeping");
    let timing = predict(&source, &*policy, &Model::default());
    assert!(timing.elapsed.recorded_ns > 290_000_000, "{:?}", timing.elapsed);
    assert!(timing.elapsed.error().abs() < 0.02, "{:?}", timing.elapsed);
    // Nor is it a part of the read.
    assert!(timing.read_p50.recorded_ns < 1_000_000, "{:?}", timing.read_p50);
}
