//! Requests to valgrind: a few instructions that do nothing, and that valgrind's translator knows.
//!
//! The only `unsafe` outside of the kernels. It serves no release.

use std::alloc::{GlobalAlloc, Layout, System};

/// Of memcheck, and of callgrind.
const MEMCHECK: u64 = 0x4D43_0000;
const CALLGRIND: u64 = 0x4354_0000;

/// Makes a request with its arguments; 0 where nobody listens.
fn request(code: u64, first: u64, second: u64) -> u64 {
    let arguments = [code, first, second, 0, 0, 0];
    let mut answer = 0;
    // SAFETY: the rotations add up to 128 bits and the exchange is of a register with itself, so that all
    // registers keep their values. Valgrind reads the six numbers behind rax and writes the answer to rdx.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (arguments, &mut answer);
    answer
}

/// Whether this runs under valgrind.
pub fn is_running() -> bool {
    request(0x1001, 0, 0) != 0
}

/// Faults that valgrind has found so far.
pub fn faults() -> u64 {
    request(0x1201, 0, 0)
}

/// Marks what stands in memory as undefined: from now on every branch and every index on it is a fault.
pub fn undefined<T>(secret: &[T]) {
    request(MEMCHECK + 1, secret.as_ptr() as u64, size_of_val(secret) as u64);
}

/// Marks what stands in memory as defined: it is public.
pub fn defined<T>(public: &[T]) {
    request(MEMCHECK + 2, public.as_ptr() as u64, size_of_val(public) as u64);
}

/// Sets the count of instructions to nothing.
pub fn restart_count() {
    request(CALLGRIND + 1, 0, 0);
}

/// Writes the count of instructions to a file that bears the name.
pub fn write_count(name: &str) {
    let name = format!("{name}\0");
    request(CALLGRIND + 3, name.as_ptr() as u64, 0);
}

/// The system's allocator, which gets memory back defined: it keeps its own books in what is free, and would be
/// told of branches on secrets that were there before.
pub struct Forgetting;

// SAFETY: every call goes to the system's allocator unchanged. `realloc` is the trait's own, made of these.
unsafe impl GlobalAlloc for Forgetting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        request(MEMCHECK + 2, memory as u64, layout.size() as u64);
        // SAFETY: the caller's promises are those of this call.
        unsafe { System.dealloc(memory, layout) }
    }
}
