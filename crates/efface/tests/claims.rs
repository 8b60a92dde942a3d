//! What is claimed is true: on seeded problems of every kind no bound is exceeded, and bounds say something. The long version
//! is `cargo xtask claims`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop and say where")]

#[path = "support/long_arithmetic.rs"]
mod long_arithmetic;
#[path = "support/ridge_problems.rs"]
mod ridge_problems;

use ridge_problems::{examine, problem};

#[test]
fn bounds_hold_and_say_something() {
    let mut good = 0;
    let mut sharp = 0;
    for seed in 0..180 {
        let problem = problem(seed, 3e3);
        for found in examine(&problem).unwrap() {
            let name = format!("{} seed {seed} {:?}", found.kind, problem.recipe.form);
            let (off, bound) = (found.absolute_truth, found.absolute_bound);
            assert!(off <= bound, "{name}: {off:e} > {bound:e}");
            assert!(!found.exact || found.truth <= problem.recipe.tolerance, "{name}: {:e}", found.truth);
            if found.truth < 1e-11 {
                good += 1;
                sharp += (found.bound < 1e-8) as usize;
            }
        }
    }
    assert!(good > 200, "{good}");
    assert!(sharp * 100 >= good * 95, "{sharp} of {good}");
}
