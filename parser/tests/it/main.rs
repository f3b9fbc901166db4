//! Tests of the parsers through the public API.

mod blk;
mod common;
mod ftrace;
mod golden;
mod histogram;
mod input;
mod iolog;
mod perf;
mod properties;
mod report;
mod systrace;
mod trace_dat;
mod traps;
