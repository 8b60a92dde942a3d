//! Products of matrices that lie on the card, in single precision and column by column, as the
//! networks have them.

use std::ffi::c_int;

use cudarc::cublas::sys::{self as blas, cublasOperation_t};

use crate::card::{Card, size};
use crate::error::CudaError;

/// A matrix on the card: where it begins, and whether it is to be read across.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Factor {
    place: u64,
    /// Rows as it is stored, which is how far apart its columns are.
    height: usize,
    is_turned: bool,
}

impl Factor {
    pub(crate) fn plain(place: u64, height: usize) -> Self {
        Self {
            place,
            height,
            is_turned: false,
        }
    }

    pub(crate) fn turned(place: u64, height: usize) -> Self {
        Self {
            place,
            height,
            is_turned: true,
        }
    }

    fn operation(&self) -> cublasOperation_t {
        if self.is_turned {
            cublasOperation_t::CUBLAS_OP_T
        } else {
            cublasOperation_t::CUBLAS_OP_N
        }
    }
}

impl Card {
    /// C = A·B + keep·C, C being m×n with n columns of m numbers and k the length of the sums.
    pub(crate) fn product(
        &self,
        (m, n, k): (usize, usize, usize),
        a: Factor,
        b: Factor,
        keep: f32,
        c: u64,
    ) -> Result<(), CudaError> {
        if m == 0 || n == 0 {
            return Ok(());
        }
        let one = 1.0f32;
        // SAFETY: whoever calls gives places of matrices of these sizes on this card, in memory
        // that lives until the stream was waited for; the two factors are read before the call
        // returns.
        unsafe {
            blas::cublasSgemm_v2(
                *self.blas.handle(),
                a.operation(),
                b.operation(),
                size(m)?,
                size(n)?,
                size(k)?,
                &one,
                a.place as *const f32,
                size(a.height)?,
                b.place as *const f32,
                size(b.height)?,
                &keep,
                c as *mut f32,
                size(m)?,
            )
        }
        .result()
        .map_err(CudaError::call("a product"))
    }

    /// sum += A·1: the sum of all columns of a matrix, with a vector of as many ones as it has
    /// columns.
    pub(crate) fn add_columns(
        &self,
        (rows, columns): (usize, usize),
        matrix: u64,
        ones: u64,
        sum: u64,
    ) -> Result<(), CudaError> {
        let one = 1.0f32;
        let step: c_int = 1;
        // SAFETY: as for a product; `ones` holds a number a column and `sum` one a row.
        unsafe {
            blas::cublasSgemv_v2(
                *self.blas.handle(),
                cublasOperation_t::CUBLAS_OP_N,
                size(rows)?,
                size(columns)?,
                &one,
                matrix as *const f32,
                size(rows)?,
                ones as *const f32,
                step,
                &one,
                sum as *mut f32,
                step,
            )
        }
        .result()
        .map_err(CudaError::call("a sum of columns"))
    }
}
