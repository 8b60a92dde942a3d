//! The ways to forget, one file each, behind the one contract [`Forget`](crate::Forget): what a
//! method does, promises and costs, and its settings. [`Method`] is any of them, as requests carry
//! it. The work itself stands beside the family that it works on (`models/ridge/methods`,
//! `models/logistic/methods`, …), so that this room knows no model.
//!
//! d features, c classes, n rows, k rows to forget, s non-zeros a row; H_D is the hat matrix of the
//! rows to forget.
//!
//! | method | models | claim | cost of forgetting k rows | kept for it | from |
//! |---|---|---|---|---|---|
//! | `retrain` | all | exact | a fit, O(nd²) for ridge | the rows | by definition |
//! | `exact` | ridge | exact | O(k²d) to O(kd²) | curvature, d² | Cook and Weisberg 1982 |
//! | `newton` | ridge | exact | O(kd²) | factor, d² | Cao et al. 2022, eq. 3 |
//! | `newton` | logistic, softmax | approximate | O(k(dc)²) | 3(dc)² | Cao et al. 2022, eq. 3 |
//! | `newton` | SVM, Poisson | approximate | O(nd²) a step | the rows | Cao et al. 2022, eq. 3 |
//! | `influence` | ridge, logistic, softmax | approximate | O((dc)²) | curvature, (dc)² | Koh and Liang 2017 |
//! | `projection_residual` | ridge, logistic, softmax | approximate | O(k²d) and H_D | H_D, from curvature | Izzo et al. 2021, Cao et al. 2022 |
//! | `summation` | ridge | exact | O(kd² + d³) | sums, d² | Cao and Yang 2015 |
//! | `summation` | naive Bayes | exact | O(ks) | sums, cd | Cao and Yang 2015 |
//! | `warm_start` | logistic, softmax | exact | a few passes over the rows | the rows | Tsai et al. 2014 |
//! | `warm_start` | SVM, Poisson | exact | a few steps, O(nd²) each | the rows | Tsai et al. 2014 |
//! | `delta_grad` | logistic, softmax | approximate | T/5 passes; T more at first | 2Tdc, T steps of descent | Wu et al. 2020 |
//! | `certified` | logistic with ε | certified | O(kd²) | curvature, d² | Guo et al. 2020 |
//! | `descent_to_delete` | logistic with ε | certified | up to 500 passes, then training | the rows | Neel et al. 2021 |
//! | `sisa` | in shards | exact | a shard, from the touched slice on | a model a shard and slice | Bourtoule et al. 2021 |
//! | `q_kmeans` | k-means, quantised | exact | a replay; at times a refit | every stage | Ginart et al. 2019 |
//! | `dc_kmeans` | k-means, divided | exact | a path of the tree | the tree | Ginart et al. 2019 |
//! | `auto` | all | that of its choice | that of its choice |  |  |
//!
//! As data, the table is [`table`], from which the command's help and every refusal are made; a
//! test keeps the copies in step. A model too wide for its curvature keeps none: there `exact`,
//! `newton`, `influence` and `projection_residual` use conjugate gradients over the rows, and
//! `summation` is refused. `auto` picks a ridge model's cheapest exact method, as many Newton steps
//! as a classifier's tolerance demands, and for the other families the method of their own.

mod auto;
mod certified;
pub mod contract;
mod delta_grad;
mod descent_to_delete;
mod exact;
mod further;
mod influence;
mod kmeans;
mod method;
mod newton;
mod projection_residual;
mod retrain;
mod settings;
mod sisa;
mod summation;
pub mod table;
mod warm_start;

pub use auto::Auto;
pub use certified::Certified;
pub use delta_grad::DeltaGrad;
pub use descent_to_delete::DescentToDelete;
pub use exact::Exact;
pub use further::{FineTune, NegGradPlus, Scrub};
pub use influence::Influence;
pub use kmeans::{DcKMeans, QKMeans};
pub use method::{Method, TakesMethods};
pub use newton::Newton;
pub use projection_residual::ProjectionResidual;
pub use retrain::Retrain;
pub use sisa::SisaForget;
pub use summation::Summation;
pub use warm_start::WarmStart;
