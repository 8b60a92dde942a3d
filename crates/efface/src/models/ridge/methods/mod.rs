//! How ridge models forget: every method of the table that works on them, one file each.

mod auto;
mod exact;
mod influence;
mod newton;
mod projection_residual;
mod projection_rounds;
mod retrain;
mod summation;

pub use exact::leave_out_predictions;
pub use projection_residual::printed_form;
