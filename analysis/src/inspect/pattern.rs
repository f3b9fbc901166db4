//! How the accesses of an open file follow each other.

use std::collections::VecDeque;
use std::ops::Range;

use serde::Serialize;
use traces::units::PAGE_SHIFT;

/// Streams of one open file that are told apart.
const STREAMS_MAX: usize = 16;

/// What an access is to the ones before it on the same open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessPattern {
    /// Goes on where the last one ended: in the same page or the next, as the kernel sees it.
    Sequential,
    /// Goes on where an earlier one ended.
    Interleaved,
    /// As far after the last one as that was after the one before it.
    Strided,
    /// The same, downwards.
    Backward,
    /// None of these.
    Random,
}

impl AccessPattern {
    /// All of them, best known to readahead first.
    pub const ALL: [Self; 5] =
        [Self::Sequential, Self::Interleaved, Self::Strided, Self::Backward, Self::Random];

    /// Its name in text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Interleaved => "interleaved",
            Self::Strided => "strided",
            Self::Backward => "backward",
            Self::Random => "random",
        }
    }
}

/// Accesses by pattern. The first access of an open file has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names are the patterns'")]
pub struct PatternCounts {
    pub sequential: u64,
    pub interleaved: u64,
    pub strided: u64,
    pub backward: u64,
    pub random: u64,
}

impl PatternCounts {
    /// Accesses of one pattern.
    pub fn of(&self, pattern: AccessPattern) -> u64 {
        match pattern {
            AccessPattern::Sequential => self.sequential,
            AccessPattern::Interleaved => self.interleaved,
            AccessPattern::Strided => self.strided,
            AccessPattern::Backward => self.backward,
            AccessPattern::Random => self.random,
        }
    }

    /// The most frequent pattern and its share, 0 to 1; `None` if there are less than two accesses.
    pub fn main(&self) -> Option<(AccessPattern, f64)> {
        let counts = AccessPattern::ALL.map(|pattern| (self.of(pattern), pattern));
        let total: u64 = counts.iter().map(|(count, _)| count).sum();
        let (count, pattern) = counts.into_iter().rev().max_by_key(|(count, _)| *count)?;
        (total > 0).then(|| (pattern, count as f64 / total as f64))
    }

    fn add(&mut self, pattern: AccessPattern) {
        *match pattern {
            AccessPattern::Sequential => &mut self.sequential,
            AccessPattern::Interleaved => &mut self.interleaved,
            AccessPattern::Strided => &mut self.strided,
            AccessPattern::Backward => &mut self.backward,
            AccessPattern::Random => &mut self.random,
        } += 1;
    }
}

/// What is known of the accesses of one open file so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Classifier {
    last: Option<Range<u64>>,
    last_step: i128,
    /// Last bytes of other streams, latest first.
    others: VecDeque<u64>,
}

impl Classifier {
    /// Takes in an access to these bytes and counts its pattern.
    pub(super) fn access(&mut self, bytes: Range<u64>, counts: &mut PatternCounts) {
        if let Some(last) = self.last.clone() {
            counts.add(self.classify(&last, &bytes));
        }
        self.last = Some(bytes);
    }

    /// The last access turned out to cover these bytes too.
    pub(super) fn extend(&mut self, bytes: &Range<u64>) {
        if let Some(last) = &mut self.last {
            last.end = last.end.max(bytes.end);
        }
    }

    fn classify(&mut self, last: &Range<u64>, bytes: &Range<u64>) -> AccessPattern {
        let step = i128::from(bytes.start) - i128::from(last.start);
        let steady = step != 0 && step == self.last_step;
        self.last_step = step;
        if goes_on(last_byte(last), bytes.start) {
            return AccessPattern::Sequential;
        }
        let continued = self.others.iter().position(|&byte| goes_on(byte, bytes.start));
        self.remember(last_byte(last), continued);
        match continued {
            Some(_) => AccessPattern::Interleaved,
            None if steady && step > 0 => AccessPattern::Strided,
            None if steady => AccessPattern::Backward,
            None => AccessPattern::Random,
        }
    }

    /// The stream of the last access steps back behind the one that goes on instead.
    fn remember(&mut self, byte: u64, continued: Option<usize>) {
        if let Some(index) = continued {
            self.others.remove(index);
        }
        self.others.push_front(byte);
        self.others.truncate(STREAMS_MAX - 1);
    }
}

fn last_byte(bytes: &Range<u64>) -> u64 {
    bytes.end.max(bytes.start + 1) - 1
}

fn goes_on(last_byte: u64, start: u64) -> bool {
    let (before, page) = (last_byte >> PAGE_SHIFT, start >> PAGE_SHIFT);
    page == before || page == before + 1
}
