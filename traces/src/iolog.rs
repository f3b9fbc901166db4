//! What a fio iolog says: the accesses of one job, without anything a kernel recorded.
//!
//! Every read has its position and length, so a stream made of them is [`Fidelity::Exact`]. Each
//! `open` starts an open file with readahead state of its own.
//!
//! [`Fidelity::Exact`]: crate::access::Fidelity::Exact

use crate::access::{Access, AccessKind, File, Open, Source};
use crate::capture::Losses;
use crate::event::{Device, FileId};
use crate::settings::Settings;
use crate::units::{ByteOffset, SECTORS_PER_PAGE, Time};

/// A parsed iolog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iolog {
    /// Files, in the order they are first named.
    pub files: Vec<LoggedFile>,
    /// What a replay can use, in the order of the log.
    pub actions: Vec<Action>,
}

/// A file of an iolog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedFile {
    /// Its path, as the log names it.
    pub path: String,
    /// Where the highest read, write or trim ends.
    pub end: ByteOffset,
}

/// One line of an iolog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// When, from the start of the job.
    pub time: Time,
    /// Index into [`Iolog::files`].
    pub file: u32,
    /// What.
    pub kind: ActionKind,
}

/// The kinds of [`Action`] that a replay can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// A read.
    Read {
        /// First byte.
        pos: ByteOffset,
        /// Bytes.
        count: u64,
    },
}

impl Iolog {
    pub(crate) fn has_reads(&self) -> bool {
        self.actions.iter().any(|action| matches!(action.kind, ActionKind::Read { .. }))
    }

    /// The accesses as a source. Files have the size that `settings` give, or end where the log
    /// last touched them.
    pub(crate) fn to_source(&self, name: &str, settings: &Settings, losses: &Losses) -> Source {
        let mut source = Source::generated(name, settings.clone());
        source.losses = losses.clone();
        source.threads.push("fio".to_owned());
        source.files = self.lay_out(settings.file_size_bytes.value);
        let mut opened = vec![None; self.files.len()];
        let mut last = None;
        for action in &self.actions {
            let open = &mut opened[action.file as usize];
            match action.kind {
                // The next access goes through another open file.
                ActionKind::Open | ActionKind::Close => *open = None,
                ActionKind::Read { pos, count } => {
                    let open = *open.get_or_insert_with(|| {
                        source.opens.push(Open::new(action.file));
                        source.opens.len() as u32 - 1
                    });
                    let time = action.time;
                    let think_ns = last.replace(time).map_or(0, |last| time - last);
                    let seq = source.accesses.len() as u64;
                    let kind = AccessKind::Read { pos, count };
                    source.accesses.push(Access { time, seq, thread: 0, open, think_ns, kind });
                }
            }
        }
        source
    }

    /// The files, one behind the other on a device of their own.
    fn lay_out(&self, size_bytes: Option<u64>) -> Vec<File> {
        let mut sector = File::FIRST_SECTOR;
        let numbered = self.files.iter().zip(1..);
        let file = |(logged, inode): (&LoggedFile, u64)| {
            let id = FileId { device: Device::default(), inode };
            let mut file = File::contiguous(id, size_bytes.unwrap_or(logged.end.0), sector);
            file.path = Some(logged.path.clone());
            sector += file.extents[0].pages * SECTORS_PER_PAGE;
            file
        };
        numbered.map(file).collect()
    }
}
