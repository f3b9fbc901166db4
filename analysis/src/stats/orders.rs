//! Distributions of folio orders, by the bytes they hold.
//!
//! Counting folios would let a few pages at the edge of a file weigh as much as
//! the huge folios of its middle, so shares are of bytes. The distance between
//! two distributions is the earth mover's: how many orders the bytes move, on
//! average. It is kept apart by direction, since bytes in smaller folios are the
//! regression and bytes in larger ones are not.

use serde::Serialize;

/// Earth mover's distance between two distributions of orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OrderDistance {
    /// Orders that bytes move down, averaged over all bytes.
    pub toward_smaller: f64,
    /// Orders that bytes move up.
    pub toward_larger: f64,
}

impl OrderDistance {
    /// What is left when both directions are set off: positive is toward smaller orders.
    pub fn signed(self) -> f64 {
        self.toward_smaller - self.toward_larger
    }

    /// The whole distance.
    pub fn total(self) -> f64 {
        self.toward_smaller + self.toward_larger
    }
}

/// Share of the bytes in folios of each order; `None` without folios.
pub fn byte_shares(by_order: &[u64]) -> Option<Vec<f64>> {
    let pages_of_order = std::iter::successors(Some(1.0), |pages| Some(pages * 2.0));
    let pages: Vec<f64> =
        by_order.iter().zip(pages_of_order).map(|(count, pages)| *count as f64 * pages).collect();
    let total: f64 = pages.iter().sum();
    (total > 0.0).then(|| pages.iter().map(|pages| pages / total).collect())
}

/// Mean order of the folio that a byte is in; `None` without folios.
pub fn mean_order(by_order: &[u64]) -> Option<f64> {
    let shares = byte_shares(by_order)?;
    Some(shares.iter().enumerate().map(|(order, share)| order as f64 * share).sum())
}

/// How far the bytes moved from one distribution to the other; `None` if a side has no folios.
pub fn order_distance(baseline: &[u64], candidate: &[u64]) -> Option<OrderDistance> {
    let (from, to) = (byte_shares(baseline)?, byte_shares(candidate)?);
    let mut distance = OrderDistance::default();
    // Bytes at or below each order: more of them in the candidate means that bytes moved down.
    let mut surplus = 0.0;
    for order in 0..from.len().max(to.len()) {
        let share = |shares: &[f64]| shares.get(order).copied().unwrap_or(0.0);
        surplus += share(&to) - share(&from);
        distance.toward_smaller += f64::max(surplus, 0.0);
        distance.toward_larger += f64::max(-surplus, 0.0);
    }
    Some(distance)
}
