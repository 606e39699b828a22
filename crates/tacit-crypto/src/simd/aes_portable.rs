//! AES-128 in plain Rust: bitsliced, so that no table and no branch depends on a secret.
//!
//! Eight planes hold one bit of every byte each. Within a 64-bit word, the byte in row r and column c of block b has
//! position 16r + 4c + b: ShiftRows rotates 16-bit fields, MixColumns rotates whole words. The S-box is the circuit of
//! 113 gates by Boyar and Peralta (2009/191). Key schedules run in the same form, so every block may have its own key.

use crate::Block;
use core::cell::Cell;
use core::ops::{BitAnd, BitXor, Not};
use zeroize::Zeroize;

/// 64-bit words a plane has; each carries four blocks.
const WORDS: usize = 2;
/// Blocks handled at once.
const LANES: usize = 4 * WORDS;

/// One bit of each byte of the blocks in flight.
#[derive(Clone, Copy, Default)]
struct Plane([u64; WORDS]);

impl Plane {
    #[inline(always)]
    fn map(self, f: impl Fn(u64) -> u64) -> Self {
        Plane(self.0.map(f))
    }
}

impl BitXor for Plane {
    type Output = Plane;
    #[inline(always)]
    fn bitxor(mut self, other: Plane) -> Plane {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a ^= b;
        }
        self
    }
}

impl BitAnd for Plane {
    type Output = Plane;
    #[inline(always)]
    fn bitand(mut self, other: Plane) -> Plane {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a &= b;
        }
        self
    }
}

impl Not for Plane {
    type Output = Plane;
    #[inline(always)]
    fn not(self) -> Plane {
        self.map(|x| !x)
    }
}

type State = [Plane; 8];
type Schedule = [State; 11];

/// Swaps the bits under `mask` of `b` with those under `mask << shift` of `a`.
#[inline(always)]
fn swap_bits(a: &mut u64, b: &mut u64, shift: u32, mask: u64) {
    let t = ((*a >> shift) ^ *b) & mask;
    *b ^= t;
    *a ^= t << shift;
}

/// Transposes the 8×8 bits at each byte position of eight words; its own inverse.
#[inline(always)]
fn exchange(words: &mut [u64; 8]) {
    for (shift, mask) in
        [(1, 0x5555_5555_5555_5555u64), (2, 0x3333_3333_3333_3333), (4, 0x0f0f_0f0f_0f0f_0f0f)]
    {
        for i in (0..8).filter(|i| i & shift == 0) {
            let (low, high) = words.split_at_mut(i + shift);
            swap_bits(&mut low[i], &mut high[0], shift as u32, mask);
        }
    }
}

/// Spreads the bytes of `low` over the even bytes of a word and those of `high` over the odd ones.
#[inline(always)]
fn interleave(low: u32, high: u32) -> u64 {
    let spread = |x: u32| {
        let x = x as u64;
        let x = (x | x << 16) & 0x0000_ffff_0000_ffff;
        (x | x << 8) & 0x00ff_00ff_00ff_00ff
    };
    spread(low) | spread(high) << 8
}

/// The inverse of [`interleave`].
#[inline(always)]
fn separate(x: u64) -> (u32, u32) {
    let gather = |x: u64| {
        let x = x & 0x00ff_00ff_00ff_00ff;
        let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
        (x | x >> 16) as u32
    };
    (gather(x), gather(x >> 8))
}

fn slice(blocks: &[Block; LANES]) -> State {
    let mut state = State::default();
    for (w, four) in blocks.chunks_exact(4).enumerate() {
        let mut words = [0u64; 8];
        for (b, block) in four.iter().enumerate() {
            let x = block.to_u128();
            words[b] = interleave(x as u32, (x >> 64) as u32);
            words[b + 4] = interleave((x >> 32) as u32, (x >> 96) as u32);
        }
        exchange(&mut words);
        for (plane, word) in state.iter_mut().zip(words) {
            plane.0[w] = word;
        }
    }
    state
}

fn unslice(state: &State) -> [Block; LANES] {
    let mut blocks = [Block::ZERO; LANES];
    for (w, four) in blocks.chunks_exact_mut(4).enumerate() {
        let mut words = state.map(|plane| plane.0[w]);
        exchange(&mut words);
        for (b, block) in four.iter_mut().enumerate() {
            let (c0, c2) = separate(words[b]);
            let (c1, c3) = separate(words[b + 4]);
            *block = Block::from_halves(c0 as u64 | (c1 as u64) << 32, c2 as u64 | (c3 as u64) << 32);
        }
    }
    blocks
}

#[inline(always)]
fn sub_bytes(q: &State) -> State {
    let [x7, x6, x5, x4, x3, x2, x1, x0] = *q;
    // The linear layer at the top.
    let (y14, y13, y9, y8) = (x3 ^ x5, x0 ^ x6, x0 ^ x3, x0 ^ x5);
    let t0 = x1 ^ x2;
    let y1 = t0 ^ x7;
    let (y4, y12, y2, y5) = (y1 ^ x3, y13 ^ y14, y1 ^ x0, y1 ^ x6);
    let (y3, t1) = (y5 ^ y8, x4 ^ y12);
    let (y15, y20) = (t1 ^ x5, t1 ^ x1);
    let (y6, y10, y11) = (y15 ^ x7, y15 ^ t0, y20 ^ y9);
    let (y7, y17, y19, y16) = (x7 ^ y11, y10 ^ y11, y10 ^ y8, t0 ^ y11);
    let (y21, y18) = (y13 ^ y16, x0 ^ y16);
    // Inversion in GF(2^8) by way of GF(2^4).
    let (t2, t7, t12) = (y12 & y15, y13 & y16, y9 & y11);
    let (t4, t6) = ((y3 & y6) ^ t2, (y4 & x7) ^ t2);
    let (t9, t11) = ((y5 & y1) ^ t7, (y2 & y7) ^ t7);
    let (t14, t16) = ((y14 & y17) ^ t12, (y8 & y10) ^ t12);
    let (t21, t22) = (t4 ^ t14 ^ y20, t6 ^ t16 ^ y19);
    let (t23, t24) = (t9 ^ t14 ^ y21, t11 ^ t16 ^ y18);
    let (t25, t26, t30) = (t21 ^ t22, t21 & t23, t23 ^ t24);
    let (t27, t31) = (t24 ^ t26, t22 ^ t26);
    let (t29, t33) = ((t25 & t27) ^ t22, (t31 & t30) ^ t24);
    let (t34, t35) = (t23 ^ t33, t27 ^ t33);
    let t36 = t24 & t35;
    let (t37, t38) = (t36 ^ t34, t27 ^ t36);
    let t40 = t25 ^ (t29 & t38);
    let (t41, t42, t43, t44) = (t40 ^ t37, t29 ^ t33, t29 ^ t40, t33 ^ t37);
    let t45 = t42 ^ t41;
    let (z0, z1, z2) = (t44 & y15, t37 & y6, t33 & x7);
    let (z3, z4, z5) = (t43 & y16, t40 & y1, t29 & y7);
    let (z6, z7, z8) = (t42 & y11, t45 & y17, t41 & y10);
    let (z9, z10, z11) = (t44 & y12, t37 & y3, t33 & y4);
    let (z12, z13, z14) = (t43 & y13, t40 & y5, t29 & y2);
    let (z15, z16, z17) = (t42 & y9, t45 & y14, t41 & y8);
    // The linear layer at the bottom.
    let (t46, t47, t48, t49) = (z15 ^ z16, z10 ^ z11, z5 ^ z13, z9 ^ z10);
    let (t50, t51, t52, t53) = (z2 ^ z12, z2 ^ z5, z7 ^ z8, z0 ^ z3);
    let (t54, t55, t56, t57) = (z6 ^ z7, z16 ^ z17, z12 ^ t48, t50 ^ t53);
    let (t58, t59, t60, t61) = (z4 ^ t46, z3 ^ t54, t46 ^ t57, z14 ^ t57);
    let (t62, t63, t64) = (t52 ^ t58, t49 ^ t58, z4 ^ t59);
    let (t65, t66) = (t61 ^ t62, z1 ^ t63);
    let (s0, s3) = (t59 ^ t63, t53 ^ t66);
    let (s6, s7) = (t56 ^ !t62, t48 ^ !t60);
    let t67 = t64 ^ t65;
    [s7, s6, t47 ^ t65, t51 ^ t66, s3, t55 ^ !t67, t64 ^ !s3, s0]
}

#[inline(always)]
fn shift_rows(state: &mut State) {
    for plane in state {
        *plane = plane.map(|x| {
            x & 0xffff
                | (x & 0x0000_0000_fff0_0000) >> 4
                | (x & 0x0000_0000_000f_0000) << 12
                | (x & 0x0000_ff00_0000_0000) >> 8
                | (x & 0x0000_00ff_0000_0000) << 8
                | (x & 0xf000_0000_0000_0000) >> 12
                | (x & 0x0fff_0000_0000_0000) << 4
        });
    }
}

#[inline(always)]
fn mix_columns(state: &mut State) {
    let next = state.map(|plane| plane.map(|x| x.rotate_right(16)));
    let mut sum = *state;
    for (a, b) in sum.iter_mut().zip(next) {
        *a = *a ^ b;
    }
    let [d0, d1, d2, d3, d4, d5, d6, d7] = sum;
    let doubled = [d7, d0 ^ d7, d1, d2 ^ d7, d3 ^ d7, d4, d5, d6];
    for k in 0..8 {
        state[k] = doubled[k] ^ next[k] ^ sum[k].map(|x| x.rotate_right(32));
    }
}

#[inline(always)]
fn add_key(state: &mut State, key: &State) {
    for (a, b) in state.iter_mut().zip(key) {
        *a = *a ^ *b;
    }
}

fn schedule(keys: &[Block; LANES]) -> Schedule {
    let mut schedule = [State::default(); 11];
    schedule[0] = slice(keys);
    let mut rcon = 1u8;
    for round in 1..11 {
        let key = schedule[round - 1];
        let sub = sub_bytes(&key);
        for k in 0..8 {
            let constant = (rcon as u64 >> k & 1).wrapping_neg() & 0xffff;
            // RotWord moves a row up; then the fourth column is copied to all four.
            let word = sub[k].map(|x| {
                let t = x.rotate_right(16) & 0xf000_f000_f000_f000;
                let t = t | t >> 4;
                (t | t >> 8) ^ constant
            });
            let sums = key[k].map(|x| {
                let x = x ^ (x & 0x0fff_0fff_0fff_0fff) << 4;
                x ^ (x & 0x00ff_00ff_00ff_00ff) << 8
            });
            schedule[round][k] = sums ^ word;
        }
        rcon = (rcon << 1) ^ ((rcon >> 7) * 0x1b);
    }
    schedule
}

fn encrypt(schedule: &Schedule, blocks: &mut [Block; LANES]) {
    let mut state = slice(blocks);
    add_key(&mut state, &schedule[0]);
    for key in &schedule[1..10] {
        state = sub_bytes(&state);
        shift_rows(&mut state);
        mix_columns(&mut state);
        add_key(&mut state, key);
    }
    state = sub_bytes(&state);
    shift_rows(&mut state);
    add_key(&mut state, &schedule[10]);
    *blocks = unslice(&state);
}

/// A schedule that is wiped when it goes.
struct Keys(Schedule);

impl Drop for Keys {
    fn drop(&mut self) {
        for plane in self.0.iter_mut().flatten() {
            plane.0.zeroize();
        }
    }
}

impl Keys {
    fn from_round_keys(round_keys: &[Block; 11]) -> Keys {
        Keys(round_keys.map(|key| slice(&[key; LANES])))
    }

    /// Encrypts what `load` gives for each index below `count`, and hands `store` the index, the input and the output.
    fn run(&self, count: usize, load: impl Fn(usize) -> Block, mut store: impl FnMut(usize, Block, Block)) {
        for start in (0..count).step_by(LANES) {
            let used = LANES.min(count - start);
            let mut input = [Block::ZERO; LANES];
            for (i, slot) in input[..used].iter_mut().enumerate() {
                *slot = load(start + i);
            }
            let mut output = input;
            encrypt(&self.0, &mut output);
            for i in 0..used {
                store(start + i, input[i], output[i]);
            }
        }
    }
}

pub(super) fn expand(key: Block) -> [Block; 11] {
    let keys = Keys(schedule(&[key; LANES]));
    keys.0.map(|state| unslice(&state)[0])
}

pub(super) fn encrypt_blocks(round_keys: &[Block; 11], blocks: &mut [Block]) {
    let keys = Keys::from_round_keys(round_keys);
    for chunk in blocks.chunks_mut(LANES) {
        let mut buffer = [Block::ZERO; LANES];
        buffer[..chunk.len()].copy_from_slice(chunk);
        encrypt(&keys.0, &mut buffer);
        chunk.copy_from_slice(&buffer[..chunk.len()]);
    }
}

pub(super) fn counter(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
    let keys = Keys::from_round_keys(round_keys);
    let load = |i| Block::new(first.wrapping_add(i as u64) as u128);
    keys.run(out.len(), load, |i, _, y| out[i] = y);
}

pub(super) fn counter_xor(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
    let keys = Keys::from_round_keys(round_keys);
    let load = |i| Block::new(first.wrapping_add(i as u64) as u128);
    keys.run(out.len(), load, |i, _, y| out[i] ^= y);
}

pub(super) fn ccr(round_keys: &[Block; 11], input: &[Block], out: &mut [Block]) {
    let keys = Keys::from_round_keys(round_keys);
    keys.run(out.len(), |i| sigma(input[i]), |i, x, y| out[i] = x ^ y);
}

pub(super) fn ccr_in_place(round_keys: &[Block; 11], blocks: &mut [Block]) {
    let keys = Keys::from_round_keys(round_keys);
    for chunk in blocks.chunks_mut(LANES) {
        let mut input = [Block::ZERO; LANES];
        input[..chunk.len()].copy_from_slice(chunk);
        keys.run(chunk.len(), |i| sigma(input[i]), |i, x, y| chunk[i] = x ^ y);
    }
}

pub(super) fn tccr(round_keys: &[Block; 11], blocks: &mut [Block], first: Block) {
    let keys = Keys::from_round_keys(round_keys);
    for (c, chunk) in blocks.chunks_mut(LANES).enumerate() {
        let mut once = [Block::ZERO; LANES];
        once[..chunk.len()].copy_from_slice(chunk);
        encrypt(&keys.0, &mut once);
        let mut twice = once;
        for (i, x) in twice.iter_mut().enumerate() {
            *x ^= Block::from_halves(first.low().wrapping_add((c * LANES + i) as u64), first.high());
        }
        encrypt(&keys.0, &mut twice);
        for (i, block) in chunk.iter_mut().enumerate() {
            *block = once[i] ^ twice[i];
        }
    }
}

pub(super) fn rekeyed(keys: &[Block], blocks: &mut [Block]) {
    for (keys, blocks) in keys.chunks(LANES).zip(blocks.chunks_mut(LANES)) {
        let (mut wide_keys, mut wide) = ([Block::ZERO; LANES], [Block::ZERO; LANES]);
        wide_keys[..keys.len()].copy_from_slice(keys);
        wide[..blocks.len()].copy_from_slice(blocks);
        encrypt(&Keys(schedule(&wide_keys)).0, &mut wide);
        blocks.copy_from_slice(&wide[..blocks.len()]);
    }
}

/// MITCCRH of `groups` groups of `per_gid` blocks: `load(group, j)` gives the blocks, `store(group, j, hash)` takes the hashes.
fn mitccrh(
    start: Block,
    gid: impl Fn(usize) -> u64,
    groups: usize,
    per_gid: usize,
    load: impl Fn(usize, usize) -> Block,
    mut store: impl FnMut(usize, usize, Block),
) {
    for first in (0..groups).step_by(LANES) {
        let used = LANES.min(groups - first);
        let mut keys = [Block::ZERO; LANES];
        for (i, key) in keys[..used].iter_mut().enumerate() {
            *key = start ^ Block::new(gid(first + i) as u128);
        }
        let keys = Keys(schedule(&keys));
        for j in 0..per_gid {
            keys.run(used, |i| sigma(load(first + i, j)), |i, x, y| store(first + i, j, x ^ y));
        }
    }
}

pub(super) fn mitccrh_in_place(start: Block, first_gid: u64, per_gid: usize, blocks: &mut [Block]) {
    let groups = blocks.len() / per_gid;
    let cells = Cell::from_mut(blocks).as_slice_of_cells();
    let gid = |g| first_gid.wrapping_add(g as u64);
    let at = |g, j| &cells[g * per_gid + j];
    mitccrh(start, gid, groups, per_gid, |g, j| at(g, j).get(), |g, j, y| at(g, j).set(y));
}

pub(super) fn cot_sender(start: Block, first_gid: u64, delta: Block, v: &[Block], out: &mut [[Block; 2]]) {
    let offsets = [Block::ZERO, delta];
    let gid = |g| first_gid.wrapping_add(g as u64);
    mitccrh(start, gid, v.len(), 2, |g, j| v[g] ^ offsets[j], |g, j, y| out[g][j] = y);
}

pub(super) fn cot_receiver(start: Block, first_gid: u64, w: &[Block], out: &mut [Block]) {
    let gid = |g| first_gid.wrapping_add(g as u64);
    mitccrh(start, gid, w.len(), 1, |g, _| w[g], |g, _, y| out[g] = y);
}

/// σ(x_L‖x_R) = (x_L ⊕ x_R)‖x_L, the linear orthomorphism; x_L is the high half.
#[inline(always)]
pub fn sigma(x: Block) -> Block {
    Block::from_halves(x.high(), x.high() ^ x.low())
}
