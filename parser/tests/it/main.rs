//! Tests of the parsers through the public API.

mod blk;
mod common;
mod ftrace;
mod histogram;
mod input;
mod perf;
mod properties;
mod report;
mod systrace;
mod trace_dat;
