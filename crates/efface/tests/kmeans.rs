//! k-means: after any forgetting, the centres are to the bit those of fitting what is left.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use efface::methods::{DcKMeans, QKMeans, Retrain, contract};
use efface::models::kmeans::Scheme;
use efface::rows::RowStore;
use efface::{
    Csr, Dense, Error, Features, Fit, Fitted, Forget, KMeans, KMeansModel, Predict, RowId, Rows,
};

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

/// Four groups of unequal size in the plane.
fn groups(n: usize, spread: f64, seed: u64) -> Rows {
    let mut numbers = Numbers(seed);
    let values: Vec<f64> = (0..n)
        .flat_map(|i| {
            let (x, y) =
                [(0.0, 0.0), (4.0, 0.5), (0.5, 5.0), (5.0, 5.0)][[0, 0, 0, 1, 1, 2, 3][i % 7]];
            [x + spread * numbers.next(), y + spread * numbers.next()]
        })
        .collect();
    let ids = (0..n as u64).map(|i| RowId(10 + 3 * i)).collect();
    Rows::with_ids(ids, Dense::new(values, 2).unwrap(), vec![0.0; n], 1).unwrap()
}

fn parameters(model: &KMeansModel) -> Vec<f64> {
    let centers = model.centers();
    (0..centers.nrows())
        .flat_map(|i| (0..centers.ncols()).map(move |j| (i, j)))
        .map(|at| centers[at])
        .collect()
}

fn reload(model: &KMeansModel, _: &dyn RowStore) -> efface::Result<KMeansModel> {
    let damaged = |e: serde_json::Error| Error::Damaged(e.to_string());
    serde_json::from_value(serde_json::to_value(model).map_err(damaged)?).map_err(damaged)
}

fn method(recipe: &KMeans) -> Box<dyn Forget<KMeansModel>> {
    match recipe.scheme {
        Scheme::Quantised { .. } => Box::new(QKMeans),
        Scheme::Divided { .. } => Box::new(DcKMeans),
    }
}

#[test]
fn the_contract() {
    let plain = groups(150, 1.0, 3);
    let weighted = plain
        .clone()
        .weighted((0..150).map(|i| [1.0, 0.3, 0.0, 2.5][i % 4]).collect())
        .unwrap();
    for rows in [&plain, &weighted] {
        for recipe in [
            KMeans::quantised(4, 0.5),
            KMeans::quantised(3, 0.01),
            KMeans::divided(4, 1, 3),
            KMeans::divided(3, 2, 3),
        ] {
            let gone: Vec<RowId> = rows.ids().step_by(6).take(13).collect();
            let case = contract::Case {
                name: "groups",
                recipe: &recipe,
                rows,
                gone: &gone,
                parameters: &parameters,
                reload: &reload,
                tolerance: 0.0,
                noise: 0.0,
            };
            contract::check(method(&recipe).as_ref(), &case)
                .unwrap_or_else(|v| panic!("{recipe:?}: {v}"));
            contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{recipe:?}: {v}"));
        }
    }
}

/// Forgets all but a few rows in batches, comparing with retraining after each; how often rows had
/// to be read again.
fn wear_down(recipe: &KMeans, rows: Rows, batch: usize, seed: u64) -> (usize, usize) {
    let mut order: Vec<RowId> = rows.ids().collect();
    order.sort_by_key(|id| {
        id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0x1234_5677))
    });
    let steps = order.len() - 25;
    let mut fitted = Fitted::new(recipe, rows).unwrap();
    let mut kept = 0;
    let mut again = 0;
    for gone in order[..steps].chunks(batch) {
        let evidence = fitted.forget(method(recipe).as_ref(), gone).unwrap();
        *(if evidence.refactored {
            &mut again
        } else {
            &mut kept
        }) += 1;
        let fresh = recipe.fit(fitted.rows()).unwrap();
        assert_eq!(
            parameters(fitted.model()),
            parameters(&fresh),
            "{recipe:?} {evidence:?}"
        );
        assert_eq!(evidence.rows, fitted.rows().len());
    }
    (kept, again)
}

#[test]
fn hundreds_of_deletions_one_by_one_and_in_batches() {
    let mut kept = 0;
    let mut again = 0;
    for seed in 0..6 {
        for (epsilon, spread) in [(1.0, 0.7), (0.1, 1.5), (0.003, 2.0)] {
            for batch in [1, 7] {
                let rows = groups(300, spread, seed);
                let (a, b) =
                    wear_down(&KMeans::quantised(4, epsilon).seed(seed), rows, batch, seed);
                (kept, again) = (kept + a, again + b);
            }
        }
        for (height, width) in [(1, 4), (2, 3), (3, 2)] {
            for batch in [1, 7] {
                let recipe = KMeans::divided(3, height, width).seed(seed);
                assert_eq!(wear_down(&recipe, groups(200, 1.5, seed), batch, seed).1, 0);
            }
        }
    }
    // Both ways have been walked, or the comparison says little.
    assert!(
        kept > 500 && again > 500,
        "{kept} kept, {again} computed again"
    );
}

#[test]
fn most_deletions_from_many_rows_read_nothing_else() {
    let rows = groups(4000, 0.5, 1);
    let recipe = KMeans::quantised(4, 1.0);
    let model = recipe.fit(&rows).unwrap();
    let sure = rows.ids().take(400).filter(|&id| {
        let evidence = QKMeans.forget(&model, &rows, &[id]).unwrap().evidence;
        assert_eq!(evidence.rows_read == 1, !evidence.refactored);
        !evidence.refactored
    });
    assert!(sure.count() > 380);
    let tree = KMeans::divided(4, 1, 16).fit(&rows).unwrap();
    let evidence = DcKMeans
        .forget(&tree, &rows, &[RowId(10)])
        .unwrap()
        .evidence;
    assert!(
        (150..350).contains(&evidence.rows_read),
        "{}",
        evidence.rows_read
    );
}

/// Over seeds, the result of forgetting is distributed as that of a fit which never saw the row:
/// seeds of one and of the other are different here, so that this says more than that they are
/// coupled.
#[test]
fn the_distribution_is_that_of_a_fit_without_the_row() {
    let rows = groups(24, 2.5, 8);
    let gone = [RowId(10 + 3 * 6), RowId(10 + 3 * 3)];
    let retained = rows.filter(|id| !gone.contains(&id));
    let trials = 1500;
    for recipe in [KMeans::quantised(3, 0.5), KMeans::divided(3, 1, 2)] {
        let loss = |model: &KMeansModel| {
            let mut sum = 0.0;
            for view in retained.iter() {
                let mut x = vec![0.0; 2];
                view.features.add_to(1.0, &mut x);
                let features: Features = Dense::new(x, 2).unwrap().into();
                let distances = model.predict(&features).unwrap();
                sum += (0..3)
                    .map(|c| distances[(0, c)].powi(2))
                    .fold(f64::INFINITY, f64::min);
            }
            sum
        };
        let mut forgotten: Vec<f64> = (0..trials)
            .map(|seed| {
                let model = recipe.seed(seed).fit(&rows).unwrap();
                loss(&method(&recipe).forget(&model, &rows, &gone).unwrap().model)
            })
            .collect();
        let mut fresh: Vec<f64> = (0..trials)
            .map(|seed| loss(&recipe.seed(1_000_000 + seed).fit(&retained).unwrap()))
            .collect();
        forgotten.sort_by(f64::total_cmp);
        fresh.sort_by(f64::total_cmp);
        // Kolmogorov–Smirnov with two samples: 1.95·√(2/m) is passed by chance once in a thousand.
        let below = |all: &[f64], x: f64| all.partition_point(|y| *y <= x) as f64 / trials as f64;
        let gap = forgotten
            .iter()
            .chain(&fresh)
            .map(|&x| (below(&forgotten, x) - below(&fresh, x)).abs());
        assert!(
            gap.fold(0.0, f64::max) < 1.95 * (2.0 / trials as f64).sqrt(),
            "{recipe:?}"
        );
    }
}

/// One seed, one result: a forget is a fit without the rows, whichever way it took.
#[test]
fn the_same_seed_gives_the_same_clusters() {
    let rows = groups(50, 2.0, 6);
    for seed in 0..300 {
        for recipe in [
            KMeans::quantised(3, 0.3),
            KMeans::quantised(4, 2.0),
            KMeans::divided(3, 1, 3),
        ] {
            let recipe = recipe.seed(seed);
            let model = recipe.fit(&rows).unwrap();
            let gone: Vec<RowId> = rows.ids().skip(seed as usize % 7).step_by(9).collect();
            let after = method(&recipe).forget(&model, &rows, &gone).unwrap().model;
            let fresh = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
            assert_eq!(parameters(&after), parameters(&fresh), "{recipe:?}");
        }
    }
}

/// With one cluster the tree must end at the mean of all rows, however unequal its leaves are.
#[test]
fn an_inner_node_weighs_the_centres_of_its_children() {
    let rows = groups(37, 2.0, 6);
    let weights: Vec<f64> = (0..37).map(|i| [1.0, 0.0, 5.0][i % 3]).collect();
    let rows = rows.weighted(weights).unwrap();
    let mut sum = vec![0.0; 2];
    let mut total = 0.0;
    for view in rows.iter() {
        view.features.add_to(view.weight, &mut sum);
        total += view.weight;
    }
    for (height, width) in [(1, 2), (1, 16), (3, 3)] {
        let model = KMeans::divided(1, height, width).fit(&rows).unwrap();
        for (center, sum) in parameters(&model).iter().zip(&sum) {
            assert!(
                (center - sum / total).abs() < 1e-12,
                "{center} {}",
                sum / total
            );
        }
    }
}

#[test]
fn the_groups_are_found() {
    let rows = groups(700, 0.5, 2);
    for recipe in [KMeans::quantised(4, 0.1), KMeans::divided(4, 1, 4)] {
        // k-means++ may start badly, so the best of a few seeds speaks for the method.
        let found = (0..5).any(|seed| {
            let model = recipe.seed(seed).fit(&rows).unwrap();
            let probe: Features = Dense::new(vec![0., 0., 4., 0.5, 0.5, 5., 5., 5.], 2)
                .unwrap()
                .into();
            let mut clusters = model.assign(&probe).unwrap();
            let distances = model.predict(&probe).unwrap();
            let near = clusters
                .iter()
                .enumerate()
                .all(|(slot, &c)| distances[(slot, c)] < 0.3);
            clusters.sort_unstable();
            clusters == [0, 1, 2, 3] && near
        });
        assert!(found, "{recipe:?}");
    }
}

#[test]
fn neither_targets_nor_order_nor_sparsity_matter() {
    let rows = groups(90, 1.5, 4);
    let mut ids: Vec<RowId> = rows.ids().collect();
    ids.reverse();
    let mut table = Csr::<f64>::new(2);
    for id in &ids {
        table
            .push(&rows.get(*id).unwrap().features.entries())
            .unwrap();
    }
    let other = Rows::with_ids(ids, table, vec![5.0; 180], 2).unwrap();
    for recipe in [KMeans::quantised(4, 0.2), KMeans::divided(4, 1, 3)] {
        assert_eq!(
            parameters(&recipe.fit(&rows).unwrap()),
            parameters(&recipe.fit(&other).unwrap())
        );
    }
}

#[test]
fn learning_and_amending_equal_a_fit() {
    for recipe in [KMeans::quantised(3, 0.3), KMeans::divided(3, 1, 3)] {
        let rows = groups(80, 1.5, 5);
        let mut fitted = Fitted::new(&recipe, rows.filter(|id| id.0 > 30)).unwrap();
        fitted.learn(&rows.filter(|id| id.0 <= 30)).unwrap();
        assert_eq!(
            parameters(fitted.model()),
            parameters(&recipe.fit(&rows).unwrap())
        );
        let x = Dense::new(vec![9.0, -9.0], 2).unwrap();
        fitted
            .amend(&Rows::with_ids(vec![RowId(40)], x, vec![0.0], 1).unwrap())
            .unwrap();
        assert_eq!(
            parameters(fitted.model()),
            parameters(&recipe.fit(fitted.rows()).unwrap())
        );
        let error = fitted.learn(&rows.filter(|id| id.0 == 40)).unwrap_err();
        assert_eq!(error, Error::DuplicateRow(RowId(40)));
    }
}

#[test]
fn too_few_distinct_points_are_counted() {
    // Five rows, three places.
    let x = vec![0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 3.0];
    let rows = Rows::new(Dense::new(x, 2).unwrap(), vec![0.0; 5], 1).unwrap();
    for recipe in [KMeans::quantised(4, 0.1), KMeans::divided(4, 1, 2)] {
        let message = recipe.fit(&rows).unwrap_err().to_string();
        assert!(message.contains("4 (3 distinct points)"), "{message}");
        let recipe = KMeans { k: 3, ..recipe };
        let mut fitted = Fitted::new(&recipe, rows.clone()).unwrap();
        let before = fitted.model().clone();
        fitted
            .forget(method(&recipe).as_ref(), &[RowId(0), RowId(1)])
            .unwrap();
        let error = fitted
            .forget(method(&recipe).as_ref(), &[RowId(4)])
            .unwrap_err();
        assert!(
            error.to_string().contains("3 (2 distinct points)"),
            "{error}"
        );
        assert_eq!(fitted.rows().len(), 3);
        assert_eq!(fitted.model().rows(), 3);
        // The other scheme's method is refused, and says which to use.
        let wrong: (&dyn Forget<KMeansModel>, &str) = match recipe.scheme {
            Scheme::Quantised { .. } => (&DcKMeans, "use q_kmeans"),
            Scheme::Divided { .. } => (&QKMeans, "use dc_kmeans"),
        };
        let error = wrong.0.forget(&before, &rows, &[RowId(0)]).unwrap_err();
        assert!(error.to_string().contains(wrong.1), "{error}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let rows = groups(20, 1.0, 1);
    let quantised = |epsilon, gamma| KMeans {
        scheme: Scheme::Quantised { epsilon, gamma },
        ..KMeans::quantised(2, 1.0)
    };
    for (recipe, name) in [
        (KMeans::quantised(0, 0.1), "clusters = 0"),
        (KMeans::quantised(2, 0.1).iterations(0), "iterations"),
        (quantised(0.0, 0.2), "epsilon"),
        (quantised(f64::NAN, 0.2), "epsilon"),
        (quantised(0.1, 1.5), "gamma"),
        (KMeans::divided(2, 0, 2), "height"),
        (KMeans::divided(2, 1, 1), "width"),
        (KMeans::divided(2, 64, 64), "64^64"),
    ] {
        let message = recipe.fit(&rows).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
    let model = KMeans::quantised(2, 0.1).fit(&rows).unwrap();
    let damaged = serde_json::to_string(&model)
        .unwrap()
        .replacen("\"width\":2", "\"width\":3", 1);
    assert!(serde_json::from_str::<KMeansModel>(&damaged).is_err());
}
