//! Many digests in memory of their own.

use crate::{Block, Buffer};
use core::ops::Deref;

/// Blocks that a digest takes.
const EACH: usize = 2;

/// A growing list of digests of 32 bytes in a [`Buffer`]: on huge pages where it is long, and wiped when it is
/// dropped or moves to a larger place.
pub struct Digests {
    blocks: Buffer,
    len: usize,
}

impl Default for Digests {
    fn default() -> Self {
        Digests { blocks: Buffer::zeros(0), len: 0 }
    }
}

impl Digests {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for `count` in all, if there is less.
    pub fn reserve(&mut self, count: usize) {
        if count * EACH > self.blocks.len() {
            let mut larger = Buffer::zeros(count * EACH);
            larger[..self.len * EACH].copy_from_slice(&self.blocks[..self.len * EACH]);
            self.blocks = larger;
        }
    }

    /// Appends one.
    pub fn push(&mut self, digest: &[u8; 32]) {
        if (self.len + 1) * EACH > self.blocks.len() {
            self.reserve((2 * self.len).max(64));
        }
        let at = self.len * EACH;
        bytemuck::cast_slice_mut::<Block, u8>(&mut self.blocks[at..at + EACH]).copy_from_slice(digest);
        self.len += 1;
    }
}

impl Deref for Digests {
    type Target = [[u8; 32]];

    fn deref(&self) -> &[[u8; 32]] {
        bytemuck::cast_slice(&self.blocks[..self.len * EACH])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_stay_in_their_order_while_the_list_grows() {
        let mut digests = Digests::new();
        for i in 0..1000u16 {
            let mut digest = [7; 32];
            digest[..2].copy_from_slice(&i.to_le_bytes());
            digests.push(&digest);
            if i == 100 {
                digests.reserve(500);
            }
        }
        assert_eq!(digests.len(), 1000);
        let read = |digest: &[u8; 32]| u16::from_le_bytes([digest[0], digest[1]]);
        assert!(digests.iter().map(read).eq(0..1000) && digests.iter().all(|digest| digest[31] == 7));
    }
}
