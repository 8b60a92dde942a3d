//! Naive Bayes: the numbers of scikit-learn, and exactness under forgetting.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{Retrain, Summation, contract};
use efface::rows::RowStore;
use efface::{
    Amend, BernoulliNb, ComplementNb, Csr, Dense, Error, Features, Fit, Fitted, Forget, GaussianNb,
    MultinomialNb, NaiveBayes, Predict, RowId, Rows,
};
use faer::Mat;
use proptest::prelude::*;

const COUNTS: [f64; 24] = [
    2., 0., 1., 1., 3., 0., 0., 2., 2., 4., 1., 0., 0., 0., 5., 1., 1., 1., 3., 0., 2., 0., 4., 1.,
];
const MEASURES: [f64; 24] = [
    1000.1, -0.5, 3., 1000.4, 0.7, 3., 999.8, 2.5, 3., 1000.9, -1.25, 3., 1001.3, 4.0, 3., 998.7,
    0.1, 3., 1000.0, -2.2, 3., 1002.5, 0.9, 3.,
];
const CLASSES: [usize; 8] = [0, 1, 2, 0, 2, 1, 0, 1];
const WEIGHTS: [f64; 8] = [1., 0.5, 2., 1., 3., 1., 0.25, 0.];
const GONE: [RowId; 2] = [RowId(4), RowId(1)];

fn one_hot(classes: &[usize], count: usize) -> Vec<f64> {
    classes
        .iter()
        .flat_map(|&class| (0..count).map(move |c| (c == class) as u8 as f64))
        .collect()
}

fn eight(values: &[f64], weighted: bool) -> Rows {
    let rows = Rows::new(
        Dense::new(values.to_vec(), 3).unwrap(),
        one_hot(&CLASSES, 3),
        3,
    )
    .unwrap();
    if weighted {
        rows.weighted(WEIGHTS.to_vec()).unwrap()
    } else {
        rows
    }
}

fn flat(table: &Mat<f64>) -> Vec<f64> {
    (0..table.nrows())
        .flat_map(|i| (0..table.ncols()).map(move |j| table[(i, j)]))
        .collect()
}

fn near(ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len());
    for (a, b) in ours.iter().zip(theirs) {
        assert!(
            (a - b).abs() <= 1e-11 * (1.0 + b.abs()),
            "{ours:?}\n{theirs:?}"
        );
    }
}

/// scikit-learn 1.9.1, `MultinomialNB(alpha=0.5)` on rows 0 to 7, and without rows 1 and 4, with
/// `sample_weight`.
#[test]
fn multinomial_is_that_of_scikit_learn() {
    let probe: Features = Dense::new(vec![1., 2., 0., 0., 1., 4.], 3).unwrap().into();
    let recipe = MultinomialNb { alpha: 0.5 };
    let model = recipe.fit(&eight(&COUNTS, false)).unwrap();
    near(&model.class_prior(), &[0.375, 0.375, 0.25]);
    near(
        &flat(&model.feature_log_prob()),
        &[
            -0.42285685082003344,
            -2.2686835413183646,
            -1.4213856809311607,
            -1.6863989535702286,
            -0.46262352194811296,
            -1.6863989535702286,
            -3.044522437723423,
            -1.4350845252893225,
            -0.33647223662121295,
        ],
    );
    near(
        &flat(&model.predict(&probe).unwrap()),
        &[
            -5.941053186468489,
            -3.5924752504781807,
            -7.300985849421959,
            -8.935055518054734,
            -8.189048589240754,
            -4.167267832894065,
        ],
    );
    let rows = eight(&COUNTS, true);
    let after = Summation
        .forget(&recipe.fit(&rows).unwrap(), &rows, &GONE)
        .unwrap();
    near(
        &after.model.class_prior(),
        &[
            0.42857142857142855,
            0.19047619047619047,
            0.38095238095238093,
        ],
    );
    near(
        &flat(&after.model.feature_log_prob()),
        &[
            -0.39390428570708824,
            -1.9694406464655072,
            -1.6817585740137262,
            -1.0986122886681098,
            -1.0986122886681098,
            -1.0986122886681098,
            -2.9444389791664407,
            -0.7472144018302211,
            -0.7472144018302211,
        ],
    );
    assert_eq!(
        (
            after.evidence.bound,
            after.evidence.rows,
            after.evidence.rows_read
        ),
        (0.0, 6, 2)
    );
}

/// scikit-learn 1.9.1, `ComplementNB(alpha=0.5)` on the same rows.
#[test]
fn complement_is_that_of_scikit_learn() {
    let probe: Features = Dense::new(vec![1., 2., 0., 0., 1., 4.], 3).unwrap().into();
    let recipe = ComplementNb { alpha: 0.5 };
    let model = recipe.fit(&eight(&COUNTS, false)).unwrap();
    near(
        &flat(&model.feature_log_prob()),
        &[
            2.1972245773362196,
            0.7621400520468967,
            0.8622235106038793,
            0.9057086225436182,
            1.9042374526547454,
            0.8056251639866356,
            0.8347976976229721,
            1.0258529343856815,
            1.5723966407537513,
        ],
    );
    near(
        &flat(&model.predict(&probe).unwrap()),
        &[
            3.7215046814300132,
            4.714183527853109,
            2.8865035663943353,
            4.211034094462414,
            5.1267381086012875,
            7.315439497400686,
        ],
    );
    let rows = eight(&COUNTS, true);
    let after = Summation
        .forget(&recipe.fit(&rows).unwrap(), &rows, &GONE)
        .unwrap();
    near(
        &flat(&after.model.feature_log_prob()),
        &[
            2.120263536200091,
            0.8209805520698302,
            0.8209805520698302,
            0.9501922835498364,
            1.2264456601779945,
            1.1394342831883648,
            0.5108256237659907,
            1.7047480922384253,
            1.5224265354444706,
        ],
    );
    near(
        &flat(&after.model.predict(&probe).unwrap()),
        &[
            3.7622246403397517,
            3.4030836039058254,
            3.920321808242841,
            4.104902760349151,
            5.784182792931453,
            7.794454234016308,
        ],
    );
    assert_eq!(
        (
            after.evidence.bound,
            after.evidence.rows,
            after.evidence.rows_read
        ),
        (0.0, 6, 2)
    );
}

/// scikit-learn 1.9.1, `BernoulliNB(alpha=0.5, binarize=1.0)` on the same rows.
#[test]
fn bernoulli_is_that_of_scikit_learn() {
    let probe: Features = Dense::new(vec![1., 2., 0., 0., 1., 4.], 3).unwrap().into();
    let recipe = BernoulliNb {
        alpha: 0.5,
        threshold: 1.0,
    };
    let model = recipe.fit(&eight(&COUNTS, false)).unwrap();
    near(
        &flat(&model.feature_log_prob()),
        &[
            -0.13353139262452252,
            -2.0794415416798357,
            -0.9808292530117262,
            -2.0794415416798357,
            -0.47000362924573547,
            -2.0794415416798357,
            -1.791759469228055,
            -0.6931471805599454,
            -0.18232155679395468,
        ],
    );
    near(
        &flat(&model.predict(&probe).unwrap()),
        &[
            -5.609715965617134,
            -1.7178956675065071,
            -4.053522567701845,
            -4.174631440327811,
            -4.174631440327811,
            -2.444084655267745,
        ],
    );
    let rows = eight(&COUNTS, true);
    let after = Summation
        .forget(&recipe.fit(&rows).unwrap(), &rows, &GONE)
        .unwrap();
    near(
        &flat(&after.model.feature_log_prob()),
        &[
            -0.1670540846631663,
            -1.8718021769015913,
            -1.4663370687934272,
            -1.3862943611198906,
            -1.3862943611198906,
            -1.3862943611198906,
            -1.791759469228055,
            -0.18232155679395468,
            -0.18232155679395468,
        ],
    );
    near(
        &flat(&after.model.predict(&probe).unwrap()),
        &[
            -4.8532664786578765,
            -3.6198865826269846,
            -3.1214834788595516,
            -4.352491190745387,
            -3.6198865826269846,
            -3.1214834788595516,
        ],
    );
    assert_eq!(
        (
            after.evidence.bound,
            after.evidence.rows,
            after.evidence.rows_read
        ),
        (0.0, 6, 2)
    );
}

/// scikit-learn 1.9.1, `GaussianNB(var_smoothing=1e-3)` on the same rows. The third feature is
/// constant.
#[test]
fn gaussian_is_that_of_scikit_learn() {
    let probe: Features = Dense::new(vec![1000.2, 0.3, 3., 999.5, 2., 3.], 3)
        .unwrap()
        .into();
    let recipe = GaussianNb {
        var_smoothing: 1e-3,
    };
    let model = recipe.fit(&eight(&MEASURES, true)).unwrap();
    near(&[model.smoothing()], &[0.0034943359375000003]);
    near(
        &flat(&model.variances()),
        &[
            0.1704079161843974,
            0.3018893976658951,
            0.0034943359375000003,
            0.6457165581596708,
            0.08349433593749998,
            0.0034943359375000003,
            0.5434943359375001,
            0.5434943359375001,
            0.0034943359375000003,
        ],
    );
    for weighted in [false, true] {
        let rows = eight(&MEASURES, weighted);
        let after = Summation
            .forget(&recipe.fit(&rows).unwrap(), &rows, &GONE)
            .unwrap()
            .model;
        near(&[after.smoothing()], &[0.0022814583333333337]);
        if weighted {
            continue;
        }
        near(
            &flat(&after.means()),
            &[
                1000.3333333333334,
                -1.3166666666666667,
                3.0,
                1000.6,
                0.5,
                3.0,
                999.8,
                2.5,
                3.0,
            ],
        );
        near(
            &flat(&after.variances()),
            &[
                0.16450368055554343,
                0.48617034722222235,
                0.0022814583333333337,
                3.612281458333247,
                0.16228145833333338,
                0.0022814583333333337,
                0.0022814583333333337,
                0.0022814583333333337,
                0.0022814583333333337,
            ],
        );
        near(
            &flat(&after.predict(&probe).unwrap()),
            &[
                -1.8874760556736736,
                -0.6923052658939257,
                -1091.214503219801,
                -12.569402295334863,
                -7.646800221742883,
                -69.93790747509809,
            ],
        );
    }
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64) / (1u64 << 52) as f64 - 1.0
    }
}

/// Rows of a kind; ids do not start at 0, the weights of "weighted" are no binary fractions.
fn some(kind: &str, n: usize, d: usize, classes: usize, seed: u64) -> Rows {
    let mut numbers = Numbers(seed);
    let values: Vec<f64> = (0..n * d)
        .map(|at| match kind {
            "counts" => (numbers.next() * 9.0).max(0.0).floor(),
            "shares" | "weighted" => numbers.next().abs(),
            _ if at % d == 1 => 1e6 + numbers.next(),
            _ => numbers.next(),
        })
        .collect();
    let labels: Vec<usize> = (0..n).map(|i| i % classes).collect();
    let (targets, outputs) = match classes {
        2 => (labels.iter().map(|&c| [-1.0, 1.0][c]).collect(), 1),
        _ => (one_hot(&labels, classes), classes),
    };
    let features: Features = match kind {
        "counts" => {
            let mut table = Csr::<f32>::new(d);
            for row in values.chunks(d) {
                let entries: Vec<(u32, f64)> = (0..)
                    .zip(row.iter().copied())
                    .filter(|e| e.1 != 0.0)
                    .collect();
                table.push(&entries).unwrap();
            }
            table.into()
        }
        "single" => Dense::new(values.iter().map(|x| *x as f32).collect(), d)
            .unwrap()
            .into(),
        _ => Dense::new(values, d).unwrap().into(),
    };
    let ids = (0..n as u64).map(|i| RowId(500 + 7 * i)).collect();
    let rows = Rows::with_ids(ids, features, targets, outputs).unwrap();
    if kind == "weighted" {
        return rows
            .weighted((0..n).map(|i| [0.1, 1.7, 0.0, 3.3][i % 4]).collect())
            .unwrap();
    }
    rows
}

fn of_multinomial(model: &NaiveBayes<MultinomialNb>) -> Vec<f64> {
    [model.class_prior(), flat(&model.feature_log_prob())].concat()
}

fn of_complement(model: &NaiveBayes<ComplementNb>) -> Vec<f64> {
    [model.class_prior(), flat(&model.feature_log_prob())].concat()
}

fn of_bernoulli(model: &NaiveBayes<BernoulliNb>) -> Vec<f64> {
    [model.class_prior(), flat(&model.feature_log_prob())].concat()
}

fn of_gaussian(model: &NaiveBayes<GaussianNb>) -> Vec<f64> {
    [
        model.class_prior(),
        flat(&model.means()),
        flat(&model.variances()),
    ]
    .concat()
}

fn reload<M: serde::Serialize + serde::de::DeserializeOwned>(
    model: &M,
    _: &dyn RowStore,
) -> efface::Result<M> {
    let damaged = |e: serde_json::Error| Error::Damaged(e.to_string());
    serde_json::from_value(serde_json::to_value(model).map_err(damaged)?).map_err(damaged)
}

#[test]
fn all_keep_the_contract() {
    for (kind, classes) in [
        ("counts", 2),
        ("counts", 4),
        ("shares", 3),
        ("weighted", 2),
        ("weighted", 3),
    ] {
        let rows = some(kind, 60, 7, classes, 11);
        let gone: Vec<RowId> = rows.ids().step_by(4).take(11).collect();
        let multinomial = MultinomialNb::default();
        let gaussian = GaussianNb::default();
        let case = contract::Case {
            name: kind,
            recipe: &multinomial,
            rows: &rows,
            gone: &gone,
            parameters: &of_multinomial,
            reload: &reload,
            tolerance: 1e-13,
            noise: 0.0,
        };
        contract::check(&Summation, &case).unwrap_or_else(|v| panic!("{v}"));
        contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{v}"));
        let complement = ComplementNb::default();
        let case = contract::Case {
            name: kind,
            recipe: &complement,
            rows: &rows,
            gone: &gone,
            parameters: &of_complement,
            reload: &reload,
            tolerance: 1e-13,
            noise: 0.0,
        };
        contract::check(&Summation, &case).unwrap_or_else(|v| panic!("{v}"));
        contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{v}"));
        let bernoulli = BernoulliNb::default();
        let case = contract::Case {
            name: kind,
            recipe: &bernoulli,
            rows: &rows,
            gone: &gone,
            parameters: &of_bernoulli,
            reload: &reload,
            tolerance: 1e-13,
            noise: 0.0,
        };
        contract::check(&Summation, &case).unwrap_or_else(|v| panic!("{v}"));
        contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{v}"));
        for kind in [kind, "single", "double"] {
            let rows = some(kind, 60, 7, classes, 12);
            let case = contract::Case {
                name: kind,
                recipe: &gaussian,
                rows: &rows,
                gone: &gone,
                parameters: &of_gaussian,
                reload: &reload,
                tolerance: 1e-13,
                noise: 0.0,
            };
            contract::check(&Summation, &case).unwrap_or_else(|v| panic!("{v}"));
            contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{v}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// One by one, until few are left: what loses no bit equals retraining to the bit, and no bound
    /// is exceeded.
    #[test]
    fn long_runs_end_where_retraining_does(seed in any::<u64>(), batch in 1usize..9) {
        for kind in ["counts", "single", "double", "weighted"] {
            let rows = some(kind, 120, 4, 3, seed);
            let mut order: Vec<RowId> = rows.ids().collect();
            // The first row weighs something and stays, lest rows that weigh nothing be all that is
            // left.
            order.sort_by_key(|id| (id.0 == 500, id.0.wrapping_mul(seed | 1)));
            let mut fitted = Fitted::new(&GaussianNb::default(), rows).unwrap();
            let mut bound = 0.0;
            for gone in order[..110].chunks(batch) {
                bound = fitted.forget(&Summation, gone).unwrap().bound;
            }
            let fresh = GaussianNb::default().fit(fitted.rows()).unwrap();
            let a = of_gaussian(fitted.model());
            let b = of_gaussian(&fresh);
            let off = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            let own = Retrain.forget(&fresh, fitted.rows(), &[]).unwrap().evidence.bound;
            prop_assert!(off <= bound + own, "{kind}: {off:e} {bound:e} {own:e}");
            let size = b.iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!(bound <= 1e-12 * size, "{kind}: a bound of {bound:e} is no use");
            if kind == "counts" || kind == "single" {
                prop_assert_eq!(bound, 0.0);
                prop_assert_eq!(fitted.model(), &fresh);
            }
        }
    }
}

#[test]
fn a_class_without_rows_is_never_predicted() {
    let rows = some("shares", 30, 3, 3, 5);
    let gone: Vec<RowId> = rows.ids().step_by(3).collect();
    let probe = some("shares", 20, 3, 3, 9);
    let probe: Features = Dense::new(
        probe
            .iter()
            .flat_map(|v| {
                let mut x = vec![0.0; 3];
                v.features.add_to(1.0, &mut x);
                x
            })
            .collect(),
        3,
    )
    .unwrap()
    .into();
    fn check<R>(recipe: &R, rows: &Rows, gone: &[RowId], probe: &Features)
    where
        R: Copy + Fit<Model = NaiveBayes<R>>,
        NaiveBayes<R>: Predict + Amend,
        Summation: Forget<NaiveBayes<R>>,
    {
        let mut fitted = Fitted::new(recipe, rows.clone()).unwrap();
        fitted.forget(&Summation, gone).unwrap();
        let scores = fitted.model().predict(probe).unwrap();
        for slot in 0..probe.rows() {
            assert!((0..3).all(|c| scores[(slot, c)].is_finite()));
            assert!(scores[(slot, 0)] < scores[(slot, 1)].min(scores[(slot, 2)]));
        }
        // Down to one class, and one row: still defined.
        let left: Vec<RowId> = fitted.rows().ids().skip(1).collect();
        fitted.forget(&Summation, &left).unwrap();
        let scores = fitted.model().predict(probe).unwrap();
        assert!(
            (0..probe.rows())
                .all(|slot| scores[(slot, 1)] > scores[(slot, 0)].max(scores[(slot, 2)]))
        );
        // The class comes back with its rows.
        fitted.learn(&rows.filter(|id| gone.contains(&id))).unwrap();
        assert!(fitted.model().predict(probe).unwrap()[(0, 0)] > -1e300);
    }
    check(&MultinomialNb::default(), &rows, &gone, &probe);
    check(&GaussianNb::default(), &rows, &gone, &probe);
    check(&GaussianNb { var_smoothing: 0.0 }, &rows, &gone, &probe);
    let mut fitted = Fitted::new(&MultinomialNb::default(), rows).unwrap();
    fitted.forget(&Summation, &gone).unwrap();
    assert_eq!(fitted.model().class_prior()[0], 0.0);
}

/// 0.1 squared needs 106 bits, so the sums of a constant 0.1 do lose some; its variance must not
/// show it.
#[test]
fn a_constant_feature_stays_constant() {
    let mut numbers = Numbers(3);
    let values: Vec<f64> = (0..1000)
        .flat_map(|_| [0.1, numbers.next(), 1e5 / 3.0])
        .collect();
    let targets = (0..1000).map(|i| [-1.0, 1.0][i % 2]).collect();
    let rows = Rows::new(Dense::new(values, 3).unwrap(), targets, 1).unwrap();
    let mut fitted = Fitted::new(&GaussianNb::default(), rows).unwrap();
    for _ in 0..300 {
        let id = fitted.rows().ids().next().unwrap();
        fitted.forget(&Summation, &[id]).unwrap();
        let variances = fitted.model().variances();
        for class in 0..2 {
            assert_eq!(variances[(class, 0)], fitted.model().smoothing());
            assert_eq!(variances[(class, 2)], fitted.model().smoothing());
        }
    }
}

#[test]
fn an_amended_row_is_as_if_it_had_been_right_from_the_start() {
    let rows = eight(&COUNTS, false);
    let mut fitted = Fitted::new(&MultinomialNb::default(), rows).unwrap();
    let x = Dense::new(vec![7., 7., 7.], 3).unwrap();
    fitted
        .amend(&Rows::with_ids(vec![RowId(3)], x, vec![0., 1., 0.], 3).unwrap())
        .unwrap();
    assert_eq!(
        fitted.model(),
        &MultinomialNb::default().fit(fitted.rows()).unwrap()
    );
}

#[test]
fn bad_input_is_named() {
    let refused = |values: Vec<f64>| {
        let rows = Rows::new(Dense::new(values, 3).unwrap(), one_hot(&CLASSES, 3), 3).unwrap();
        MultinomialNb::default().fit(&rows).unwrap_err().to_string()
    };
    let mut negative = COUNTS.to_vec();
    negative[10] = -4.0;
    let message = refused(negative.clone());
    assert!(
        message.contains("row 3, column 1") && !message.contains("-4"),
        "{message}"
    );
    negative[10] = 1e80;
    assert!(refused(negative).contains("row 3, column 1"));
    let rows = eight(&COUNTS, false);
    for alpha in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(
            MultinomialNb { alpha }
                .fit(&rows)
                .unwrap_err()
                .to_string()
                .contains("alpha")
        );
    }
    for var_smoothing in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(
            GaussianNb { var_smoothing }
                .fit(&rows)
                .unwrap_err()
                .to_string()
                .contains("var_smoothing")
        );
    }
    let weightless = eight(&COUNTS, false).weighted(vec![0.0; 8]).unwrap();
    assert_eq!(
        GaussianNb::default().fit(&weightless).unwrap_err(),
        Error::NoWeight
    );
    let model = MultinomialNb::default().fit(&eight(&COUNTS, true)).unwrap();
    let others: Vec<RowId> = (0..7).map(RowId).collect();
    let error = Summation
        .forget(&model, &eight(&COUNTS, true), &others)
        .unwrap_err();
    assert_eq!(error, Error::NoWeight);
    let narrow: Features = Dense::new(vec![1.0, 2.0], 2).unwrap().into();
    assert!(matches!(
        model.predict(&narrow).unwrap_err(),
        Error::Shape {
            what: "features",
            ..
        }
    ));
    let damaged = serde_json::to_string(&model)
        .unwrap()
        .replacen("\"width\":3", "\"width\":4", 1);
    assert!(serde_json::from_str::<NaiveBayes<MultinomialNb>>(&damaged).is_err());
}
