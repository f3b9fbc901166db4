//! Tests of the parsers through the public API.

mod blk;
mod common;
mod ftrace;
mod input;
mod perf;
mod report;
mod trace_dat;
