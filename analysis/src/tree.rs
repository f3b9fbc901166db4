//! A kernel tree's own readahead as a policy: `tree:PATH[@REV][,patch=FILE]`.
//!
//! The tree's code keeps a page cache of its own, in its worker. [`TreePolicy`]
//! hands it every read and fault as a task, lets the task go on when the driver
//! of the replay says so, and follows what it decides. Whatever else changes
//! the cache (evictions, data that arrives) is told to the tree's code before
//! its next step. With [`ReadPath::Native`] reads go through the built-in read
//! path of the kernel line the tree belongs to, and the tree's code is asked at
//! every trigger and fault.

mod mirror;
mod policy;

use std::path::PathBuf;
use std::sync::Arc;

use kernel::{Built, Isolation, Options, Tree};
use replay::policy::{Policy, PolicyError};

pub use policy::TreePolicy;

/// What a policy name of a tree begins with.
pub const PREFIX: &str = "tree:";

/// How trees are built and run.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Run the tree's code in this process rather than in a worker without rights.
    pub in_process: bool,
    /// Leave the folder that was compiled.
    pub keep: bool,
    /// Whose read path goes around the tree's readahead.
    pub read_path: ReadPath,
}

impl TreeOptions {
    fn isolation(&self) -> Isolation {
        if self.in_process { Isolation::InProcess } else { Isolation::default() }
    }
}

/// Whose read path goes around a tree's readahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadPath {
    /// The tree's own.
    #[default]
    Tree,
    /// The built-in one of the tree's kernel line.
    Native,
}

/// A policy that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// It is not a tree and not a built-in policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tree cannot be read, built or run.
    #[error("{spec}")]
    Kernel {
        /// The policy as named.
        spec: String,
        /// Why.
        source: Box<kernel::Error>,
    },
    /// The part after the tree is not an option.
    #[error("{spec}: `{part}` is not `patch=FILE`")]
    BadOption {
        /// The policy as named.
        spec: String,
        /// The part.
        part: String,
    },
}

/// The policy that a name on the command line stands for: built in, or a tree.
pub fn parse_policy(spec: &str, options: &TreeOptions) -> Result<Arc<dyn Policy>, TreeError> {
    if spec.starts_with(PREFIX) {
        Ok(Arc::new(TreePolicy::new(spec, options)?))
    } else {
        Ok(replay::policy::parse(spec)?)
    }
}

/// Builds the tree behind a policy name, or finds it built.
pub fn build(spec: &str, options: &TreeOptions) -> Result<Built, TreeError> {
    let mut parts = spec.strip_prefix(PREFIX).unwrap_or(spec).split(',');
    let path = parts.next().unwrap_or_default();
    let isolation = options.isolation();
    let mut build = Options { keep: options.keep, isolation, ..Options::default() };
    for part in parts {
        let Some(patch) = part.strip_prefix("patch=") else {
            return Err(TreeError::BadOption { spec: spec.to_owned(), part: part.to_owned() });
        };
        build.patch = Some(PathBuf::from(patch));
    }
    let failed = |source| TreeError::Kernel { spec: spec.to_owned(), source: Box::new(source) };
    let tree = Tree::parse(path).map_err(failed)?;
    Built::new(&tree, &build).map_err(failed)
}

/// The generation a tree belongs to: that of its version, or the newest one for a tree newer than
/// all. Its read path is the native one.
pub fn generation_of(built: &Built) -> &'static str {
    built.version_guess().and_then(replay::policy::for_kernel).unwrap_or("linux-7.3")
}
