//! The actions of blktrace, in whichever of its formats.

pub(crate) mod binary;
pub(crate) mod text;

/// What happened to a bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Q: a bio is queued.
    Queue,
    /// M, F: a bio is merged into a request.
    Merge,
    /// D: a request goes to the device.
    Issue,
    /// C: a request is complete.
    Complete,
    /// X: a bio is split.
    Split,
    /// U, UT: requests held back are let go.
    Unplug,
    /// One that is not used, under the name of its tracepoint.
    Unused(&'static str),
}

impl Action {
    /// The action behind the letters of blkparse, or behind the words that ftrace's `blk` tracer
    /// prints with the option `verbose`.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        Some(match text {
            b"Q" | b"queue" => Self::Queue,
            b"M" | b"F" | b"backmerge" | b"frontmerge" => Self::Merge,
            b"D" | b"issue" => Self::Issue,
            b"C" | b"complete" => Self::Complete,
            b"X" | b"split" => Self::Split,
            b"U" | b"UT" | b"unplug_io" | b"unplug_timer" => Self::Unplug,
            b"G" | b"getrq" => Self::Unused("block_getrq"),
            b"S" | b"sleeprq" => Self::Unused("block_sleeprq"),
            b"R" | b"requeue" => Self::Unused("block_rq_requeue"),
            b"P" | b"plug" => Self::Unused("block_plug"),
            b"I" | b"insert" => Self::Unused("block_rq_insert"),
            b"B" | b"bounce" => Self::Unused("block_bio_bounce"),
            b"A" | b"remap" => Self::Unused("block_bio_remap"),
            b"m" | b"message" => Self::Unused("blk_message"),
            _ => return None,
        })
    }
}
