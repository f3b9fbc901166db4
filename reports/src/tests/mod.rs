//! Every report of hand-made results, as people see it.

mod charts;
mod outputs;
mod perfetto;
mod sample;
mod schemas;
