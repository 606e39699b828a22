//! Sorting networks: Batcher's odd–even merge sort (fewest gates) and bitonic sort.
//!
//! A network on n lines that is not a power of two is the next larger one without the comparators that touch
//! lines past n, as if those held infinity.

use crate::circuit::{Builder, Integer};

/// The comparators (low line, high line) of Batcher's odd–even merge sort, in order.
pub fn odd_even_merge(lines: usize) -> Vec<(usize, usize)> {
    let mut network = Vec::new();
    let mut run = 1;
    while run < lines {
        let mut distance = run;
        while distance >= 1 {
            let mut start = distance % run;
            while start + distance < lines {
                for low in start..(start + distance).min(lines - distance) {
                    if low / (2 * run) == (low + distance) / (2 * run) {
                        network.push((low, low + distance));
                    }
                }
                start += 2 * distance;
            }
            distance /= 2;
        }
        run *= 2;
    }
    network
}

/// The comparators of bitonic sort with all comparators in one direction: the first step of each merge
/// compares mirrored lines, which makes any number of lines work.
pub fn bitonic(lines: usize) -> Vec<(usize, usize)> {
    let mut network = Vec::new();
    let mut size = 2;
    while size < 2 * lines {
        for low in 0..lines {
            let mirror = low ^ (size - 1);
            if low < mirror && mirror < lines {
                network.push((low, mirror));
            }
        }
        let mut distance = size / 4;
        while distance >= 1 {
            for low in 0..lines {
                let high = low ^ distance;
                if low < high && high < lines {
                    network.push((low, high));
                }
            }
            distance /= 2;
        }
        size *= 2;
    }
    network
}

/// Sorts `values` in increasing order with a network of their number of lines: 2n AND gates a comparator.
pub fn sort<I: Integer>(b: &mut Builder, values: &mut [I], network: &[(usize, usize)]) {
    for &(low, high) in network {
        let (small, large) = b.compare_exchange(&values[low], &values[high]);
        values[low] = small;
        values[high] = large;
    }
}
