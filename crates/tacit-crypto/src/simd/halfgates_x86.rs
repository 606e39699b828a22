//! Half-gates with AES-NI and VAES: key schedules, hashes and ciphertexts in one pass.

use super::x86::{V128, V256, V512, Vector};
use crate::Block;

const RCON: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// AES of `x[n]`, the first half of the blocks under `keys[n]`, the second under `keys[n] ⊕ 1`.
#[inline(always)]
unsafe fn encrypt<V: Vector, const N: usize, const BLOCKS: usize>(keys: [V; N], x: &mut [[V; BLOCKS]; N]) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let one = V::splat(Block::ONE);
        let mut keys = keys.map(|key| [key, key.xor(one)]);
        for n in 0..N {
            for j in 0..BLOCKS {
                x[n][j] = x[n][j].xor(keys[n][2 * j / BLOCKS]);
            }
        }
        if N.is_multiple_of(2) {
            return rounds_transposed(keys, x);
        }
        for (round, rcon) in RCON.iter().enumerate() {
            let rcon = V::splat_word(*rcon);
            for n in 0..N {
                keys[n] = [keys[n][0].next_key(rcon), keys[n][1].next_key(rcon)];
            }
            add_round(round, &keys, x);
        }
    }
}

/// One AES round of all blocks, with the round's keys.
#[inline(always)]
unsafe fn add_round<V: Vector, const N: usize, const BLOCKS: usize>(
    round: usize,
    keys: &[[V; 2]; N],
    x: &mut [[V; BLOCKS]; N],
) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        for n in 0..N {
            for j in 0..BLOCKS {
                let key = keys[n][2 * j / BLOCKS];
                x[n][j] = if round < 9 { x[n][j].aes_round(key) } else { x[n][j].aes_last(key) };
            }
        }
    }
}

/// The rounds with the key schedule on transposed keys: the four words of four keys stand in a vector each, so one S-box
/// step serves four keys and the running sums need no shifts. Transposing a round's keys back costs two shuffles a
/// vector. `N` is even.
#[inline(always)]
unsafe fn rounds_transposed<V: Vector, const N: usize, const BLOCKS: usize>(
    mut keys: [[V; 2]; N],
    x: &mut [[V; BLOCKS]; N],
) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let mut words = [[V::zero(); 4]; N];
        for n in 0..N / 2 {
            let [[a, b], [c, d]] = [keys[2 * n], keys[2 * n + 1]];
            words[n] = V::transpose_words([a, b, c, d]);
        }
        for (round, rcon) in RCON.iter().enumerate() {
            let rcon = V::splat_word(*rcon);
            for n in 0..N / 2 {
                let [w0, w1, w2, w3] = words[n];
                let w0 = w0.xor(w3.schedule_words(rcon));
                let w1 = w1.xor(w0);
                let w2 = w2.xor(w1);
                let w3 = w3.xor(w2);
                words[n] = [w0, w1, w2, w3];
                let [a, b, c, d] = V::transpose_words(words[n]);
                [keys[2 * n], keys[2 * n + 1]] = [[a, b], [c, d]];
            }
            add_round(round, &keys, x);
        }
    }
}

struct Garble {
    keys: *const Block,
    deltas: *const Block,
    a: *const Block,
    b: *const Block,
    out: *mut Block,
    tables: *mut Block,
}

struct Evaluate {
    keys: *const Block,
    a: *const Block,
    b: *const Block,
    tables: *const Block,
    out: *mut Block,
}

trait Gates {
    /// Handles `N` vectors of gates from gate `at` on.
    ///
    /// # Safety
    /// The features of `V`, and that many gates from `at` on in all arrays.
    unsafe fn step<V: Vector, const N: usize>(&self, at: usize);
}

impl Gates for Garble {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut keys = [V::zero(); N];
            let mut x = [[V::zero(); 4]; N];
            for n in 0..N {
                let i = at + n * V::LANES;
                keys[n] = V::load(self.keys.add(i));
                // σ is linear.
                let delta = V::load(self.deltas.add(i)).sigma();
                let (a, b) = (V::load(self.a.add(i)).sigma(), V::load(self.b.add(i)).sigma());
                x[n] = [a, a.xor(delta), b, b.xor(delta)];
            }
            encrypt::<V, N, 4>(keys, &mut x);
            for n in 0..N {
                let i = at + n * V::LANES;
                let delta = V::load(self.deltas.add(i));
                let (a, b) = (V::load(self.a.add(i)), V::load(self.b.add(i)));
                let (sa, sb, sd) = (a.sigma(), b.sigma(), delta.sigma());
                let (ha0, hb0) = (x[n][0].xor(sa), x[n][2].xor(sb));
                // H(x) ⊕ H(x ⊕ Δ): σ(x) cancels.
                let both_a = x[n][0].xor(x[n][1]).xor(sd);
                let both_b = x[n][2].xor(x[n][3]).xor(sd);
                let (mask_a, mask_b) = (a.lsb_mask(), b.lsb_mask());
                let tg = both_a.xor(delta.and(mask_b));
                let te = both_b.xor(a);
                let wg = ha0.xor(tg.and(mask_a));
                let we = hb0.xor(both_b.and(mask_b));
                wg.xor(we).store(self.out.add(i));
                tg.scatter(self.tables.add(2 * i), 2);
                te.scatter(self.tables.add(2 * i + 1), 2);
            }
        }
    }
}

impl Gates for Evaluate {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut keys = [V::zero(); N];
            let mut x = [[V::zero(); 2]; N];
            for n in 0..N {
                let i = at + n * V::LANES;
                keys[n] = V::load(self.keys.add(i));
                x[n] = [V::load(self.a.add(i)).sigma(), V::load(self.b.add(i)).sigma()];
            }
            encrypt::<V, N, 2>(keys, &mut x);
            for n in 0..N {
                let i = at + n * V::LANES;
                let (a, b) = (V::load(self.a.add(i)), V::load(self.b.add(i)));
                let tg = V::gather(self.tables.add(2 * i), 2);
                let te = V::gather(self.tables.add(2 * i + 1), 2);
                let wg = x[n][0].xor(a.sigma()).xor(tg.and(a.lsb_mask()));
                let we = x[n][1].xor(b.sigma()).xor(te.xor(a).and(b.lsb_mask()));
                wg.xor(we).store(self.out.add(i));
            }
        }
    }
}

/// Runs `gates` over `count` gates, `N` vectors at a time while there are so many.
///
/// # Safety
/// The features of `V`, and `count` gates in whatever `gates` points to.
#[inline(always)]
unsafe fn drive<V: Vector, G: Gates, const N: usize>(gates: &G, count: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut at = 0;
        while count - at >= N * V::LANES {
            gates.step::<V, N>(at);
            at += N * V::LANES;
        }
        while count - at >= V::LANES {
            gates.step::<V, 1>(at);
            at += V::LANES;
        }
        while at < count {
            gates.step::<V128, 1>(at);
            at += 1;
        }
    }
}

macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal, $garbled:literal, $evaluated:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub fn garble(
                keys: &[Block],
                deltas: &[Block],
                a: &[Block],
                b: &[Block],
                out: &mut [Block],
                tables: &mut [[Block; 2]],
            ) {
                let n = keys.len();
                let same = [deltas.len(), a.len(), b.len(), out.len(), tables.len()];
                assert!(same.iter().all(|&len| len == n), "arrays of one length");
                let gates = Garble {
                    keys: keys.as_ptr(),
                    deltas: deltas.as_ptr(),
                    a: a.as_ptr(),
                    b: b.as_ptr(),
                    out: out.as_mut_ptr(),
                    tables: tables.as_mut_ptr().cast(),
                };
                // SAFETY: this function's features are the vector's; all arrays have `n` gates.
                unsafe { drive::<$vector, _, $garbled>(&gates, n) }
            }

            #[target_feature(enable = $features)]
            pub fn evaluate(
                keys: &[Block],
                a: &[Block],
                b: &[Block],
                tables: &[[Block; 2]],
                out: &mut [Block],
            ) {
                let n = keys.len();
                let same = [a.len(), b.len(), out.len(), tables.len()];
                assert!(same.iter().all(|&len| len == n), "arrays of one length");
                let gates = Evaluate {
                    keys: keys.as_ptr(),
                    a: a.as_ptr(),
                    b: b.as_ptr(),
                    tables: tables.as_ptr().cast(),
                    out: out.as_mut_ptr(),
                };
                // SAFETY: this function's features are the vector's; all arrays have `n` gates.
                unsafe { drive::<$vector, _, $evaluated>(&gates, n) }
            }
        }
    };
}
entry_points!(wide128, V128, "sse2,ssse3,sse4.1,aes,pclmulqdq", 2, 4);
entry_points!(wide256, V256, "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq", 2, 4);
entry_points!(
    wide512,
    V512,
    "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni",
    2,
    4
);
