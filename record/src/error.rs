//! What keeps a recording from being made.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A recording that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The rights are missing.
    #[error(
        "{what}: {source}; recording needs root (CAP_SYS_ADMIN and access to tracefs): run it with sudo"
    )]
    NotPermitted {
        /// What was tried.
        what: String,
        /// How it failed.
        source: io::Error,
    },
    /// There is no tracefs.
    #[error(
        "cannot mount tracefs: {source}; the kernel needs CONFIG_FTRACE and CONFIG_EVENT_TRACING, and a \
        lockdown of it forbids tracing; `mount -t tracefs nodev /sys/kernel/tracing` shows the same"
    )]
    NoTracefs {
        /// How mounting failed.
        source: io::Error,
    },
    /// An event without which a capture is worthless.
    #[error(
        "this kernel has no event {event}, which {why}; it is there since Linux {since} with \
        CONFIG_EVENT_TRACING"
    )]
    MissingEvent {
        /// `system:name`.
        event: &'static str,
        /// What it is needed for.
        why: &'static str,
        /// First release that has it.
        since: &'static str,
    },
    /// What to record is not there.
    #[error("cannot record {}: {why}", .path.display())]
    Target {
        /// The file, mount point or device.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The program did not start.
    #[error("cannot run {}: {source}", .program.display())]
    Command {
        /// The program.
        program: OsString,
        /// How it failed.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
    /// The output is something else's.
    #[error("{} is there and is no recording; choose another name with -o", .path.display())]
    OutputExists {
        /// The output.
        path: PathBuf,
    },
    /// The kernel refused a filter.
    #[error("the kernel refused the filter `{filter}` of {event}: {source}")]
    Filter {
        /// `system:name`.
        event: String,
        /// The filter.
        filter: String,
        /// How it failed.
        source: io::Error,
    },
    /// A signal came before the program was started.
    #[error("interrupted before the program was started")]
    Interrupted,
}

impl RecordError {
    /// Whether the command line is to blame rather than the machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Target { .. } | Self::Command { .. } | Self::OutputExists { .. })
    }
}

/// Gives an I/O error the file it happened on.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> RecordError + '_ {
    move |source| match source.kind() {
        io::ErrorKind::PermissionDenied => {
            RecordError::NotPermitted { what: path.display().to_string(), source }
        }
        _ => RecordError::Io { path: path.to_owned(), source },
    }
}
