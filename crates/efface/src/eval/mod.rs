//! Whether a model has forgotten, measured rather than claimed.
//!
//! | question | where | answer |
//! |---|---|---|
//! | does a row live on as its twin? | [`duplicates`] | the rows that are equal, before anything is split |
//! | is what only these rows taught gone? | [`feature_injection`] | \|w_after\| / \|w_before\| of a planted feature |
//! | how far from retraining? | [`distance`], [`PairedKlom`], [`UnpairedKlom`] | parameters, predictions, margins against many retrained oracles |
//! | can an attacker tell? | [`membership_inference`], [`likelihood_ratio`] | population threshold, LiRA, U-LiRA: AUC, TPR at low FPR, intervals |
//! | how soon would it know the rows again? | [`relearning_time`], [`LinearRelearning`] | training steps beside those of a retrained model |
//! | what did it cost the others? | [`utility`] | accuracy, RMSE, log-loss |
//!
//! Everything is a pure function of rows, recipe, request and seed. The yardstick is always a model
//! that was fitted without the rows; where features follow from the rows, they are fitted without
//! them too ([`FollowingFeatures`]). `docs/audit.md` defines every number and says what it cannot
//! show.
//!
//! ```
//! use efface::eval::feature_injection;
//! use efface::{Method, Recipe, Ridge, RowId, Rows, synthetic::LinearProblem};
//!
//! let problem = LinearProblem { rows: 200, width: 8, seed: 1 }.generate();
//! let rows = Rows::new(efface::Dense::new(problem.x, problem.width)?, problem.y, 1)?;
//! let recipe = Recipe::new(Ridge::new(0.1));
//! let found = feature_injection(&recipe, &rows, &[RowId(3), RowId(7)], &[Method::Exact, Method::Influence])?;
//! assert!(found.before > 0.0);
//! assert_eq!(found.ways[0].after, 0.0); // exact: nothing is left
//! assert!(found.ways[1].ratio > 1e-3); // influence: something is
//! # Ok::<(), efface::Error>(())
//! ```

mod attack;
mod bootstrap;
mod centres;
mod distance;
mod duplicates;
mod exposure;
mod games;
mod injection;
mod jackknife;
mod klom;
mod likelihood;
mod membership;
mod oracles;
mod parameters;
mod relearning;
mod shadow;
mod task;
mod utility;
mod view;

pub use attack::{Attack, AttackRate, attack};
pub use bootstrap::{Bootstrap, Interval, bootstrap};
pub use distance::{Distance, distance, distance_of_views};
pub use duplicates::{Duplicates, Twins, duplicates, with_twins};
pub use exposure::Exposure;
pub use injection::{Injection, InjectionWay, feature_injection, inject, weight_on};
pub use klom::{
    KLOM_BINS, KLOM_CLIP, KlomQuantiles, PairedKlom, UnpairedKlom, binned_klom, klom_quantiles,
    normal_divergence, normal_klom,
};
pub use likelihood::likelihood_ratio;
pub use membership::{Membership, membership_inference, population_threshold};
pub use oracles::{Trials, sample};
pub use parameters::parameters;
pub use relearning::{
    LinearRelearning, RELEARNING_LIMIT, Relearning, RelearningTime, relearning_time,
};
pub use task::{RowJudgement, Task, judge};
pub use utility::{Utility, utility};
pub use view::{FixedFeatures, FollowingFeatures, ModelView, OracleSubject};
