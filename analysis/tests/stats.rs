//! The statistics against scipy 1.17.1, numpy 2.4.6 and statsmodels 0.15.0.

use analysis::stats::{
    OrderDistance, RankMethod, Sample, byte_shares, hodges_lehmann, holm, mann_whitney, mean_order,
    mid_ranks, order_distance, permutation, runs_needed, runs_to_reach, shift_interval, smallest_p,
};

fn sample(values: &[f64]) -> Sample {
    Sample::new(values.to_vec()).expect("values")
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-10 * expected.abs().max(1.0), "{got} is not {expected}");
}

/// Two samples, and what scipy says of them.
struct Reference {
    a: &'static [f64],
    b: &'static [f64],
    /// `mannwhitneyu(a, b).statistic`
    u: f64,
    /// Its p-value, `method="exact"` without ties and `"asymptotic"` with.
    p: f64,
    method: RankMethod,
    /// `numpy.median(numpy.subtract.outer(b, a))`
    shift: f64,
    /// `permutation_test` of the difference of the means, all permutations.
    permutation: f64,
    /// The same of the ranks.
    permutation_of_ranks: f64,
    /// `bootstrap(..., n_resamples=20000, method="percentile")` of the shift.
    interval: (f64, f64),
}

const REFERENCES: [Reference; 4] = [
    Reference {
        a: &[17.2, 16.9, 17.8, 18.1, 17.5],
        b: &[16.1, 15.8, 17.0, 16.4, 15.2],
        u: 24.0,
        p: 0.015_873_015_873_015_872,
        method: RankMethod::Exact,
        shift: -1.4,
        permutation: 0.015_873_015_873_015_872,
        permutation_of_ranks: 0.015_873_015_873_015_872,
        interval: (-2.0, -0.8),
    },
    Reference {
        a: &[3.0, 3.0, 4.0, 5.0, 5.0, 6.0, 7.0],
        b: &[4.0, 5.0, 6.0, 7.0, 7.0, 8.0, 9.0, 9.0],
        u: 10.0,
        p: 0.040_630_065_092_371_78,
        method: RankMethod::Normal,
        shift: 2.0,
        permutation: 0.041_958_041_958_041_96,
        permutation_of_ranks: 0.041_958_041_958_041_96,
        interval: (0.0, 4.0),
    },
    Reference {
        a: &[1.5, 2.5, 3.5],
        b: &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0],
        u: 2.0,
        p: 0.095_238_095_238_095_23,
        method: RankMethod::Exact,
        shift: 4.5,
        permutation: 0.095_238_095_238_095_23,
        permutation_of_ranks: 0.095_238_095_238_095_23,
        interval: (0.5, 8.5),
    },
    Reference {
        a: &[1.0, 2.0, 3.0, 4.0],
        b: &[1.0, 2.0, 3.0, 4.0],
        u: 8.0,
        p: 1.0,
        method: RankMethod::Normal,
        shift: 0.0,
        permutation: 1.0,
        permutation_of_ranks: 1.0,
        interval: (-2.0, 2.0),
    },
];

#[test]
fn tests_of_two_samples_agree_with_scipy() {
    for reference in &REFERENCES {
        let (a, b) = (sample(reference.a), sample(reference.b));
        let rank = mann_whitney(&a, &b);
        assert_close(rank.u, reference.u);
        assert_close(rank.p, reference.p);
        assert_eq!(rank.method, reference.method);
        assert_close(hodges_lehmann(&a, &b), reference.shift);
        assert_close(permutation(reference.a, reference.b), reference.permutation);
        let (ranks, others) = mid_ranks(&a, &b);
        assert_close(permutation(&ranks, &others), reference.permutation_of_ranks);
        let interval = shift_interval(&a, &b, 0.95);
        let (low, high) = reference.interval;
        // Resamples of so few values have few medians: an end may fall on the next one.
        let step = 0.13 * (high - low);
        assert!((interval.low - low).abs() <= step, "{interval:?}");
        assert!((interval.high - high).abs() <= step, "{interval:?}");
    }
}

const TEN_A: [f64; 10] = [251.3, 249.8, 252.7, 250.1, 253.9, 248.6, 251.9, 250.7, 249.2, 252.2];
const TEN_B: [f64; 10] = [254.4, 251.1, 256.2, 253.3, 255.8, 250.4, 257.0, 252.9, 254.9, 251.6];

#[test]
fn ten_runs_agree_with_scipy() {
    let (a, b) = (sample(&TEN_A), sample(&TEN_B));
    let rank = mann_whitney(&a, &b);
    assert_eq!((rank.u, rank.method), (17.0, RankMethod::Exact));
    assert_close(rank.p, 0.011_496_243_694_386_109);
    assert!((hodges_lehmann(&a, &b) - 2.75).abs() < 1e-9);
    // 184,756 splits are drawn from, not tried: scipy's 9999 draws give 0.0074.
    let p = permutation(&TEN_A, &TEN_B);
    assert!((0.0055..0.0095).contains(&p), "{p}");
    let interval = shift_interval(&a, &b, 0.95);
    assert!((interval.low - 0.9).abs() < 0.15 && (interval.high - 4.7).abs() < 0.15);
}

#[test]
fn many_runs_take_the_normal_approximation() {
    let evens = sample(&(0..30).map(|n| f64::from(n) * 2.0).collect::<Vec<_>>());
    let odds = sample(&(0..30).map(|n| f64::from(n) * 2.0 + 21.0).collect::<Vec<_>>());
    let rank = mann_whitney(&evens, &odds);
    assert_eq!((rank.u, rank.method), (190.0, RankMethod::Normal));
    // mannwhitneyu(method="asymptotic")
    assert_close(rank.p, 0.000_124_770_537_890_999_33);
}

#[test]
fn holm_agrees_with_statsmodels() {
    // multipletests(..., method="holm")
    let cases: [(&[f64], &[f64]); 3] = [
        (&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]),
        (&[0.02, 0.02, 0.5, 0.9, 0.001], &[0.08, 0.08, 1.0, 1.0, 0.005]),
        (&[], &[]),
    ];
    for (p_values, expected) in cases {
        for (got, expected) in holm(p_values).into_iter().zip(expected) {
            assert_close(got, *expected);
        }
    }
}

const MAINLINE: [u64; 7] = [516, 768, 3067, 1278, 2554, 1024, 514];
const ALIGNED: [u64; 8] = [4, 0, 5, 1, 2, 2, 4, 1021];

#[test]
fn order_distance_agrees_with_scipy() {
    // wasserstein_distance(orders, orders, pages, pages)
    let up = order_distance(&MAINLINE, &ALIGNED).expect("folios");
    assert_close(up.total(), 2.559_265_136_718_75);
    assert_close(up.signed(), -2.559_265_136_718_75);
    let down = order_distance(&ALIGNED, &MAINLINE).expect("folios");
    assert_close(down.toward_smaller, up.toward_larger);
    assert_close(mean_order(&MAINLINE).expect("folios"), 4.435_852_050_781_25);
    let both_ways = order_distance(&[1024, 0, 256], &[0, 1024]).expect("folios");
    assert_eq!(both_ways, OrderDistance { toward_smaller: 0.5, toward_larger: 0.5 });
    assert_close(both_ways.signed(), 0.0);
    assert_eq!(order_distance(&[0, 0], &[1]), None);
}

#[test]
fn shares_are_of_bytes_not_of_folios() {
    assert_eq!(byte_shares(&[4, 2, 1]), Some(vec![1.0 / 3.0; 3]));
    assert_eq!(byte_shares(&[]), None);
}

#[test]
fn runs_that_settle_a_question() {
    // 2 (z(1 - alpha/2) + z(power))^2 (deviation/shift)^2 pi/3, rounded up
    assert_eq!(runs_needed(6.0, 5.0, 0.05, 0.8), 24);
    assert_eq!(runs_needed(3.0, 1.0, 0.01, 0.8), 221);
    // 3.5, but three runs a side never reach 0.05.
    assert_eq!(runs_needed(2.0, 5.0, 0.05, 0.9), 4);
    assert_close(smallest_p(3, 3), 0.1);
    assert_eq!([0.05, 0.01, 0.005].map(runs_to_reach), [4, 5, 6]);
}

#[test]
fn samples_are_finite_and_sorted() {
    assert_eq!(Sample::new(vec![]), None);
    assert_eq!(Sample::new(vec![1.0, f64::NAN]), None);
    let runs = sample(&[3.0, 1.0, 2.0, 10.0]);
    assert_eq!((runs.values(), runs.median()), (&[1.0, 2.0, 3.0, 10.0][..], 2.5));
    // numpy.std([1, 2, 3, 10], ddof=1)
    assert_close(runs.deviation(), 4.082_482_904_638_63);
}
