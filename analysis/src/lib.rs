//! Metrics and comparisons over replays.

pub mod calibrate;
pub mod compare;
pub mod events;
pub mod explain;
mod feed;
pub mod fleet;
pub mod gate;
pub mod history;
pub mod inspect;
pub mod load;
pub mod picture;
pub mod recover;
pub mod replay;
pub mod report;
pub mod result;
pub mod stats;
pub mod sweep;
pub mod timing;
pub mod tree;
pub mod verify;
