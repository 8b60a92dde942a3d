//! How classifiers forget: every method of the table that works on them, one file each.

mod auto;
mod certified;
mod delta_grad;
mod descent_to_delete;
mod influence;
mod newton;
mod projection_residual;
mod projection_rounds;
mod retrain;
mod warm_start;
