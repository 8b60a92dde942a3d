//! The cost and the effect of the methods of a network, for a request whose training takes too
//! long.

/// The cost and the effect of a method on the network of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodEstimate {
    /// The name of the method.
    pub method: &'static str,
    /// About how many seconds it takes.
    pub seconds: f64,
    /// Its effect, compared with retraining.
    pub effect: &'static str,
}

/// Lists methods for a message, a line each.
pub(super) fn listed(methods: &[MethodEstimate]) -> String {
    methods
        .iter()
        .map(|one| {
            let MethodEstimate {
                method,
                seconds,
                effect,
            } = one;
            format!("\n  {method}, about {seconds:.1} s: {effect}")
        })
        .collect()
}
