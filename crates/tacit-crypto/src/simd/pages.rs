//! Memory aligned to cache lines, and to huge pages where it is large.

use crate::Block;
use crate::wiped::wipe_blocks;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

const LINE: usize = 64;
const HUGE: usize = 2 << 20;

/// From this size on memory is a mapping of its own, which comes zeroed: what the C library's allocator gives
/// would be cleared twice when it is fresh. Smaller buffers are cleared in the cache, and their memory is
/// used again.
#[cfg(target_os = "linux")]
const MAPPED: usize = HUGE;

/// Zeroed blocks that start at a cache line; from 2 MiB on they start at a huge page, and the operating
/// system is asked for huge pages. Random reads from a large table then cost a half or less. Wiped on drop;
/// of what was wiped, up to [`WAITING`](Self::WAITING) bytes stay with the process for the next large buffer.
pub struct Buffer {
    start: NonNull<Block>,
    len: usize,
    /// Bytes of the mapping, zeros behind the blocks; 0 for memory of the allocator.
    #[cfg(target_os = "linux")]
    mapped: usize,
}

// SAFETY: a buffer owns its memory alone, as `Vec<Block>` does.
unsafe impl Send for Buffer {}
// SAFETY: shared access gives `&[Block]` only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Bytes of wiped buffers that stay with the process, at most.
    pub const WAITING: usize = 128 << 20;

    /// Bytes that a buffer of `len` blocks takes: whole huge pages where it is large.
    pub fn bytes(len: usize) -> usize {
        Self::layout(len).size()
    }

    /// `len` zero blocks.
    pub fn zeros(len: usize) -> Self {
        let layout = Self::layout(len);
        #[cfg(target_os = "linux")]
        if layout.size() >= MAPPED {
            let Some((start, mapped)) =
                kept::take(layout.size()).or_else(|| Some((map(layout.size())?, layout.size())))
            else {
                handle_alloc_error(layout)
            };
            return Buffer { start, len, mapped };
        }
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start.cast::<Block>()) else { handle_alloc_error(layout) };
        #[cfg(target_os = "linux")]
        if layout.align() == HUGE {
            advise(start, layout.size());
        }
        // Only now, for pages that were written before the advice stay small.
        // SAFETY: the range is this allocation, whose size is a multiple of a block's.
        unsafe { start.as_ptr().write_bytes(0, layout.size() / size_of::<Block>()) };
        Buffer {
            start,
            len,
            #[cfg(target_os = "linux")]
            mapped: 0,
        }
    }

    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<Block>()).expect("buffer too large").max(LINE);
        let align = if bytes >= HUGE { HUGE } else { LINE };
        Layout::from_size_align(bytes.next_multiple_of(align), align).expect("buffer too large")
    }
}

/// A mapping of its own, `bytes` of zeros from a huge page's start; `None` where there is no memory.
#[cfg(target_os = "linux")]
fn map(bytes: usize) -> Option<NonNull<Block>> {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    let (access, whole) = (ProtFlags::READ | ProtFlags::WRITE, bytes.checked_add(HUGE)?);
    // SAFETY: a new private mapping, at an address of the system's choice.
    let from = unsafe { mmap_anonymous(core::ptr::null_mut(), whole, access, MapFlags::PRIVATE) }.ok()?;
    let head = from.cast::<u8>().align_offset(HUGE);
    let start = from.wrapping_byte_add(head);
    for (part, len) in [(from, head), (start.wrapping_byte_add(bytes), HUGE - head)] {
        if len > 0 {
            // SAFETY: whole pages of the mapping above, which nobody refers to. Were they to stay, nothing
            // would break.
            let _ = unsafe { munmap(part, len) };
        }
    }
    let start = NonNull::new(start.cast())?;
    advise(start, bytes);
    Some(start)
}

/// Wiped mappings that wait for their next use: the system clears a page for every first touch, which at 2^20
/// keys is a sixth of an intersection's time.
#[cfg(target_os = "linux")]
mod kept {
    use crate::{Block, Buffer};
    use core::ptr::NonNull;
    use std::sync::{Mutex, PoisonError};

    struct Mapping {
        start: NonNull<Block>,
        bytes: usize,
    }

    // SAFETY: a mapping that waits is referred to from here alone.
    unsafe impl Send for Mapping {}

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: a whole mapping of our own that nobody refers to. Were it to stay, it would stay wiped.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }

    static WAITING: Mutex<Vec<Mapping>> = Mutex::new(Vec::new());

    /// The smallest that has `bytes` and not an eighth more. Where none has, as many bytes go back to the
    /// system, so that what waits never adds to what is asked for.
    pub(super) fn take(bytes: usize) -> Option<(NonNull<Block>, usize)> {
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |mapping: &Mapping| (bytes..=bytes + bytes / 8).contains(&mapping.bytes);
        let best = (0..waiting.len()).filter(|at| fits(&waiting[*at])).min_by_key(|at| waiting[*at].bytes);
        if let Some(at) = best {
            let mapping = core::mem::ManuallyDrop::new(waiting.swap_remove(at));
            return Some((mapping.start, mapping.bytes));
        }
        let mut back = 0;
        while back < bytes
            && let Some(mapping) = waiting.pop()
        {
            back += mapping.bytes;
        }
        None
    }

    /// Keeps a mapping of zeros, or gives it back where enough wait.
    pub(super) fn put(start: NonNull<Block>, bytes: usize) {
        let mapping = Mapping { start, bytes };
        let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.iter().map(|mapping| mapping.bytes).sum::<usize>() + bytes <= Buffer::WAITING {
            waiting.push(mapping);
        }
    }
}

/// Asks for huge pages.
#[cfg(target_os = "linux")]
fn advise(start: NonNull<Block>, bytes: usize) {
    // SAFETY: the range is one allocation; the advice changes no contents.
    // A kernel without huge pages refuses, and the memory serves as it is.
    let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), bytes, rustix::mm::Advice::LinuxHugepage) };
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
        wipe_blocks(self);
        let layout = Self::layout(self.len);
        #[cfg(target_os = "linux")]
        if self.mapped > 0 {
            kept::put(self.start, self.mapped);
            return;
        }
        // SAFETY: allocated in `zeros` with the same layout.
        unsafe { dealloc(self.start.as_ptr().cast(), layout) }
    }
}
