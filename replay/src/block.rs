//! From folios to requests: bios, splits by the limits of the queue, merges while plugged.
//!
//! Follows `fs/iomap/buffered-io.c` and `fs/mpage.c` (one bio per contiguous
//! run on the device, at most 256 vectors, physically adjacent folios sharing
//! one), `bio_split_rw` of `block/blk-merge.c` (a bio is cut at `max_sectors`,
//! at `max_segments` and where a chunk of `chunk_sectors` ends) and the plug of
//! `block/blk-mq.c` (a bio merges into the last plugged request, behind it or
//! before it; that a request of 128 KiB or the 32nd one flushes the plug never
//! parts the two). Each `->readahead()` call is plugged on its own. What waits in
//! a scheduler merges in the [`queue`](crate::device::queue).

use std::num::NonZeroU64;

use traces::access::FileExtent;
use traces::settings::Settings;
use traces::units::{PAGE_SIZE, PageIndex, SECTOR_SHIFT, SECTORS_PER_PAGE, Sector};

use crate::log::Submission;
use crate::page_cache::Folio;

/// Most vectors of a bio (`BIO_MAX_VECS`).
const BIO_VECS_MAX: usize = 256;

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
    /// Physical segments.
    pub segments: u64,
}

impl Request {
    /// The two as one request, if they lie side by side within the limits, whichever comes first.
    /// It keeps the file and the page of this one.
    #[must_use]
    pub fn merged(&self, other: &Self, limits: &QueueLimits) -> Option<Self> {
        let sector = if self.sector + self.sectors == other.sector {
            self.sector
        } else if other.sector + other.sectors == self.sector {
            other.sector
        } else {
            return None;
        };
        let sectors = self.sectors + other.sectors;
        let segments = self.segments + other.segments;
        let fits = sectors <= limits.sectors_from(sector) && segments <= limits.segments_max;
        fits.then_some(Self { sector, sectors, segments, ..*self })
    }
}

/// What the queue allows in one request. Requests are cut on whole pages, as the kernel keeps to
/// physical blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// `max_sectors`.
    pub sectors_max: u64,
    /// `chunk_sectors`: no request crosses a multiple of it.
    pub chunk_sectors: Option<NonZeroU64>,
    /// `max_segments`.
    pub segments_max: u64,
    /// `max_segment_size`.
    pub segment_bytes_max: u64,
}

impl QueueLimits {
    /// The limits that settings describe.
    pub fn new(settings: &Settings) -> Self {
        let whole_pages = |sectors: u64| (sectors & !(SECTORS_PER_PAGE - 1)).max(SECTORS_PER_PAGE);
        let chunk_sectors = settings.chunk_sectors.value.map(|chunk| whole_pages(chunk.get()));
        Self {
            sectors_max: whole_pages(settings.max_sectors_kb.value << 10 >> SECTOR_SHIFT),
            chunk_sectors: chunk_sectors.and_then(NonZeroU64::new),
            segments_max: settings.segments_max.value.max(1),
            segment_bytes_max: settings.segment_bytes_max.value.max(PAGE_SIZE),
        }
    }

    /// Most sectors of a request that begins at `sector`.
    pub fn sectors_from(&self, sector: Sector) -> u64 {
        let left = self.chunk_sectors.map(|chunk| chunk.get() - sector.0 % chunk.get());
        left.map_or(self.sectors_max, |left| left.min(self.sectors_max))
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

/// A run of memory in a bio.
#[derive(Clone, Copy)]
struct Vector {
    page: PageIndex,
    pages: u64,
}

/// Builds requests, one submission at a time.
pub struct BlockLayer {
    limits: QueueLimits,
    vectors: Vec<Vector>,
    /// Sector of the bio's first page.
    bio_sector: Sector,
    /// Where the requests of the submission begin.
    first_plugged: usize,
}

impl BlockLayer {
    /// A block layer over a queue with these limits.
    pub fn new(limits: QueueLimits) -> Self {
        Self { limits, vectors: Vec::new(), bio_sector: Sector(0), first_plugged: 0 }
    }

    /// Appends the requests of one submission to `out`.
    ///
    /// `adjacent` says whether a folio lies in memory right after the one before it.
    pub fn submit(
        &mut self,
        submission: Submission,
        folios: &[Folio],
        file_pages: u64,
        extents: &ExtentMap,
        adjacent: impl Fn(Folio, Folio) -> bool,
        out: &mut Vec<Request>,
    ) {
        self.first_plugged = out.len();
        let mut before: Option<Folio> = None;
        for &folio in folios {
            let touches = before.is_some_and(|before| adjacent(before, folio));
            self.add_folio(submission.file, folio, touches, file_pages, extents, out);
            before = Some(folio);
        }
        self.finish_bio(submission.file, out);
    }

    /// Puts a folio into the bio, or into a new one where the device or the bio ends.
    fn add_folio(
        &mut self,
        file: u32,
        folio: Folio,
        adjacent: bool,
        file_pages: u64,
        extents: &ExtentMap,
        out: &mut Vec<Request>,
    ) {
        // Beyond the end of the file a folio is zeroed, not read.
        let end = PageIndex(folio.end().0.min(file_pages));
        let mut page = folio.index;
        while page < end {
            let (sector, contiguous) = extents.locate(page);
            let pages = contiguous.min(end - page);
            let follows = self
                .vectors
                .last()
                .is_some_and(|last| last.page + last.pages == page && self.bio_end() == sector);
            if !follows {
                self.finish_bio(file, out);
            }
            match self.vectors.last_mut() {
                Some(last) if adjacent && page == folio.index => last.pages += pages,
                _ => {
                    if self.vectors.len() == BIO_VECS_MAX {
                        self.finish_bio(file, out);
                    }
                    if self.vectors.is_empty() {
                        self.bio_sector = sector;
                    }
                    self.vectors.push(Vector { page, pages });
                }
            }
            page += pages;
        }
    }

    fn bio_end(&self) -> Sector {
        match (self.vectors.first(), self.vectors.last()) {
            (Some(first), Some(last)) => {
                self.bio_sector + (last.page + last.pages - first.page) * SECTORS_PER_PAGE
            }
            _ => self.bio_sector,
        }
    }

    /// Submits the bio: cuts it by the limits and adds each part to the plug.
    fn finish_bio(&mut self, file: u32, out: &mut Vec<Request>) {
        let Some(first) = self.vectors.first() else { return };
        let limits = self.limits;
        let segment_sectors_max = limits.segment_bytes_max >> SECTOR_SHIFT;
        let part = |sector: Sector, sectors: u64, segments: u64| {
            let page = first.page + (sector - self.bio_sector) / SECTORS_PER_PAGE;
            Request { file, page, sector, sectors, segments }
        };
        let mut sector = self.bio_sector;
        let mut sectors_max = limits.sectors_from(sector);
        let (mut sectors, mut segments) = (0, 0);
        for vector in &self.vectors {
            let mut left = vector.pages * SECTORS_PER_PAGE;
            // Most vectors fit whole.
            let whole = left.div_ceil(segment_sectors_max);
            if left <= sectors_max - sectors && whole <= limits.segments_max - segments {
                sectors += left;
                segments += whole;
                continue;
            }
            while left > 0 {
                if sectors == sectors_max || segments == limits.segments_max {
                    self.plug(part(sector, sectors, segments), out);
                    sector += sectors;
                    sectors_max = limits.sectors_from(sector);
                    (sectors, segments) = (0, 0);
                }
                let take = left.min(segment_sectors_max).min(sectors_max - sectors);
                sectors += take;
                segments += 1;
                left -= take;
            }
        }
        self.plug(part(sector, sectors, segments), out);
        self.vectors.clear();
    }

    /// Adds part of a bio to the plug: into the last request if it fits, else as a new one.
    fn plug(&self, part: Request, out: &mut Vec<Request>) {
        if let [.., last] = &mut out[self.first_plugged..]
            && let Some(merged) = last.merged(&part, &self.limits)
        {
            *last = merged;
            return;
        }
        out.push(part);
    }
}
