//! Latencies that vary, from a seeded generator.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// How the time of the media (or of the server behind a network) varies.
///
/// Left out, every request of a kind takes the same time. With it, each takes its mean time times
/// one of the quantiles, drawn by a generator that starts from `seed`: the same replay gives the
/// same times, another seed another sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariationParameters {
    /// Start of the generator.
    pub seed: u64,
    /// Equally likely multiples of the mean, in thousandths.
    pub quantiles_permille: Vec<u64>,
}

/// See [`VariationParameters`].
#[derive(Debug)]
pub(super) struct Variation {
    /// `None` where nothing varies.
    drawn: Option<(Pcg64, Vec<u64>)>,
}

impl Variation {
    pub(super) fn new(parameters: Option<&VariationParameters>) -> Self {
        let varies = parameters.filter(|parameters| !parameters.quantiles_permille.is_empty());
        let drawn = varies.map(|parameters| {
            let generator = Pcg64::seed_from_u64(parameters.seed);
            (generator, parameters.quantiles_permille.clone())
        });
        Self { drawn }
    }

    /// A time whose mean is `mean_ns`.
    pub(super) fn draw(&mut self, mean_ns: u64) -> u64 {
        let Some((generator, quantiles)) = &mut self.drawn else { return mean_ns };
        let below = u128::from(generator.next_u64()) * quantiles.len() as u128;
        let permille = quantiles[(below >> 64) as usize];
        mean_ns.saturating_mul(permille) / 1000
    }
}
