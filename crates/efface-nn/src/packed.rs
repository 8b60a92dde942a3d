//! Sequences of unequal length side by side without padding.
//!
//! Samples are sorted by falling length. Step t holds the samples that are longer than t, which are
//! then the first `active(t)` of the batch, and its columns follow those of step t − 1. A text that
//! has ended takes part in no product, so nothing has to be masked and no time is spent on padding.

use std::ops::Range;

/// The places of a batch.
#[derive(Debug, Clone)]
pub struct PackedTexts {
    /// Which sample of the caller stands at each place of the batch.
    order: Vec<usize>,
    /// Lengths by place, falling.
    lengths: Vec<usize>,
    /// Where each step's columns begin; one entry more than there are steps.
    starts: Vec<usize>,
}

impl PackedTexts {
    /// Sorts by length; equal lengths keep their order. Every length is at least 1.
    pub(crate) fn new(lengths: &[usize]) -> Self {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&sample| std::cmp::Reverse(lengths[sample]));
        let lengths: Vec<usize> = order.iter().map(|&sample| lengths[sample].max(1)).collect();
        let steps = lengths.first().copied().unwrap_or(0);
        let mut starts = Vec::with_capacity(steps + 1);
        let mut active = lengths.len();
        let mut column = 0;
        for t in 0..steps {
            while active > 0 && lengths[active - 1] <= t {
                active -= 1;
            }
            starts.push(column);
            column += active;
        }
        starts.push(column);
        Self {
            order,
            lengths,
            starts,
        }
    }

    /// Samples.
    pub fn samples(&self) -> usize {
        self.order.len()
    }

    /// Steps of the longest sample.
    pub fn steps(&self) -> usize {
        self.starts.len() - 1
    }

    /// Columns: the tokens of all samples.
    pub fn columns(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The columns of a step.
    pub fn step(&self, t: usize) -> Range<usize> {
        self.starts[t]..self.starts[t + 1]
    }

    /// How many samples are longer than t.
    pub fn active(&self, t: usize) -> usize {
        self.starts[t + 1] - self.starts[t]
    }

    /// The caller's sample at a place.
    pub fn sample(&self, place: usize) -> usize {
        self.order[place]
    }

    /// The length of the sample at a place.
    pub fn length(&self, place: usize) -> usize {
        self.lengths[place]
    }

    /// The column of one token.
    pub fn column(&self, t: usize, place: usize) -> usize {
        self.starts[t] + place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_the_steps() {
        let packed = PackedTexts::new(&[2, 4, 1, 2]);
        assert_eq!(
            (packed.samples(), packed.steps(), packed.columns()),
            (4, 4, 9)
        );
        assert_eq!(
            (0..4).map(|t| packed.active(t)).collect::<Vec<_>>(),
            [4, 3, 1, 1]
        );
        assert_eq!(
            (0..4).map(|place| packed.sample(place)).collect::<Vec<_>>(),
            [1, 0, 3, 2]
        );
        assert_eq!(packed.column(3, 0), 8);
        assert_eq!(packed.step(1), 4..7);
    }
}
