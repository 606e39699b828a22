//! Scans of a table of secret numbers: every entry is read, and written where any is, whatever is looked for.

use super::Backend;
#[cfg(target_arch = "x86_64")]
use super::Level;

/// All ones where `a == b`, which must not differ in the highest bit alone.
#[inline(always)]
fn equal(a: u64, b: u64) -> u64 {
    ((a ^ b).wrapping_sub(1) as i64 >> 63) as u64
}

/// The twin that compilers turn into the vectors of each level.
#[inline(always)]
fn pick_with(items: &[u64], at: u64) -> u64 {
    items.iter().zip(0..).fold(0, |found, (item, n)| found | (item & equal(n, at)))
}

/// As [`pick_with`].
#[inline(always)]
fn swap_with(table: &mut [u64], at: u64, item: u64) -> u64 {
    let mut old = 0;
    for (slot, n) in table.iter_mut().zip(0..) {
        let here = equal(n, at);
        old |= *slot & here;
        *slot ^= (*slot ^ item) & here;
    }
    old
}

/// As [`pick_with`].
#[inline(always)]
fn contains_with(items: &[u64], item: u64) -> u64 {
    items.iter().fold(0, |found, other| found | equal(*other, item))
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident = $twin:ident($table:ty $(, $arg:ident)*);)*) => {
        $(
            $(#[$doc])*
            pub fn $name(backend: Backend, table: $table $(, $arg: u64)*) -> u64 {
                match backend.level() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this level exists only where AVX-512 was detected.
                    Level::Avx512 => unsafe { x86_512::$name(table $(, $arg)*) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: this level exists only where AVX2 was detected.
                    Level::Avx2 => unsafe { x86_256::$name(table $(, $arg)*) },
                    _ => $twin(table $(, $arg)*),
                }
            }
        )*

        #[cfg(target_arch = "x86_64")]
        mod x86_512 {
            use super::*;
            $(
                #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vl,avx512dq")]
                pub(super) fn $name(table: $table $(, $arg: u64)*) -> u64 {
                    $twin(table $(, $arg)*)
                }
            )*
        }

        #[cfg(target_arch = "x86_64")]
        mod x86_256 {
            use super::*;
            $(
                #[target_feature(enable = "avx2")]
                pub(super) fn $name(table: $table $(, $arg: u64)*) -> u64 {
                    $twin(table $(, $arg)*)
                }
            )*
        }
    };
}

scans! {
    /// The entry at `at`, or zero where there is none; `at` is below 2^63.
    pick = pick_with(&[u64], at);
    /// Puts `item` at `at` and returns what stood there; zero, and nothing changes, where there is no such
    /// place. `at` is below 2^63.
    swap = swap_with(&mut [u64], at, item);
    /// All ones if an entry equals `item`, zero if none does; they are alike in their highest bit.
    contains = contains_with(&[u64], item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_backend_scans_as_indexing_does() {
        for backend in Backend::available() {
            for len in [0usize, 1, 7, 8, 33, 100] {
                let table: Vec<u64> = (0..len as u64).map(|n| (1 << 63) + n * n * 77 + 5).collect();
                for at in 0..len + 2 {
                    let there = table.get(at).copied().unwrap_or(0);
                    assert_eq!(pick(backend, &table, at as u64), there, "{}", backend.name());
                    assert_eq!(
                        contains(backend, &table, there | 1 << 63),
                        0u64.wrapping_sub((at < len) as u64)
                    );
                    let (mut expected, mut out) = (table.clone(), table.clone());
                    if let Some(slot) = expected.get_mut(at) {
                        *slot = 9;
                    }
                    assert_eq!(swap(backend, &mut out, at as u64, 9), there);
                    assert_eq!(out, expected, "{}", backend.name());
                }
                let mut out = table.clone();
                assert_eq!(swap(backend, &mut out, u64::MAX >> 1, 9), 0);
                assert_eq!(out, table);
            }
        }
    }
}
