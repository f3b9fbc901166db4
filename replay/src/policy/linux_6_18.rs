//! 6.16 to 7.1: the window code of [`mainline`](super::mainline) over the hole searches and the
//! fault-around of 6.12.

use std::sync::Arc;

use super::mainline::{Mainline, RULES_7_3};
use super::{Entry, FaultAroundHits, Make, Rules};
use crate::xarray::NoHole;

pub(super) const ENTRY_6_16: Entry = Entry {
    name: "linux-6.16",
    summary: "6.16 and 6.17: order kept in the readahead state, async windows end on a boundary",
    follows: "18ebe55a9236, 38b0ece6d763 (both 6.16)",
    checked: "not captured itself; shares its window code with linux-6.18",
    make: Make::Generation(|| Arc::new(Mainline { name: "linux-6.16", rules: RULES_6_16 })),
};

pub(super) const ENTRY_6_18: Entry = Entry {
    name: "linux-6.18",
    summary: "6.18 to 7.1: 6.16's windows; fault-around maps a large folio as a whole",
    follows: "18ebe55a9236, 38b0ece6d763 (both 6.16); \"mm/filemap: skip non-uptodate folio if there are available folios\" (6.18)",
    checked: "captures of 6.18.44",
    make: Make::Generation(|| Arc::new(Mainline { name: "linux-6.18", rules: RULES_6_18 })),
};

const RULES_6_16: Rules = Rules {
    prev_no_hole: NoHole::LastPage,
    fault_around_hits: FaultAroundHits::Pages,
    maps_whole_folio: false,
    batch_waits: true,
    ..RULES_7_3
};

const RULES_6_18: Rules = Rules { maps_whole_folio: true, batch_waits: false, ..RULES_6_16 };
