//! Page cache, readahead policies, block layer and device: what a kernel would
//! have made of an access stream.

pub mod block;
pub mod device;
pub mod fault;
pub mod log;
pub mod lru;
pub mod machine;
pub mod mapping;
pub mod page_cache;
pub mod policy;
pub mod readahead;
pub mod run;
pub mod task;
pub mod trace_order;
pub mod xarray;
