//! AES-128, AES-192 and AES-256 (FIPS 197), with the S-box of Boyar and Peralta ("A small depth-16 circuit
//! for the AES S-box", SEC 2012, and its 32-AND predecessor): 32 AND gates an S-box, so 6,400, 7,168 and
//! 8,832 with the key schedule.

use super::{bytes_of, from_bytes};
use crate::circuit::{Bit, Builder, Uint};

type Byte = Vec<Bit>;

/// AES of `block` (128 bits) under `key` (128, 192 or 256 bits), key schedule included.
///
/// Panics on other widths.
pub fn encrypt(b: &mut Builder, key: &Uint, block: &Uint) -> Uint {
    assert_eq!(block.bits().len(), 128, "AES takes blocks of 128 bits");
    assert!(matches!(key.bits().len(), 128 | 192 | 256), "AES takes keys of 128, 192 or 256 bits");
    let mut schedule = Schedule::new(bytes_of(key));
    let rounds = schedule.words_per_key + 6;
    let mut state = bytes_of(block);
    schedule.add_round_key(b, &mut state);
    for round in 1..=rounds {
        let substituted: Vec<Byte> = state.iter().map(|byte| sbox(b, byte)).collect();
        state = (0..16).map(|i| substituted[(i + 4 * (i % 4)) % 16].clone()).collect();
        if round < rounds {
            state = mix_columns(b, &state);
        }
        schedule.add_round_key(b, &mut state);
    }
    from_bytes(&state)
}

/// The key schedule, expanded word by word as rounds need it, so that few words are alive.
struct Schedule {
    words_per_key: usize,
    words: Vec<[Byte; 4]>,
    next: usize,
    rcon: u8,
}

impl Schedule {
    fn new(key: Vec<Byte>) -> Self {
        let words: Vec<[Byte; 4]> =
            key.chunks(4).map(|w| [w[0].clone(), w[1].clone(), w[2].clone(), w[3].clone()]).collect();
        Schedule { words_per_key: words.len(), words, next: 0, rcon: 1 }
    }

    fn expand(&mut self, b: &mut Builder) {
        let i = self.words.len();
        let n = self.words_per_key;
        let mut t = self.words[i - 1].clone();
        if i.is_multiple_of(n) {
            t.rotate_left(1);
            t = t.map(|byte| sbox(b, &byte));
            for (bit, place) in t[0].iter_mut().zip(0..) {
                *bit = b.xor(*bit, Bit::constant(self.rcon >> place & 1 == 1));
            }
            self.rcon = (self.rcon << 1) ^ ((self.rcon >> 7) * 0x1b);
        } else if n > 6 && i % n == 4 {
            t = t.map(|byte| sbox(b, &byte));
        }
        let before = self.words[i - n].clone();
        let word = core::array::from_fn(|k| xor_bytes(b, &before[k], &t[k]));
        self.words.push(word);
    }

    fn add_round_key(&mut self, b: &mut Builder, state: &mut [Byte]) {
        for column in state.chunks_mut(4) {
            while self.words.len() <= self.next {
                self.expand(b);
            }
            for (byte, key) in column.iter_mut().zip(&self.words[self.next]) {
                *byte = xor_bytes(b, byte, key);
            }
            self.next += 1;
        }
    }
}

fn xor_bytes(b: &mut Builder, x: &[Bit], y: &[Bit]) -> Byte {
    x.iter().zip(y).map(|(&x, &y)| b.xor(x, y)).collect()
}

fn double(b: &mut Builder, x: &[Bit]) -> Byte {
    let top = x[7];
    (0..8)
        .map(|i| match i {
            0 => top,
            1 | 3 | 4 => b.xor(x[i - 1], top),
            _ => x[i - 1],
        })
        .collect()
}

fn mix_columns(b: &mut Builder, state: &[Byte]) -> Vec<Byte> {
    let mut out = Vec::with_capacity(16);
    for column in state.chunks(4) {
        let pairs: Vec<Byte> = (0..4).map(|r| xor_bytes(b, &column[r], &column[(r + 1) % 4])).collect();
        let doubled: Vec<Byte> = pairs.iter().map(|p| double(b, p)).collect();
        for r in 0..4 {
            // 2a + 3b + c + d = 2(a + b) + b + (c + d).
            let rest = xor_bytes(b, &column[(r + 1) % 4], &pairs[(r + 2) % 4]);
            out.push(xor_bytes(b, &doubled[r], &rest));
        }
    }
    out
}

/// The S-box: 32 AND gates.
pub fn sbox(b: &mut Builder, byte: &[Bit]) -> Byte {
    let x: [Bit; 8] = core::array::from_fn(|i| byte[7 - i]);
    let y = top_linear(b, &x);
    let z = middle(b, x[7], &y);
    bottom_linear(b, &z)
}

/// The linear layer in front; `y[i]` is the signal y_i of the paper, `y[0]` unused.
fn top_linear(b: &mut Builder, x: &[Bit; 8]) -> [Bit; 22] {
    let mut y = [Bit::ZERO; 22];
    y[14] = b.xor(x[3], x[5]);
    y[13] = b.xor(x[0], x[6]);
    y[9] = b.xor(x[0], x[3]);
    y[8] = b.xor(x[0], x[5]);
    let t0 = b.xor(x[1], x[2]);
    y[1] = b.xor(t0, x[7]);
    y[4] = b.xor(y[1], x[3]);
    y[12] = b.xor(y[13], y[14]);
    y[2] = b.xor(y[1], x[0]);
    y[5] = b.xor(y[1], x[6]);
    y[3] = b.xor(y[5], y[8]);
    let t1 = b.xor(x[4], y[12]);
    y[15] = b.xor(t1, x[5]);
    y[20] = b.xor(t1, x[1]);
    y[6] = b.xor(y[15], x[7]);
    y[10] = b.xor(y[15], t0);
    y[11] = b.xor(y[20], y[9]);
    y[7] = b.xor(x[7], y[11]);
    y[17] = b.xor(y[10], y[11]);
    y[19] = b.xor(y[10], y[8]);
    y[16] = b.xor(t0, y[11]);
    y[21] = b.xor(y[13], y[16]);
    y[18] = b.xor(x[0], y[16]);
    y
}

/// The inversion in GF(2^4)² and the products around it.
fn middle(b: &mut Builder, x7: Bit, y: &[Bit; 22]) -> [Bit; 18] {
    let t2 = b.and(y[12], y[15]);
    let t3 = b.and(y[3], y[6]);
    let t4 = b.xor(t3, t2);
    let t5 = b.and(y[4], x7);
    let t6 = b.xor(t5, t2);
    let t7 = b.and(y[13], y[16]);
    let t8 = b.and(y[5], y[1]);
    let t9 = b.xor(t8, t7);
    let t10 = b.and(y[2], y[7]);
    let t11 = b.xor(t10, t7);
    let t12 = b.and(y[9], y[11]);
    let t13 = b.and(y[14], y[17]);
    let t14 = b.xor(t13, t12);
    let t15 = b.and(y[8], y[10]);
    let t16 = b.xor(t15, t12);
    let t17 = b.xor(t4, t14);
    let t18 = b.xor(t6, t16);
    let t19 = b.xor(t9, t14);
    let t20 = b.xor(t11, t16);
    let t21 = b.xor(t17, y[20]);
    let t22 = b.xor(t18, y[19]);
    let t23 = b.xor(t19, y[21]);
    let t24 = b.xor(t20, y[18]);
    let t25 = b.xor(t21, t22);
    let t26 = b.and(t21, t23);
    let t27 = b.xor(t24, t26);
    let t28 = b.and(t25, t27);
    let t29 = b.xor(t28, t22);
    let t30 = b.xor(t23, t24);
    let t31 = b.xor(t22, t26);
    let t32 = b.and(t31, t30);
    let t33 = b.xor(t32, t24);
    let t34 = b.xor(t23, t33);
    let t35 = b.xor(t27, t33);
    let t36 = b.and(t24, t35);
    let t37 = b.xor(t36, t34);
    let t38 = b.xor(t27, t36);
    let t39 = b.and(t29, t38);
    let t40 = b.xor(t25, t39);
    let t41 = b.xor(t40, t37);
    let t42 = b.xor(t29, t33);
    let t43 = b.xor(t29, t40);
    let t44 = b.xor(t33, t37);
    let t45 = b.xor(t42, t41);
    let factors = [
        (t44, y[15]),
        (t37, y[6]),
        (t33, x7),
        (t43, y[16]),
        (t40, y[1]),
        (t29, y[7]),
        (t42, y[11]),
        (t45, y[17]),
        (t41, y[10]),
        (t44, y[12]),
        (t37, y[3]),
        (t33, y[4]),
        (t43, y[13]),
        (t40, y[5]),
        (t29, y[2]),
        (t42, y[9]),
        (t45, y[14]),
        (t41, y[8]),
    ];
    factors.map(|(p, q)| b.and(p, q))
}

/// The linear layer behind, with the affine constant 0x63.
fn bottom_linear(b: &mut Builder, z: &[Bit; 18]) -> Byte {
    let t46 = b.xor(z[15], z[16]);
    let t47 = b.xor(z[10], z[11]);
    let t48 = b.xor(z[5], z[13]);
    let t49 = b.xor(z[9], z[10]);
    let t50 = b.xor(z[2], z[12]);
    let t51 = b.xor(z[2], z[5]);
    let t52 = b.xor(z[7], z[8]);
    let t53 = b.xor(z[0], z[3]);
    let t54 = b.xor(z[6], z[7]);
    let t55 = b.xor(z[16], z[17]);
    let t56 = b.xor(z[12], t48);
    let t57 = b.xor(t50, t53);
    let t58 = b.xor(z[4], t46);
    let t59 = b.xor(z[3], t54);
    let t60 = b.xor(t46, t57);
    let t61 = b.xor(z[14], t57);
    let t62 = b.xor(t52, t58);
    let t63 = b.xor(t49, t58);
    let t64 = b.xor(z[4], t59);
    let t65 = b.xor(t61, t62);
    let t66 = b.xor(z[1], t63);
    let s0 = b.xor(t59, t63);
    let s6 = b.xor(t56, !t62);
    let s7 = b.xor(t48, !t60);
    let t67 = b.xor(t64, t65);
    let s3 = b.xor(t53, t66);
    let s4 = b.xor(t51, t66);
    let s5 = b.xor(t47, t65);
    let s1 = b.xor(t64, !s3);
    let s2 = b.xor(t55, !t67);
    vec![s7, s6, s5, s4, s3, s2, s1, s0]
}
