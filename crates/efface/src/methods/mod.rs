//! The ways to forget, one file each, behind the one contract [`Forget`].
//!
//! For ridge models, with d parameters per output, k rows to forget out of n, s non-zeros a row:
//!
//! | method | claim | cost | needs | from |
//! |---|---|---|---|---|
//! | [`Retrain`] | exact | O(nd²) | the rows | definition of correct |
//! | [`Exact`] | exact | O(k²d) rows form, O(ksd) inverse, O(kd²) factor | curvature | Cook and Weisberg 1982 |
//! | [`Newton`] | exact | O(kd²) | factor | Cao et al. 2022, eq. 3 |
//! | [`Influence`] | approximate | O(kd) to O(kd²), as `exact` | curvature | Koh and Liang 2017 |
//! | [`ProjectionResidual`] | approximate | O(k²d), O(k²s + k³) sparse, plus H_D | H_D | Izzo et al. 2021; Cao et al. 2022 |
//! | [`Summation`] | exact | O(kd² + d³) | sums | Cao and Yang 2015 |
//! | [`Auto`] | that of its choice | | | |
//!
//! A model in the iterative form keeps no d×d matrix: there `exact`, `newton`, `influence` and `projection_residual` use
//! conjugate gradients over the rows, and `summation` is refused.
//!
//! Two more families have methods of their own, exact by construction:
//!
//! | model | method | claim | cost | from |
//! |---|---|---|---|---|
//! | naive Bayes, multinomial or Gaussian | [`Summation`] | exact | O(k·nnz + c·d) | Cao and Yang 2015 |
//! | k-means, quantised | [`QKMeans`] | exact: the same seed gives the same clusters | a replay of what is kept; a refit from where it differs | Ginart et al. 2019 |
//! | k-means, divide and conquer | [`DcKMeans`] | exact, likewise | the touched leaves and their path to the root | Ginart et al. 2019 |
//!
//! [`Retrain`] works on all of them.

mod auto;
mod certified;
pub mod contract;
mod descent_to_delete;
mod exact;
mod influence;
mod newton;
mod projection_residual;
mod retrain;
mod summation;
mod warm_start;

pub use crate::models::kmeans::{DcKMeans, QKMeans};
pub use crate::models::sisa::SisaForget;
pub use auto::Auto;
pub use certified::Certified;
pub use descent_to_delete::DescentToDelete;
pub use exact::{Exact, leave_out_predictions};
pub use influence::Influence;
pub use newton::Newton;
pub use projection_residual::{ProjectionResidual, printed_form};
pub use retrain::Retrain;
pub use summation::Summation;
pub use warm_start::WarmStart;

use crate::models::{LogisticModel, RidgeModel};
use crate::traits::Forget;

/// Every method for ridge models, in the order of the table above.
pub fn all() -> Vec<Box<dyn Forget<RidgeModel>>> {
    vec![
        Box::new(Retrain),
        Box::new(Exact),
        Box::new(Newton::default()),
        Box::new(Influence),
        Box::new(ProjectionResidual::default()),
        Box::new(Summation),
        Box::new(Auto::default()),
    ]
}

/// The method of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Forget<RidgeModel>>> {
    all().into_iter().find(|method| method.name() == name)
}

/// The names of all methods.
pub fn names() -> Vec<&'static str> {
    all().iter().map(|method| method.name()).collect()
}

/// Every method for classifiers without noise.
pub fn for_classifiers() -> Vec<Box<dyn Forget<LogisticModel>>> {
    vec![
        Box::new(Retrain),
        Box::new(Newton::default()),
        Box::new(Influence),
        Box::new(ProjectionResidual::default()),
        Box::new(WarmStart),
        Box::new(Auto::default()),
    ]
}
