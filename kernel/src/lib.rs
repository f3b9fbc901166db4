//! The readahead code of a Linux kernel tree, unmodified, built in user space and replayed.
//!
//! Point it at a tree and ask what its readahead decides for a list of accesses:
//!
//! ```no_run
//! use kernel::{Access, Built, Decided, InstanceSettings, Isolation, Options, Session, Tree};
//! use traces::units::ByteOffset;
//!
//! # fn main() -> kernel::Result<()> {
//! let tree = Tree::parse("/home/me/linux@HEAD~1")?;
//! let built = Built::new(&tree, &Options::default())?;
//! let session = Session::start(&built, &Isolation::default())?;
//! let mut file = session.instance(InstanceSettings { i_size: 1 << 30, ..Default::default() })?;
//! let open = file.open()?;
//! let reads: Vec<_> = (0..1000).map(|i| Access::read(open, ByteOffset(i << 16), 1 << 16)).collect();
//! for decision in file.replay(&reads)?.iter() {
//!     if let Decided::Folio { index, order, .. } = decision.what {
//!         println!("read {} put a folio of order {order} at page {index}", decision.access);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A program that uses [`Isolation::Worker`], the default, calls [`run_if_asked`] first in `main`.
//!
//! # What comes from the tree
//!
//! `mm/readahead.c` is compiled as it is. What it names, and a patch may therefore change, is cut
//! out of the tree's own text, transitively and without touching a line: the structures, macros and
//! inline functions of `pagemap.h`, `fs.h` and `internal.h`; the read and mmap paths and the hole
//! searches of `mm/filemap.c`; `posix_fadvise` of `mm/fadvise.c`; and the `XArray` of `lib/xarray.c`,
//! because a hole search that starts inside a large folio gives what the cursor of that very version
//! gives. [`Built::cut`] lists the names.
//!
//! Around it are stand-ins of our own (`shim/*.h`): arithmetic, locks that one thread does not need,
//! folios, mappings, page tables; and a page cache and a file system (`shim/shim.c`) that log what
//! is decided. [`Built::replaced`] lists what they stand in for. A name that is neither cut nor
//! provided stops the build with the compiler's message and the line of the tree that uses it:
//! nothing is guessed. [`Built::not_modelled`] says what user space cannot know.
//!
//! The object holds kernel text. It stays on this machine, in a cache keyed by everything that went
//! into it.
//!
//! # Where it runs
//!
//! A tree is other people's code, and its text makes the compiler work. Both run in a process that
//! has given up files, network, most system calls, and memory and time beyond limits
//! ([`Limits`]). What the machine's kernel does not offer for that is said in [`Built::notes`] and
//! [`Session::notes`]. A crash, a failed `BUG_ON`, an endless loop or a forbidden call becomes
//! [`Error::Fault`] with the number of the access and the line of the tree. Blocks of accesses and
//! decisions go through shared memory, so that the boundary costs little. Who knows what a read will
//! come to says so ([`Access::foretold`]) and need not wait for it.
//! [`Isolation::InProcess`] is for those who trust the tree.
//!
//! # Map
//!
//! [`Tree`] (`tree`, `archive`) reads files; `patch`, `diff` and `rehang` change them in memory;
//! `lex`, `items` and `cut` take C apart; `folder` lays out what is compiled; `compile`, `built` and
//! `inspect` make, keep and check the object; `object` calls it; `session`, `parent`, `worker`,
//! `protocol`, `shared` and `sandbox` keep it in its place. `unsafe` is in `object` and `shared` only.

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
    Stops, TaskId, Trigger,
};
pub use built::{Built, Options};
pub use error::{Error, Fault, MissingName, Place, Result};
pub use session::{Instance, Isolation, Limits, Session};
pub use tree::Tree;
pub use worker::run_if_asked;
