//! Descent to delete (Neel et al. 2021): gradient descent on the retained rows from where the model
//! stands, until it is within a fixed distance of their optimum, then fresh noise on what is
//! published. Certified (ε, δ); the steps grow with the condition of the loss, (M + λ)/2λ for every
//! factor of e, and M with the rows, so that a small λ makes it slow. What is certified is where it
//! ends: after 500 steps the rest of the way is left to training.

/// Gradient descent and publishing noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DescentToDelete {
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}
