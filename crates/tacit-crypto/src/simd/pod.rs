//! What makes slices of blocks readable as bytes.

use crate::Block;

// SAFETY: `Block` is `repr(transparent)` over `u128`, for which the all-zero pattern is valid.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: `Block` is `repr(transparent)` over `u128`: no padding, every bit pattern valid, `Copy` and
// `'static`.
unsafe impl bytemuck::Pod for Block {}
