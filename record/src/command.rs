//! Runs the program, and passes signals on to it.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::RecordError;

/// Signals that end a recording in an orderly way.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Receives signals from its making on, so that none ends this process before it has cleaned up.
pub(crate) struct Waiter {
    signals: Signals,
}

impl Waiter {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { signals: Signals::new(ENDING.into_iter().chain([SIGCHLD]))? })
    }

    /// Runs the program to its end, its standard streams being those of this process.
    pub(crate) fn run(&mut self, command: &[OsString]) -> Result<ExitStatus, RecordError> {
        if self.signals.pending().any(|signal| ENDING.contains(&signal)) {
            return Err(RecordError::Interrupted);
        }
        let (program, arguments) = command.split_first().ok_or(RecordError::Interrupted)?;
        let fail = |source| RecordError::Command { program: program.clone(), source };
        let mut child = Command::new(program).args(arguments).spawn().map_err(fail)?;
        loop {
            // SIGCHLD tells of its end; one that came before this look has been delivered already.
            if let Some(status) = child.try_wait().map_err(fail)? {
                return Ok(status);
            }
            for signal in self.signals.wait() {
                if ENDING.contains(&signal) && !(from_terminal(signal) && in_foreground()) {
                    forward(&child, signal);
                }
            }
        }
    }
}

/// Signals that a terminal sends to all processes in its foreground.
fn from_terminal(signal: i32) -> bool {
    signal == SIGINT || signal == SIGQUIT
}

/// Whether the terminal, if there is one, sends its signals to this process and so to the program.
fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn forward(child: &Child, signal: i32) {
    if let (Some(pid), Some(signal)) =
        (Pid::from_raw(child.id().cast_signed()), Signal::from_named_raw(signal))
    {
        let _ = kill_process(pid, signal);
    }
}
