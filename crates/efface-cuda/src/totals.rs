//! What lies on the card while rows are summed: blocks on their way, products, and their sums.

use cudarc::driver::{CudaSlice, CudaView, DevicePtr, DevicePtrMut, PinnedHostSlice};

use crate::card::{Card, CardNumber, size};
use crate::error::CudaError;

/// So many products are added up on their own before they join the others, so that no sum has many
/// terms.
const TOGETHER: usize = 64;

/// The sum of the products of blocks, on the card. Each block has its own product, which is then
/// added: how many terms a sum has does not depend on how the library begins one.
#[derive(Debug)]
pub(crate) struct CardTotals<T> {
    width: usize,
    /// Rows of a product.
    rows: usize,
    product: CudaSlice<T>,
    /// The sum of the last products, and how many they are.
    recent: (CudaSlice<T>, usize),
    /// The sum of those before them, and how many sums of [`TOGETHER`] products it has.
    older: (CudaSlice<T>, usize),
}

impl<T: CardNumber> CardTotals<T> {
    /// How many matrices it has.
    pub(crate) const SQUARES: usize = 3;

    /// Sums of products of at most this many rows each.
    pub(crate) fn new(card: &Card, width: usize, rows: usize) -> Result<Self, CudaError> {
        let square = || {
            card.work
                .alloc_zeros::<T>(width * width)
                .map_err(CudaError::call("memory for sums"))
        };
        Ok(Self {
            width,
            rows: rows.max(1),
            product: square()?,
            recent: (square()?, 0),
            older: (square()?, 0),
        })
    }

    /// Adds the products of rows. The work goes on after this returns.
    pub(crate) fn add(&mut self, card: &Card, rows: &CudaView<'_, T>) -> Result<(), CudaError> {
        let count = rows.len() / self.width;
        for start in (0..count).step_by(self.rows) {
            let end = count.min(start + self.rows);
            let part = rows.slice(start * self.width..end * self.width);
            let into = if self.recent.1 == 0 {
                &mut self.recent.0
            } else {
                &mut self.product
            };
            multiply(card, &part, self.width, into)?;
            if self.recent.1 > 0 {
                add(card, &self.product, &mut self.recent.0)?;
            }
            self.recent.1 += 1;
            if self.recent.1 == TOGETHER {
                self.put_aside(card)?;
            }
        }
        Ok(())
    }

    /// Adds the last products to those before them.
    fn put_aside(&mut self, card: &Card) -> Result<(), CudaError> {
        if self.older.1 == 0 {
            std::mem::swap(&mut self.recent.0, &mut self.older.0);
        } else {
            add(card, &self.recent.0, &mut self.older.0)?;
        }
        self.older.1 += 1;
        self.recent.1 = 0;
        Ok(())
    }

    /// The sum, column after column, once it is done, and the most roundings that an entry of it
    /// has seen.
    pub(crate) fn read(mut self, card: &Card) -> Result<(Vec<T>, usize), CudaError> {
        if self.recent.1 > 0 {
            self.put_aside(card)?;
        }
        let values = card
            .work
            .clone_dtoh(&self.older.0)
            .map_err(CudaError::call("a copy from the card"))?;
        card.wait()?;
        Ok((values, self.rows + TOGETHER + self.older.1))
    }
}

/// The lower triangle of the product of rows with themselves.
fn multiply<T: CardNumber>(
    card: &Card,
    rows: &CudaView<'_, T>,
    width: usize,
    into: &mut CudaSlice<T>,
) -> Result<(), CudaError> {
    let n = size(width)?;
    let k = size(rows.len() / width)?;
    assert!(
        into.len() == width * width,
        "a product has a place for every pair of columns"
    );
    card.context
        .bind_to_thread()
        .map_err(CudaError::call("the use of the card"))?;
    let (c, _written) = into.device_ptr_mut(&card.work);
    let (a, _read) = rows.device_ptr(&card.work);
    // SAFETY: `a` holds n·k numbers and `c` n², as was just looked at; the handle works in the
    // stream in which both were waited for.
    unsafe { T::syrk(*card.blas.handle(), n, k, a as *const T, c as *mut T) }
        .result()
        .map_err(CudaError::call("a product"))
}

/// Adds one matrix to another.
fn add<T: CardNumber>(
    card: &Card,
    from: &CudaSlice<T>,
    to: &mut CudaSlice<T>,
) -> Result<(), CudaError> {
    assert!(from.len() == to.len(), "both matrices are of one size");
    let length = size(to.len())?;
    let (x, _read) = from.device_ptr(&card.work);
    let (y, _written) = to.device_ptr_mut(&card.work);
    // SAFETY: both hold as many numbers, on the card of the handle, which works in the stream in
    // which both were waited for.
    unsafe { T::axpy(*card.blas.handle(), length, x as *const T, y as *mut T) }
        .result()
        .map_err(CudaError::call("a sum"))
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
        let mut pinned =
            unsafe { card.context.alloc_pinned_with_flags::<T>(length, 0) }.map_err(room)?;
        pinned
            .as_mut_slice()
            .map_err(CudaError::call("memory for a block"))?
            .fill(T::ZERO);
        let device = card
            .work
            .alloc_zeros::<T>(length)
            .map_err(CudaError::call("memory for a block"))?;
        Ok(Self { pinned, device })
    }

    /// Where the next block is to be written, once the one before has left it.
    pub(crate) fn buffer(&mut self) -> Result<&mut [T], CudaError> {
        self.pinned
            .as_mut_slice()
            .map_err(CudaError::call("a copy to the card"))
    }

    /// Sends the first numbers on their way, behind the work that still reads those before them.
    pub(crate) fn send(
        &mut self,
        card: &Card,
        length: usize,
    ) -> Result<CudaView<'_, T>, CudaError> {
        let failed = CudaError::call("a copy to the card");
        if length == self.pinned.len() {
            card.copies
                .memcpy_htod(&self.pinned, &mut self.device)
                .map_err(failed)?;
        } else {
            let part = self
                .pinned
                .as_slice()
                .map_err(CudaError::call("a copy to the card"))?;
            card.copies
                .memcpy_htod(&part[..length], &mut self.device.slice_mut(..length))
                .map_err(failed)?;
            // A part of a buffer does not carry the event by which the whole one is waited for.
            card.copies
                .synchronize()
                .map_err(CudaError::call("a copy to the card"))?;
        }
        Ok(self.device.slice(..length))
    }
}
