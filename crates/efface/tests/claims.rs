//! What is claimed is true: on seeded problems of every kind no bound is exceeded, and bounds say
//! something. The long version is `cargo xtask claims`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on should stop and say where"
)]

#[path = "support/long_arithmetic.rs"]
mod long_arithmetic;
#[path = "support/ridge_problems.rs"]
mod ridge_problems;

use ridge_problems::{examine, problem};

#[test]
fn bounds_hold_and_say_something() {
    let mut good = 0;
    let mut sharp = 0;
    let mut read = 0;
    for seed in 0..180 {
        let problem = problem(seed, 3e3);
        for found in examine(&problem).unwrap() {
            let name = format!("{} seed {seed} {:?}", found.kind, problem.recipe.form);
            assert_eq!(found.seed, seed);
            let off = found.absolute_truth;
            let bound = found.absolute_bound;
            read += found.read_rows as usize;
            assert!(off <= bound, "{name}: {off:e} > {bound:e}");
            assert!(
                !found.exact || found.truth <= problem.recipe.tolerance,
                "{name}: {:e}",
                found.truth
            );
            if found.truth < 1e-11 {
                good += 1;
                sharp += (found.bound < 1e-8) as usize;
            }
        }
    }
    assert!(good > 200, "{good}");
    // Most requests are answered from what the model keeps.
    assert!(read * 4 < good, "{read} of {good}");
    assert!(sharp * 100 >= good * 95, "{sharp} of {good}");
}
