//! Metrics and comparisons over replays.

pub mod explain;
pub mod inspect;
pub mod load;
pub mod recover;
pub mod replay;
pub mod result;
pub mod verify;
