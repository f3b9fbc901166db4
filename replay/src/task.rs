//! Accesses that a policy's own code carries out, step by step.
//!
//! A policy may bring the read and mmap path of its kernel. Each access is then a task of that code:
//! it stands still where it waits for a folio and where the driver wants to hold it, and the driver
//! says when it goes on.

use traces::access::Mapping;
use traces::units::{ByteOffset, PageIndex};

use crate::page_cache::Folio;
use crate::readahead::Trigger;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAccess {
    /// Reads `count` bytes at `pos`.
    Read {
        /// First byte.
        pos: ByteOffset,
        /// Bytes.
        count: u64,
    },
    /// Touches a page of a mapping.
    Touch {
        /// The page.
        page: PageIndex,
        /// Advice on the mapping.
        mapping: Mapping,
    },
    /// Reads pages ahead because the program asks for it.
    WillNeed {
        /// First page.
        page: PageIndex,
        /// Pages.
        pages: u64,
    },
}

/// Where a task is held, besides where it has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nowhere.
    Never,
    /// When a batch has been copied that is not the read's last.
    AfterCopies,
    /// After each trigger, and when a batch is ready to be copied; batches end before this page.
    AtEvents {
        /// The page.
        until: PageIndex,
    },
    /// Before a folio is inserted at this page or later.
    BeforeInsertion {
        /// The page.
        until: PageIndex,
    },
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It waits for a folio.
    Waits(Folio),
    /// It has triggered readahead.
    Triggered {
        /// How.
        trigger: Trigger,
        /// The page.
        index: PageIndex,
    },
    /// A batch is ready to be copied.
    Batch {
        /// The page after its last folio.
        end: PageIndex,
    },
    /// A batch has been copied.
    Copied,
    /// It is about to insert a folio.
    Held {
        /// The folio's first page.
        index: PageIndex,
    },
    /// It is over.
    Returned,
}

/// What a step of a task did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The byte after the last one copied, if any was.
    pub copied_to: Option<ByteOffset>,
    /// Folios that were copied from.
    pub folios: u32,
    /// Pages that were mapped, as (first, pages).
    pub mapped: Vec<(PageIndex, u64)>,
    /// Where it stands now.
    pub reached: Reached,
}

impl Progress {
    /// Nothing, and it is over.
    pub const RETURNED: Self =
        Self { copied_to: None, folios: 0, mapped: Vec::new(), reached: Reached::Returned };
}
