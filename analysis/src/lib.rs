//! Metrics and comparisons over replays.

pub mod load;
pub mod result;
pub mod verify;
