//! What the detailed charts of a source show, summed up before anything is drawn.
//!
//! Every policy is laid over the same axes: the same file, the same parts of it, the same slices of
//! time. A picture is a few thousand numbers at most, whatever the size of the source.

mod map;
mod ramp;
mod raster;
mod waits;

use replay::run::History;
use serde::Serialize;
use traces::access::{AccessKind, Source};
use traces::units::PAGE_SIZE;

pub use map::{FolioMap, PolicyMap, Stretch};
pub use ramp::{PolicyRamp, Ramp, RampWindow};
pub use raster::{Raster, RasterCell};
pub use waits::WaitMap;

/// The pictures of a source; what is per policy is in the order of the results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pictures {
    /// The file that the map and the rasters show.
    pub file: FileShown,
    /// Which folios hold it.
    pub map: FolioMap,
    /// The whole file over the whole run.
    pub raster: Raster,
    /// The stretch of the map while it is read.
    pub raster_stretch: Raster,
    /// The first windows of an open file.
    pub ramp: Ramp,
    /// Waits in the course of the run.
    pub waits: WaitMap,
}

/// The file of a source that is accessed most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileShown {
    /// `DEVICE/0xINODE`.
    pub file: String,
    /// Its pages.
    pub pages: u64,
    /// Accesses to it.
    pub accesses: u64,
    #[serde(skip)]
    index: u32,
}

impl FileShown {
    fn of(source: &Source) -> Self {
        let mut accesses = vec![0; source.files.len()];
        for access in source.accesses.iter().filter(|access| is_access(&access.kind)) {
            accesses[source.opens[access.open as usize].file as usize] += 1;
        }
        let most = (0..accesses.len()).max_by_key(|file| (accesses[*file], usize::MAX - file));
        let index = most.unwrap_or(0);
        let file = source.files.get(index);
        Self {
            file: file.map(|file| file.id.to_string()).unwrap_or_default(),
            pages: file.map_or(0, |file| file.size_bytes.div_ceil(PAGE_SIZE)),
            accesses: accesses.get(index).copied().unwrap_or(0),
            index: index as u32,
        }
    }
}

/// Whether the program asked for data, rather than giving advice or losing a page.
fn is_access(kind: &AccessKind) -> bool {
    matches!(
        kind,
        AccessKind::Read { .. } | AccessKind::Touch { .. } | AccessKind::Fault { retry: false, .. }
    )
}

impl Pictures {
    /// From what each policy did.
    pub fn new(source: &Source, histories: &[History]) -> Self {
        let file = FileShown::of(source);
        let map = FolioMap::new(&file, histories);
        Self {
            raster: Raster::whole(source, &file, histories),
            raster_stretch: Raster::of_stretch(source, &file, &map.stretch, histories),
            ramp: Ramp::new(source, histories),
            waits: WaitMap::new(histories),
            map,
            file,
        }
    }
}
