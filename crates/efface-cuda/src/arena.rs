//! One piece of the card's memory that is dealt out anew for every minibatch.

use cudarc::driver::{CudaSlice, DevicePtr};

use crate::card::Card;
use crate::error::CudaError;

/// Every part begins at a multiple of 256 bytes.
const ALIGNED: usize = 64;

/// Memory of 4-byte numbers.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: CudaSlice<u32>,
    first: u64,
}

/// Deals parts of an arena out, one after the other. Without an arena it only counts.
#[derive(Debug, Default)]
pub(crate) struct Dealer {
    first: u64,
    taken: usize,
    room: Option<usize>,
}

impl Arena {
    pub(crate) fn new(card: &Card, numbers: usize) -> Result<Self, CudaError> {
        let memory = card.work.alloc_zeros::<u32>(numbers.max(1));
        let memory = memory.map_err(CudaError::call("memory for a network"))?;
        let first = memory.device_ptr(&card.work).0;
        Ok(Self { memory, first })
    }

    /// An arena that holds these numbers.
    pub(crate) fn holding(card: &Card, numbers: &[f32]) -> Result<Self, CudaError> {
        let bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        let mut arena = Self::new(card, bits.len())?;
        arena.write(card, &bits)?;
        Ok(arena)
    }

    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The place of a number.
    pub(crate) fn at(&self, number: usize) -> u64 {
        self.first + 4 * number as u64
    }

    pub(crate) fn dealer(&self) -> Dealer {
        Dealer {
            first: self.first,
            taken: 0,
            room: Some(self.memory.len()),
        }
    }

    /// Writes its first numbers.
    pub(crate) fn write(&mut self, card: &Card, bits: &[u32]) -> Result<(), CudaError> {
        if bits.is_empty() {
            return Ok(());
        }
        let mut part = self.memory.slice_mut(..bits.len());
        card.work
            .memcpy_htod(bits, &mut part)
            .map_err(CudaError::call("a copy to the card"))
    }

    /// Its numbers from one on.
    pub(crate) fn read(&self, card: &Card, from: usize, out: &mut [f32]) -> Result<(), CudaError> {
        let mut bits = vec![0u32; out.len()];
        let part = self.memory.slice(from..from + out.len());
        card.work
            .memcpy_dtoh(&part, &mut bits)
            .map_err(CudaError::call("a copy from the card"))?;
        card.wait()?;
        out.iter_mut()
            .zip(bits)
            .for_each(|(number, bits)| *number = f32::from_bits(bits));
        Ok(())
    }

    pub(crate) fn read_bits(
        &self,
        card: &Card,
        from: usize,
        count: usize,
    ) -> Result<Vec<u32>, CudaError> {
        let part = self.memory.slice(from..from + count);
        let bits = card
            .work
            .clone_dtoh(&part)
            .map_err(CudaError::call("a copy from the card"))?;
        card.wait()?;
        Ok(bits)
    }
}

impl Dealer {
    /// The next part, of so many numbers. Its content is left over from the last use.
    pub(crate) fn take(&mut self, numbers: usize) -> Result<u64, CudaError> {
        let place = self.first + 4 * self.taken as u64;
        self.taken += numbers.next_multiple_of(ALIGNED);
        match self.room {
            Some(room) if self.taken > room => {
                let code = format!(
                    "it needs {} numbers where there is room for {room}",
                    self.taken
                );
                Err(CudaError::Call {
                    what: "a minibatch larger than was said",
                    code,
                })
            }
            _ => Ok(place),
        }
    }

    /// Where a part begins, counted in numbers.
    pub(crate) fn offset(&self, place: u64) -> usize {
        ((place - self.first) / 4) as usize
    }

    /// Numbers that were dealt out.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_behind_each_other_and_within_the_room() {
        let mut counted = Dealer::default();
        let places = [
            counted.take(3).unwrap(),
            counted.take(65).unwrap(),
            counted.take(0).unwrap(),
        ];
        assert_eq!((places, counted.taken()), ([0, 256, 768], 192));
        let mut dealt = Dealer {
            first: 1024,
            taken: 0,
            room: Some(128),
        };
        assert_eq!(dealt.take(64).unwrap(), 1024);
        let place = dealt.take(64).unwrap();
        assert_eq!((place, dealt.offset(place)), (1280, 64));
        assert!(dealt.take(1).is_err());
    }
}
