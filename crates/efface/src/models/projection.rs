//! What the projection residual update needs of linear algebra, whatever the family.

use faer::{Accum, Mat, Par};

use crate::error::{Error, Result};
use crate::linalg::{dot, multiply, multiply_lower, symmetric_eigen};

/// G⁺·misfit, with G = X_D X_Dᵀ.
pub(crate) fn span_coordinates(
    raw: &Mat<f64>,
    misfit: &Mat<f64>,
    par: Par,
) -> Result<(Mat<f64>, usize)> {
    let d = raw.nrows();
    let k = raw.ncols();
    if k == 1 {
        let square = dot(raw.col_as_slice(0), raw.col_as_slice(0));
        let inverse = if square > 0.0 { 1.0 / square } else { 0.0 };
        return Ok((misfit * faer::Scale(inverse), (square == 0.0) as usize));
    }
    let mut gram = Mat::zeros(k, k);
    multiply_lower(
        gram.as_mut(),
        Accum::Replace,
        raw.as_ref().transpose(),
        raw.as_ref(),
        1.0,
        par,
    );
    let (values, vectors) = symmetric_eigen(gram.as_ref(), par).ok_or_else(|| {
        Error::Damaged("the Gram matrix of the removed rows has no eigendecomposition".into())
    })?;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let noise = f64::EPSILON * largest * k.max(d) as f64;
    let mut along = Mat::zeros(k, misfit.ncols());
    multiply(
        along.as_mut(),
        Accum::Replace,
        vectors.as_ref().transpose(),
        misfit.as_ref(),
        1.0,
        Par::Seq,
    );
    let mut dropped = 0;
    for j in 0..k {
        let keep = values[j] > noise;
        dropped += !keep as usize;
        for output in 0..along.ncols() {
            along[(j, output)] *= if keep { 1.0 / values[j] } else { 0.0 };
        }
    }
    let mut coordinates = Mat::zeros(k, misfit.ncols());
    multiply(
        coordinates.as_mut(),
        Accum::Replace,
        vectors.as_ref(),
        along.as_ref(),
        1.0,
        Par::Seq,
    );
    Ok((coordinates, dropped))
}

/// How far coefficients and intercepts of two models are apart.
pub(crate) fn distance(a: &(Mat<f64>, Vec<f64>), b: &(Mat<f64>, Vec<f64>)) -> f64 {
    let constants =
        a.1.iter()
            .zip(&b.1)
            .map(|(a, b)| (a - b) * (a - b))
            .sum::<f64>();
    ((&a.0 - &b.0).squared_norm_l2() + constants).sqrt()
}
