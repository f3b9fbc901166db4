//! Several tests at once.

/// Holm's adjusted p-values, in the order of `p_values`.
///
/// Rejecting those up to alpha keeps the chance of any false rejection at alpha.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut by_size: Vec<usize> = (0..p_values.len()).collect();
    by_size.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in by_size.iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[at] * left).min(1.0));
        adjusted[at] = largest;
    }
    adjusted
}
