//! From folios to requests: what the limits of a queue make of a submission.

use std::num::NonZeroU64;

use proptest::prelude::*;
use replay::block::{BlockLayer, ExtentMap, QueueLimits, Request};
use replay::log::Submission;
use replay::page_cache::Folio;
use traces::access::FileExtent;
use traces::units::{Order, PageIndex, SECTORS_PER_PAGE, Sector};

const NO_LIMITS: QueueLimits = QueueLimits {
    sectors_max: 1 << 20,
    chunk_sectors: None,
    segments_max: 1 << 20,
    segment_bytes_max: 1 << 30,
};

fn folios(orders: &[u8]) -> Vec<Folio> {
    let mut index = PageIndex(0);
    let folio = |order: &u8| {
        let folio = Folio { index, order: Order(*order) };
        index = folio.end();
        folio
    };
    orders.iter().map(folio).collect()
}

/// The requests of one submission, as (first page, first sector, pages).
fn requests(
    limits: QueueLimits,
    orders: &[u8],
    extents: &[FileExtent],
    touching: bool,
) -> Vec<(u64, u64, u64)> {
    let mut out = Vec::new();
    let folios = folios(orders);
    let pages = folios.last().map_or(0, |folio| folio.end().0);
    let submission =
        Submission { file: 0, index: PageIndex(0), pages, folios: folios.len() as u32 };
    let map = ExtentMap::new(extents.to_vec());
    let mut layer = BlockLayer::new(limits);
    layer.submit(submission, &folios, pages, &map, |_, _| touching, &mut out);
    let shape =
        |request: &Request| (request.page.0, request.sector.0, request.sectors / SECTORS_PER_PAGE);
    out.iter().map(shape).collect()
}

fn extent(page: u64, pages: u64, sector: u64) -> FileExtent {
    FileExtent { page: PageIndex(page), pages, sector: Sector(sector) }
}

/// A bio has 256 vectors at most; folios that touch in memory share one.
#[test]
fn a_bio_holds_256_vectors() {
    let pages = vec![0; 300];
    let none_merge = QueueLimits { segments_max: 256, ..NO_LIMITS };
    let scattered = requests(none_merge, &pages, &[extent(0, 300, 0)], false);
    assert_eq!(scattered, [(0, 0, 256), (256, 2048, 44)]);
    let touching = requests(none_merge, &pages, &[extent(0, 300, 0)], true);
    assert_eq!(touching, [(0, 0, 300)]);
}

#[test]
fn requests_are_cut_by_each_limit() {
    let map = [extent(0, 64, 1024)];
    let limits = QueueLimits { sectors_max: 128, ..NO_LIMITS };
    assert_eq!(requests(limits, &[5], &map, false), [(0, 1024, 16), (16, 1152, 16)]);
    let limits = QueueLimits { segments_max: 3, ..NO_LIMITS };
    assert_eq!(requests(limits, &[0; 4], &map, false), [(0, 1024, 3), (3, 1048, 1)]);
    let limits = QueueLimits { segments_max: 3, segment_bytes_max: 4096, ..NO_LIMITS };
    assert_eq!(requests(limits, &[2], &map, false), [(0, 1024, 3), (3, 1048, 1)]);
}

/// A request ends where a chunk ends, wherever it begins, and does not merge across it.
#[test]
fn no_request_crosses_a_chunk() {
    let limits = QueueLimits { chunk_sectors: NonZeroU64::new(256), ..NO_LIMITS };
    let cut = requests(limits, &[6], &[extent(0, 64, 216)], false);
    assert_eq!(cut, [(0, 216, 5), (5, 256, 32), (37, 512, 27)]);
    let odd = QueueLimits { chunk_sectors: NonZeroU64::new(24), ..NO_LIMITS };
    let cut = requests(odd, &[3], &[extent(0, 8, 8)], false);
    assert_eq!(cut, [(0, 8, 2), (2, 24, 3), (5, 48, 3)]);
    let in_two_bios = requests(limits, &[5, 5], &[extent(0, 32, 0), extent(32, 32, 256)], false);
    assert_eq!(in_two_bios, [(0, 0, 32), (32, 256, 32)]);
}

/// The second extent lies right before the first: its bio goes in front of the plugged request.
#[test]
fn a_plugged_request_grows_at_either_end() {
    let before = [extent(0, 4, 32), extent(4, 4, 0)];
    assert_eq!(requests(NO_LIMITS, &[3], &before, false), [(0, 0, 8)]);
    let apart = [extent(0, 4, 40), extent(4, 4, 0)];
    assert_eq!(requests(NO_LIMITS, &[3], &apart, false), [(0, 40, 4), (4, 0, 4)]);
    let limits = QueueLimits { sectors_max: 56, ..NO_LIMITS };
    assert_eq!(requests(limits, &[3], &before, false), [(0, 32, 4), (4, 0, 4)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every page is read once, from where it lies, within the limits.
    #[test]
    fn bytes_in_are_bytes_out(
        orders in prop::collection::vec(0..7_u8, 1..80),
        gaps in prop::collection::vec((1..200_u64, 0..5_u64), 1..20),
        sectors_max in 1..64_u64,
        chunk in prop::option::of(1..64_u64),
        segments_max in 1..40_u64,
        segment_pages in 1..32_u64,
        touching in any::<bool>(),
    ) {
        let limits = QueueLimits {
            sectors_max: sectors_max * SECTORS_PER_PAGE,
            chunk_sectors: chunk.and_then(|chunk| NonZeroU64::new(chunk * SECTORS_PER_PAGE)),
            segments_max,
            segment_bytes_max: segment_pages << 12,
        };
        let (mut page, mut sector) = (0, 4096);
        let mut extents = Vec::new();
        for (pages, gap) in gaps {
            extents.push(extent(page, pages, sector));
            page += pages;
            sector += (pages + gap) * SECTORS_PER_PAGE;
        }
        let total = folios(&orders).last().map_or(0, |folio| folio.end().0);
        let requests = requests(limits, &orders, &extents, touching);
        let mut next = 0;
        for (page, sector, pages) in requests {
            prop_assert_eq!(page, next);
            let at = extents.partition_point(|extent| extent.page.0 <= page) - 1;
            let place = extents[at].sector + (page - extents[at].page.0) * SECTORS_PER_PAGE;
            prop_assert_eq!(sector, place.0);
            let last = at + 1 == extents.len();
            prop_assert!(last || page + pages <= extents[at + 1].page.0 || extents[at + 1].sector == extents[at].sector + extents[at].pages * SECTORS_PER_PAGE);
            prop_assert!(pages <= sectors_max);
            if let Some(chunk) = chunk {
                let (first, end) = (sector / SECTORS_PER_PAGE, sector / SECTORS_PER_PAGE + pages - 1);
                prop_assert_eq!(first / chunk, end / chunk);
            }
            next += pages;
        }
        prop_assert_eq!(next, total);
    }
}
