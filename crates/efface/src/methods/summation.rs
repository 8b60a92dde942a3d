//! Statistical query unlearning: the model is a function of the sums A and b, so subtract the
//! removed rows' share and solve again. Exact for squared loss, O(kd² + d³/3) whatever n is, and
//! the natural choice once k passes the width. The iterative form keeps no sums and is refused.

/// Subtract from the sums, solve again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summation;
