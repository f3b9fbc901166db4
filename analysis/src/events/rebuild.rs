//! How a row becomes an event again.
//!
//! Errors are the name of the column that has no value, or none that the event can have.

use traces::event::{Device, Event, EventKind, Extent, FileId, RecordedRa, Rwbs, Syscall};
use traces::units::{ByteOffset, Order, PageIndex, Sector, Time};

use super::names::Names;
use super::row::Row;

type Result<T> = std::result::Result<T, &'static str>;

impl Row {
    /// What the event says.
    pub(super) fn kind(&self, names: &mut Names) -> Result<EventKind> {
        self.file_kind(names)
            .or_else(|| self.block_kind(names))
            .or_else(|| self.task_kind())
            .unwrap_or(Err("event"))
    }

    fn file_kind(&self, names: &mut Names) -> Option<Result<EventKind>> {
        type Read = fn(&Row, FileId) -> Result<EventKind>;
        let read: Read = match self.event.as_str() {
            "xfs_file_buffered_read" => Self::buffered_read,
            "mm_filemap_get_pages" => Self::get_pages,
            "mm_filemap_fault" => |row, file| Ok(EventKind::Fault { file, index: row.page()? }),
            "mm_filemap_map_pages" => Self::map_pages,
            "mm_filemap_add_to_page_cache" => Self::add_to_page_cache,
            "mm_filemap_delete_from_page_cache" => Self::delete_from_page_cache,
            "page_cache_ra_unbounded" => Self::ra_unbounded,
            "page_cache_ra_order" => Self::ra_order,
            "page_cache_sync_ra" => Self::sync_ra,
            "page_cache_async_ra" => Self::async_ra,
            _ => return None,
        };
        Some(self.file(names).and_then(|file| read(self, file)))
    }

    fn buffered_read(&self, file: FileId) -> Result<EventKind> {
        Ok(EventKind::BufferedRead {
            file,
            size_bytes: unsigned(self.disize_bytes, "disize_bytes")?,
            pos: ByteOffset(unsigned(self.pos_bytes, "pos_bytes")?),
            count: unsigned(self.count_bytes, "count_bytes")?,
        })
    }

    fn get_pages(&self, file: FileId) -> Result<EventKind> {
        Ok(EventKind::GetPages { file, index: self.page()?, last: self.last_page()? })
    }

    fn map_pages(&self, file: FileId) -> Result<EventKind> {
        Ok(EventKind::MapPages { file, index: self.page()?, last: self.last_page()? })
    }

    fn add_to_page_cache(&self, file: FileId) -> Result<EventKind> {
        let pfn = unsigned(self.pfn, "pfn")?;
        Ok(EventKind::AddToPageCache { file, index: self.page()?, order: self.folio_order()?, pfn })
    }

    fn delete_from_page_cache(&self, file: FileId) -> Result<EventKind> {
        let (index, order) = (self.page()?, self.folio_order()?);
        Ok(EventKind::DeleteFromPageCache { file, index, order })
    }

    fn ra_unbounded(&self, file: FileId) -> Result<EventKind> {
        Ok(EventKind::RaUnbounded {
            file,
            index: self.page()?,
            nr_to_read: unsigned(self.nr_to_read_pages, "nr_to_read_pages")?,
            lookahead_size: unsigned(self.lookahead_size_pages, "lookahead_size_pages")?,
        })
    }

    fn ra_order(&self, file: FileId) -> Result<EventKind> {
        Ok(EventKind::RaOrder {
            file,
            index: self.page()?,
            order: self.order.ok_or("order")?.cast_unsigned(),
            size: unsigned(self.size_pages, "size_pages")?,
            async_size: unsigned(self.async_size_pages, "async_size_pages")?,
            ra_pages: unsigned(self.ra_pages, "ra_pages")?,
        })
    }

    fn sync_ra(&self, file: FileId) -> Result<EventKind> {
        let (req_count, ra) = (self.req_count()?, self.ra()?);
        Ok(EventKind::SyncRa { file, index: self.page()?, req_count, ra })
    }

    fn async_ra(&self, file: FileId) -> Result<EventKind> {
        let (req_count, ra) = (self.req_count()?, self.ra()?);
        Ok(EventKind::AsyncRa { file, index: self.page()?, req_count, ra })
    }

    fn block_kind(&self, names: &mut Names) -> Option<Result<EventKind>> {
        type Read = fn(&Row, Extent, Rwbs) -> Result<EventKind>;
        let read: Read = match self.event.as_str() {
            "block_bio_queue" => |_, extent, rwbs| Ok(EventKind::BioQueue { extent, rwbs }),
            "block_bio_merge" => |_, extent, rwbs| Ok(EventKind::BioMerge { extent, rwbs }),
            "block_rq_issue" => |_, extent, rwbs| Ok(EventKind::RqIssue { extent, rwbs }),
            "block_split" => |row, extent, rwbs| {
                let rest = Sector(unsigned(row.new_sector, "new_sector")?);
                Ok(EventKind::BioSplit { extent, rest, rwbs })
            },
            "block_rq_complete" => |row, extent, rwbs| {
                Ok(EventKind::RqComplete { extent, rwbs, error: row.error.ok_or("error")? })
            },
            "block_unplug" => {
                let requests = self.nr_rq.ok_or("nr_rq");
                return Some(requests.map(|requests| EventKind::Unplug { requests }));
            }
            _ => return None,
        };
        Some(self.extent(names).and_then(|(extent, rwbs)| read(self, extent, rwbs)))
    }

    fn task_kind(&self) -> Option<Result<EventKind>> {
        let name = self.event.as_str();
        if name == "task_newtask" {
            return Some(self.new_task());
        }
        let (call, enter, _) =
            Syscall::ALL.into_iter().find(|(_, enter, exit)| name == *enter || name == *exit)?;
        if name == enter {
            return Some(self.args().map(|args| EventKind::SyscallEnter { call, args }));
        }
        Some(self.ret.ok_or("ret").map(|ret| EventKind::SyscallExit { call, ret }))
    }

    fn new_task(&self) -> Result<EventKind> {
        Ok(EventKind::NewTask {
            pid: self.child_pid.ok_or("child_pid")?,
            clone_flags: unsigned(self.clone_flags, "clone_flags")?,
        })
    }

    /// When and where, without the names.
    pub(super) fn event(&self, names: &mut Names) -> Result<Event> {
        let kind = self.kind(names)?;
        let time = Time(self.time_ns.cast_unsigned());
        Ok(Event { time, cpu: self.cpu, pid: self.pid, comm: names.comm(&self.comm), kind })
    }

    fn file(&self, names: &mut Names) -> Result<FileId> {
        Ok(FileId { device: self.device(names)?, inode: self.inode.ok_or("inode")? })
    }

    fn device(&self, names: &mut Names) -> Result<Device> {
        self.dev.as_ref().and_then(|dev| names.find_device(dev)).ok_or("dev")
    }

    fn page(&self) -> Result<PageIndex> {
        unsigned(self.index, "index").map(PageIndex)
    }

    fn last_page(&self) -> Result<PageIndex> {
        unsigned(self.last_index, "last_index").map(PageIndex)
    }

    fn folio_order(&self) -> Result<Order> {
        match self.order.map(usize::try_from) {
            Some(Ok(order)) if order < Order::COUNT => Ok(Order(order as u8)),
            _ => Err("order"),
        }
    }

    fn req_count(&self) -> Result<u64> {
        unsigned(self.req_count_pages, "req_count_pages")
    }

    fn ra(&self) -> Result<RecordedRa> {
        Ok(RecordedRa {
            order: self.order.ok_or("order")?.cast_unsigned(),
            size: unsigned(self.size_pages, "size_pages")?,
            async_size: unsigned(self.async_size_pages, "async_size_pages")?,
            ra_pages: unsigned(self.ra_pages, "ra_pages")?,
            mmap_miss: self.mmap_miss.ok_or("mmap_miss")?,
            prev_pos: self.prev_pos_bytes.ok_or("prev_pos_bytes")?,
        })
    }

    fn extent(&self, names: &mut Names) -> Result<(Extent, Rwbs)> {
        let extent = Extent {
            device: self.device(names)?,
            sector: Sector(unsigned(self.sector, "sector")?),
            sectors: unsigned(self.nr_sectors, "nr_sectors")?,
        };
        let rwbs = self.rwbs.as_ref().and_then(Names::find_rwbs).ok_or("rwbs")?;
        Ok((extent, rwbs))
    }

    fn args(&self) -> Result<[u64; 6]> {
        Ok([
            unsigned(self.arg0, "arg0")?,
            unsigned(self.arg1, "arg1")?,
            unsigned(self.arg2, "arg2")?,
            unsigned(self.arg3, "arg3")?,
            unsigned(self.arg4, "arg4")?,
            unsigned(self.arg5, "arg5")?,
        ])
    }
}

fn unsigned(number: Option<i64>, column: &'static str) -> Result<u64> {
    number.map(i64::cast_unsigned).ok_or(column)
}
