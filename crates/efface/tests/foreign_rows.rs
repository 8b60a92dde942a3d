//! Rows that are not those that the model was fitted on: a damaged file can hand them over.
//! Whatever comes of it, it ends.
#![allow(clippy::unwrap_used)]

use efface::methods::{Auto, WarmStart};
use efface::{Dense, Fit, Forget, RowId, Rows, Softmax};

fn rows(first: f64) -> Rows {
    let n = 60;
    let d = 3;
    let mut x: Vec<f64> = (0..n * d)
        .map(|at| ((at * 37 + 11) % 23) as f64 / 11.0 - 1.0)
        .collect();
    x[0] = first;
    let targets = (0..n)
        .flat_map(|i| (0..3).map(move |class| f64::from(u8::from(i % 3 == class))))
        .collect();
    Rows::new(Dense::new(x, d).unwrap(), targets, 3).unwrap()
}

#[test]
fn a_row_as_large_as_numbers_go_ends_a_forget() {
    let model = Softmax::new(1.0).fit(&rows(0.5)).unwrap();
    let gone = [RowId(0), RowId(1)];
    for size in [1e300, -1e300, 1e160, f64::MAX] {
        for method in [&Auto::default() as &dyn Forget<_>, &WarmStart] {
            if let Ok(outcome) = method.forget(&model, &rows(size), &gone) {
                let (coefficients, _) = outcome.model.parameters();
                assert!(
                    coefficients
                        .col_iter()
                        .all(|column| column.iter().all(|value| value.is_finite()))
                );
            }
        }
    }
}
