//! Buffers that are used again. A training step needs the same few dozen large buffers as the one
//! before; giving them back to the system and asking for them anew cost a fifth of the time in page
//! faults.

/// Buffers that are free to be used again.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Vec<Vec<f32>>,
}

impl BufferPool {
    /// A buffer of that length. Its content is left over from the last use.
    pub(crate) fn take(&mut self, length: usize) -> Vec<f32> {
        let fitting = (0..self.free.len()).filter(|&at| self.free[at].capacity() >= length);
        let smallest = fitting.min_by_key(|&at| self.free[at].capacity());
        let chosen =
            smallest.or_else(|| (0..self.free.len()).max_by_key(|&at| self.free[at].capacity()));
        let mut buffer = chosen.map_or_else(Vec::new, |at| self.free.swap_remove(at));
        if buffer.capacity() < length {
            // A vector that grows copies its old content, which no caller wants: take a new one.
            buffer = Vec::with_capacity(length);
        }
        buffer.resize(length, 0.0);
        buffer
    }

    /// A buffer of zeros.
    pub(crate) fn zeros(&mut self, length: usize) -> Vec<f32> {
        let mut buffer = self.take(length);
        buffer.fill(0.0);
        buffer
    }

    /// Gives a buffer back.
    pub(crate) fn give(&mut self, buffer: Vec<f32>) {
        if buffer.capacity() > 0 {
            self.free.push(buffer);
        }
    }
}
