//! Sides that are no run of ours: histograms of folio orders from bpftrace and bcc.
//!
//! They tell folios by order and nothing else: neither settings nor requests nor time. They compare
//! with replays as with recordings, by the metrics that follow from the orders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use parser::{OrderHistogram, read_histograms_path};
use traces::units::Order;

use super::measure::bad_input;
use super::{Entry, Refusal};
use crate::compare::{Figures, Measured, Nature};

/// The histogram at `path` as a source of a side; `None` if the file is something else.
pub(super) fn reference(path: &Path) -> Result<Option<Entry>, Refusal> {
    let Some(found) = read_histograms_path(path).map_err(|error| bad_input(&error))? else {
        return Ok(None);
    };
    let by_order = by_order(&found.histograms).map_err(|reason| bad_input(&reason))?;
    Ok(Some(Entry {
        digest: None,
        accesses: None,
        settings: BTreeMap::new(),
        measured: Measured {
            nature: Nature::Histogram,
            runs: vec![Figures::of_orders(by_order.to_vec())],
        },
        stream: None,
        proof: None,
        losses: found.losses,
    }))
}

/// Folios by order of one map, over all its other keys.
fn by_order(histograms: &[OrderHistogram]) -> Result<[u64; Order::COUNT], String> {
    let map = |histogram: &OrderHistogram| {
        histogram.name.split('[').next().unwrap_or_default().to_owned()
    };
    let maps: BTreeSet<String> = histograms.iter().map(map).collect();
    if maps.len() > 1 {
        let maps: Vec<_> = maps.into_iter().collect();
        return Err(format!("histograms of {}: leave the one of folio orders", maps.join(" and ")));
    }
    let mut by_order = [0; Order::COUNT];
    for bucket in histograms.iter().flat_map(|histogram| &histogram.buckets) {
        let (first, last) = (bucket.first, bucket.last);
        if first != last {
            return Err(format!(
                "a histogram whose buckets hold several orders ({first} to {last}) does not tell \
                 how many folios have which: print one bucket for each, such as \
                 lhist(order, 0, 12, 1)"
            ));
        }
        by_order[usize::from(first.0)] += bucket.count;
    }
    Ok(by_order)
}
