//! A card with a stream for copies and one for work, and the four calls of its libraries that have no safe form: products, sums,
//! and factors.

use std::ffi::c_int;
use std::fmt::Debug;
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::sys::{self as blas, cublasFillMode_t, cublasHandle_t, cublasOperation_t, cublasStatus_t};
use cudarc::cusolver::DnHandle;
use cudarc::cusolver::sys as solver;
use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, CudaView, DevicePtr, DevicePtrMut, DeviceRepr,
    PinnedHostSlice, ValidAsZeroBits, sys as driver,
};

use crate::error::CudaError;

/// Numbers that a card multiplies: doubles and singles.
pub trait CardNumber: DeviceRepr + ValidAsZeroBits + Copy + Default + Debug + PartialEq + Send + Sync + 'static {
    #[doc(hidden)]
    const ONE: Self;
    #[doc(hidden)]
    const ZERO: Self;

    /// The lower triangle of C = AAᵀ, A being n×k.
    ///
    /// # Safety
    /// `a` holds n·k numbers and `c` n², both on the card of the handle.
    #[doc(hidden)]
    unsafe fn syrk(handle: cublasHandle_t, n: c_int, k: c_int, a: *const Self, c: *mut Self) -> cublasStatus_t;

    /// y = x + y, of n numbers each.
    ///
    /// # Safety
    /// `x` and `y` hold n numbers each, both on the card of the handle.
    #[doc(hidden)]
    unsafe fn axpy(handle: cublasHandle_t, n: c_int, x: *const Self, y: *mut Self) -> cublasStatus_t;
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
                // SAFETY: the caller vouches for both matrices; the two factors are read before the call returns.
                unsafe { blas::$syrk(handle, lower, plain, n, k, &Self::ONE, a, n, &Self::ZERO, c, n) }
            }

            unsafe fn axpy(handle: cublasHandle_t, n: c_int, x: *const Self, y: *mut Self) -> cublasStatus_t {
                // SAFETY: the caller vouches for both vectors; the factor is read before the call returns.
                unsafe { blas::$axpy(handle, n, &Self::ONE, x, 1, y, 1) }
            }
        }
    };
}

card_number!(f64, cublasDsyrk_v2, cublasDaxpy_v2);
card_number!(f32, cublasSsyrk_v2, cublasSaxpy_v2);

/// A graphics card, a stream of work on it, and a stream of copies beside it. Clones of it would share both: each sum has its own.
#[derive(Debug)]
pub struct Card {
    context: Arc<CudaContext>,
    work: Arc<CudaStream>,
    copies: Arc<CudaStream>,
    blas: CudaBlas,
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
        let context = CudaContext::new(0).map_err(|error| CudaError::NoCard(format!("{error:?}")))?;
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
        let stream = || context.new_stream().map_err(CudaError::call("a new stream"));
        let work = stream()?;
        let copies = stream()?;
        let blas = CudaBlas::new(work.clone()).map_err(CudaError::call("the start of cuBLAS"))?;
        Ok(Self { work, copies, blas, context })
    }

    /// What the card calls itself.
    pub fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a card without a name".into())
    }

    /// Bytes of its memory that nobody uses.
    ///
    /// # Errors
    /// The card does not say.
    pub fn free_memory(&self) -> Result<usize, CudaError> {
        self.context.mem_get_info().map(|(free, _)| free).map_err(CudaError::call("the free memory"))
    }

    /// Copies rows to the card.
    ///
    /// # Errors
    /// There is no room.
    pub fn upload<T: CardNumber>(&self, rows: &[T], width: usize) -> Result<CardMatrix<T>, CudaError> {
        let values = self.work.clone_htod(rows).map_err(CudaError::call("a copy to the card"))?;
        Ok(CardMatrix { values, width })
    }

    /// The sum of XᵀX over rows that are on the card, block by block, and the milliseconds that the card took for it.
    ///
    /// # Errors
    /// There is no room, or a product fails.
    pub fn gram<T: CardNumber>(&self, rows: &CardMatrix<T>, block: usize) -> Result<(Vec<T>, f64), CudaError> {
        let mut totals = CardTotals::new(self, rows.width)?;
        let started = self.timestamp()?;
        for start in (0..rows.rows()).step_by(block.max(1)) {
            let end = rows.rows().min(start + block);
            totals.add(self, &rows.values.slice(start * rows.width..end * rows.width), end - start)?;
        }
        let ended = self.timestamp()?;
        let values = totals.read(self)?;
        let milliseconds = started.elapsed_ms(&ended).map_err(CudaError::call("the time of an event"))?;
        Ok((values, f64::from(milliseconds)))
    }

    /// Replaces the lower triangle of a matrix by its Cholesky factor; the first pivot that is not positive, if there is one, and the
    /// milliseconds that the card took.
    ///
    /// # Errors
    /// There is no room, or the library fails.
    pub fn factor(&self, matrix: &mut CardMatrix<f64>) -> Result<(Option<usize>, f64), CudaError> {
        let n = size(matrix.width)?;
        let handle = DnHandle::new(self.work.clone()).map_err(CudaError::call("the start of cuSOLVER"))?;
        let lower = solver::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
        let (a, recorded) = matrix.values.device_ptr_mut(&self.work);
        let a = a as *mut f64;
        let mut length = 0;
        // SAFETY: `a` holds n² numbers on the handle's card, and `length` lives until the call returns.
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
            // SAFETY: `a` holds n² numbers, `room` as many as the library asked for, `info` one; all are on the handle's card and live
            // until the stream has been waited for below.
            unsafe { solver::cusolverDnDpotrf(handle.cu(), lower, n, a, n, room as *mut f64, length, info as *mut c_int) }
                .result()
                .map_err(CudaError::call("a factorisation"))?;
        }
        let ended = self.timestamp()?;
        drop(recorded);
        let info = self.work.clone_dtoh(&info).map_err(CudaError::call("a copy from the card"))?;
        self.wait()?;
        let milliseconds = started.elapsed_ms(&ended).map_err(CudaError::call("the time of an event"))?;
        let pivot = info.first().filter(|at| **at > 0).map(|at| *at as usize - 1);
        Ok((pivot, f64::from(milliseconds)))
    }

    /// Copies rows back.
    ///
    /// # Errors
    /// The copy fails.
    pub fn download<T: CardNumber>(&self, matrix: &CardMatrix<T>) -> Result<Vec<T>, CudaError> {
        let values = self.work.clone_dtoh(&matrix.values).map_err(CudaError::call("a copy from the card"))?;
        self.wait()?;
        Ok(values)
    }

    fn timestamp(&self) -> Result<CudaEvent, CudaError> {
        let timed = Some(driver::CUevent_flags::CU_EVENT_DEFAULT);
        self.work.record_event(timed).map_err(CudaError::call("an event"))
    }

    fn wait(&self) -> Result<(), CudaError> {
        self.work.synchronize().map_err(CudaError::call("the work on the card"))
    }
}

/// The sum of the products of blocks, on the card. Each block has its own product, which is then added: how many terms a sum has does
/// not depend on how the library begins one.
#[derive(Debug)]
pub(crate) struct CardTotals<T> {
    width: usize,
    product: CudaSlice<T>,
    sum: CudaSlice<T>,
    pub(crate) blocks: usize,
}

impl<T: CardNumber> CardTotals<T> {
    pub(crate) fn new(card: &Card, width: usize) -> Result<Self, CudaError> {
        let square = || card.work.alloc_zeros::<T>(width * width).map_err(CudaError::call("memory for sums"));
        Ok(Self { width, product: square()?, sum: square()?, blocks: 0 })
    }

    /// Adds the products of a block of rows. The work goes on after this returns.
    pub(crate) fn add(&mut self, card: &Card, block: &CudaView<'_, T>, rows: usize) -> Result<(), CudaError> {
        let n = size(self.width)?;
        let k = size(rows)?;
        let handle = *card.blas.handle();
        card.context.bind_to_thread().map_err(CudaError::call("the use of the card"))?;
        {
            let target = if self.blocks == 0 { &mut self.sum } else { &mut self.product };
            let (c, _written) = target.device_ptr_mut(&card.work);
            let (a, _read) = block.device_ptr(&card.work);
            assert!(block.len() >= self.width * rows, "a block holds all its rows");
            // SAFETY: `a` holds n·k numbers, as was just looked at, and `c` n²; the handle works in the stream in which both were waited
            // for.
            unsafe { T::syrk(handle, n, k, a as *const T, c as *mut T) }
                .result()
                .map_err(CudaError::call("a product"))?;
        }
        if self.blocks > 0 {
            let length = size(self.width * self.width)?;
            let (x, _read) = self.product.device_ptr(&card.work);
            let (y, _written) = self.sum.device_ptr_mut(&card.work);
            // SAFETY: both hold n² numbers on the card of the handle.
            unsafe { T::axpy(handle, length, x as *const T, y as *mut T) }
                .result()
                .map_err(CudaError::call("a sum"))?;
        }
        self.blocks += 1;
        Ok(())
    }

    /// The sum, column after column, once it is done.
    pub(crate) fn read(&self, card: &Card) -> Result<Vec<T>, CudaError> {
        let values = card.work.clone_dtoh(&self.sum).map_err(CudaError::call("a copy from the card"))?;
        card.wait()?;
        Ok(values)
    }
}

/// A block of rows: where the processor writes it, and where the card reads it.
#[derive(Debug)]
pub(crate) struct BlockSlot<T> {
    pinned: PinnedHostSlice<T>,
    device: CudaSlice<T>,
}

impl<T: CardNumber> BlockSlot<T> {
    pub(crate) fn new(card: &Card, length: usize) -> Result<Self, CudaError> {
        let room = CudaError::call("memory for a block");
        // SAFETY: the memory is filled below before anybody reads it.
        let mut pinned = unsafe { card.context.alloc_pinned::<T>(length) }.map_err(room)?;
        pinned.as_mut_slice().map_err(CudaError::call("memory for a block"))?.fill(T::ZERO);
        let device = card.work.alloc_zeros::<T>(length).map_err(CudaError::call("memory for a block"))?;
        Ok(Self { pinned, device })
    }

    /// Where the next block is to be written, once the one before has left it.
    pub(crate) fn buffer(&mut self) -> Result<&mut [T], CudaError> {
        self.pinned.as_mut_slice().map_err(CudaError::call("a copy to the card"))
    }

    /// Sends the first numbers on their way, behind the work that still reads those before them.
    pub(crate) fn send(&mut self, card: &Card, length: usize) -> Result<CudaView<'_, T>, CudaError> {
        let failed = CudaError::call("a copy to the card");
        if length == self.pinned.len() {
            card.copies.memcpy_htod(&self.pinned, &mut self.device).map_err(failed)?;
        } else {
            let part = self.pinned.as_slice().map_err(CudaError::call("a copy to the card"))?;
            card.copies.memcpy_htod(&part[..length], &mut self.device.slice_mut(..length)).map_err(failed)?;
            // A part of a buffer does not carry the event by which the whole one is waited for.
            card.copies.synchronize().map_err(CudaError::call("a copy to the card"))?;
        }
        Ok(self.device.slice(..length))
    }
}

/// A length as the libraries want it.
fn size(length: usize) -> Result<c_int, CudaError> {
    c_int::try_from(length).map_err(|_| CudaError::Call { what: "a matrix of more than 2³¹ numbers", code: "no result".into() })
}
