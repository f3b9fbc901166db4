//! The `stats` file of a CPU's buffer, which counts what the buffer lost.

use memchr::memmem;
use traces::capture::{LossKind, Losses};

/// What the counters of losses are called, and what they mean.
const COUNTERS: &[(&[u8], LossKind)] = &[
    (b"\noverrun: ", LossKind::Overwritten),
    (b"\ncommit overrun: ", LossKind::LostEvents),
    (b"\ndropped events: ", LossKind::LostEvents),
];

/// Adds what `stats` counts; `place` names the CPU.
pub(crate) fn count_losses(stats: &[u8], place: &str, losses: &mut Losses) {
    for (key, kind) in COUNTERS {
        let count = counter(stats, key);
        if count > 0 {
            let name = String::from_utf8_lossy(key.trim_ascii());
            losses.add(*kind, count, || format!("{place}: {name} {count}"));
        }
    }
}

/// The number behind `key`.
fn counter(stats: &[u8], key: &[u8]) -> u64 {
    let value = memmem::find(stats, key).map(|at| &stats[at + key.len()..]);
    let digits = value.and_then(|value| value.split(|b| !b.is_ascii_digit()).next());
    digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}
