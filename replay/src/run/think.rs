//! How long programs think between accesses.

use traces::access::{AccessKind, AnchorKind, Source};
use traces::units::{ByteOffset, PageIndex};

/// What a thread did since its last access began.
#[derive(Clone, Copy, Default)]
struct Thread {
    read_end: ByteOffset,
    last_batch: Option<PageIndex>,
}

/// Per access, the time its program spent before it, outside the kernel.
///
/// A capture shows the time from a thread's last access to its next one. Where the last it shows of
/// the access is a batch of folios that is ready, not its return, the time also holds the copying of
/// the batch. A replay charges copying itself, so what copying these pages costs is taken out. Empty
/// where nothing thinks.
pub(super) fn program_ns(source: &Source, copy_page_ns: u64) -> Vec<u64> {
    if source.accesses.iter().all(|access| access.think_ns == 0) {
        return Vec::new();
    }
    let mut threads = vec![Thread::default(); source.threads.len()];
    let mut anchors = source.anchors.iter().peekable();
    let mut think_ns = Vec::with_capacity(source.accesses.len());
    for access in &source.accesses {
        while let Some(anchor) = anchors.next_if(|anchor| anchor.seq < access.seq) {
            let last_batch = &mut threads[anchor.thread as usize].last_batch;
            match anchor.kind {
                AnchorKind::Batch => *last_batch = Some(anchor.page),
                // By then it is copied.
                AnchorKind::Return => *last_batch = None,
                AnchorKind::Sync | AnchorKind::Async => {}
            }
        }
        let thread = &mut threads[access.thread as usize];
        let copied =
            thread.last_batch.map_or(0, |page| thread.read_end.page_up().0.saturating_sub(page.0));
        think_ns.push(access.think_ns.saturating_sub(copied * copy_page_ns));
        let size_bytes = source.files[source.opens[access.open as usize].file as usize].size_bytes;
        let read_end = match access.kind {
            AccessKind::Read { pos, count } => {
                ByteOffset(pos.0.saturating_add(count).min(size_bytes))
            }
            _ => ByteOffset(0),
        };
        *thread = Thread { read_end, last_batch: None };
    }
    think_ns
}
