//! Sorting networks: Batcher's odd–even merge sort (fewest gates) and bitonic sort.
//!
//! A network on n lines that is not a power of two is the next larger one without the comparators that touch
//! lines past n, as if those held infinity.

use crate::circuit::{Builder, Integer, Program, Shape, Uint};

/// The comparators (low line, high line) of Batcher's odd–even merge sort, in order.
pub fn odd_even_merge(lines: usize) -> Vec<(usize, usize)> {
    Comparators::new(lines).collect()
}

/// The comparators of [`odd_even_merge`], one after the other: for networks too large to hold.
#[derive(Clone, Debug)]
pub struct Comparators {
    lines: usize,
    /// Lines that are sorted already, run by run, and how far the lines compared lie apart.
    run: usize,
    distance: usize,
    /// Where the present stretch of neighbouring comparators begins, and the next one's low line.
    start: usize,
    low: usize,
}

impl Comparators {
    /// The first of the network of so many lines.
    pub fn new(lines: usize) -> Self {
        Comparators { lines, run: 1, distance: 1, start: 0, low: 0 }
    }
}

impl Iterator for Comparators {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        while self.run < self.lines {
            let end = (self.start + self.distance).min(self.lines.saturating_sub(self.distance));
            while self.low < end {
                let (low, high) = (self.low, self.low + self.distance);
                self.low += 1;
                if low / (2 * self.run) == high / (2 * self.run) {
                    return Some((low, high));
                }
            }
            self.start += 2 * self.distance;
            if self.start + self.distance >= self.lines {
                self.distance /= 2;
                if self.distance == 0 {
                    self.run *= 2;
                    self.distance = self.run;
                }
                self.start = self.distance % self.run;
            }
            self.low = self.start;
        }
        None
    }
}

/// Comparators of a step of [`Sorting`].
const STEP: usize = 64;
/// Bits of a number of [`Sorting`].
const NUMBER_BITS: u32 = 32;

/// The 32-bit numbers of both parties, half of them each's, in increasing order: the network made comparator
/// by comparator, for lists whose circuit would be too large to hold.
pub struct Sorting {
    lines: usize,
    values: Vec<Uint>,
    network: Comparators,
}

impl Sorting {
    /// Of so many numbers, an even number.
    pub fn new(lines: usize) -> Self {
        Sorting { lines, values: Vec::new(), network: Comparators::new(lines) }
    }

    /// AND gates.
    pub fn ands(lines: usize) -> u64 {
        Comparators::new(lines).count() as u64 * 2 * u64::from(NUMBER_BITS)
    }
}

impl Program for Sorting {
    fn identity(&self) -> String {
        format!("sort of {} numbers of {NUMBER_BITS} bits", self.lines)
    }

    fn shape(&self) -> Shape {
        let half = self.lines as u32 / 2 * NUMBER_BITS;
        Shape { inputs: vec![half, half], outputs: vec![self.lines as u32 * NUMBER_BITS] }
    }

    fn step(&mut self, b: &mut Builder, inputs: &[Uint]) -> Option<Vec<Uint>> {
        if self.values.is_empty() {
            let numbers = inputs.iter().flat_map(|list| list.bits().chunks(NUMBER_BITS as usize));
            self.values = numbers.map(|bits| Uint::from_bits(bits.to_vec())).collect();
        }
        let mut ended = true;
        for (low, high) in self.network.by_ref().take(STEP) {
            ended = false;
            let pair = [self.values[low].clone(), self.values[high].clone()];
            let sorted = b.region(|b| {
                b.component("exchange", &pair, |b, pair| {
                    let (small, large) = b.compare_exchange(&pair[0], &pair[1]);
                    vec![small, large]
                })
            });
            b.discard(pair.to_vec());
            for (line, value) in [low, high].into_iter().zip(sorted) {
                self.values[line] = value;
            }
        }
        let all = || self.values.iter().flat_map(|value| value.bits().to_vec()).collect();
        ended.then(|| vec![Uint::from_bits(all())])
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circuit::{Order, ProgramPlan};

    #[test]
    fn the_program_sorts_as_the_circuit_does_and_reuses_its_wires() {
        for lines in [2usize, 6, 16, 50] {
            let numbers: Vec<u32> =
                (1..=lines as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 5)).collect();
            let bits = numbers.iter().flat_map(|&x| (0..NUMBER_BITS).map(move |i| [u64::from(x >> i & 1)]));
            let plan = ProgramPlan::new(Sorting::new(lines), Order::Sequential);
            let out = plan.evaluate_words(&bits.collect::<Vec<_>>());
            let word = |bits: &[[u64; 1]]| bits.iter().rev().fold(0, |x, [bit]| x << 1 | (bit & 1) as u32);
            let mut sorted = numbers;
            sorted.sort_unstable();
            assert_eq!(out.chunks(NUMBER_BITS as usize).map(word).collect::<Vec<_>>(), sorted);
        }
        let mut plan = ProgramPlan::new(Sorting::new(256), Order::Sequential);
        let mut slots = 0;
        while let Some(window) = plan.next_window() {
            slots = slots.max(window.slots());
        }
        assert_eq!(plan.ands(), Sorting::ands(256));
        assert!(slots < 4 * 256 * NUMBER_BITS as usize, "{slots} slots");
    }
}
