//! Hides a value from the optimiser.

/// The same number, about which the compiler knows nothing.
///
/// `a & mask | b & !mask` with a mask made of a comparison is a choice to the compiler, and of 128 bits it makes
/// a branch. With a mask that went through here it stays arithmetic.
#[inline(always)]
pub(crate) fn hidden(x: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut x = x;
        // SAFETY: there is no instruction; the register keeps its value.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
        }
        x
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    core::hint::black_box(x)
}
