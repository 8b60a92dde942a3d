//! SISA: after any change, the model is to the bit that of the same shards trained anew; and no
//! more is trained than must.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use efface::methods::{Retrain, contract};
use efface::models::RowsBeside;
use efface::models::sisa::{Aggregation, ShardCheckpoint, Sisa, SisaForget, SisaModel};
use efface::rows::{RowStore, RowView};
use efface::{
    Amend, BernoulliNb, ComplementNb, Csr, Dense, Error, Family, Features, Fit, Fitted, Forget,
    GaussianNb, LinearSvm, Logistic, Method, Model, MultinomialNb, NaiveBayes, Predict, Recipe,
    Ridge, RidgeModel, RowId, Rows, ShardRecipe, Softmax,
};
use faer::Mat;
use serde::{Deserialize, Serialize};

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

/// Rows with three features of 0 or more; targets −1 and +1, or one of `outputs`.
fn some(n: usize, outputs: usize, seed: u64) -> Rows {
    let mut numbers = Numbers(seed);
    let values: Vec<f64> = (0..3 * n)
        .map(|at| numbers.next().abs() + (at % 7) as f64)
        .collect();
    let targets = (0..n).flat_map(|i| (0..outputs).map(move |c| (i, c)));
    let targets = targets.map(|(i, c)| match outputs {
        1 => [-1.0, 1.0, 1.0][i % 3],
        _ => (i % outputs == c) as u8 as f64,
    });
    let ids = (0..n as u64).map(|i| RowId(40 + 7 * i)).collect();
    Rows::with_ids(
        ids,
        Dense::new(values, 3).unwrap(),
        targets.collect(),
        outputs,
    )
    .unwrap()
}

fn flat(table: &Mat<f64>) -> Vec<f64> {
    (0..table.nrows())
        .flat_map(|i| (0..table.ncols()).map(move |j| table[(i, j)]))
        .collect()
}

fn probe(values: &[f64], width: usize) -> Features {
    Dense::new(values.to_vec(), width).unwrap().into()
}

/// All shards' numbers in one list.
fn numbers<F: Fit>(model: &SisaModel<F>, of: impl Fn(&F::Model) -> Vec<f64>) -> Vec<f64> {
    let answers = model.answers().map(|answer| match answer {
        ShardCheckpoint::Trained(model) => of(model),
        ShardCheckpoint::SomeClasses { classes, model } => {
            let classes = classes.iter().map(|class| *class as f64).collect();
            [classes, of(model)].concat()
        }
        ShardCheckpoint::OneClass(class) => vec![-1.0 - *class as f64],
        ShardCheckpoint::Abstains | ShardCheckpoint::AsBefore => vec![-99.0],
    });
    answers.flatten().collect()
}

fn of_ridge(model: &RidgeModel) -> Vec<f64> {
    let (coefficients, intercept) = model.parameters();
    [flat(&coefficients), intercept].concat()
}

fn of_multinomial(model: &NaiveBayes<MultinomialNb>) -> Vec<f64> {
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

fn reload<M: Serialize + serde::de::DeserializeOwned>(
    model: &M,
    _: &dyn RowStore,
) -> efface::Result<M> {
    let damaged = |e: serde_json::Error| Error::Damaged(e.to_string());
    serde_json::from_value(serde_json::to_value(model).map_err(damaged)?).map_err(damaged)
}

/// What the contract needs to know of a recipe.
type Look<'a, F> = &'a dyn Fn(&<F as Fit>::Model) -> Vec<f64>;
type Reload<'a, F> = &'a dyn Fn(&SisaModel<F>, &dyn RowStore) -> efface::Result<SisaModel<F>>;

fn hold<F>(recipe: &F, rows: &Rows, look: Look<'_, F>, reload: Reload<'_, F>)
where
    F: Fit + Clone + Sync + Debug,
    F::Model: Clone + Send + Sync,
{
    for (shards, slices) in [(1, 1), (1, 4), (3, 1), (4, 3), (9, 5)] {
        let sisa = Sisa::new(recipe.clone(), shards, slices)
            .seed(5)
            .threads(1 + shards % 2);
        for step in [1, 4] {
            let gone: Vec<RowId> = rows.ids().step_by(step).take(11).collect();
            let case = contract::Case {
                name: &format!("{recipe:?} in {shards} × {slices}"),
                recipe: &sisa,
                rows,
                gone: &gone,
                parameters: &|model| numbers(model, look),
                reload,
                tolerance: 0.0,
                noise: 0.0,
            };
            contract::check(&SisaForget, &case).unwrap_or_else(|v| panic!("{v}"));
            contract::check(&Retrain, &case).unwrap_or_else(|v| panic!("{v}"));
        }
    }
}

#[test]
fn the_contract() {
    for outputs in [1, 3] {
        let plain = some(60, outputs, 3);
        let weighted = plain
            .clone()
            .weighted((0..60).map(|i| [1.0, 0.3, 0.0, 2.5][i % 4]).collect())
            .unwrap();
        for rows in [&plain, &weighted] {
            // A ridge model is stored in a form of its own; here only its shards are of interest.
            hold(&Ridge::new(0.5), rows, &of_ridge, &|model, _| {
                Ok(model.clone())
            });
            hold(&MultinomialNb::default(), rows, &of_multinomial, &reload);
            hold(&GaussianNb::default(), rows, &of_gaussian, &reload);
        }
        let mut table = Csr::<f32>::new(3);
        plain
            .iter()
            .for_each(|view| table.push(&view.features.entries()).unwrap());
        let targets = plain
            .iter()
            .flat_map(|view| view.targets.to_vec())
            .collect();
        let sparse = Rows::with_ids(plain.ids().collect(), table, targets, outputs).unwrap();
        hold(&MultinomialNb::default(), &sparse, &of_multinomial, &reload);
    }
}

/// Remembers what it was asked, and makes models that tell every row, its content, its order and
/// the start apart.
#[derive(Debug, Clone, Default)]
struct Diary(Arc<Mutex<Vec<(bool, usize)>>>);

impl Diary {
    fn fingerprint(&self, start: Option<u64>, rows: &Rows) -> u64 {
        self.0.lock().unwrap().push((start.is_some(), rows.len()));
        rows.iter().fold(start.unwrap_or(17), |state, view| {
            let mut words = vec![view.id.0, view.weight.to_bits()];
            words.extend(view.targets.iter().map(|t| t.to_bits()));
            view.features.each(|_, x| words.push(x.to_bits()));
            words.iter().fold(state, |state, word| {
                (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1
            })
        })
    }

    fn read(&self) -> Vec<(bool, usize)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Fit for Diary {
    type Model = u64;

    fn fit(&self, rows: &Rows) -> efface::Result<u64> {
        Ok(self.fingerprint(None, rows))
    }

    fn resume(&self, start: &u64, rows: &Rows) -> efface::Result<u64> {
        Ok(self.fingerprint(Some(*start), rows))
    }

    fn bytes(&self, _: &u64) -> usize {
        8
    }
}

fn prints(model: &SisaModel<Diary>) -> Vec<ShardCheckpoint<u64>> {
    model.answers().cloned().collect()
}

/// The rows of a model by shard and slice.
fn dealt<F>(sisa: &Sisa<F>, rows: &Rows) -> Vec<Vec<Vec<RowId>>> {
    let mut places = vec![vec![Vec::new(); sisa.slices]; sisa.shards];
    for id in rows.ids() {
        let (shard, slice) = sisa.place(id);
        places[shard][slice].push(id);
    }
    places
}

#[test]
fn a_chain_is_trained_slice_by_slice() {
    let sisa = Sisa::new(Diary::default(), 2, 3).aggregation(Aggregation::Mean);
    let rows = some(40, 1, 1);
    sisa.fit(&rows).unwrap();
    let mut expected = Vec::new();
    for shard in dealt(&sisa, &rows) {
        let mut sum = 0;
        for (slice, ids) in shard.iter().enumerate() {
            sum += ids.len();
            expected.push((slice > 0, sum));
        }
    }
    assert_eq!(sisa.recipe.read(), expected);
    let evidence = Retrain
        .forget(&sisa.fit(&rows).unwrap(), &rows, &[])
        .unwrap()
        .evidence;
    assert_eq!((evidence.iterations, evidence.rows_read), (6, 40));
}

#[test]
fn only_the_touched_shard_is_trained_and_only_from_the_touched_slice() {
    let shards = 3;
    let slices = 4;
    let sisa = Sisa::new(Diary::default(), shards, slices).aggregation(Aggregation::Mean);
    let rows = some(90, 1, 2);
    let model = sisa.fit(&rows).unwrap();
    let dealt = dealt(&sisa, &rows);
    for shard in &dealt {
        for slice in 0..slices {
            let before: usize = shard[..slice].iter().map(Vec::len).sum();
            let own: usize = shard.iter().map(Vec::len).sum();
            // One row and three rows of one slice cost the same: one training of the rest of the
            // chain.
            for count in [1, 3] {
                sisa.recipe.read();
                let gone = &shard[slice][..count];
                let after = SisaForget.forget(&model, &rows, gone).unwrap();
                let asked = sisa.recipe.read();
                assert_eq!(asked.len(), slices - slice);
                assert_eq!(asked[0].1, before + shard[slice].len() - count);
                assert_eq!(
                    asked[0].0,
                    slice > 0,
                    "it goes on from the checkpoint before"
                );
                let evidence = after.evidence;
                assert_eq!(
                    (evidence.iterations, evidence.rows_read),
                    (slices - slice, own - count)
                );
                assert_eq!((evidence.bound, evidence.refactored), (0.0, true));
                let kept: Vec<&str> = evidence
                    .precomputed
                    .iter()
                    .map(|part| part.what.as_str())
                    .collect();
                assert_eq!(kept, ["checkpoints", "row ids of the slices"]);
                assert_eq!(evidence.precomputed[0].bytes, 8 * shards * slices);
                let fresh = sisa.fit(&rows.filter(|id| !gone.contains(&id))).unwrap();
                assert_eq!(prints(&after.model), prints(&fresh));
            }
        }
    }
    // Rows of two slices of one shard: from the earlier on, once.
    sisa.recipe.read();
    let gone = [dealt[1][3][0], dealt[1][1][0], dealt[1][3][1]];
    assert_eq!(
        SisaForget
            .forget(&model, &rows, &gone)
            .unwrap()
            .evidence
            .iterations,
        3
    );
    assert_eq!(sisa.recipe.read().len(), 3);
    let nothing = SisaForget.forget(&model, &rows, &[]).unwrap().evidence;
    assert_eq!(
        (nothing.iterations, nothing.refactored, nothing.rows_read),
        (0, false, 0)
    );
}

/// A store that shows single rows only, and counts them.
struct Drawer<'a>(&'a Rows, AtomicUsize);

impl RowStore for Drawer<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn width(&self) -> usize {
        self.0.width()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn is_sparse(&self) -> bool {
        self.0.is_sparse()
    }

    fn contains(&self, id: RowId) -> efface::Result<bool> {
        self.0.contains(id)
    }

    fn visit(&self, ids: &[RowId], see: &mut dyn FnMut(usize, RowView<'_>)) -> efface::Result<()> {
        self.1.fetch_add(ids.len(), Ordering::Relaxed);
        self.0.visit(ids, see)
    }

    fn all(&self) -> efface::Result<Cow<'_, Rows>> {
        panic!("the rows of other shards are nobody's business")
    }
}

#[test]
fn other_shards_are_not_read() {
    let sisa = Sisa::new(Diary::default(), 5, 3).threads(2);
    let rows = some(90, 1, 2);
    let model = sisa.fit(&rows).unwrap();
    let dealt = dealt(&sisa, &rows);
    let gone = [dealt[1][2][0], dealt[3][0][0]];
    let others = dealt[1].concat().len() + dealt[3].concat().len() - 2;
    let drawer = Drawer(&rows, AtomicUsize::new(0));
    let after = SisaForget.forget(&model, &drawer, &gone).unwrap();
    assert_eq!(drawer.1.load(Ordering::Relaxed), others);
    assert_eq!(after.evidence.rows_read, others);
    assert_eq!(
        prints(&after.model),
        prints(&sisa.fit(&rows.filter(|id| !gone.contains(&id))).unwrap())
    );
}

#[test]
fn threads_and_the_order_of_the_rows_do_not_matter() {
    let rows = some(120, 1, 4);
    let reversed = {
        let mut ids: Vec<RowId> = rows.ids().collect();
        ids.reverse();
        let mut turned = rows.filter(|id| id == ids[0]);
        ids[1..]
            .iter()
            .for_each(|&one| turned.append(&rows.filter(|id| id == one)).unwrap());
        turned
    };
    let gone: Vec<RowId> = rows.ids().step_by(5).collect();
    let results: Vec<Vec<ShardCheckpoint<u64>>> =
        [(1, &rows), (2, &rows), (64, &rows), (2, &reversed)]
            .into_iter()
            .map(|(threads, rows)| {
                let model = Sisa::new(Diary::default(), 7, 3)
                    .threads(threads)
                    .fit(rows)
                    .unwrap();
                prints(&SisaForget.forget(&model, rows, &gone).unwrap().model)
            })
            .collect();
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
    let other = Sisa::new(Diary::default(), 7, 3)
        .seed(1)
        .fit(&rows)
        .unwrap();
    assert_ne!(
        prints(&SisaForget.forget(&other, &rows, &gone).unwrap().model),
        results[0]
    );
}

#[test]
fn rows_are_dealt_evenly_by_id_and_seed() {
    let sisa = Sisa::new((), 5, 4).seed(9);
    let mut counts = [[0usize; 4]; 5];
    for id in 0..20_000 {
        let (shard, slice) = sisa.place(RowId(id));
        counts[shard][slice] += 1;
    }
    // A thousand each; five standard deviations are 155.
    assert!(
        counts
            .iter()
            .flatten()
            .all(|count| count.abs_diff(1000) < 155),
        "{counts:?}"
    );
}

#[test]
fn learning_and_amending_train_the_same_chains() {
    let rows = some(70, 1, 6);
    for sisa in [
        Sisa::new(Diary::default(), 3, 4),
        Sisa::new(Diary::default(), 30, 2),
    ] {
        let mut fitted = Fitted::new(&sisa, rows.filter(|id| id.0 > 100)).unwrap();
        let evidence = fitted.learn(&rows.filter(|id| id.0 <= 100)).unwrap();
        assert_eq!((evidence.learned, evidence.rows), (9, 70));
        assert_eq!(prints(fitted.model()), prints(&sisa.fit(&rows).unwrap()));
        let x = Dense::new(vec![0.1, 0.2, 0.3, 9.0, 8.0, 7.0], 3).unwrap();
        let ids = vec![RowId(40 + 7 * 30), RowId(40 + 7 * 2)];
        let evidence = fitted
            .amend(&Rows::with_ids(ids, x, vec![1.0, -1.0], 1).unwrap())
            .unwrap();
        assert_eq!(
            (evidence.forgotten, evidence.learned, evidence.rows),
            (2, 2, 70)
        );
        assert_eq!(
            prints(fitted.model()),
            prints(&sisa.fit(fitted.rows()).unwrap())
        );
        let error = fitted.learn(&rows.filter(|id| id.0 == 40)).unwrap_err();
        assert_eq!(error, Error::DuplicateRow(RowId(40)));
        let stranger = Rows::with_ids(
            vec![RowId(1)],
            Dense::new(vec![0.0; 3], 3).unwrap(),
            vec![1.0],
            1,
        )
        .unwrap();
        assert_eq!(
            fitted.amend(&stranger).unwrap_err(),
            Error::UnknownRow(RowId(1))
        );
    }
}

/// The store rounds what it keeps; a model that learned the digits it drops would not be that of
/// its rows.
#[test]
fn what_joins_is_read_in_the_precision_it_will_be_kept_in() {
    let single: Vec<f32> = (0..60).map(|i| i as f32 * 0.37).collect();
    let rows = Rows::new(Dense::new(single, 3).unwrap(), vec![1.0; 20], 1).unwrap();
    let sisa = Sisa::new(Diary::default(), 20, 3);
    let mut fitted = Fitted::new(&sisa, rows).unwrap();
    let new = Dense::new((0..60).map(|i| i as f64 * 0.1).collect(), 3).unwrap();
    let ids = (100..120).map(RowId).collect();
    fitted
        .learn(&Rows::with_ids(ids, new, vec![-1.0; 20], 1).unwrap())
        .unwrap();
    assert_eq!(
        prints(fitted.model()),
        prints(&sisa.fit(fitted.rows()).unwrap())
    );
}

/// The mean target of its rows as its only parameter; refuses rows of one class only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Picky {
    columns: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Level(Vec<f64>);

impl Fit for Picky {
    type Model = Level;

    fn fit(&self, rows: &Rows) -> efface::Result<Level> {
        let above = rows.iter().filter(|view| view.targets[0] > 0.0).count();
        if above == 0 || above == rows.len() {
            return Err(Error::EmptyClass {
                class: (above == 0) as usize,
                classes: 2,
            });
        }
        Ok(Level(
            (0..self.columns)
                .map(|c| 10.0 + c as f64 + above as f64)
                .collect(),
        ))
    }

    fn class_scores(&self, _outputs: usize) -> Option<usize> {
        Some(self.columns)
    }
}

impl Predict for Level {
    fn predict(&self, features: &Features) -> efface::Result<Mat<f64>> {
        Ok(Mat::from_fn(features.rows(), self.0.len(), |_, c| {
            self.0[c]
        }))
    }
}

#[test]
fn a_shard_of_one_class_has_a_say_where_no_shard_knows_two() {
    let one = Sisa::new(Picky { columns: 1 }, 2, 3);
    let two = Sisa::new(Picky { columns: 2 }, 2, 3);
    let dealt = {
        let ids = (0..40).map(RowId).collect();
        let rows =
            Rows::with_ids(ids, Dense::new(vec![1.0; 40], 1).unwrap(), vec![0.0; 40], 1).unwrap();
        dealt(&one, &rows)
    };
    // Shard 0 has one class only, with targets 1 and 2 of weights 1 and 3; shard 1 both, the second
    // not before its last slice.
    let mut lines = vec![(dealt[0][0][0], 1.0, 1.0), (dealt[0][2][0], 2.0, 3.0)];
    lines.extend([
        (dealt[1][0][0], -1.0, 1.0),
        (dealt[1][1][0], -1.0, 1.0),
        (dealt[1][2][0], 1.0, 1.0),
    ]);
    let rows = Rows::with_ids(
        lines.iter().map(|line| line.0).collect(),
        Dense::new(vec![1.0; 5], 1).unwrap(),
        lines.iter().map(|line| line.1).collect(),
        1,
    )
    .unwrap()
    .weighted(lines.iter().map(|line| line.2).collect())
    .unwrap();
    let model = one
        .clone()
        .aggregation(Aggregation::Mean)
        .fit(&rows)
        .unwrap();
    let expected = [
        ShardCheckpoint::OneClass(1),
        ShardCheckpoint::Trained(Level(vec![11.0])),
    ];
    assert!(model.answers().eq(&expected));
    assert_eq!(model.shards_by_class(), Some(vec![1, 2]));
    assert_eq!(model.predict(&probe(&[0.0], 1)).unwrap()[(0, 0)], 11.0);
    let averaged = two.aggregation(Aggregation::Mean).fit(&rows).unwrap();
    let scores = averaged.predict(&probe(&[0.0], 1)).unwrap();
    assert_eq!([scores[(0, 0)], scores[(0, 1)]], [11.0, 12.0]);
    // Without its last row shard 1 has one class too, as retraining has it; both have a say then.
    for (recipe, expected) in [
        (one, vec![0.0]),
        (averaged.settings().clone(), vec![0.5, 0.5]),
    ] {
        let model = recipe.fit(&rows).unwrap();
        let gone = [dealt[1][2][0]];
        let after = SisaForget.forget(&model, &rows, &gone).unwrap().model;
        assert_eq!(after, Retrain.forget(&model, &rows, &gone).unwrap().model);
        assert!(
            after
                .answers()
                .eq(&[ShardCheckpoint::OneClass(1), ShardCheckpoint::OneClass(0)])
        );
        assert_eq!(flat(&after.predict(&probe(&[0.0], 1)).unwrap()), expected);
        assert_eq!(reload(&after, &rows).unwrap(), after);
    }
}

/// Rows of as many classes as there are counts, with so many rows each: counts in a column for each
/// class, of which that of the row's own class is the largest.
fn separable(counts: &[usize]) -> Rows {
    let classes = counts.len();
    let mut numbers = Numbers(7);
    let mut values = Vec::new();
    let mut targets = Vec::new();
    let own = (0..classes).flat_map(|class| std::iter::repeat_n(class, counts[class]));
    for own in own {
        for class in 0..classes {
            values.push(numbers.next().abs() + if class == own { 4.0 } else { 0.0 });
        }
        match classes {
            2 => targets.push(if own == 1 { 1.0 } else { -1.0 }),
            _ => targets.extend((0..classes).map(|class| (class == own) as u8 as f64)),
        }
    }
    let outputs = if classes == 2 { 1 } else { classes };
    Rows::new(Dense::new(values, classes).unwrap(), targets, outputs).unwrap()
}

/// The number of the class that each row is scored highest for, or of its targets.
fn decided(table: impl Iterator<Item = Vec<f64>>) -> Vec<usize> {
    let best = |line: Vec<f64>| match line[..] {
        [score] => (score > 0.0) as usize,
        _ => (0..line.len()).fold(0, |a, b| if line[b] > line[a] { b } else { a }),
    };
    table.map(best).collect()
}

/// Shards of every classifier, before and after all rows of a class are forgotten, answer nearly as
/// well as the rows allow, never with the class that is gone, and to the bit as retraining does.
#[test]
fn a_class_that_shards_lack_costs_the_other_classes_nothing() {
    let threshold = 2.0;
    let bernoulli = BernoulliNb {
        threshold,
        ..BernoulliNb::default()
    };
    let classifiers: [(Recipe, bool); 8] = [
        (Ridge::new(1.0).into(), true),
        (Logistic::new(1.0).into(), false),
        (Softmax::new(1.0).into(), true),
        (LinearSvm::new(1.0).into(), true),
        (MultinomialNb::default().into(), true),
        (ComplementNb::default().into(), true),
        (bernoulli.into(), true),
        (GaussianNb::default().into(), true),
    ];
    let tables: [&[usize]; 4] = [&[40, 40, 40], &[40, 40, 40, 3], &[40, 30], &[40, 2]];
    for (recipe, many_classes) in &classifiers {
        for counts in tables {
            let softmax = matches!(recipe.family(), Family::Softmax);
            if (counts.len() > 2 && !many_classes) || (counts.len() == 2 && softmax) {
                continue;
            }
            let rows = separable(counts);
            let own = decided(rows.iter().map(|view| view.targets.to_vec()));
            let shapes = [(4, 2), (8, 1)].into_iter();
            let cases = shapes.flat_map(|shape| {
                [Aggregation::Vote, Aggregation::Mean].map(|aggregation| (shape, aggregation))
            });
            for ((shards, slices), aggregation) in cases {
                // The variance of a class with one row in a shard is all but 0, and rules the mean.
                let is_gaussian = recipe.family() == Family::GaussianNb;
                if is_gaussian && aggregation == Aggregation::Mean {
                    continue;
                }
                let name = format!(
                    "{:?} {counts:?} {shards}x{slices} {aggregation:?}",
                    recipe.family()
                );
                let sisa = Sisa::new(ShardRecipe::new(recipe.clone()).unwrap(), shards, slices)
                    .aggregation(aggregation);
                let sisa = Recipe::new(sisa);
                let right = |model: &Model, but: Option<usize>| {
                    let scores = model.predict(&rows.table()).unwrap();
                    assert!(
                        flat(&scores).iter().all(|score| score.is_finite()),
                        "{name}"
                    );
                    let line = |slot| (0..scores.ncols()).map(|c| scores[(slot, c)]).collect();
                    let answers = decided((0..rows.len()).map(line));
                    let left = own
                        .iter()
                        .zip(&answers)
                        .filter(|(own, _)| Some(**own) != but);
                    if let Some(gone) = but {
                        assert!(!answers.contains(&gone), "{name}: the class that is gone");
                    }
                    let count = left.clone().count() as f64;
                    left.filter(|(own, answer)| own == answer).count() as f64 / count
                };
                let model = sisa.fit(&rows).unwrap();
                let accuracy = right(&model, None);
                assert!(accuracy > 0.9, "{name}: {accuracy}");
                for class in [0, counts.len() - 1] {
                    let gone: Vec<RowId> = rows
                        .ids()
                        .zip(&own)
                        .filter_map(|(id, own)| (*own == class).then_some(id))
                        .collect();
                    let after = model.forget(&Method::Sisa, &rows, &gone).unwrap().model;
                    let accuracy = right(&after, Some(class));
                    assert!(accuracy > 0.9, "{name} without {class}: {accuracy}");
                    let trained = model.forget(&Method::Retrain, &rows, &gone).unwrap().model;
                    let scores = |model: &Model| flat(&model.predict(&rows.table()).unwrap());
                    assert_eq!(scores(&after), scores(&trained), "{name} without {class}");
                    let back = sisa
                        .restore(after.to_state().unwrap(), RowsBeside::None)
                        .unwrap();
                    assert_eq!(
                        scores(&after),
                        scores(&back),
                        "{name} without {class}, stored"
                    );
                }
            }
        }
    }
}

/// A recipe whose models say what they are told: the target of the first row, in as many columns as
/// there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Parrot;

impl Fit for Parrot {
    type Model = Level;

    fn fit(&self, rows: &Rows) -> efface::Result<Level> {
        Ok(Level(
            rows.iter()
                .next()
                .map(|view| view.targets.to_vec())
                .unwrap_or_default(),
        ))
    }
}

/// One row a shard, each with its line of targets.
fn parrots(lines: &[&[f64]], aggregation: Aggregation) -> (SisaModel<Parrot>, Rows) {
    let sisa = Sisa::new(Parrot, lines.len(), 1).aggregation(aggregation);
    let ids: Vec<RowId> = (0..lines.len())
        .map(|shard| {
            (0..)
                .map(RowId)
                .find(|&id| sisa.place(id).0 == shard)
                .unwrap()
        })
        .collect();
    let x = Dense::new(vec![1.0; lines.len()], 1).unwrap();
    let rows = Rows::with_ids(ids, x, lines.concat(), lines[0].len()).unwrap();
    (sisa.fit(&rows).unwrap(), rows)
}

#[test]
fn votes_and_means_of_known_answers() {
    let answer = |lines: &[&[f64]], aggregation| {
        flat(
            &parrots(lines, aggregation)
                .0
                .predict(&probe(&[1.0], 1))
                .unwrap(),
        )
    };
    use Aggregation::{Mean, Vote};
    assert_eq!(answer(&[&[5.0], &[0.0], &[-1.0], &[2.0]], Mean), [1.5]);
    // 0 is not above 0, so it votes for the first class, as it would be decided.
    assert_eq!(answer(&[&[5.0], &[0.0], &[-1.0], &[0.1]], Vote), [0.0]);
    assert_eq!(answer(&[&[5.0], &[-0.5], &[3.0], &[0.1]], Vote), [0.5]);
    let lines: [&[f64]; 4] = [
        &[1.0, 3.0, 2.0],
        &[4.0, 4.0, 0.0],
        &[0.0, 7.0, 7.0],
        &[0.0, 0.0, 8.0],
    ];
    assert_eq!(answer(&lines, Mean), [1.25, 3.5, 4.25]);
    // The second shard has no row of the last class, the third none of the first, and the fourth
    // the last class alone: it has no say.
    assert_eq!(answer(&lines, Vote), [1.0 / 3.0, 2.0 / 3.0, 0.0]);
    // The score of a class that naive Bayes never saw, many times over.
    let least: Vec<&[f64]> = vec![&[f64::MIN, 1.0]; 7];
    let mean = answer(&least, Mean);
    assert!(
        mean[0] < -1e308 && mean[0].is_finite() && (mean[1] - 1.0).abs() < 1e-12,
        "{mean:?}"
    );
}

#[test]
fn a_shard_that_lost_its_rows_abstains() {
    let (model, rows) = parrots(&[&[5.0], &[-1.0], &[4.0]], Aggregation::Mean);
    let gone = [rows.ids().next().unwrap()];
    let after = SisaForget.forget(&model, &rows, &gone).unwrap();
    assert_eq!(
        after.model,
        Retrain.forget(&model, &rows, &gone).unwrap().model
    );
    assert_eq!(
        after.model.answers().next(),
        Some(&ShardCheckpoint::Abstains)
    );
    assert_eq!(after.model.predict(&probe(&[1.0], 1)).unwrap()[(0, 0)], 1.5);
    assert_eq!(
        (after.evidence.iterations, after.evidence.refactored),
        (0, false)
    );
    // It comes back with its rows; and all of several rows may go in several slices.
    let retained = rows.filter(|id| !gone.contains(&id));
    let back = after
        .model
        .learn(&retained, &rows.filter(|id| gone.contains(&id)))
        .unwrap()
        .model;
    assert_eq!(back, model);
    let rows = some(60, 3, 8);
    let sisa = Sisa::new(MultinomialNb::default(), 4, 3);
    let model = sisa.fit(&rows).unwrap();
    let gone = dealt(&sisa, &rows)[2].concat();
    let after = SisaForget.forget(&model, &rows, &gone).unwrap().model;
    assert_eq!(
        after,
        sisa.fit(&rows.filter(|id| !gone.contains(&id))).unwrap()
    );
    assert_eq!(
        after
            .answers()
            .filter(|answer| matches!(answer, ShardCheckpoint::Trained(_)))
            .count(),
        3
    );
    assert!(
        flat(&after.predict(&probe(&[1.0, 2.0, 3.0], 3)).unwrap())
            .iter()
            .sum::<f64>()
            == 1.0
    );
}

#[test]
fn rows_that_weigh_nothing_have_no_say() {
    let sisa = Sisa::new(GaussianNb::default(), 3, 2);
    let rows = some(30, 1, 2);
    let mute = &dealt(&sisa, &rows)[1];
    let weights = rows
        .ids()
        .map(|id| {
            if mute.concat().contains(&id) {
                0.0
            } else {
                1.0
            }
        })
        .collect();
    let rows = rows.weighted(weights).unwrap();
    let model = sisa.fit(&rows).unwrap();
    assert_eq!(model.answers().nth(1), Some(&ShardCheckpoint::Abstains));
    let others: Vec<RowId> = rows
        .ids()
        .filter(|id| !mute.concat().contains(id))
        .collect();
    assert_eq!(
        SisaForget.forget(&model, &rows, &others).unwrap_err(),
        Error::NoWeight
    );
    assert_eq!(
        Retrain.forget(&model, &rows, &others).unwrap_err(),
        Error::NoWeight
    );
}

#[test]
fn any_other_error_is_the_error_of_the_whole() {
    // Without a penalty, three columns and an intercept need four rows a slice; the first slices
    // have fewer.
    let rows = some(30, 1, 2);
    for threads in [1, 2] {
        let error = Sisa::new(Ridge::new(0.0), 4, 5)
            .threads(threads)
            .fit(&rows)
            .unwrap_err();
        assert!(matches!(error, Error::Singular { .. }), "{error}");
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let rows = some(20, 1, 1);
    let sisa = |shards, slices| Sisa::new(MultinomialNb::default(), shards, slices);
    for (recipe, expected) in [
        (
            sisa(0, 1),
            "shards = 0 is out of range; it must be at least 1",
        ),
        (
            sisa(1, 0),
            "slices = 0 is out of range; it must be at least 1",
        ),
        (
            sisa(2, 2).threads(0),
            "threads = 0 is out of range; it must be at least 1",
        ),
        (
            sisa(21, 1),
            "shards = 21 (20 rows) is out of range; it must be at most the number of rows",
        ),
        (
            sisa(2, 40_000),
            "shards · slices = 2 · 40000 is out of range; it must be at most 65536",
        ),
        (sisa(20, usize::MAX), "at most 65536"),
    ] {
        let message = recipe.fit(&rows).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(
        sisa(2, 2).fit(&rows.filter(|_| false)).unwrap_err(),
        Error::NoRows
    );
    // A fit with too many shards is a mistake; a request to forget must not fail for it.
    let sisa = sisa(20, 1);
    let model = sisa.fit(&rows).unwrap();
    let gone: Vec<RowId> = rows.ids().take(15).collect();
    let after = SisaForget.forget(&model, &rows, &gone).unwrap().model;
    assert_eq!(after, Retrain.forget(&model, &rows, &gone).unwrap().model);
    assert_eq!(after.rows(), 5);
    let narrow = after.predict(&probe(&[1.0, 2.0], 2)).unwrap_err();
    assert_eq!(
        narrow,
        Error::Shape {
            what: "features",
            found: 2,
            expected: 3
        }
    );
}

#[test]
fn a_damaged_model_is_refused() {
    let rows = some(40, 1, 1);
    let model = Sisa::new(GaussianNb::default(), 3, 2).fit(&rows).unwrap();
    let sound = serde_json::to_value(&model).unwrap();
    assert_eq!(
        serde_json::from_value::<SisaModel<GaussianNb>>(sound.clone()).unwrap(),
        model
    );
    let damages: [fn(&mut serde_json::Value); 9] = [
        |m| m["recipe"]["shards"] = 2.into(),
        |m| m["recipe"]["shards"] = 0.into(),
        |m| m["recipe"]["slices"] = 3.into(),
        |m| m["recipe"]["seed"] = 1.into(),
        |m| m["recipe"]["threads"] = 0.into(),
        |m| m["outputs"] = 0.into(),
        |m| m["shards"][0]["checkpoints"][0] = "as_before".into(),
        |m| m["shards"][0]["checkpoints"][1] = serde_json::json!({ "one_class": 2 }),
        |m| {
            m["shards"][1]["slices"][0]
                .as_array_mut()
                .unwrap()
                .reverse()
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        let mut value = sound.clone();
        damage(&mut value);
        assert!(
            serde_json::from_value::<SisaModel<GaussianNb>>(value).is_err(),
            "damage {number}"
        );
    }
}
