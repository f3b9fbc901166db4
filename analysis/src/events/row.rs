//! A row of `rareplay.events/1`, and how an event becomes one.

use columns::Text;
use traces::event::{Event, EventKind, Extent, Rwbs};

use super::names::Names;

columns::record! {
    "rareplay.events/1";
    /// An event: what all events have, then the kernel's fields of the different kinds, null where a
    /// kind does not have one. docs/parquet.md describes every column.
    ///
    /// Numbers are signed, as SQL likes them, and keep the bits of the kernel's unsigned ones.
    #[derive(Clone, Debug, Default)]
    pub(super) struct Row {
        pub(super) time_ns: i64,
        pub(super) cpu: u32,
        pub(super) pid: u32,
        pub(super) comm: Text,
        pub(super) event: Text,
        pub(super) dev: Option<Text>,
        pub(super) inode: Option<u64>,
        pub(super) index: Option<i64>,
        pub(super) last_index: Option<i64>,
        pub(super) order: Option<i32>,
        pub(super) pfn: Option<i64>,
        pub(super) pos_bytes: Option<i64>,
        pub(super) count_bytes: Option<i64>,
        pub(super) disize_bytes: Option<i64>,
        pub(super) nr_to_read_pages: Option<i64>,
        pub(super) lookahead_size_pages: Option<i64>,
        pub(super) size_pages: Option<i64>,
        pub(super) async_size_pages: Option<i64>,
        pub(super) ra_pages: Option<i64>,
        pub(super) req_count_pages: Option<i64>,
        pub(super) mmap_miss: Option<u32>,
        pub(super) prev_pos_bytes: Option<i64>,
        pub(super) sector: Option<i64>,
        pub(super) nr_sectors: Option<i64>,
        pub(super) new_sector: Option<i64>,
        pub(super) rwbs: Option<Text>,
        pub(super) error: Option<i32>,
        pub(super) nr_rq: Option<u32>,
        pub(super) arg0: Option<i64>,
        pub(super) arg1: Option<i64>,
        pub(super) arg2: Option<i64>,
        pub(super) arg3: Option<i64>,
        pub(super) arg4: Option<i64>,
        pub(super) arg5: Option<i64>,
        pub(super) ret: Option<i64>,
        pub(super) child_pid: Option<u32>,
        pub(super) clone_flags: Option<i64>,
    }
}

impl Row {
    /// The row of an event.
    pub(super) fn new(event: &Event, comm: Text, names: &mut Names) -> Self {
        let mut row = Self {
            time_ns: event.time.0.cast_signed(),
            cpu: event.cpu,
            pid: event.pid,
            comm,
            event: Text::fixed(event.kind.name()),
            ..Self::default()
        };
        if let Some(file) = event.kind.file() {
            row.dev = Some(names.device(file.device));
            row.inode = Some(file.inode);
        }
        row.set_page_cache(&event.kind);
        row.set_readahead(&event.kind);
        row.set_block(&event.kind, names);
        row.set_task(&event.kind);
        row
    }

    fn set_page_cache(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::BufferedRead { size_bytes, pos, count, .. } => {
                self.disize_bytes = signed(size_bytes);
                self.pos_bytes = signed(pos.0);
                self.count_bytes = signed(count);
            }
            EventKind::GetPages { index, last, .. } | EventKind::MapPages { index, last, .. } => {
                self.index = signed(index.0);
                self.last_index = signed(last.0);
            }
            EventKind::Fault { index, .. } => self.index = signed(index.0),
            EventKind::AddToPageCache { index, order, pfn, .. } => {
                self.index = signed(index.0);
                self.order = Some(i32::from(order.0));
                self.pfn = signed(pfn);
            }
            EventKind::DeleteFromPageCache { index, order, .. } => {
                self.index = signed(index.0);
                self.order = Some(i32::from(order.0));
            }
            _ => {}
        }
    }

    fn set_readahead(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::RaUnbounded { index, nr_to_read, lookahead_size, .. } => {
                self.index = signed(index.0);
                self.nr_to_read_pages = signed(nr_to_read);
                self.lookahead_size_pages = signed(lookahead_size);
            }
            EventKind::RaOrder { index, order, size, async_size, ra_pages, .. } => {
                self.index = signed(index.0);
                self.order = Some(order.cast_signed());
                self.size_pages = signed(size);
                self.async_size_pages = signed(async_size);
                self.ra_pages = signed(ra_pages);
            }
            EventKind::SyncRa { index, req_count, ra, .. }
            | EventKind::AsyncRa { index, req_count, ra, .. } => {
                self.index = signed(index.0);
                self.req_count_pages = signed(req_count);
                self.order = Some(ra.order.cast_signed());
                self.size_pages = signed(ra.size);
                self.async_size_pages = signed(ra.async_size);
                self.ra_pages = signed(ra.ra_pages);
                self.mmap_miss = Some(ra.mmap_miss);
                self.prev_pos_bytes = Some(ra.prev_pos);
            }
            _ => {}
        }
    }

    fn set_block(&mut self, kind: &EventKind, names: &mut Names) {
        match *kind {
            EventKind::BioQueue { extent, rwbs }
            | EventKind::BioMerge { extent, rwbs }
            | EventKind::RqIssue { extent, rwbs } => self.set_extent(extent, rwbs, names),
            EventKind::BioSplit { extent, rest, rwbs } => {
                self.set_extent(extent, rwbs, names);
                self.new_sector = signed(rest.0);
            }
            EventKind::RqComplete { extent, rwbs, error } => {
                self.set_extent(extent, rwbs, names);
                self.error = Some(error);
            }
            EventKind::Unplug { requests } => self.nr_rq = Some(requests),
            _ => {}
        }
    }

    fn set_extent(&mut self, extent: Extent, rwbs: Rwbs, names: &mut Names) {
        self.dev = Some(names.device(extent.device));
        self.sector = signed(extent.sector.0);
        self.nr_sectors = signed(extent.sectors);
        self.rwbs = Some(Names::rwbs(rwbs));
    }

    fn set_task(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::SyscallEnter { args, .. } => {
                let [arg0, arg1, arg2, arg3, arg4, arg5] = args.map(signed);
                (self.arg0, self.arg1, self.arg2) = (arg0, arg1, arg2);
                (self.arg3, self.arg4, self.arg5) = (arg3, arg4, arg5);
            }
            EventKind::SyscallExit { ret, .. } => self.ret = Some(ret),
            EventKind::NewTask { pid, clone_flags } => {
                self.child_pid = Some(pid);
                self.clone_flags = signed(clone_flags);
            }
            _ => {}
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the columns it is for can be null")]
fn signed(number: u64) -> Option<i64> {
    Some(number.cast_signed())
}
