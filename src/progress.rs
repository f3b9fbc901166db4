//! Progress on standard error: on a terminal only, and only of what takes longer than a second.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How long a command may take before it says how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that counts steps. It is gone when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropped with the bar, which ends the wait for showing it.
    _shown: Option<Sender<()>>,
}

impl Progress {
    /// Of so many steps, called `what`; a single step has a spinner.
    pub(crate) fn new(what: &str, steps: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), _shown: None };
        }
        let template = if steps > 1 {
            "{spinner} {msg} [{bar:30}] {pos} of {len}, {eta} to go"
        } else {
            "{spinner} {msg}, {elapsed}"
        };
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        bar.set_style(style.progress_chars("##-"));
        bar.set_message(what.to_owned());
        let shown = show_later(bar.clone());
        Self { bar, _shown: Some(shown) }
    }

    /// Does something, such as printing, with the bar out of the way.
    pub(crate) fn aside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    /// A step is done.
    pub(crate) fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows a bar once the patience is over, unless what is returned was dropped by then.
fn show_later(bar: ProgressBar) -> Sender<()> {
    let (dropped, wait) = channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) && !bar.is_finished() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    });
    dropped
}
