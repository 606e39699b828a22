//! Lists of plain values that are wiped as fast as memory is written.

use crate::{Block, workers};
use core::ops::{Deref, DerefMut};

/// Blocks that are worth a thread to wipe.
const WIPED_EACH: usize = 1 << 18;

/// Overwrites all values with `zero`, which no optimisation leaves out: whole vectors at a time, where
/// [`zeroize::Zeroize`] writes value by value, of bytes one after the other.
pub(crate) fn wipe<T: Copy>(values: &mut [T], zero: T) {
    values.fill(zero);
    zeroize::optimization_barrier(values);
}

/// The same of blocks, by all cores where there are many.
pub(crate) fn wipe_blocks(blocks: &mut [Block]) {
    let share = workers::share(blocks.len(), WIPED_EACH);
    workers::each(blocks.chunks_mut(share), |part| wipe(part, Block::ZERO));
}

/// A list whose memory is overwritten when it is dropped: its values and what was behind them. As of any vector, a
/// list that grows past its capacity leaves a copy behind.
pub struct Wiped<T: Copy> {
    values: Vec<T>,
    zero: T,
}

impl<T: Copy> Wiped<T> {
    /// Of `values`, over which `zero` will be written; that must set every byte of a value that was secret.
    pub fn new(values: Vec<T>, zero: T) -> Self {
        Wiped { values, zero }
    }

    /// An empty list with room for `capacity`.
    pub fn with_capacity(capacity: usize, zero: T) -> Self {
        Self::new(Vec::with_capacity(capacity), zero)
    }
}

impl<T: Copy> Drop for Wiped<T> {
    fn drop(&mut self) {
        let (values, zero) = (&mut self.values, self.zero);
        values.clear();
        values.resize(values.capacity(), zero);
        zeroize::optimization_barrier(values.as_slice());
    }
}

impl<T: Copy> Deref for Wiped<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.values
    }
}

impl<T: Copy> DerefMut for Wiped<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_overwritten() {
        for len in [0, 1, 7, 1000] {
            let mut values: Vec<u8> = (0..len).map(|at| at as u8 | 1).collect();
            wipe(&mut values, 0);
            assert!(values.iter().all(|value| *value == 0) && values.len() == len);
        }
        let mut blocks = vec![Block::ONE; 3 * WIPED_EACH + 1];
        wipe_blocks(&mut blocks);
        assert!(blocks.iter().all(|block| *block == Block::ZERO));
        let mut list = Wiped::with_capacity(4, 0u32);
        list.extend([1, 2, 3]);
        assert_eq!(list.as_slice(), [1, 2, 3]);
        list.truncate(1);
        assert_eq!(list.len(), 1);
    }
}
