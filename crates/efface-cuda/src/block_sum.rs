//! A sum of XᵀX over rows that come from the processor's memory, in blocks. While one block is written, the one before it is copied,
//! and the one before that is multiplied.

use efface::{GramSum, SummedGram};

use crate::card::{BlockSlot, Card, CardNumber, CardTotals};
use crate::error::CudaError;

/// Blocks under way: one that is written, one that is copied, one that is multiplied.
const SLOTS: usize = 3;

/// Rows of a block. More would save little time and let every sum have more terms, which the bounds of all requests pay for.
const BLOCK: usize = 2048;

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
        let block = Self::block_for(width, card.free_memory()?)?;
        let totals = CardTotals::new(&card, width)?;
        let slots = (0..SLOTS).map(|_| BlockSlot::new(&card, block * width)).collect::<Result<_, _>>()?;
        Ok(Self { card, width, block, slots, next: 0, totals })
    }

    /// The largest block that fits beside the sums.
    fn block_for(width: usize, free: usize) -> Result<usize, CudaError> {
        let number = size_of::<T>();
        // A sixteenth stays free for what the libraries need.
        let usable = free / 16 * 15;
        let squares = width.saturating_mul(width).saturating_mul(2 * number);
        let row = width.saturating_mul(SLOTS * number).max(1);
        let block = (usable.saturating_sub(squares) / row).min(BLOCK);
        if width == 0 || block < LEAST_BLOCK {
            let needed = squares.saturating_add(row.saturating_mul(LEAST_BLOCK));
            return Err(CudaError::NoRoom { width, free: free >> 20, needed: needed.div_ceil(1 << 20) });
        }
        Ok(block)
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
        self.totals.add(&self.card, &sent, rows)?;
        self.next = (self.next + 1) % SLOTS;
        Ok(())
    }

    /// The sum, column after column, and how many roundings an entry has seen at most.
    ///
    /// # Errors
    /// Something that was under way failed.
    pub fn finish(self) -> Result<(Vec<T>, usize), CudaError> {
        Ok((self.totals.read(&self.card)?, self.block + self.totals.blocks))
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
        let block = |width, mib: usize| BlockSum::<f64>::block_for(width, mib << 20);
        assert_eq!(block(3_000, 140_000), Ok(BLOCK));
        // The sums of 3,000 columns take 138 MiB, a row of three blocks 72 kB.
        let small = block(3_000, 200).unwrap();
        assert!((LEAST_BLOCK..BLOCK).contains(&small), "{small}");
        let none = block(3_000, 100).unwrap_err();
        assert_eq!(none.to_string(), "the card has 100 MiB of memory left, and rows of 3000 numbers need 142 MiB");
        assert!(block(usize::MAX / 2, 100).is_err());
    }
}
