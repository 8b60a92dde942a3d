//! A sum of XᵀX over rows that come from the processor's memory, in blocks. While one block is
//! written, the one before it is copied, and the one before that is multiplied.

use efface::{GramSum, SummedGram};

use crate::card::{Card, CardNumber};
use crate::error::CudaError;
use crate::totals::{BlockSlot, CardTotals};

/// Blocks under way: one that is written, one that is copied, one that is multiplied.
const SLOTS: usize = 3;

/// Bytes of a block, about: enough for a copy at full speed.
const BLOCK_BYTES: usize = 24 << 20;

/// Rows of a block, at most.
const MOST_ROWS: usize = 8192;

/// Rows of a product, of few columns and of many. More would save little time and let every sum
/// have more terms, which the bounds of all requests pay for.
const NARROW_PRODUCT: usize = 256;
const WIDE_PRODUCT: usize = 1024;

/// Up to this width, columns are few.
const NARROW: usize = 1024;

/// The fewest rows of a block that are worth a product.
const LEAST_BLOCK: usize = 64;

/// A sum under way.
#[derive(Debug)]
pub struct BlockSum<T> {
    card: Card,
    width: usize,
    block: usize,
    slots: Vec<BlockSlot<T>>,
    next: usize,
    totals: CardTotals<T>,
}

impl<T: CardNumber> BlockSum<T> {
    /// A sum over rows of this many numbers, with streams of its own.
    ///
    /// # Errors
    /// There is too little memory on the card, or it fails.
    pub fn begin(card: &Card, width: usize) -> Result<Self, CudaError> {
        let card = card.beside()?;
        let product = if width <= NARROW {
            NARROW_PRODUCT
        } else {
            WIDE_PRODUCT
        };
        let block = Self::block_for(width, product, card.free_memory()?)?;
        let totals = CardTotals::new(&card, width, product)?;
        let slots = (0..SLOTS)
            .map(|_| BlockSlot::new(&card, block * width))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            card,
            width,
            block,
            slots,
            next: 0,
            totals,
        })
    }

    /// The largest block that fits beside the sums, of whole products where it holds one.
    fn block_for(width: usize, product: usize, free: usize) -> Result<usize, CudaError> {
        let number = size_of::<T>();
        // A sixteenth stays free for what the libraries need.
        let usable = free / 16 * 15;
        let squares = width
            .saturating_mul(width)
            .saturating_mul(CardTotals::<T>::SQUARES * number);
        let row = width.saturating_mul(SLOTS * number).max(1);
        let usual =
            (BLOCK_BYTES / width.saturating_mul(number).max(1)).clamp(LEAST_BLOCK, MOST_ROWS);
        let block = (usable.saturating_sub(squares) / row).min(usual);
        if width == 0 || block < LEAST_BLOCK {
            let needed = squares.saturating_add(row.saturating_mul(LEAST_BLOCK));
            return Err(CudaError::NoRoom {
                width,
                free: free >> 20,
                needed: needed.div_ceil(1 << 20),
            });
        }
        Ok(if block < product {
            block
        } else {
            block / product * product
        })
    }

    /// How many rows a block has.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Where the next block is to be written, row after row.
    ///
    /// # Errors
    /// The copy of an earlier block failed.
    pub fn buffer(&mut self) -> Result<&mut [T], CudaError> {
        self.slots[self.next].buffer()
    }

    /// Adds the first rows of the buffer. The work goes on after this returns.
    ///
    /// # Errors
    /// A copy or a product fails.
    pub fn add(&mut self, rows: usize) -> Result<(), CudaError> {
        let slot = &mut self.slots[self.next];
        let sent = slot.send(&self.card, rows * self.width)?;
        self.totals.add(&self.card, &sent)?;
        self.next = (self.next + 1) % SLOTS;
        Ok(())
    }

    /// The sum, column after column, and how many roundings an entry has seen at most.
    ///
    /// # Errors
    /// Something that was under way failed.
    pub fn finish(self) -> Result<(Vec<T>, usize), CudaError> {
        self.totals.read(&self.card)
    }
}

impl GramSum for BlockSum<f64> {
    fn block(&self) -> usize {
        self.block
    }

    fn buffer(&mut self) -> efface::Result<&mut [f64]> {
        Ok(self.buffer()?)
    }

    fn add(&mut self, rows: usize) -> efface::Result<()> {
        Ok(self.add(rows)?)
    }

    fn finish(self: Box<Self>) -> efface::Result<SummedGram> {
        let (values, terms) = (*self).finish()?;
        Ok(SummedGram { values, terms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_as_large_as_the_card_has_room_for() {
        let block = |width, mib: usize| BlockSum::<f64>::block_for(width, WIDE_PRODUCT, mib << 20);
        assert_eq!(block(3_000, 140_000), Ok(WIDE_PRODUCT));
        assert_eq!(block(20, 140_000), Ok(MOST_ROWS));
        // The sums of 3,000 columns take 206 MiB, a row of three blocks 72 kB.
        let small = block(3_000, 240).unwrap();
        assert!((LEAST_BLOCK..WIDE_PRODUCT).contains(&small), "{small}");
        let none = block(3_000, 100).unwrap_err();
        assert_eq!(
            none.to_string(),
            "the card has 100 MiB of memory left, and rows of 3000 numbers need 211 MiB"
        );
        assert!(block(usize::MAX / 2, 100).is_err());
    }
}
