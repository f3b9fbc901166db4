//! Statistics for measured runs.
//!
//! Replays are counted and need none of this. Captures of several runs are
//! noisy, few and not normal, so everything here works on ranks, medians and
//! resamples. Whatever draws random numbers draws them from a fixed seed: the
//! same samples give the same answer on every machine and with every number of
//! threads.

mod bootstrap;
mod changes;
mod holm;
mod location;
mod orders;
mod permutation;
mod rank;
mod runs;

pub use bootstrap::{Interval, shift_interval};
pub use changes::change_points;
pub use holm::holm;
pub use location::{Sample, hodges_lehmann};
pub use orders::{OrderDistance, byte_shares, mean_order, order_distance};
pub use permutation::permutation;
pub use rank::{RankMethod, RankTest, mann_whitney, mid_ranks};
pub use runs::{runs_needed, runs_to_reach, smallest_p};

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

/// Every stream of random numbers here begins with this.
const SEED: u64 = 0x7265_6164_6168_6561;

fn seeded() -> Pcg64 {
    Pcg64::seed_from_u64(SEED)
}

/// A number below `n`, from the high half of a 128-bit product.
fn below(rng: &mut Pcg64, n: usize) -> usize {
    ((u128::from(rng.next_u64()) * n as u128) >> 64) as usize
}

/// Two-sided p-value of the distance `z` from the mean of a standard normal distribution.
fn normal_two_sided(z: f64) -> f64 {
    statrs::function::erf::erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The value that a standard normal variable stays below with probability `p`.
fn normal_quantile(p: f64) -> f64 {
    -std::f64::consts::SQRT_2 * statrs::function::erf::erfc_inv(2.0 * p)
}
