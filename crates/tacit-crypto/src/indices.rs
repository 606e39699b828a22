//! Many indices in memory of their own.

use crate::{Block, Buffer};
use core::ops::{Deref, DerefMut};

/// Zeroed numbers of 32 bits in a [`Buffer`]: what is large goes back to the system when it is dropped, and
/// none of it stays in the allocator. Wiped on drop.
pub struct Indices {
    blocks: Buffer,
    len: usize,
}

impl Indices {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Indices { blocks: Buffer::zeros(len.div_ceil(size_of::<Block>() / size_of::<u32>())), len }
    }
}

impl Deref for Indices {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &bytemuck::cast_slice(&self.blocks)[..self.len]
    }
}

impl DerefMut for Indices {
    fn deref_mut(&mut self) -> &mut [u32] {
        &mut bytemuck::cast_slice_mut(&mut self.blocks)[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_kept_one_beside_the_other() {
        for len in [0, 1, 3, 4, 5, 1000] {
            let mut indices = Indices::zeros(len);
            assert!(indices.len() == len && indices.iter().all(|index| *index == 0));
            indices.iter_mut().zip(0..).for_each(|(index, i)| *index = i);
            assert!(indices.iter().copied().eq(0..len as u32));
        }
    }
}
