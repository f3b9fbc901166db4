//! What can go wrong.

use std::fmt;
use std::path::PathBuf;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A place in the tree's text, as the compiler or the debug information gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path within the tree.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Function, where known.
    pub function: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        match &self.function {
            Some(function) => write!(f, " ({function})"),
            None => Ok(()),
        }
    }
}

/// What the tree's code did that ended a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A failed `BUG_ON` or its like, with the condition.
    Bug(String),
    /// A signal such as SIGSEGV, with the address for memory faults.
    Signal {
        /// Its name.
        name: &'static str,
        /// Address the code touched.
        address: u64,
    },
    /// A system call, which no readahead code has a reason to make.
    SystemCall {
        /// Its number on this machine.
        number: u32,
    },
    /// An access did not end in time.
    Endless {
        /// The limit.
        limit: std::time::Duration,
    },
    /// A read stopped again and again, to wait or to trigger readahead, and read nothing.
    NoProgress {
        /// How often.
        stops: u32,
    },
    /// It asked for more memory than allowed.
    OutOfMemory {
        /// The worker's limit; in this process there is none but the machine's.
        limit_bytes: Option<u64>,
    },
    /// The worker ended without saying why.
    Vanished(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bug(what) => write!(f, "BUG_ON({what})"),
            Self::Signal { name, address } => write!(f, "{name} at address {address:#x}"),
            Self::SystemCall { number } => {
                write!(f, "made system call {number}, which the worker forbids")
            }
            Self::Endless { limit } => write!(f, "did not end within {limit:?}"),
            Self::NoProgress { stops } => write!(f, "stopped {stops} times and read nothing"),
            Self::OutOfMemory { limit_bytes: Some(limit) } => {
                write!(f, "needed more than {limit} bytes of memory")
            }
            Self::OutOfMemory { limit_bytes: None } => {
                f.write_str("needed more memory than there is")
            }
            Self::Vanished(how) => write!(f, "worker process ended: {how}"),
        }
    }
}

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither a directory, a file nor a repository with a revision.
    #[error(
        "no kernel tree at {spec}: expected a directory, REPOSITORY@REVISION, or a linux-source package"
    )]
    NoTree {
        /// What was asked for.
        spec: String,
    },
    /// A revision that git would read as something else.
    #[error("`{revision}` cannot be a revision")]
    BadRevision {
        /// What was asked for.
        revision: String,
    },
    /// The repository does not have it.
    #[error("no commit {revision} in {}: {message}", repository.display())]
    NoRevision {
        /// The repository.
        repository: PathBuf,
        /// What was asked for.
        revision: String,
        /// What git said.
        message: String,
    },
    /// The tree lacks a file that every kernel has.
    #[error("{tree} has no {path}: is it a kernel tree?")]
    MissingFile {
        /// The tree.
        tree: String,
        /// Path within it.
        path: String,
    },
    /// Nothing to apply.
    #[error("{} holds no change in unified diff format", patch.display())]
    EmptyPatch {
        /// The patch.
        patch: PathBuf,
    },
    /// The patch does not apply.
    #[error("{patch} does not apply to {tree}: {message}")]
    PatchFailed {
        /// The patch.
        patch: PathBuf,
        /// The tree.
        tree: String,
        /// What `patch` said.
        message: String,
    },
    /// No C compiler.
    #[error("no C compiler: tried {tried}; install gcc or clang, or set CC")]
    NoCompiler {
        /// What was looked for.
        tried: String,
    },
    /// The tree's code does not compile against the stand-ins.
    #[error("{tree} does not build in user space\n{}", problems(.missing, .message))]
    Compile {
        /// The tree.
        tree: String,
        /// Names of the tree's code that the stand-ins lack.
        missing: Vec<MissingName>,
        /// The compiler's own words.
        message: String,
    },
    /// Variables that several replays would share.
    #[error("{tree} keeps state in global variables, which replays would share: {}", .variables.join(", "))]
    MutableGlobals {
        /// The tree.
        tree: String,
        /// Each variable, with its place where known.
        variables: Vec<String>,
    },
    /// The built object needs something outside it.
    #[error("{tree} uses {}, which kernel code cannot have", .symbols.join(", "))]
    ForeignSymbols {
        /// The tree.
        tree: String,
        /// Symbols it does not define.
        symbols: Vec<String>,
    },
    /// The built object cannot be read or loaded.
    #[error("cannot load {}: {message}", path.display())]
    Load {
        /// The object.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The tree's code ended badly.
    #[error("{tree}: access {access} {fault}{}", at(.place.as_ref()))]
    Fault {
        /// The tree.
        tree: String,
        /// Number of the access within the instance's replay, from 0.
        access: u64,
        /// What it did.
        fault: Fault,
        /// Where in the tree.
        place: Option<Place>,
    },
    /// A read did not do what was [foretold](crate::Access::foretold) of it.
    #[error("{tree}: access {access} did something else than was foretold")]
    NotForetold {
        /// The tree.
        tree: String,
        /// Number of the access within the instance's replay, from 0.
        access: u64,
    },
    /// A call on an instance or session that has already ended in a fault.
    #[error("this {what} ended in a fault and holds no state any more")]
    Poisoned {
        /// `session` or `instance`.
        what: &'static str,
    },
    /// A setting the kernel could not have.
    #[error("{setting} = {value}: {expected}")]
    BadSetting {
        /// Its name.
        setting: &'static str,
        /// Its value.
        value: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// Input or output failed.
    #[error("{what}: {source}")]
    Io {
        /// File or program.
        what: String,
        /// Why.
        source: std::io::Error,
    },
}

/// A name the tree's code uses and the stand-ins do not provide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingName {
    /// The name.
    pub name: String,
    /// Where it is used first.
    pub place: Place,
    /// What it would take to provide it.
    pub remedy: String,
}

/// Text that other people's code had a hand in, without what a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn problems(missing: &[MissingName], message: &str) -> String {
    let mut text: Vec<String> = missing
        .iter()
        .map(|m| format!("  {}: `{}` is not provided; {}", m.place, m.name, m.remedy))
        .collect();
    text.extend(message.lines().map(|line| format!("  | {line}")));
    text.join("\n")
}

fn at(place: Option<&Place>) -> String {
    place.map_or_else(String::new, |p| format!(" at {p}"))
}
