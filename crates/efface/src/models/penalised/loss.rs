//! The losses of penalised models: what a score says of its target, how the loss slopes and how it
//! bends there.

use std::fmt::Debug;

use crate::family::Family;
use crate::models::family::RecipeTask;

/// A convex loss of one score.
pub trait PenalisedLoss: Debug + Copy + Default + PartialEq + Send + Sync + 'static {
    /// The family of its models.
    const FAMILY: Family;
    /// What its targets are.
    const TASK: RecipeTask;
    /// Whether λ counts for every unit of weight in the rows, as in a mean of losses, or once, as
    /// in a sum.
    const PENALTY_PER_ROW: bool;
    /// Whether the constant is penalised like every other parameter.
    const PENALISED_CONSTANT: bool;
    /// What targets must be.
    const EXPECTED: &'static str;

    /// The target of one of `outputs` outputs as the loss takes it; None where it is not one.
    fn target(target: f64, outputs: usize) -> Option<f64>;

    /// The loss of a score.
    fn at(score: f64, target: f64) -> LossPoint;

    /// What a score predicts.
    fn prediction(score: f64) -> f64;
}

/// A loss at one score.
#[derive(Debug, Clone, Copy)]
pub struct LossPoint {
    /// The loss.
    pub loss: f64,
    /// Its first derivative.
    pub slope: f64,
    /// Its second derivative; one of them where it jumps.
    pub bend: f64,
}

/// max(0, 1 − yz)² with y = ±1: a linear support vector machine, as scikit-learn's
/// `LinearSVC(loss="squared_hinge")`. Three classes or more have a score each, against all others.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SquaredHinge;

impl PenalisedLoss for SquaredHinge {
    const FAMILY: Family = Family::LinearSvm;
    const TASK: RecipeTask = RecipeTask::Classes;
    const PENALTY_PER_ROW: bool = false;
    const PENALISED_CONSTANT: bool = true;
    const EXPECTED: &'static str = "a linear SVM takes −1 and 1 for two classes, and for more 1 for the row's own class and 0 for the others";

    fn target(target: f64, outputs: usize) -> Option<f64> {
        let first = if outputs == 1 { -1.0 } else { 0.0 };
        if target == 1.0 {
            Some(1.0)
        } else {
            (target == first).then_some(-1.0)
        }
    }

    fn at(score: f64, target: f64) -> LossPoint {
        let gap = (1.0 - target * score).max(0.0);
        LossPoint {
            loss: gap * gap,
            slope: -2.0 * target * gap,
            bend: if gap > 0.0 { 2.0 } else { 0.0 },
        }
    }

    fn prediction(score: f64) -> f64 {
        score
    }
}

/// e^z − yz with y ≥ 0: Poisson regression with its logarithmic link, as scikit-learn's
/// `PoissonRegressor`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PoissonLoss;

impl PenalisedLoss for PoissonLoss {
    const FAMILY: Family = Family::Poisson;
    const TASK: RecipeTask = RecipeTask::Numbers;
    const PENALTY_PER_ROW: bool = true;
    const PENALISED_CONSTANT: bool = false;
    const EXPECTED: &'static str = "Poisson regression takes counts, which are 0 or more";

    fn target(target: f64, _outputs: usize) -> Option<f64> {
        (target >= 0.0).then_some(target)
    }

    fn at(score: f64, target: f64) -> LossPoint {
        let mean = score.exp();
        LossPoint {
            loss: mean - target * score,
            slope: mean - target,
            bend: mean,
        }
    }

    fn prediction(score: f64) -> f64 {
        score.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slopes_are_derivatives<L: PenalisedLoss>(target: f64) {
        for score in [-2.0, -0.3, 0.4, 0.9, 1.7] {
            let h = 1e-6;
            let above = L::at(score + h, target);
            let below = L::at(score - h, target);
            let here = L::at(score, target);
            assert!((here.slope - (above.loss - below.loss) / (2.0 * h)).abs() < 1e-8);
            assert!((here.bend - (above.slope - below.slope) / (2.0 * h)).abs() < 1e-8);
        }
    }

    #[test]
    fn slope_and_bend_are_those_of_the_loss() {
        slopes_are_derivatives::<SquaredHinge>(1.0);
        slopes_are_derivatives::<SquaredHinge>(-1.0);
        slopes_are_derivatives::<PoissonLoss>(3.0);
    }

    #[test]
    fn targets_are_classes_or_counts() {
        assert_eq!(
            [-1.0, 0.0, 1.0].map(|t| SquaredHinge::target(t, 1)),
            [Some(-1.0), None, Some(1.0)]
        );
        assert_eq!(
            [-1.0, 0.0, 1.0].map(|t| SquaredHinge::target(t, 3)),
            [None, Some(-1.0), Some(1.0)]
        );
        assert_eq!(
            [-1.0, 0.0, 2.5].map(|t| PoissonLoss::target(t, 1)),
            [None, Some(0.0), Some(2.5)]
        );
    }
}
