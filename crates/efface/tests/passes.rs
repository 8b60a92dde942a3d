//! Rows beyond memory: models that are fitted and changed by passes over a store that shows a block
//! of rows at a time, beside the same models with all rows in memory.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use efface::methods::{Newton, WarmStart};
use efface::{
    Amend, Csr, Dense, Error, Evidence, Fit, Forget, KMeans, LinearSvm, Logistic, LogisticModel,
    Method, Model, PoissonRegression, Predict, Recipe, Result, RowId, RowStore, RowView, Rows,
};

/// Rows that a method sees block by block and never all at once.
struct BlockStore<'a> {
    rows: &'a Rows,
    block: usize,
    passes: AtomicUsize,
    /// The pass in which reading fails.
    fails_in: usize,
}

impl<'a> BlockStore<'a> {
    fn new(rows: &'a Rows, block: usize) -> Self {
        Self {
            rows,
            block,
            passes: AtomicUsize::new(0),
            fails_in: usize::MAX,
        }
    }
}

impl RowStore for BlockStore<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn width(&self) -> usize {
        self.rows.width()
    }
    fn outputs(&self) -> usize {
        self.rows.outputs()
    }
    fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }
    fn contains(&self, id: RowId) -> Result<bool> {
        self.rows.contains(id)
    }
    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> Result<()> {
        self.rows.visit(ids, see)
    }
    fn all(&self) -> Result<Cow<'_, Rows>> {
        Err(Error::BeyondMemory { rows: self.len() })
    }
    fn is_beyond_memory(&self) -> bool {
        true
    }
    fn each_block(&self, see: &mut dyn FnMut(&Rows) -> Result<()>) -> Result<()> {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        let mut ids: Vec<RowId> = self.rows.ids().collect();
        ids.sort_unstable();
        for (at, block) in ids.chunks(self.block).enumerate() {
            if pass == self.fails_in && at == 1 {
                return Err(Error::Damaged("a block could not be read".into()));
            }
            see(&Rows::read(self.rows, block)?)?;
        }
        Ok(())
    }
}

/// Numbers from −1 to 1.
fn waves(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64) / (1u64 << 52) as f64 - 1.0
    }
}

/// Rows with columns of unlike units, of so many classes; two classes are one column of −1 and 1.
fn labelled(count: usize, classes: usize, sparse: bool) -> Rows {
    let mut next = waves(classes as u64 + 3);
    let width = 6;
    let mut dense = Vec::new();
    let mut entries = Csr::<f64>::new(60);
    let mut targets = Vec::new();
    let mut weights = Vec::new();
    for row in 0..count {
        let x: Vec<f64> = (0..width)
            .map(|j| next() * [1.0, 40.0, 0.01][j % 3] + (j == 4) as u8 as f64 * 9.0)
            .collect();
        let score = x[0] - 0.02 * x[1] + 30.0 * x[2] + 0.8 * next();
        let class =
            ((score + 1.5) / 3.0 * classes as f64).clamp(0.0, classes as f64 - 1.0) as usize;
        if classes == 2 {
            targets.push(if class == 1 { 1.0 } else { -1.0 });
        } else {
            targets.extend((0..classes).map(|c| if c == class { 1.0 } else { 0.0 }));
        }
        weights.push(if row % 7 == 0 { 2.0 } else { 1.0 });
        let place = (row % 20) as u32;
        let mut pairs = vec![
            (place, x[0]),
            (20 + class as u32, 1.0 + next()),
            (40 + place / 2, next()),
        ];
        pairs.sort_by_key(|pair| pair.0);
        entries.push(&pairs).unwrap();
        dense.extend(x);
    }
    let outputs = if classes == 2 { 1 } else { classes };
    let rows = if sparse {
        Rows::new(entries, targets, outputs)
    } else {
        Rows::new(Dense::new(dense, width).unwrap(), targets, outputs)
    };
    rows.unwrap().weighted(weights).unwrap()
}

/// The distance of two models relative to the size of the second, and the sum of their relative
/// bounds.
fn apart(found: &Model, truth: &Model) -> f64 {
    let [a, b] = [found, truth].map(|model| model.parameters().unwrap());
    let numbers = |named: efface::models::family::NamedParameters| -> Vec<f64> {
        let vectors = named.vectors.into_iter().flat_map(|(_, values)| values);
        let tables = named.tables.into_iter().flat_map(|(_, table)| {
            (0..table.ncols())
                .flat_map(move |c| table.col_as_slice(c).to_vec())
                .collect::<Vec<_>>()
        });
        vectors.chain(tables).collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    assert_eq!(a.len(), b.len());
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>().sqrt();
    let far = norm(&mut a.iter().zip(&b).map(|(a, b)| a - b));
    far / norm(&mut b.iter().copied())
}

/// That a model is as near to another as their bounds say, and that its own bound is within the
/// tolerance.
fn near(name: &str, found: &Model, bound: &Evidence, truth: &Model) {
    let far = apart(found, truth);
    let allowed = bound.relative_bound + truth.evidence().relative_bound;
    assert!(
        far <= 1.01 * allowed + 1e-14,
        "{name}: {far:e} apart, bounds {allowed:e}"
    );
    let tolerance = bound.tolerance.unwrap_or(1e-8);
    assert!(
        bound.relative_bound <= tolerance,
        "{name}: bound {:e} above {tolerance:e}",
        bound.relative_bound
    );
}

fn convex() -> Vec<(&'static str, Recipe, Rows)> {
    let counts = {
        let mut next = waves(5);
        let x: Vec<f64> = (0..700 * 4).map(|_| next()).collect();
        let y = x
            .chunks(4)
            .map(|x| (x[0] - 0.5 * x[1] + 1.0).exp().round())
            .collect();
        Rows::new(Dense::new(x, 4).unwrap(), y, 1).unwrap()
    };
    vec![
        (
            "logistic",
            Logistic::new(0.5).into(),
            labelled(900, 2, false),
        ),
        (
            "logistic without a constant",
            Logistic::new(0.5).intercept(false).into(),
            labelled(900, 2, false),
        ),
        (
            "logistic on two threads",
            Logistic::new(0.5).threads(2).into(),
            labelled(900, 2, false),
        ),
        (
            "sparse logistic",
            Logistic::new(0.5).into(),
            labelled(900, 2, true),
        ),
        (
            "softmax",
            Logistic::new(0.5).softmax().into(),
            labelled(900, 4, false),
        ),
        (
            "sparse softmax",
            Logistic::new(0.5).softmax().into(),
            labelled(900, 4, true),
        ),
        ("svm", LinearSvm::new(0.5).into(), labelled(900, 2, false)),
        (
            "sparse svm",
            LinearSvm::new(0.5).into(),
            labelled(900, 2, true),
        ),
        ("poisson", PoissonRegression::new(0.1).into(), counts),
    ]
}

#[test]
fn fits_by_passes_reach_the_optimum_of_all_rows() {
    for (name, recipe, rows) in convex() {
        let truth = recipe.fit(&rows).unwrap();
        for block in [64, 333] {
            let store = BlockStore::new(&rows, block);
            let found = recipe.fit_store(&store).unwrap();
            assert_eq!(found.rows(), rows.len(), "{name}");
            near(name, &found, &found.evidence(), &truth);
            assert!(store.passes.load(Ordering::Relaxed) > 3, "{name}");
        }
    }
}

#[test]
fn forgets_by_passes_are_those_of_a_refit() {
    let gone: Vec<RowId> = [3, 64, 65, 500, 699].map(RowId).to_vec();
    for (name, recipe, rows) in convex() {
        let truth = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
        let store = BlockStore::new(&rows, 100);
        let model = recipe.fit_store(&store).unwrap();
        for method in [Method::default(), Method::WarmStart, Method::Retrain] {
            let outcome = model.forget(&method, &store, &gone).unwrap();
            near(
                &format!("{name} {}", method.name()),
                &outcome.model,
                &outcome.evidence,
                &truth,
            );
        }
        // A hundred rows are more than a kept Hessian takes as they come.
        let many: Vec<RowId> = (100..200).map(RowId).collect();
        let truth = recipe.fit(&rows.filter(|id| !many.contains(&id))).unwrap();
        let outcome = model.forget(&Method::default(), &store, &many).unwrap();
        near(name, &outcome.model, &outcome.evidence, &truth);
    }
}

#[test]
fn rows_that_join_and_rows_that_change_are_read_with_the_others() {
    for (name, recipe, rows) in convex() {
        let (old, late) = (rows.filter(|id| id.0 < 650), rows.filter(|id| id.0 >= 650));
        let truth = recipe.fit(&rows).unwrap();
        let model = recipe.fit(&old).unwrap();
        let learned = model.learn(&BlockStore::new(&old, 90), &late).unwrap();
        near(name, &learned.model, &learned.evidence, &truth);
        // Three rows take the content of others.
        let mut changed = rows.filter(|id| ![5, 300, 600].contains(&id.0));
        let content = Rows::read(&rows, &[6, 301, 601].map(RowId)).unwrap();
        let table = content.table().into_owned();
        let targets: Vec<f64> = content
            .iter()
            .flat_map(|row| row.targets.to_vec())
            .collect();
        let corrected = Rows::with_ids(
            [5, 300, 600].map(RowId).to_vec(),
            table,
            targets,
            rows.outputs(),
        )
        .unwrap();
        changed.append(&corrected).unwrap();
        let truth = recipe.fit(&changed).unwrap();
        let amended = recipe
            .fit(&rows)
            .unwrap()
            .amend(&BlockStore::new(&rows, 90), &corrected)
            .unwrap();
        near(name, &amended.model, &amended.evidence, &truth);
    }
}

/// Without a Hessian a classifier is trained and changed by conjugate gradients, whose products are
/// passes.
#[test]
fn classifiers_without_a_hessian_go_by_passes_too() {
    let rows = labelled(900, 4, true);
    let recipe: Recipe = Logistic::new(0.5).curvature(false).softmax().into();
    let truth = recipe.fit(&rows.filter(|id| id != RowId(7))).unwrap();
    let store = BlockStore::new(&rows, 128);
    let model = recipe.fit_store(&store).unwrap();
    near(
        "fit",
        &model,
        &model.evidence(),
        &recipe.fit(&rows).unwrap(),
    );
    let outcome = model
        .forget(&Method::default(), &store, &[RowId(7)])
        .unwrap();
    near("forget", &outcome.model, &outcome.evidence, &truth);
    let classifier = model.get::<LogisticModel>().unwrap();
    let newton = Newton::default()
        .forget(classifier, &store, &[RowId(7)])
        .unwrap();
    assert!(newton.evidence.relative_bound.is_finite());
    WarmStart.forget(classifier, &store, &[RowId(7)]).unwrap();
}

#[test]
fn clusters_of_passes_are_those_of_memory_to_the_bit() {
    let mut next = waves(11);
    // More points than are summed by themselves, and a last piece that is not full.
    let x: Vec<f64> = (0..9500)
        .flat_map(|row| [next() + f64::from(row % 3) * 4.0, next() * 0.3, next()])
        .collect();
    let rows = Rows::new(Dense::new(x, 3).unwrap(), vec![0.0; 9500], 1).unwrap();
    for recipe in [KMeans::quantised(5, 0.05), KMeans::divided(5, 1, 4)] {
        let whole = recipe.fit(&rows).unwrap();
        let store = BlockStore::new(&rows, 1000);
        assert_eq!(recipe.fit_store(&store).unwrap(), whole);
        let recipe: Recipe = recipe.into();
        let model = recipe.fit_store(&store).unwrap();
        // Whatever the rows are: one that a run started from, and many at once, lead through all
        // passes again.
        let many: Vec<RowId> = (0..3000).map(RowId).collect();
        for gone in [vec![RowId(4)], vec![RowId(17), RowId(9499)], many] {
            let truth = recipe.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
            let outcome = model.forget(&Method::default(), &store, &gone).unwrap();
            assert_eq!(apart(&outcome.model, &truth), 0.0);
            assert_eq!(
                outcome.model.predict(&rows.table()).unwrap(),
                truth.predict(&rows.table()).unwrap()
            );
        }
        let old = rows.filter(|id| id.0 < 9000);
        let late = rows.filter(|id| id.0 >= 9000);
        let learned = recipe
            .fit(&old)
            .unwrap()
            .learn(&BlockStore::new(&old, 700), &late)
            .unwrap();
        assert_eq!(apart(&learned.model, &recipe.fit(&rows).unwrap()), 0.0);
    }
}

#[test]
fn a_store_that_fails_in_any_pass_ends_the_work_with_its_error() {
    for (name, recipe, rows) in convex() {
        let counted = BlockStore::new(&rows, 100);
        recipe.fit_store(&counted).unwrap();
        for pass in 0..counted.passes.load(Ordering::Relaxed) {
            let store = BlockStore {
                fails_in: pass,
                ..BlockStore::new(&rows, 100)
            };
            let error = recipe.fit_store(&store).unwrap_err();
            assert_eq!(
                error,
                Error::Damaged("a block could not be read".into()),
                "{name}, pass {pass}"
            );
        }
    }
    let clusters = KMeans::quantised(3, 0.05);
    let rows = labelled(300, 2, false);
    let store = BlockStore {
        fails_in: 2,
        ..BlockStore::new(&rows, 100)
    };
    assert!(matches!(clusters.fit_store(&store), Err(Error::Damaged(_))));
    // What needs all rows at once says so.
    let ridge: Recipe = efface::Ridge::new(1.0).into();
    assert_eq!(
        ridge.fit_store(&BlockStore::new(&rows, 100)).unwrap_err(),
        Error::BeyondMemory { rows: 300 }
    );
}
