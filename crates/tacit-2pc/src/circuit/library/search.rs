//! Minima with their places, and table look-up.

use crate::circuit::{Bit, Builder, Integer, Uint};

/// The place of the smallest value (the first of equals) and the value, by a tournament. Panics if there are
/// none.
pub(crate) fn argmin<I: Integer>(b: &mut Builder, values: &[I]) -> (Uint, I) {
    tournament(b, values, |b, x, y| b.lt(y, x))
}

/// The place of the largest value (the first of equals) and the value, by a tournament. Panics if there are
/// none.
pub fn argmax<I: Integer>(b: &mut Builder, values: &[I]) -> (Uint, I) {
    tournament(b, values, |b, x, y| b.lt(x, y))
}

fn tournament<I: Integer>(
    b: &mut Builder,
    values: &[I],
    second_wins: impl Fn(&mut Builder, &I, &I) -> Bit,
) -> (Uint, I) {
    assert!(!values.is_empty(), "the smallest of nothing");
    let width = (usize::BITS - (values.len() - 1).leading_zeros()) as usize;
    let mut players: Vec<(Uint, I)> =
        values.iter().enumerate().map(|(i, v)| (Uint::constant(i as i128, width), v.clone())).collect();
    while players.len() > 1 {
        players = players
            .chunks(2)
            .map(|pair| match pair {
                [(i, x), (j, y)] => {
                    let second = second_wins(b, x, y);
                    (b.mux(second, j, i), b.mux(second, y, x))
                }
                _ => pair[0].clone(),
            })
            .collect();
    }
    players.swap_remove(0)
}

/// `table[index]` for a secret table; places past its end hold zero. Panics on an empty table.
pub fn lookup<I: Integer>(b: &mut Builder, table: &[I], index: &Uint) -> I {
    let zero = I::constant(0, table[0].width());
    let mut layer: Vec<I> = table.to_vec();
    for &bit in index.bits() {
        layer = layer.chunks(2).map(|pair| b.mux(bit, pair.get(1).unwrap_or(&zero), &pair[0])).collect();
    }
    layer.swap_remove(0)
}

/// `table[index]`, in `width` bits, for a public table; places past its end hold zero.
///
/// Some low bits of the index are decoded to one-hot form and combined for free; the other bits select. The
/// split that takes the fewest AND gates is chosen.
pub fn lookup_public(b: &mut Builder, table: &[u128], width: usize, index: &Uint) -> Uint {
    let bits = index.bits();
    assert!(bits.len() <= 24, "a public table has at most 2^24 entries");
    let decode_cost = |n: usize| (1usize << n) - n.min((1 << n) - 1) - 1;
    let cost = |high: usize| {
        decode_cost(bits.len() - high)
            + if high == 0 { 0 } else { decode_cost(high) + width * ((1 << high) - 1) }
    };
    let high = (0..=bits.len()).min_by_key(|&h| cost(h)).unwrap_or(0);
    let (low_bits, high_bits) = bits.split_at(bits.len() - high);
    let (low, high) = (one_hot(b, low_bits), one_hot(b, high_bits));
    let out = (0..width).map(|bit| {
        let has = |entry: usize| bit < 128 && table.get(entry).copied().unwrap_or(0) >> bit & 1 == 1;
        let mut rows = vec![Bit::ZERO; high.len()];
        for (h, row) in rows.iter_mut().enumerate() {
            for (l, &minterm) in low.iter().enumerate() {
                if has(h * low.len() + l) {
                    *row = b.xor(*row, minterm);
                }
            }
        }
        // The selectors add up to one: start from the last row, and let each other selector exchange it for
        // its own.
        let last = rows[rows.len() - 1];
        high.iter().zip(&rows[..rows.len() - 1]).fold(last, |sum, (&selected, &row)| {
            let difference = b.xor(row, last);
            let chosen = b.and(selected, difference);
            b.xor(sum, chosen)
        })
    });
    Uint::from_bits(out.collect())
}

/// All 2^n minterms of n bits: 2^n − n − 1 AND gates.
pub(crate) fn one_hot(b: &mut Builder, bits: &[Bit]) -> Vec<Bit> {
    let mut out = vec![Bit::ONE];
    for &bit in bits {
        // The minterms of the bits so far add up to one, so the last product is the bit less the others.
        let mut with: Vec<Bit> = out[1..].iter().map(|&term| b.and(term, bit)).collect();
        let last = with.iter().fold(bit, |rest, &term| b.xor(rest, term));
        with.insert(0, last);
        // Without the bit: term ⊕ term·bit, free.
        let mut next: Vec<Bit> = out.iter().zip(&with).map(|(&t, &w)| b.xor(t, w)).collect();
        next.extend(with);
        out = next;
    }
    out
}
