//! The two losses: what a row's scores say of its class, how the loss bends there, and how fast
//! that can change.
//!
//! The bounds of this room rest on two numbers per loss. J is the Hessian in the scores of one row,
//! p(1 − p) or diag(p) − ppᵀ. It is Lipschitz: ‖J(z) − J(z′)‖ ≤ γ‖z − z′‖, with γ = max|σ″| =
//! 1/(6√3) for two classes, and for more, by uᵀ(dJ)u = E[(u − ū)²(v − v̄)] ≤ (max v − min v)·Var u
//! ≤ √2‖v‖·½‖u‖², 1/√2. And the loss is self-concordant in the sense of Bach (2010): J(z + v) ≥
//! e^{−M‖v‖}J(z) with M = 1, and M = √2 by the same inequality.

use crate::linalg::exponentials_in_place;
use serde::{Deserialize, Serialize};

/// Which of the two losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// log(1 + e^{−yz}) with y = ±1.
    Logistic,
    /// log Σ e^{z_c} − z_y.
    Softmax,
}

impl Link {
    /// γ.
    pub(crate) fn lipschitz(self) -> f64 {
        match self {
            Self::Logistic => 1.0 / (6.0 * 3f64.sqrt()),
            Self::Softmax => std::f64::consts::FRAC_1_SQRT_2,
        }
    }

    /// M.
    pub(crate) fn concordance(self) -> f64 {
        match self {
            Self::Logistic => 1.0,
            Self::Softmax => std::f64::consts::SQRT_2,
        }
    }

    /// An upper bound on ‖J‖.
    pub(crate) fn curvature(self) -> f64 {
        match self {
            Self::Logistic => 0.25,
            Self::Softmax => 0.5,
        }
    }

    /// How many classes there are with so many scores.
    pub(crate) fn classes(self, outputs: usize) -> usize {
        match self {
            Self::Logistic => 2,
            Self::Softmax => outputs,
        }
    }

    /// The class that a row's targets name: ±1, or a single 1 among zeros.
    pub(crate) fn class(self, targets: &[f64]) -> Option<usize> {
        match self {
            Self::Logistic => match targets {
                [-1.0] => Some(0),
                [1.0] => Some(1),
                _ => None,
            },
            Self::Softmax => {
                let class = targets.iter().position(|t| *t == 1.0)?;
                let rest = targets
                    .iter()
                    .enumerate()
                    .all(|(c, t)| *t == if c == class { 1.0 } else { 0.0 });
                rest.then_some(class)
            }
        }
    }

    /// What a target must be.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::Logistic => "a logistic model takes −1 for the first class and 1 for the second",
            Self::Softmax => "a softmax model takes 1 for the row's own class and 0 for the others",
        }
    }

    /// The loss of a row and how far its own class is ahead; `residual` becomes p − y.
    #[inline]
    pub(crate) fn judge(self, scores: &[f64], class: usize, residual: &mut [f64]) -> (f64, f64) {
        match self {
            Self::Logistic => {
                let margin = if class == 1 { scores[0] } else { -scores[0] };
                // e^{−|m|} neither overflows nor loses the small side.
                let small = (-margin.abs()).exp();
                let wrong = if margin > 0.0 {
                    small / (1.0 + small)
                } else {
                    1.0 / (1.0 + small)
                };
                residual[0] = if class == 1 { -wrong } else { wrong };
                (small.ln_1p() + (-margin).max(0.0), margin)
            }
            Self::Softmax => {
                let sum = exponentials(scores, residual);
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut others = 0.0;
                let mut rival = f64::NEG_INFINITY;
                for (c, p) in residual.iter_mut().enumerate() {
                    *p /= sum;
                    if c != class {
                        others += *p;
                        rival = rival.max(scores[c]);
                    }
                }
                residual[class] = -others;
                (sum.ln() + (largest - scores[class]), scores[class] - rival)
            }
        }
    }

    /// The probabilities of all scores: one number for two classes.
    #[inline]
    pub(crate) fn probabilities(self, scores: &[f64], out: &mut [f64]) {
        match self {
            Self::Logistic => out[0] = 1.0 / (1.0 + (-scores[0]).exp()),
            Self::Softmax => {
                let sum = exponentials(scores, out);
                out.iter_mut().for_each(|p| *p /= sum);
            }
        }
    }

    /// J_ab, from the scores (two classes) or the probabilities (more).
    #[inline]
    pub(crate) fn bend(self, scores: &[f64], probabilities: &[f64], a: usize, b: usize) -> f64 {
        match self {
            Self::Logistic => {
                let small = (-scores[0].abs()).exp();
                small / (1.0 + small).powi(2)
            }
            Self::Softmax => {
                let own = if a == b { probabilities[a] } else { 0.0 };
                own - probabilities[a] * probabilities[b]
            }
        }
    }

    /// At most the least that the loss bends along moves of the scores that sum to 0, or of the one
    /// score.
    pub(crate) fn least_bend(self, scores: &[f64], probabilities: &[f64]) -> f64 {
        match self {
            Self::Logistic => self.bend(scores, probabilities, 0, 0),
            // The eigenvalues of diag(p) − ppᵀ lie between neighbours of the sorted p, the first of
            // them, 0, apart.
            Self::Softmax => probabilities.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }

    /// Column `b` of a root of J: J = MMᵀ with M = √(p(1 − p)), or diag(√p) − p√pᵀ. Nothing is
    /// divided by p.
    pub(crate) fn root(self, scores: &[f64], probabilities: &[f64], b: usize, out: &mut [f64]) {
        match self {
            Self::Logistic => out[0] = self.bend(scores, probabilities, 0, 0).sqrt(),
            Self::Softmax => {
                let root = probabilities[b].sqrt();
                for (a, value) in out.iter_mut().enumerate() {
                    *value = -probabilities[a] * root + if a == b { root } else { 0.0 };
                }
            }
        }
    }
}

/// Writes e^{z − max z} and returns their sum.
#[inline]
fn exponentials(scores: &[f64], out: &mut [f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    out.iter_mut()
        .zip(scores)
        .for_each(|(p, z)| *p = z - largest);
    exponentials_in_place(out);
    out.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_classes_are_a_softmax_of_two() {
        for z in [-800.0, -3.0, -1e-9, 0.0, 0.4, 17.0, 800.0] {
            for class in [0, 1] {
                let mut one = [0.0];
                let mut two = [0.0; 2];
                let (loss, margin) = Link::Logistic.judge(&[z], class, &mut one);
                let (other, ahead) = Link::Softmax.judge(&[0.0, z], class, &mut two);
                assert!((loss - other).abs() <= 1e-15 * loss.max(1.0) && margin == ahead);
                assert!((one[0] - two[1]).abs() < 1e-16 && loss.is_finite());
            }
        }
    }

    #[test]
    fn the_root_is_a_root_of_the_hessian() {
        let scores = [0.3, -1.0, 2.0];
        let mut p = [0.0; 3];
        Link::Softmax.probabilities(&scores, &mut p);
        let mut roots = [[0.0; 3]; 3];
        for (b, root) in roots.iter_mut().enumerate() {
            Link::Softmax.root(&scores, &p, b, root);
        }
        for a in 0..3 {
            for b in 0..3 {
                let product: f64 = roots.iter().map(|root| root[a] * root[b]).sum();
                assert!((product - Link::Softmax.bend(&scores, &p, a, b)).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn residuals_are_the_slope_of_the_loss() {
        let scores = [0.3, -1.0, 2.0];
        let mut residual = [0.0; 3];
        Link::Softmax.judge(&scores, 1, &mut residual);
        for c in 0..3 {
            let at = |h: f64| {
                let mut moved = scores;
                moved[c] += h;
                Link::Softmax.judge(&moved, 1, &mut [0.0; 3]).0
            };
            assert!((residual[c] - (at(1e-6) - at(-1e-6)) / 2e-6).abs() < 1e-9);
        }
    }

    #[test]
    fn targets_must_name_a_class() {
        assert_eq!(Link::Logistic.class(&[1.0]), Some(1));
        assert_eq!(Link::Logistic.class(&[0.0]), None);
        assert_eq!(Link::Softmax.class(&[0.0, 0.0, 1.0]), Some(2));
        assert_eq!(Link::Softmax.class(&[0.5, 0.5]), None);
        assert_eq!(Link::Softmax.class(&[1.0, 1.0]), None);
    }
}
