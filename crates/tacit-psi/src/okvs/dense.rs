//! The store without a spare slot: a polynomial over GF(2^128) of as many coefficients as there are keys.
//!
//! Source: the polynomial store of the first intersections of this kind; Rindal and Schoppmann (2021/266),
//! section 3, name it as the one of rate 1. Distinct keys always have exactly one polynomial, so nothing fails
//! and nothing is left free that a cheater could use. It takes some n² products to solve and as many as slots
//! for each key that is looked up: for small sets.

use super::BATCH;
use tacit_crypto::{Block, gf128};
use zeroize::Zeroizing;

/// The coefficients, lowest first, of the polynomial that has `values` at `keys`; `false` where two keys are
/// equal, and `out` then has no meaning.
///
/// With M(X) = Π (X − xᵢ) it is Σ vᵢ/M'(xᵢ) · M(X)/(X − xᵢ). Panics unless the three are of one length.
pub(super) fn interpolate(keys: &[Block], values: &[Block], out: &mut [Block]) -> bool {
    assert!(keys.len() == values.len() && keys.len() == out.len(), "one value and one slot a key");
    let n = keys.len();
    let mut master = Zeroizing::new(vec![Block::ZERO; n + 1]);
    let mut before = Zeroizing::new(vec![Block::ZERO; n + 1]);
    master[0] = Block::ONE;
    for (degree, key) in keys.iter().enumerate() {
        before[..=degree].copy_from_slice(&master[..=degree]);
        master.copy_within(0..=degree, 1);
        master[0] = Block::ZERO;
        gf128::multiply_add(&mut master[..=degree], &before[..=degree], *key);
    }
    let Some(mut shares) = shares(keys, &master) else { return false };
    gf128::multiply_each(&mut shares, values);
    // Division by all X − xᵢ at once, from the highest coefficient down.
    let mut quotients = Zeroizing::new(vec![Block::ZERO; n]);
    for k in (1..=n).rev() {
        gf128::multiply_each(&mut quotients, keys);
        quotients.iter_mut().for_each(|quotient| *quotient ^= master[k]);
        out[k - 1] = gf128::inner_product(&quotients, &shares);
    }
    true
}

/// 1/M'(xᵢ) for all keys, by one inversion; nothing where two keys are equal.
fn shares(keys: &[Block], master: &[Block]) -> Option<Zeroizing<Vec<Block>>> {
    // Of the derivative the even powers are left.
    let odd: Zeroizing<Vec<Block>> = Zeroizing::new(master.iter().skip(1).step_by(2).copied().collect());
    let mut squares = Zeroizing::new(keys.to_vec());
    gf128::multiply_each(&mut squares, keys);
    let mut slopes = Zeroizing::new(vec![Block::ZERO; keys.len()]);
    evaluate(&odd, &squares, &mut slopes);
    let mut products = Zeroizing::new(Vec::with_capacity(keys.len()));
    let mut all = Block::ONE;
    for slope in slopes.iter() {
        products.push(all);
        all = gf128::mul(all, *slope);
    }
    if all == Block::ZERO {
        return None;
    }
    let mut inverse = gf128::inverse(all);
    for (slope, product) in slopes.iter_mut().zip(products.iter()).rev() {
        let share = gf128::mul(inverse, *product);
        inverse = gf128::mul(inverse, *slope);
        *slope = share;
    }
    Some(slopes)
}

/// The polynomial's values at `keys`. Panics where lengths differ.
pub(super) fn evaluate(slots: &[Block], keys: &[Block], out: &mut [Block]) {
    assert!(keys.len() == out.len(), "one value a key");
    for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
        out.fill(Block::ZERO);
        for slot in slots.iter().rev() {
            gf128::multiply_each(out, keys);
            out.iter_mut().for_each(|value| *value ^= *slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::Prg;

    #[test]
    fn every_set_of_distinct_keys_has_its_polynomial() {
        let mut prg = Prg::from_seed(Block::new(12));
        for count in [1, 2, 3, 10, 100, 1024, 1500] {
            let [mut keys, mut values] = [(); 2].map(|()| vec![Block::ZERO; count]);
            prg.fill_blocks(&mut keys);
            prg.fill_blocks(&mut values);
            // Zero and one are keys like others.
            keys[0] = Block::ZERO;
            keys[count - 1] = if count > 1 { Block::ONE } else { keys[0] };
            let mut slots = vec![Block::ZERO; count];
            assert!(interpolate(&keys, &values, &mut slots));
            let mut found = vec![Block::ZERO; count];
            evaluate(&slots, &keys, &mut found);
            assert!(found == values, "{count}");
            // By the definition, at a key that is none of these.
            let key = prg.block();
            let naive = slots.iter().rev().fold(Block::ZERO, |sum, slot| gf128::mul(sum, key) ^ *slot);
            let mut other = [Block::ZERO];
            evaluate(&slots, &[key], &mut other);
            assert_eq!(other[0], naive);
        }
    }

    #[test]
    fn two_equal_keys_have_none() {
        let mut prg = Prg::from_seed(Block::new(13));
        let mut keys = vec![Block::ZERO; 30];
        prg.fill_blocks(&mut keys);
        keys[29] = keys[4];
        assert!(!interpolate(&keys, &[Block::ONE; 30], &mut [Block::ZERO; 30]));
    }
}
