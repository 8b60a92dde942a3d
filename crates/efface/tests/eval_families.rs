//! Every family of models can be audited: margins, distances and attacks, against retraining.

#![allow(clippy::unwrap_used, missing_docs)]

use efface::ShardRecipe;
use efface::eval::{Task, Trials, distance, judge, membership_inference, utility};
use efface::synthetic::LinearProblem;
use efface::{
    Aggregation, BernoulliNb, ComplementNb, Csr, Dense, Fit, GaussianNb, KMeans, KMeansModel,
    Logistic, Method, Model, MultinomialNb, Predict, Recipe, Ridge, RowId, Rows, Sisa, Softmax,
};

/// Two classes as −1 and 1, or three as a single 1 among zeros, by the size of a linear target.
fn classes(n: usize, width: usize, outputs: usize) -> Rows {
    let problem = LinearProblem {
        rows: n,
        width,
        seed: 9,
    }
    .generate();
    let spread = (problem.y.iter().map(|y| y * y).sum::<f64>() / n as f64).sqrt();
    let targets = |y: &f64| match outputs {
        1 => vec![if *y > 0.0 { 1.0 } else { -1.0 }],
        _ => {
            let class = usize::from(*y > -0.4 * spread) + usize::from(*y > 0.4 * spread);
            (0..3).map(|c| f64::from(u8::from(c == class))).collect()
        }
    };
    let targets = problem.y.iter().flat_map(targets).collect();
    Rows::new(Dense::new(problem.x, width).unwrap(), targets, outputs).unwrap()
}

fn counts() -> Rows {
    let mut table = Csr::<f32>::new(6);
    for i in 0..160u32 {
        let value = |j: u32| f64::from((i * 7 + j * j * 3 + i * j) % 4);
        table
            .push(
                &(0..6)
                    .filter(|j| value(*j) > 0.0)
                    .map(|j| (j, value(j)))
                    .collect::<Vec<_>>(),
            )
            .unwrap();
    }
    Rows::new(
        table,
        (0..160)
            .map(|i| if i % 3 == 0 { 1.0 } else { -1.0 })
            .collect(),
        1,
    )
    .unwrap()
}

fn first(k: u64) -> Vec<RowId> {
    (0..k).map(RowId).collect()
}

fn shards(recipe: Recipe, aggregation: Aggregation) -> Recipe {
    Recipe::new(Sisa::new(ShardRecipe::new(recipe).unwrap(), 3, 2).aggregation(aggregation))
}

/// What a family's own exact method leaves is what retraining leaves.
#[test]
fn every_family_can_be_attacked() {
    let trials = Trials {
        oracles: 16,
        retained: 8,
        ..Trials::default()
    };
    let logistic = || Recipe::new(Logistic::new(1.0));
    for (recipe, rows, method) in [
        (
            Recipe::new(Softmax::new(1.0)),
            classes(160, 3, 3),
            "warm_start",
        ),
        (Recipe::new(MultinomialNb::default()), counts(), "summation"),
        (Recipe::new(ComplementNb::default()), counts(), "summation"),
        (Recipe::new(BernoulliNb::default()), counts(), "summation"),
        (
            Recipe::new(GaussianNb::default()),
            classes(160, 3, 1),
            "summation",
        ),
        (
            Recipe::new(Ridge::new(1.0).form(efface::Form::Rows)),
            classes(160, 3, 3),
            "exact",
        ),
        (
            Recipe::new(KMeans::quantised(3, 0.5)),
            classes(160, 3, 1),
            "q_kmeans",
        ),
        (
            Recipe::new(KMeans::divided(2, 1, 2)),
            classes(160, 3, 1),
            "dc_kmeans",
        ),
        (
            shards(logistic(), Aggregation::Mean),
            classes(160, 3, 1),
            "sisa",
        ),
        (
            shards(logistic(), Aggregation::Vote),
            classes(160, 3, 1),
            "sisa",
        ),
        (
            shards(Recipe::new(MultinomialNb::default()), Aggregation::Vote),
            counts(),
            "sisa",
        ),
        (
            shards(Recipe::new(Ridge::new(1.0)), Aggregation::Mean),
            classes(160, 3, 3),
            "sisa",
        ),
    ] {
        let task = Task::of(&recipe, &rows);
        assert_eq!(task == Task::Clusters, method.ends_with("kmeans"));
        let ways = [
            method.parse::<Method>().unwrap(),
            "retrain".parse::<Method>().unwrap(),
        ];
        let found =
            membership_inference(&recipe, task, &rows, &first(8), &ways, &trials, &|_, _| ())
                .unwrap();
        assert_eq!(found.exposures.len(), 3, "retraining is there once");
        let ours = &found.exposures[2];
        let truth = &found.exposures[1];
        assert!(
            (ours.forgotten.auc - truth.forgotten.auc).abs() < 0.02,
            "{method}"
        );
        assert!(
            ours.paired_klom.forgotten.worst < 1e-3,
            "{method}: {ours:?}"
        );
        assert!(ours.paired_klom.retained.worst < 1e-3, "{method}: {ours:?}");
    }
}

/// The margin of a row is minus its squared distance to the nearest centre.
#[test]
fn a_cluster_is_judged_by_the_distance_to_its_centre() {
    let rows = Rows::new(
        Dense::new(vec![0.0, 1.0, 10.0, 14.0], 1).unwrap(),
        vec![0.0; 4],
        1,
    )
    .unwrap();
    let model = KMeans::quantised(2, 1e-6).fit(&rows).unwrap();
    let centres = model.centers();
    let nearest = |x: f64| {
        (0..2)
            .map(|c| (x - centres[(c, 0)]).powi(2))
            .fold(f64::INFINITY, f64::min)
    };
    let model = Model::new(model);
    let judged = judge(&model, Task::Clusters, &rows).unwrap();
    for (judgement, x) in judged.iter().zip([0.0, 1.0, 10.0, 14.0]) {
        assert!(
            (judgement.margin + nearest(x)).abs() < 1e-12 && judgement.loss == -judgement.margin
        );
        assert_eq!(judgement.correct, None);
    }
    let mean = [0.0, 1.0, 10.0, 14.0].map(nearest).iter().sum::<f64>() / 4.0;
    let found = utility(&model, Task::Clusters, &rows).unwrap();
    assert!((found.rmse.unwrap() - mean.sqrt()).abs() < 1e-12);
    assert_eq!((found.accuracy, found.log_loss), (None, None));
}

/// Centres have no names: the same centres under other numbers are no distance away.
#[test]
fn centres_are_matched_before_they_are_compared() {
    let rows = classes(120, 2, 1);
    // The lattice follows from the seed, so that equal clusters differ by its width of 1e-9.
    let fitted = |seed: u64| {
        Recipe::new(KMeans::quantised(3, 1e-9).seed(seed))
            .fit(&rows)
            .unwrap()
    };
    let centres = |model: &Model| -> Vec<[f64; 2]> {
        let table = model.get::<KMeansModel>().unwrap().centers();
        (0..3)
            .map(|cluster| [table[(cluster, 0)], table[(cluster, 1)]])
            .collect()
    };
    let largest_gap = |a: &[[f64; 2]], b: &[[f64; 2]]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a[0] - b[0]).abs().max((a[1] - b[1]).abs()))
            .fold(0.0, f64::max)
    };
    let sorted = |model: &Model| {
        let mut all = centres(model);
        all.sort_by(|a, b| a[0].total_cmp(&b[0]));
        all
    };
    let truth = fitted(0);
    let is_renamed = |model: &Model| {
        largest_gap(&centres(model), &centres(&truth)) > 0.1
            && largest_gap(&sorted(model), &sorted(&truth)) < 1e-6
    };
    let renamed = (1..200).map(fitted).find(is_renamed).unwrap();
    let far = distance(&renamed, &renamed, &truth, Task::Clusters, &rows).unwrap();
    assert!(
        far.l2.unwrap() < 1e-6 && far.largest_prediction_change < 1e-6,
        "{far:?}"
    );
    assert_eq!(far.agreement, Some(1.0));
    let exact = truth
        .forget(&"q_kmeans".parse().unwrap(), &rows, &first(5))
        .unwrap()
        .model;
    let retrained = truth
        .forget(&"retrain".parse().unwrap(), &rows, &first(5))
        .unwrap()
        .model;
    let near = distance(&truth, &exact, &retrained, Task::Clusters, &rows).unwrap();
    assert_eq!((near.l2, near.agreement), (Some(0.0), Some(1.0)));
}

/// Votes: the margin is the lead of the own class among the shards, the loss the share that votes
/// otherwise.
#[test]
fn shards_are_judged_by_their_votes_or_by_their_mean_scores() {
    let rows = classes(90, 3, 1);
    let logistic = || Recipe::new(Logistic::new(1.0));
    let voting = shards(logistic(), Aggregation::Vote).fit(&rows).unwrap();
    let scores = voting.predict(&rows.table()).unwrap();
    let judged = judge(&voting, Task::Classes, &rows).unwrap();
    for (slot, (judgement, row)) in judged.iter().zip(rows.iter()).enumerate() {
        assert_eq!(judgement.margin, row.targets[0] * scores[(slot, 0)]);
        assert!((judgement.loss - (1.0 - judgement.margin) / 2.0).abs() < 1e-15);
    }
    let of = utility(&voting, Task::Classes, &rows).unwrap();
    // Three votes cannot tie.
    let right = judged
        .iter()
        .filter(|judgement| judgement.margin > 0.0)
        .count();
    assert_eq!(of.accuracy, Some(right as f64 / 90.0));
    assert_eq!((of.log_loss, of.rmse), (None, None));
    // Means of scores are judged as the scores of one logistic model would be.
    let mean = shards(logistic(), Aggregation::Mean).fit(&rows).unwrap();
    let scores = mean.predict(&rows.table()).unwrap();
    let judged = judge(&mean, Task::Classes, &rows).unwrap();
    for (slot, (judgement, row)) in judged.iter().zip(rows.iter()).enumerate() {
        assert_eq!(judgement.margin, row.targets[0] * scores[(slot, 0)]);
        assert!((judgement.loss - (-judgement.margin).exp().ln_1p()).abs() < 1e-12);
    }
    assert!(
        utility(&mean, Task::Classes, &rows)
            .unwrap()
            .log_loss
            .is_some()
    );
    // Shards have no parameters of their own; predictions are compared all the same.
    let exact = mean
        .forget(&"sisa".parse().unwrap(), &rows, &first(5))
        .unwrap()
        .model;
    let retrained = mean
        .forget(&"retrain".parse().unwrap(), &rows, &first(5))
        .unwrap()
        .model;
    let far = distance(&mean, &exact, &retrained, Task::Classes, &rows).unwrap();
    assert_eq!(
        (far.l2, far.fraction, far.largest_prediction_change),
        (None, None, 0.0)
    );
    assert!(far.largest_prediction_change_before > 0.0);
}
