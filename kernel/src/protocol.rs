//! What a session and its worker say to each other, as frames of fixed size in [`crate::shared`]
//! memory, beside accesses and decisions. A byte on the socket between them wakes one that sleeps.

use crate::abi::{RawSettings, RawStop};

/// What is said on the socket.
pub(crate) const WAKE: u8 = 0x57;

/// What the worker is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Make an instance with an id.
    New,
    /// Open the instance's file.
    Open,
    /// Replay `count` of the accesses that lie ready.
    Replay,
    /// Hand over the decisions that did not fit.
    More,
    /// Forget the instance.
    Free,
}

const OPS: [Op; 5] = [Op::New, Op::Open, Op::Replay, Op::More, Op::Free];

/// One request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) op: Op,
    pub(crate) instance: u32,
    pub(crate) count: u32,
    pub(crate) settings: Option<RawSettings>,
}

impl Request {
    pub(crate) const BYTES: usize = 9 + 20;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = OPS.iter().position(|op| *op == self.op).unwrap_or_default() as u8;
        bytes[1..5].copy_from_slice(&self.instance.to_le_bytes());
        bytes[5..9].copy_from_slice(&self.count.to_le_bytes());
        if let Some(s) = self.settings {
            bytes[9..17].copy_from_slice(&s.i_size.to_le_bytes());
            bytes[17..21].copy_from_slice(&s.ra_pages.to_le_bytes());
            bytes[21..25].copy_from_slice(&s.io_pages.to_le_bytes());
            bytes[25..].copy_from_slice(&[
                s.min_order,
                s.max_order,
                s.completion,
                s.fault_around_order,
            ]);
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let settings = RawSettings {
            i_size: u64::from_le_bytes(part(&bytes, 9)),
            ra_pages: u32::from_le_bytes(part(&bytes, 17)),
            io_pages: u32::from_le_bytes(part(&bytes, 21)),
            min_order: bytes[25],
            max_order: bytes[26],
            completion: bytes[27],
            fault_around_order: bytes[28],
            reserved: 0,
        };
        Some(Self {
            op: *OPS.get(usize::from(bytes[0]))?,
            instance: u32::from_le_bytes(part(&bytes, 1)),
            count: u32::from_le_bytes(part(&bytes, 5)),
            settings: Some(settings),
        })
    }
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Of `Open` the id, of `Replay` the accesses replayed.
    pub(crate) value: u64,
    /// Decisions that lie ready.
    pub(crate) decisions: u64,
    /// Decisions that did not fit.
    pub(crate) left: u64,
    /// `WARN_ON`s of the instance so far.
    pub(crate) warnings: u64,
    /// Why the instance stopped, if it did. That, or else its first warning, lies ready too.
    pub(crate) stop: u32,
}

impl Answer {
    pub(crate) const BYTES: usize = 32 + 4;
    pub(crate) const NOTHING: Self =
        Self { value: 0, decisions: 0, left: 0, warnings: 0, stop: RawStop::RUNNING.kind };

    /// Whether a [`RawStop`] lies ready with it.
    pub(crate) fn has_stop(&self) -> bool {
        self.stop != RawStop::RUNNING.kind || self.warnings > 0
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (i, word) in [self.value, self.decisions, self.left, self.warnings].iter().enumerate() {
            bytes[8 * i..8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..].copy_from_slice(&self.stop.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |i: usize| u64::from_le_bytes(part(bytes, 8 * i));
        let stop = u32::from_le_bytes(part(bytes, 32));
        Self { value: word(0), decisions: word(1), left: word(2), warnings: word(3), stop }
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let settings = RawSettings {
            i_size: 1 << 40,
            ra_pages: 32,
            io_pages: 128,
            min_order: 1,
            max_order: 9,
            completion: 1,
            fault_around_order: 4,
            reserved: 0,
        };
        for op in OPS {
            let request = Request { op, instance: 7, count: 9, settings: Some(settings) };
            let back = Request::from_bytes(request.to_bytes()).unwrap();
            assert_eq!(format!("{request:?}"), format!("{back:?}"));
        }
        let answer = Answer { value: 1, decisions: 2, left: 3, warnings: 4, stop: 5 };
        assert_eq!(format!("{answer:?}"), format!("{:?}", Answer::from_bytes(&answer.to_bytes())));
    }
}
