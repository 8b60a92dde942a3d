//! Scores of rows, one after the other, become figures. Memory grows with the rows only for AUC,
//! and to a limit.

use super::quality::{ClassQuality, NumberQuality, OneClassQuality, QualityScores};
use super::ranking::area_under_curve;
use crate::models::{Classes, ScoreKind};

/// Scores that are kept for AUC: 400 MB. Beyond that there is none.
const MOST_KEPT: usize = 50_000_000;

/// Probabilities are kept this far from 0, as scikit-learn does, so that one row cannot make a
/// log-loss infinite.
const LEAST_PROBABILITY: f64 = f64::EPSILON;

/// The probability of every class; None for scores that stand for none (values, distances, votes).
pub fn probabilities(kind: ScoreKind, scores: &[f64]) -> Option<Vec<f64>> {
    match (kind, scores) {
        (ScoreKind::LogOdds, [score]) => {
            // 1 / (1 + e^{−s}), from the side on which nothing overflows.
            let small = (-score.abs()).exp();
            let rare = small / (1.0 + small);
            let second = if *score < 0.0 {
                rare
            } else {
                1.0 / (1.0 + small)
            };
            Some(vec![
                if *score < 0.0 {
                    1.0 / (1.0 + small)
                } else {
                    rare
                },
                second,
            ])
        }
        (ScoreKind::LogOdds | ScoreKind::LogLikelihoods, _) => {
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let shares: Vec<f64> = scores.iter().map(|score| (score - largest).exp()).collect();
            let sum: f64 = shares.iter().sum();
            Some(shares.into_iter().map(|share| share / sum).collect())
        }
        (ScoreKind::Values | ScoreKind::Distances | ScoreKind::Votes, _) => None,
    }
}

/// Counts rows as they are scored.
#[derive(Debug)]
pub struct ScoreTally {
    kind: ScoreKind,
    goal: TallyGoal,
    rows: usize,
    unknown: usize,
}

#[derive(Debug)]
enum TallyGoal {
    Classes(AnswerTally),
    Numbers(Vec<NumberTally>),
}

#[derive(Debug)]
struct AnswerTally {
    classes: Classes,
    /// Rows of each class, rows that were put into it, and rows that are both.
    truth: Vec<usize>,
    answers: Vec<usize>,
    hits: Vec<usize>,
    /// The sum of −log p; None once a row had no probabilities.
    loss: Option<f64>,
    /// What ranks rows for each class, class after class for a row; and the row's own class.
    ranks: Vec<f64>,
    owners: Vec<u32>,
    too_many: bool,
}

/// Sums of squares about a running mean (Welford), so that targets far from 0 lose nothing.
#[derive(Debug)]
struct NumberTally {
    name: String,
    errors: f64,
    mean: f64,
    spread: f64,
}

impl ScoreTally {
    /// For a classifier.
    pub fn classes(kind: ScoreKind, classes: &Classes) -> Self {
        let count = classes.names().len();
        let tally = AnswerTally {
            classes: classes.clone(),
            truth: vec![0; count],
            answers: vec![0; count],
            hits: vec![0; count],
            loss: Some(0.0),
            ranks: Vec::new(),
            owners: Vec::new(),
            too_many: false,
        };
        Self {
            kind,
            goal: TallyGoal::Classes(tally),
            rows: 0,
            unknown: 0,
        }
    }

    /// For a model of numbers, by the names of its outputs.
    pub fn numbers(kind: ScoreKind, outputs: &[String]) -> Self {
        let empty = |name: &String| NumberTally {
            name: name.clone(),
            errors: 0.0,
            mean: 0.0,
            spread: 0.0,
        };
        Self {
            kind,
            goal: TallyGoal::Numbers(outputs.iter().map(empty).collect()),
            rows: 0,
            unknown: 0,
        }
    }

    /// Rows counted so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Counts a row by its scores and its targets, which for a class are those of
    /// [`Classes::encode`].
    pub fn push(&mut self, scores: &[f64], targets: &[f64]) {
        self.rows += 1;
        match &mut self.goal {
            TallyGoal::Classes(tally) => {
                tally.push(self.kind, scores, tally.classes.decide(targets))
            }
            TallyGoal::Numbers(outputs) => {
                for ((output, score), target) in outputs.iter_mut().zip(scores).zip(targets) {
                    output.errors += (score - target).powi(2);
                    let before = target - output.mean;
                    output.mean += before / self.rows as f64;
                    output.spread += before * (target - output.mean);
                }
            }
        }
    }

    /// Counts a row of a class that the model does not know: whatever the model answers is wrong.
    pub fn push_unknown(&mut self, scores: &[f64]) {
        self.rows += 1;
        self.unknown += 1;
        if let TallyGoal::Classes(tally) = &mut self.goal {
            tally.answers[tally.classes.decide(scores)] += 1;
        }
    }

    /// The figures; None without rows.
    pub fn finish(self) -> Option<QualityScores> {
        if self.rows == 0 {
            return None;
        }
        let Self {
            rows,
            unknown,
            goal,
            ..
        } = self;
        let mut found = QualityScores {
            rows,
            unknown_classes: unknown,
            classes: None,
            numbers: Vec::new(),
        };
        match goal {
            TallyGoal::Classes(tally) => found.classes = Some(tally.finish(rows, rows - unknown)),
            TallyGoal::Numbers(outputs) => {
                found.numbers = outputs
                    .into_iter()
                    .map(|output| output.finish(rows as f64))
                    .collect();
            }
        }
        Some(found)
    }
}

impl NumberTally {
    fn finish(self, rows: f64) -> NumberQuality {
        let r2 = (self.spread > 0.0).then(|| 1.0 - self.errors / self.spread);
        NumberQuality {
            name: self.name,
            rmse: (self.errors / rows).sqrt(),
            baseline_rmse: (self.spread / rows).sqrt(),
            r2,
        }
    }
}

impl AnswerTally {
    fn push(&mut self, kind: ScoreKind, scores: &[f64], own: usize) {
        let answer = self.classes.decide(scores);
        self.truth[own] += 1;
        self.answers[answer] += 1;
        self.hits[own] += usize::from(answer == own);
        let shares = probabilities(kind, scores);
        self.loss = match (&shares, self.loss) {
            (Some(shares), Some(sum)) => {
                let own = shares
                    .get(own)
                    .copied()
                    .unwrap_or(0.0)
                    .clamp(LEAST_PROBABILITY, 1.0);
                Some(sum - own.ln())
            }
            _ => None,
        };
        let classes = self.classes.names().len();
        self.too_many |= self.ranks.len() + classes > MOST_KEPT;
        if self.too_many {
            self.ranks = Vec::new();
            return;
        }
        self.owners.push(own as u32);
        match (classes, scores) {
            // Two classes have one curve. The score ranks as the probability does, without its
            // rounding near 1.
            (2, [score]) => self.ranks.push(*score),
            (2, [first, second]) => self.ranks.push(second - first),
            _ => self.ranks.extend(shares.as_deref().unwrap_or(scores)),
        }
    }

    /// The area of the second of two classes, or the mean of every class against the rest.
    fn auc(&self) -> Option<f64> {
        let classes = self.classes.names().len();
        let width = if classes == 2 { 1 } else { classes };
        if self.too_many || self.ranks.len() != self.owners.len() * width {
            return None;
        }
        let mut areas = Vec::with_capacity(width);
        let mut ranked = Vec::with_capacity(self.owners.len());
        for curve in 0..width {
            let class = if classes == 2 { 1 } else { curve as u32 };
            ranked.clear();
            let own = self.ranks.iter().skip(curve).step_by(width);
            ranked.extend(
                own.zip(&self.owners)
                    .map(|(rank, owner)| (*rank, *owner == class)),
            );
            areas.extend(area_under_curve(&mut ranked));
        }
        (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
    }

    fn finish(self, rows: usize, known: usize) -> ClassQuality {
        let auc = self.auc();
        let Self {
            classes,
            truth,
            answers,
            hits,
            loss,
            ..
        } = self;
        let share = |part: usize, whole: usize| {
            if whole == 0 {
                0.0
            } else {
                part as f64 / whole as f64
            }
        };
        let per_class: Vec<OneClassQuality> = classes
            .names()
            .iter()
            .enumerate()
            .map(|(class, name)| OneClassQuality {
                name: name.clone(),
                rows: truth[class],
                precision: share(hits[class], answers[class]),
                recall: share(hits[class], truth[class]),
                f1: share(2 * hits[class], truth[class] + answers[class]),
            })
            .collect();
        let occurring: Vec<f64> = (0..truth.len())
            .filter(|&class| truth[class] + answers[class] > 0)
            .map(|class| per_class[class].f1)
            .collect();
        let entropy = || {
            let shares = truth
                .iter()
                .filter(|count| **count > 0)
                .map(|count| share(*count, known));
            -shares.map(|share| share * share.ln()).sum::<f64>()
        };
        let log_loss = loss.filter(|_| known > 0).map(|sum| sum / known as f64);
        ClassQuality {
            accuracy: share(hits.iter().sum(), rows),
            baseline_accuracy: share(truth.iter().copied().max().unwrap_or(0), rows),
            baseline_log_loss: log_loss.map(|_| entropy()),
            log_loss,
            auc,
            macro_f1: occurring.iter().sum::<f64>() / occurring.len().max(1) as f64,
            per_class,
        }
    }
}
