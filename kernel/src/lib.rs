//! The readahead code of a Linux kernel tree, unmodified, built in user space and replayed.

mod abi;
mod archive;
mod built;
mod compile;
mod cut;
mod diff;
mod error;
mod folder;
mod inspect;
mod items;
mod lex;
mod object;
mod parent;
mod patch;
mod protocol;
mod rehang;
mod sandbox;
mod session;
mod shared;
mod tree;
mod worker;

pub use abi::{
    Access, Advice, Completion, Decided, Decision, Decisions, InstanceSettings, Mapping, OpenId,
    Trigger,
};
pub use built::{Built, Options, ReadPath};
pub use error::{Error, Fault, MissingName, Place, Result};
pub use session::{Instance, Isolation, Limits, Session};
pub use tree::Tree;
pub use worker::run_if_asked;
