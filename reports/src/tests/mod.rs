//! Every report of hand-made results, as people see it.

mod outputs;
mod sample;
mod schemas;
