//! Settings as people write them.

/// A number without a row of zeros.
pub(crate) fn number_in_words(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-3..1e6).contains(&size) => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// Whether a constant is fitted.
pub(crate) fn constant_in_words(intercept: bool) -> &'static str {
    if intercept {
        "with a constant"
    } else {
        "without a constant"
    }
}
