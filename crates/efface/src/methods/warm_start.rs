//! Decremental training (Tsai et al. 2014): go on training from the old parameters on the retained
//! rows, to the same tolerance. Exact up to that tolerance, like retraining, in fewer passes
//! because it starts nearby. Training goes on until the distance bound is within the model's
//! tolerance, with a Hessian made anew and with the intercepts profiled out where that is what it
//! takes; a bound that stays above it is reported as it is.

/// Training from where the model stands.
#[derive(Debug, Clone, Copy, Default)]
pub struct WarmStart;
