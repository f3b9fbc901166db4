//! Change points of a series: E-divisive with means.

use super::{below, seeded};

/// Fewest values between two change points.
const SEGMENT_MIN: usize = 3;

/// Permutations that a split is held against.
const PERMUTATIONS: usize = 199;

/// Of these with the real order, those that may be as large: 5 %.
const AS_LARGE_MAX: usize = 10;

/// Where a series changes: the position of the first new value, and the means before and after.
///
/// Segments are split where the energy statistic is largest, until random
/// permutations of a segment give as large a value in more than 5 % of 199
/// cases. Neighbouring segments whose means then differ by less than
/// `magnitude_percent` are joined again, the closest ones first.
pub fn change_points(series: &[f64], magnitude_percent: f64) -> Vec<(usize, f64, f64)> {
    let mut splits = Vec::new();
    divide(series, 0, &mut splits);
    splits.sort_unstable();
    let mut bounds = [vec![0], splits, vec![series.len()]].concat();
    join_close(series, &mut bounds, magnitude_percent);
    let mean = |at: usize| mean(&series[bounds[at]..bounds[at + 1]]);
    (1..bounds.len() - 1).map(|at| (bounds[at], mean(at - 1), mean(at))).collect()
}

fn divide(segment: &[f64], offset: usize, splits: &mut Vec<usize>) {
    let Some((at, energy)) = best_split(segment) else { return };
    if !is_significant(segment, energy) {
        return;
    }
    splits.push(offset + at);
    divide(&segment[..at], offset, splits);
    divide(&segment[at..], offset + at, splits);
}

/// Removes the bound with the smallest change as long as that is below the magnitude.
fn join_close(series: &[f64], bounds: &mut Vec<usize>, magnitude_percent: f64) {
    loop {
        let change = |at: usize| {
            let before = mean(&series[bounds[at - 1]..bounds[at]]);
            let after = mean(&series[bounds[at]..bounds[at + 1]]);
            // From nothing to something is larger than any percentage, from nothing to nothing none.
            let percent = ((after - before) / before).abs() * 100.0;
            if percent.is_nan() { 0.0 } else { percent }
        };
        let inner = 1..bounds.len() - 1;
        let smallest = inner.map(|at| (change(at), at)).min_by(|a, b| a.0.total_cmp(&b.0));
        match smallest {
            Some((size, at)) if size < magnitude_percent => bounds.remove(at),
            _ => return,
        };
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The split with the largest energy statistic; `None` for a constant or short segment.
fn best_split(segment: &[f64]) -> Option<(usize, f64)> {
    let len = segment.len();
    if len < 2 * SEGMENT_MIN || segment.iter().all(|value| value.total_cmp(&segment[0]).is_eq()) {
        return None;
    }
    let distance = |i: usize, j: usize| (segment[i] - segment[j]).abs();
    // Sums of the distances within the left part, within the right part and between them, kept up
    // to date as one value after the other moves to the left.
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..len).flat_map(|i| (0..i).map(move |j| distance(i, j))).sum();
    let mut best: Option<(usize, f64)> = None;
    for at in 1..=len - SEGMENT_MIN {
        let moved = at - 1;
        let to_left: f64 = (0..moved).map(|j| distance(moved, j)).sum();
        let to_right: f64 = (at..len).map(|j| distance(moved, j)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if at >= SEGMENT_MIN {
            let energy = energy(left, right, between, at, len - at);
            if best.is_none_or(|(_, most)| energy > most) {
                best = Some((at, energy));
            }
        }
    }
    best
}

/// Weighted energy distance of two parts with `n` and `m` values.
fn energy(left: f64, right: f64, between: f64, n: usize, m: usize) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let within = |sum: f64, size: f64| 2.0 * sum / (size * (size - 1.0));
    let distance = 2.0 * between / (n * m) - within(left, n) - within(right, m);
    n * m / (n + m) * distance
}

fn is_significant(segment: &[f64], energy: f64) -> bool {
    let mut rng = seeded();
    let mut shuffled = segment.to_vec();
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        for at in (1..shuffled.len()).rev() {
            shuffled.swap(at, below(&mut rng, at + 1));
        }
        if best_split(&shuffled).is_some_and(|(_, other)| other >= energy * (1.0 - 1e-12)) {
            as_large += 1;
            if as_large > AS_LARGE_MAX {
                return false;
            }
        }
    }
    true
}
