//! What a capture means.

pub mod capture;
pub mod event;
pub mod units;
