//! From pages to requests: extents, bios, merges while plugged, device limits.
//!
//! Each `->readahead()` call is plugged on its own: its bios merge with each
//! other as far as the limits of the queue allow, and go out when it returns.

use traces::access::FileExtent;
use traces::settings::Settings;
use traces::units::{PAGE_SHIFT, PageIndex, SECTOR_SHIFT, SECTORS_PER_PAGE, Sector};

use crate::log::Submission;

/// A read request as the device gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Index of the file.
    pub file: u32,
    /// First page of the file it reads.
    pub page: PageIndex,
    /// First sector on the device.
    pub sector: Sector,
    /// Sectors.
    pub sectors: u64,
}

/// What the queue allows in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// `max_sectors`.
    pub sectors_max: u64,
}

impl QueueLimits {
    /// The limits that settings describe.
    pub fn new(settings: &Settings) -> Self {
        Self { sectors_max: (settings.max_sectors_kb.value << 10 >> SECTOR_SHIFT).max(1) }
    }
}

/// Where a file lies on the device.
#[derive(Clone, Debug)]
pub struct ExtentMap {
    extents: Vec<FileExtent>,
}

impl ExtentMap {
    /// From a file's extents, sorted by page. Pages between and beyond them, which no capture has
    /// seen, are taken to go on from the extent before.
    pub fn new(extents: Vec<FileExtent>) -> Self {
        Self { extents }
    }

    /// The sector of `page` and how many pages from there are contiguous.
    fn locate(&self, page: PageIndex) -> (Sector, u64) {
        let next = self.extents.partition_point(|extent| extent.page <= page);
        let until = self.extents.get(next).map_or(u64::MAX, |extent| extent.page - page);
        let Some(extent) = next.checked_sub(1).map(|at| self.extents[at]) else {
            let first = self.extents.first();
            let sector = first.map_or(0, |first| {
                first.sector.0.saturating_sub((first.page - page) * SECTORS_PER_PAGE)
            });
            return (Sector(sector), until);
        };
        (extent.sector + (page - extent.page) * SECTORS_PER_PAGE, until)
    }
}

/// The requests of one submission, appended to `out`.
pub fn requests(
    submission: Submission,
    file_bytes: u64,
    extents: &ExtentMap,
    limits: QueueLimits,
    out: &mut Vec<Request>,
) {
    let file_pages = file_bytes.div_ceil(1 << PAGE_SHIFT);
    let mut page = submission.index;
    // Beyond the end of the file a folio is zeroed, not read.
    let end = PageIndex((submission.index + submission.pages).0.min(file_pages));
    while page < end {
        let (mut sector, contiguous) = extents.locate(page);
        let mut sectors = contiguous.min(end - page) * SECTORS_PER_PAGE;
        while sectors > 0 {
            let take = sectors.min(limits.sectors_max);
            out.push(Request { file: submission.file, page, sector, sectors: take });
            page += take / SECTORS_PER_PAGE;
            sector += take;
            sectors -= take;
        }
    }
}
