//! Tests of the parsers through the public API.

mod common;
mod ftrace;
mod input;
