//! A card with a stream for copies and one for work, and the calls of its libraries that have no
//! safe form: products, sums and factors.

use std::ffi::c_int;
use std::fmt::Debug;
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::sys::{
    self as blas, cublasFillMode_t, cublasHandle_t, cublasOperation_t, cublasStatus_t,
};
use cudarc::cusolver::DnHandle;
use cudarc::cusolver::sys as solver;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtrMut, DeviceRepr, ValidAsZeroBits,
    sys as driver,
};

use crate::error::CudaError;
use crate::totals::CardTotals;

/// Numbers that a card multiplies: doubles and singles.
pub trait CardNumber:
    DeviceRepr + ValidAsZeroBits + Copy + Default + Debug + PartialEq + Send + Sync + 'static
{
    #[doc(hidden)]
    const ONE: Self;
    #[doc(hidden)]
    const ZERO: Self;

    /// The lower triangle of C = AAᵀ, A being n×k.
    ///
    /// # Safety
    /// `a` holds n·k numbers and `c` n², both on the card of the handle.
    #[doc(hidden)]
    unsafe fn syrk(
        handle: cublasHandle_t,
        n: c_int,
        k: c_int,
        a: *const Self,
        c: *mut Self,
    ) -> cublasStatus_t;

    /// y = x + y, of n numbers each.
    ///
    /// # Safety
    /// `x` and `y` hold n numbers each, both on the card of the handle.
    #[doc(hidden)]
    unsafe fn axpy(
        handle: cublasHandle_t,
        n: c_int,
        x: *const Self,
        y: *mut Self,
    ) -> cublasStatus_t;
}

macro_rules! card_number {
    ($number:ty, $syrk:ident, $axpy:ident) => {
        impl CardNumber for $number {
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;

            unsafe fn syrk(
                handle: cublasHandle_t,
                n: c_int,
                k: c_int,
                a: *const Self,
                c: *mut Self,
            ) -> cublasStatus_t {
                let lower = cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
                let plain = cublasOperation_t::CUBLAS_OP_N;
                // SAFETY: the caller vouches for both matrices; the two factors are read before the
                // call returns.
                unsafe {
                    blas::$syrk(
                        handle,
                        lower,
                        plain,
                        n,
                        k,
                        &Self::ONE,
                        a,
                        n,
                        &Self::ZERO,
                        c,
                        n,
                    )
                }
            }

            unsafe fn axpy(
                handle: cublasHandle_t,
                n: c_int,
                x: *const Self,
                y: *mut Self,
            ) -> cublasStatus_t {
                // SAFETY: the caller vouches for both vectors; the factor is read before the call
                // returns.
                unsafe { blas::$axpy(handle, n, &Self::ONE, x, 1, y, 1) }
            }
        }
    };
}

card_number!(f64, cublasDsyrk_v2, cublasDaxpy_v2);
card_number!(f32, cublasSsyrk_v2, cublasSaxpy_v2);

/// A graphics card, a stream of work on it, and a stream of copies beside it. Clones of it would
/// share both: each sum has its own.
#[derive(Debug)]
pub struct Card {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) work: Arc<CudaStream>,
    pub(crate) copies: Arc<CudaStream>,
    pub(crate) blas: CudaBlas,
}

/// Rows on the card, one after the other.
#[derive(Debug)]
pub struct CardMatrix<T> {
    values: CudaSlice<T>,
    width: usize,
}

impl<T> CardMatrix<T> {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width
    }
}

impl Card {
    /// The first card.
    ///
    /// # Errors
    /// There is none, or no stream or handle can be made on it.
    pub fn first() -> Result<Self, CudaError> {
        crate::probe::check()?;
        let context =
            CudaContext::new(0).map_err(|error| CudaError::NoCard(format!("{error:?}")))?;
        Self::on(context)
    }

    /// Streams of its own on the same card.
    ///
    /// # Errors
    /// No stream or handle can be made.
    pub fn beside(&self) -> Result<Self, CudaError> {
        Self::on(self.context.clone())
    }

    fn on(context: Arc<CudaContext>) -> Result<Self, CudaError> {
        let stream = || {
            context
                .new_stream()
                .map_err(CudaError::call("a new stream"))
        };
        let work = stream()?;
        let copies = stream()?;
        let blas = CudaBlas::new(work.clone()).map_err(CudaError::call("the start of cuBLAS"))?;
        Ok(Self {
            work,
            copies,
            blas,
            context,
        })
    }

    /// What the card calls itself.
    pub fn name(&self) -> String {
        self.context
            .name()
            .unwrap_or_else(|_| "a card without a name".into())
    }

    /// Bytes of its memory that nobody uses.
    ///
    /// # Errors
    /// The card does not say.
    pub fn free_memory(&self) -> Result<usize, CudaError> {
        self.context
            .mem_get_info()
            .map(|(free, _)| free)
            .map_err(CudaError::call("the free memory"))
    }

    /// Copies rows to the card.
    ///
    /// # Errors
    /// There is no room.
    pub fn upload<T: CardNumber>(
        &self,
        rows: &[T],
        width: usize,
    ) -> Result<CardMatrix<T>, CudaError> {
        let values = self
            .work
            .clone_htod(rows)
            .map_err(CudaError::call("a copy to the card"))?;
        Ok(CardMatrix { values, width })
    }

    /// The sum of XᵀX over rows that are on the card, block by block, and the milliseconds that the
    /// card took for it.
    ///
    /// # Errors
    /// There is no room, or a product fails.
    pub fn gram<T: CardNumber>(
        &self,
        rows: &CardMatrix<T>,
        block: usize,
    ) -> Result<(Vec<T>, f64), CudaError> {
        let mut totals = CardTotals::new(self, rows.width, block)?;
        let started = self.timestamp()?;
        totals.add(self, &rows.values.as_view())?;
        let ended = self.timestamp()?;
        let (values, _) = totals.read(self)?;
        let milliseconds = started
            .elapsed_ms(&ended)
            .map_err(CudaError::call("the time of an event"))?;
        Ok((values, f64::from(milliseconds)))
    }

    /// Replaces the lower triangle of a matrix by its Cholesky factor; the first pivot that is not
    /// positive, if there is one, and the milliseconds that the card took.
    ///
    /// # Errors
    /// There is no room, or the library fails.
    pub fn factor(&self, matrix: &mut CardMatrix<f64>) -> Result<(Option<usize>, f64), CudaError> {
        let n = size(matrix.width)?;
        assert!(
            matrix.values.len() == matrix.width * matrix.width,
            "only a square matrix has a factor"
        );
        let handle =
            DnHandle::new(self.work.clone()).map_err(CudaError::call("the start of cuSOLVER"))?;
        let lower = solver::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
        let (a, recorded) = matrix.values.device_ptr_mut(&self.work);
        let a = a as *mut f64;
        let mut length = 0;
        // SAFETY: `a` holds n² numbers on the handle's card, and `length` lives until the call
        // returns.
        unsafe { solver::cusolverDnDpotrf_bufferSize(handle.cu(), lower, n, a, n, &mut length) }
            .result()
            .map_err(CudaError::call("the size of a factorisation"))?;
        let room = self.work.alloc_zeros::<f64>(length.max(1) as usize);
        let mut room = room.map_err(CudaError::call("memory for a factorisation"))?;
        let info = self.work.alloc_zeros::<c_int>(1);
        let mut info = info.map_err(CudaError::call("memory for a factorisation"))?;
        let started = self.timestamp()?;
        {
            let (room, _recorded) = room.device_ptr_mut(&self.work);
            let (info, _recorded_info) = info.device_ptr_mut(&self.work);
            // SAFETY: `a` holds n² numbers, `room` as many as the library asked for, `info` one;
            // all are on the handle's card and live until the stream has been waited for below.
            unsafe {
                solver::cusolverDnDpotrf(
                    handle.cu(),
                    lower,
                    n,
                    a,
                    n,
                    room as *mut f64,
                    length,
                    info as *mut c_int,
                )
            }
            .result()
            .map_err(CudaError::call("a factorisation"))?;
        }
        let ended = self.timestamp()?;
        drop(recorded);
        let info = self
            .work
            .clone_dtoh(&info)
            .map_err(CudaError::call("a copy from the card"))?;
        self.wait()?;
        let milliseconds = started
            .elapsed_ms(&ended)
            .map_err(CudaError::call("the time of an event"))?;
        let pivot = info
            .first()
            .filter(|at| **at > 0)
            .map(|at| *at as usize - 1);
        Ok((pivot, f64::from(milliseconds)))
    }

    /// Copies the lower triangle of a square matrix to the card, column by column.
    ///
    /// # Errors
    /// There is no room, or a copy fails.
    pub fn upload_lower(&self, columns: &[&mut [f64]]) -> Result<CardMatrix<f64>, CudaError> {
        let width = columns.len();
        let values = self.work.alloc_zeros::<f64>(width * width);
        let mut values = values.map_err(CudaError::call("memory for a matrix"))?;
        for (j, column) in columns.iter().enumerate() {
            let mut place = values.slice_mut(j * width + j..(j + 1) * width);
            let part = &column[j..width];
            self.work
                .memcpy_htod(part, &mut place)
                .map_err(CudaError::call("a copy to the card"))?;
        }
        Ok(CardMatrix { values, width })
    }

    /// Copies the lower triangle of a square matrix back.
    ///
    /// # Errors
    /// A copy fails.
    pub fn download_lower(
        &self,
        matrix: &CardMatrix<f64>,
        columns: &mut [&mut [f64]],
    ) -> Result<(), CudaError> {
        let width = matrix.width;
        for (j, column) in columns.iter_mut().enumerate() {
            let place = matrix.values.slice(j * width + j..(j + 1) * width);
            let part = &mut column[j..width];
            self.work
                .memcpy_dtoh(&place, part)
                .map_err(CudaError::call("a copy from the card"))?;
        }
        self.wait()
    }

    fn timestamp(&self) -> Result<CudaEvent, CudaError> {
        let timed = Some(driver::CUevent_flags::CU_EVENT_DEFAULT);
        self.work
            .record_event(timed)
            .map_err(CudaError::call("an event"))
    }

    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        self.work
            .synchronize()
            .map_err(CudaError::call("the work on the card"))
    }
}

/// A length as the libraries want it.
pub(crate) fn size(length: usize) -> Result<c_int, CudaError> {
    c_int::try_from(length).map_err(|_| CudaError::Call {
        what: "a matrix of more than 2³¹ numbers",
        code: "no result".into(),
    })
}
