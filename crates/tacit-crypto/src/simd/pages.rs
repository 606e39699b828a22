//! Memory aligned to cache lines, and to huge pages where it is large.

use crate::Block;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use zeroize::Zeroize;

const LINE: usize = 64;
const HUGE: usize = 2 << 20;

/// Zeroed blocks that start at a cache line; from 2 MiB on they start at a huge page, and the operating system is
/// asked for huge pages. Random reads from a large table then cost a half or less. Wiped on drop.
pub struct Buffer {
    start: NonNull<Block>,
    len: usize,
}

// SAFETY: a buffer owns its memory alone, as `Vec<Block>` does.
unsafe impl Send for Buffer {}
// SAFETY: shared access gives `&[Block]` only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// `len` zero blocks.
    pub fn zeros(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start.cast::<Block>()) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if layout.align() == HUGE {
            let advice = rustix::mm::Advice::LinuxHugepage;
            // SAFETY: the range is this allocation; the advice changes no contents.
            // A kernel without huge pages refuses, and the memory serves as it is.
            let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), layout.size(), advice) };
        }
        // Only now, for pages that were written before the advice stay small.
        // SAFETY: the range is this allocation, whose size is a multiple of a block's.
        unsafe { start.as_ptr().write_bytes(0, layout.size() / size_of::<Block>()) };
        Buffer { start, len }
    }

    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<Block>()).expect("buffer too large").max(LINE);
        let align = if bytes >= HUGE { HUGE } else { LINE };
        Layout::from_size_align(bytes.next_multiple_of(align), align).expect("buffer too large")
    }
}

impl Deref for Buffer {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: `start` points to `len` initialised blocks that live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: as above, and `&mut self` makes the access unique.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.zeroize();
        // SAFETY: allocated in `zeros` with the same layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) }
    }
}
