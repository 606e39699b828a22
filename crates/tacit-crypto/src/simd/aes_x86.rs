//! AES-128 with AES-NI and VAES, and the hashes built on it, in one pass over the data.

use super::x86::{V128, V256, V512, Vector, next_words};
use crate::Block;

/// Vectors in flight with one key: enough to hide the latency of a round.
const IN_FLIGHT: usize = 8;
const RCON: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

type RoundKeys<V> = [V; 11];

#[inline(always)]
unsafe fn splat_keys<V: Vector>(round_keys: &[Block; 11]) -> RoundKeys<V> {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let mut keys = [V::zero(); 11];
        for (key, block) in keys.iter_mut().zip(round_keys) {
            *key = V::splat(*block);
        }
        keys
    }
}

#[inline(always)]
unsafe fn encrypt<V: Vector, const N: usize>(keys: &RoundKeys<V>, mut x: [V; N]) -> [V; N] {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        for x in &mut x {
            *x = x.xor(keys[0]);
        }
        for key in &keys[1..10] {
            for x in &mut x {
                *x = x.aes_round(*key);
            }
        }
        for x in &mut x {
            *x = x.aes_last(keys[10]);
        }
        x
    }
}

/// What is done with one run of vectors, under one key.
trait Pass {
    /// Handles the blocks from `at` on, `N` vectors of them.
    ///
    /// # Safety
    /// The features of `V`, and that many blocks from `at` on.
    unsafe fn step<V: Vector, const N: usize>(&self, keys: &RoundKeys<V>, at: usize);
}

/// Runs `pass` over `count` blocks.
///
/// # Safety
/// The features of `V`, and `count` blocks in whatever `pass` points to.
#[inline(always)]
unsafe fn drive<V: Vector, P: Pass>(round_keys: &[Block; 11], pass: &P, count: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut at = 0;
        if count >= V::LANES {
            let keys = splat_keys::<V>(round_keys);
            while count - at >= IN_FLIGHT * V::LANES {
                pass.step::<V, IN_FLIGHT>(&keys, at);
                at += IN_FLIGHT * V::LANES;
            }
            while count - at >= V::LANES {
                pass.step::<V, 1>(&keys, at);
                at += V::LANES;
            }
        }
        if at < count {
            let keys = splat_keys::<V128>(round_keys);
            while at < count {
                pass.step::<V128, 1>(&keys, at);
                at += 1;
            }
        }
    }
}

/// Loads `N` vectors.
#[inline(always)]
pub(super) unsafe fn load<V: Vector, const N: usize>(from: *const Block) -> [V; N] {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut x = [V::zero(); N];
        for (i, x) in x.iter_mut().enumerate() {
            *x = V::load(from.add(i * V::LANES));
        }
        x
    }
}

#[inline(always)]
pub(super) unsafe fn store<V: Vector, const N: usize>(x: [V; N], to: *mut Block) {
    // SAFETY: passed on to the caller.
    unsafe {
        for (i, x) in x.iter().enumerate() {
            x.store(to.add(i * V::LANES));
        }
    }
}

/// `N` vectors that count up from `first` in their low halves.
#[inline(always)]
pub(super) unsafe fn count<V: Vector, const N: usize>(first: Block) -> [V; N] {
    // SAFETY: passed on to the caller.
    unsafe {
        let base = V::splat(first).add_lane_index();
        let mut x = [base; N];
        for (i, x) in x.iter_mut().enumerate() {
            *x = x.add_low((i * V::LANES) as u64);
        }
        x
    }
}

struct Encrypt {
    blocks: *mut Block,
}

impl Pass for Encrypt {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, keys: &RoundKeys<V>, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let x = load::<V, N>(self.blocks.add(at));
            store(encrypt(keys, x), self.blocks.add(at));
        }
    }
}

struct Counter<const XOR: bool> {
    first: u64,
    out: *mut Block,
}

impl<const XOR: bool> Pass for Counter<XOR> {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, keys: &RoundKeys<V>, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let x = count::<V, N>(Block::new(self.first.wrapping_add(at as u64) as u128));
            let mut y = encrypt(keys, x);
            if XOR {
                let old = load::<V, N>(self.out.add(at));
                for (y, old) in y.iter_mut().zip(old) {
                    *y = y.xor(old);
                }
            }
            store(y, self.out.add(at));
        }
    }
}

struct Ccr {
    input: *const Block,
    out: *mut Block,
}

impl Pass for Ccr {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, keys: &RoundKeys<V>, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut s = load::<V, N>(self.input.add(at));
            for s in &mut s {
                *s = s.sigma();
            }
            let mut y = encrypt(keys, s);
            for (y, s) in y.iter_mut().zip(s) {
                *y = y.xor(s);
            }
            store(y, self.out.add(at));
        }
    }
}

struct Tccr {
    blocks: *mut Block,
    /// The first tweak; the low half never wraps within one pass.
    first: Block,
}

impl Pass for Tccr {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(&self, keys: &RoundKeys<V>, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let once = encrypt(keys, load::<V, N>(self.blocks.add(at)));
            let mut x = count::<V, N>(Block::from_halves(
                self.first.low().wrapping_add(at as u64),
                self.first.high(),
            ));
            for (x, once) in x.iter_mut().zip(once) {
                *x = x.xor(once);
            }
            let mut y = encrypt(keys, x);
            for (y, once) in y.iter_mut().zip(once) {
                *y = y.xor(once);
            }
            store(y, self.blocks.add(at));
        }
    }
}

/// Where re-keyed encryption finds the keys and the blocks: group `g` has one key and `PER_KEY` blocks.
trait Groups {
    /// # Safety
    /// The features of `V`, and `V::LANES` groups from `g` on.
    unsafe fn keys<V: Vector>(&self, g: usize) -> V;
    /// # Safety
    /// As for `keys`; `j` below the number of blocks a key.
    unsafe fn load<V: Vector>(&self, g: usize, j: usize) -> V;
    /// # Safety
    /// As for `load`.
    unsafe fn store<V: Vector>(&self, g: usize, j: usize, input: V, output: V);
    /// [`store`](Self::store) of all blocks of a group.
    ///
    /// # Safety
    /// As for `load`.
    #[inline(always)]
    unsafe fn store_all<V: Vector, const PER_KEY: usize>(&self, g: usize, outputs: [V; PER_KEY]) {
        // SAFETY: passed on to the caller.
        unsafe {
            for (j, output) in outputs.into_iter().enumerate() {
                self.store(g, j, self.load::<V>(g, j), output);
            }
        }
    }
}

/// Encrypts `N` vectors of groups with `PER_KEY` blocks each, key schedules computed beside the rounds.
#[inline(always)]
unsafe fn rekeyed_step<V: Vector, G: Groups, const N: usize, const PER_KEY: usize>(groups: &G, g: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut keys = [V::zero(); N];
        let mut x = [[V::zero(); PER_KEY]; N];
        for (n, key) in keys.iter_mut().enumerate() {
            *key = groups.keys(g + n * V::LANES);
        }
        for (n, x) in x.iter_mut().enumerate() {
            for (j, x) in x.iter_mut().enumerate() {
                *x = groups.load::<V>(g + n * V::LANES, j).xor(keys[n]);
            }
        }
        for rcon in &RCON[..9] {
            let rcon = V::splat_word(*rcon);
            for n in 0..N {
                keys[n] = keys[n].next_key(rcon);
                for x in &mut x[n] {
                    *x = x.aes_round(keys[n]);
                }
            }
        }
        let rcon = V::splat_word(RCON[9]);
        for n in 0..N {
            keys[n] = keys[n].next_key(rcon);
            for x in &mut x[n] {
                *x = x.aes_last(keys[n]);
            }
            groups.store_all(g + n * V::LANES, x[n]);
        }
    }
}

/// [`rekeyed_step`] of four vectors of groups, with the key schedule on transposed keys: one S-box step
/// serves four keys, and the running sums need no shifts.
#[inline(always)]
unsafe fn rekeyed_transposed<V: Vector, G: Groups, const PER_KEY: usize>(groups: &G, g: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut keys = [V::zero(); 4];
        let mut x = [[V::zero(); PER_KEY]; 4];
        for n in 0..4 {
            keys[n] = groups.keys(g + n * V::LANES);
            for (j, x) in x[n].iter_mut().enumerate() {
                *x = groups.load::<V>(g + n * V::LANES, j).xor(keys[n]);
            }
        }
        let mut words = next_words(V::transpose_words(keys), RCON[0]);
        // Unrolled, the compiler would begin rounds early and run out of registers.
        for rcon in core::hint::black_box(&RCON[1..]) {
            let keys = V::transpose_words(words);
            words = next_words(words, *rcon);
            for (x, key) in x.iter_mut().zip(keys) {
                for x in x {
                    *x = x.aes_round(key);
                }
            }
        }
        let keys = V::transpose_words(words);
        for n in 0..4 {
            for x in &mut x[n] {
                *x = x.aes_last(keys[n]);
            }
            groups.store_all(g + n * V::LANES, x[n]);
        }
    }
}

#[inline(always)]
unsafe fn rekeyed_fixed<V: Vector, G: Groups, const N: usize, const PER_KEY: usize>(
    groups: &G,
    count: usize,
) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut g = 0;
        while count - g >= N * V::LANES {
            match N {
                4 => rekeyed_transposed::<V, G, PER_KEY>(groups, g),
                _ => rekeyed_step::<V, G, N, PER_KEY>(groups, g),
            }
            g += N * V::LANES;
        }
        while count - g >= V::LANES {
            rekeyed_step::<V, G, 1, PER_KEY>(groups, g);
            g += V::LANES;
        }
        while g < count {
            rekeyed_step::<V128, G, 1, PER_KEY>(groups, g);
            g += 1;
        }
    }
}

/// One vector of groups with any number of blocks a key.
#[inline(always)]
unsafe fn rekeyed_any_step<V: Vector, G: Groups>(groups: &G, g: usize, per_key: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        let mut keys = [groups.keys::<V>(g); 11];
        for r in 0..10 {
            keys[r + 1] = keys[r].next_key(V::splat_word(RCON[r]));
        }
        for j in 0..per_key {
            let input = groups.load::<V>(g, j);
            let [output] = encrypt(&keys, [input]);
            groups.store(g, j, input, output);
        }
    }
}

/// Handles `count` groups of `per_key` blocks.
///
/// # Safety
/// The features of `V`, and that many groups in whatever `groups` points to.
#[inline(always)]
unsafe fn rekeyed_groups<V: Vector, G: Groups>(groups: &G, count: usize, per_key: usize) {
    // SAFETY: passed on to the caller.
    unsafe {
        match per_key {
            1 => rekeyed_fixed::<V, G, 4, 1>(groups, count),
            2 => rekeyed_fixed::<V, G, 4, 2>(groups, count),
            4 => rekeyed_fixed::<V, G, 2, 4>(groups, count),
            8 => rekeyed_fixed::<V, G, 1, 8>(groups, count),
            _ => {
                let mut g = 0;
                while count - g >= V::LANES {
                    rekeyed_any_step::<V, G>(groups, g, per_key);
                    g += V::LANES;
                }
                while g < count {
                    rekeyed_any_step::<V128, G>(groups, g, per_key);
                    g += 1;
                }
            }
        }
    }
}

struct Rekeyed {
    keys: *const Block,
    blocks: *mut Block,
}

impl Groups for Rekeyed {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, g: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.keys.add(g)) }
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, g: usize, _j: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.blocks.add(g)) }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(&self, g: usize, _j: usize, _input: V, output: V) {
        // SAFETY: passed on to the caller.
        unsafe { output.store(self.blocks.add(g)) }
    }
}

/// The keys S ⊕ gid.
trait Gids {
    /// # Safety
    /// The features of `V`, and `V::LANES` gids from `g` on.
    unsafe fn keys<V: Vector>(&self, g: usize) -> V;
}

struct CountingGids {
    start: Block,
    first: u64,
}

impl Gids for CountingGids {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, g: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe {
            let [gids] = count::<V, 1>(Block::new(self.first.wrapping_add(g as u64) as u128));
            gids.xor(V::splat(self.start))
        }
    }
}

/// Group `g` is the blocks from `g * per_gid` on, hashed in place.
struct InPlace<K> {
    keys: K,
    blocks: *mut Block,
    per_gid: usize,
}

impl<K: Gids> Groups for InPlace<K> {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, g: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { self.keys.keys(g) }
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, g: usize, j: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::gather(self.blocks.add(g * self.per_gid + j), self.per_gid).sigma() }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(&self, g: usize, j: usize, input: V, output: V) {
        // SAFETY: passed on to the caller.
        unsafe { output.xor(input).scatter(self.blocks.add(g * self.per_gid + j), self.per_gid) }
    }
}

/// Group `g` hashes v[g] and v[g] ⊕ Δ into the pair `g` of the output.
struct CotSender {
    keys: CountingGids,
    v: *const Block,
    offsets: [Block; 2],
    out: *mut Block,
}

impl Groups for CotSender {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, g: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { self.keys.keys(g) }
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, g: usize, j: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.v.add(g)).xor(V::splat(self.offsets[j])).sigma() }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(&self, g: usize, j: usize, input: V, output: V) {
        // SAFETY: passed on to the caller.
        unsafe { output.xor(input).scatter(self.out.add(2 * g + j), 2) }
    }
    /// Whole lines of pairs.
    #[inline(always)]
    unsafe fn store_all<V: Vector, const PER_KEY: usize>(&self, g: usize, outputs: [V; PER_KEY]) {
        // SAFETY: passed on to the caller.
        unsafe {
            let (a, b) = (outputs[0].xor(self.load(g, 0)), outputs[1].xor(self.load(g, 1)));
            let [low, high] = a.interleave(b);
            low.store(self.out.add(2 * g));
            high.store(self.out.add(2 * g + V::LANES));
        }
    }
}

/// Group `g` hashes w[g] into the output.
struct CotReceiver {
    keys: CountingGids,
    w: *const Block,
    out: *mut Block,
}

impl Groups for CotReceiver {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, g: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { self.keys.keys(g) }
    }
    #[inline(always)]
    unsafe fn load<V: Vector>(&self, g: usize, _j: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.w.add(g)).sigma() }
    }
    #[inline(always)]
    unsafe fn store<V: Vector>(&self, g: usize, _j: usize, input: V, output: V) {
        // SAFETY: passed on to the caller.
        unsafe { output.xor(input).store(self.out.add(g)) }
    }
}

/// The entry points of one width; the callers have checked the lengths.
macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) fn expand(key: Block) -> [Block; 11] {
                // SAFETY: every width has the features of the 128-bit one.
                unsafe {
                    let mut round_keys = [key; 11];
                    for r in 0..10 {
                        let next = V128::splat(round_keys[r]).next_key(V128::splat_word(RCON[r]));
                        round_keys[r + 1] = next.fold();
                    }
                    round_keys
                }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn encrypt_blocks(round_keys: &[Block; 11], blocks: &mut [Block]) {
                let pass = Encrypt { blocks: blocks.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; the pass covers the slice.
                unsafe { drive::<$vector, _>(round_keys, &pass, blocks.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn counter(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
                let pass = Counter::<false> { first, out: out.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; the pass covers the slice.
                unsafe { drive::<$vector, _>(round_keys, &pass, out.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn counter_xor(round_keys: &[Block; 11], first: u64, out: &mut [Block]) {
                let pass = Counter::<true> { first, out: out.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; the pass covers the slice.
                unsafe { drive::<$vector, _>(round_keys, &pass, out.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn ccr(round_keys: &[Block; 11], input: &[Block], out: &mut [Block]) {
                assert_eq!(input.len(), out.len(), "one output an input");
                let pass = Ccr { input: input.as_ptr(), out: out.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; the pass covers both slices.
                unsafe { drive::<$vector, _>(round_keys, &pass, out.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn ccr_in_place(round_keys: &[Block; 11], blocks: &mut [Block]) {
                let pass = Ccr { input: blocks.as_mut_ptr(), out: blocks.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; each step reads its blocks before it
                // writes them.
                unsafe { drive::<$vector, _>(round_keys, &pass, blocks.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn tccr(round_keys: &[Block; 11], blocks: &mut [Block], first: Block) {
                let pass = Tccr { blocks: blocks.as_mut_ptr(), first };
                // SAFETY: this function's features are the vector's; the pass covers the slice.
                unsafe { drive::<$vector, _>(round_keys, &pass, blocks.len()) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn rekeyed(keys: &[Block], blocks: &mut [Block]) {
                assert_eq!(keys.len(), blocks.len(), "one key a block");
                let groups = Rekeyed { keys: keys.as_ptr(), blocks: blocks.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; there are as many keys as blocks.
                unsafe { rekeyed_groups::<$vector, _>(&groups, keys.len(), 1) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn mitccrh_in_place(
                start: Block,
                first_gid: u64,
                per_gid: usize,
                blocks: &mut [Block],
            ) {
                let keys = CountingGids { start, first: first_gid };
                let groups = InPlace { keys, blocks: blocks.as_mut_ptr(), per_gid };
                // SAFETY: this function's features are the vector's; the groups lie within the slice.
                unsafe { rekeyed_groups::<$vector, _>(&groups, blocks.len() / per_gid, per_gid) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn cot_sender(
                start: Block,
                first_gid: u64,
                delta: Block,
                v: &[Block],
                out: &mut [[Block; 2]],
            ) {
                assert_eq!(v.len(), out.len(), "one pair a block");
                let keys = CountingGids { start, first: first_gid };
                let offsets = [Block::ZERO, delta];
                let groups = CotSender { keys, v: v.as_ptr(), offsets, out: out.as_mut_ptr().cast() };
                // SAFETY: this function's features are the vector's; there are as many pairs as blocks.
                unsafe { rekeyed_groups::<$vector, _>(&groups, v.len(), 2) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn cot_receiver(start: Block, first_gid: u64, w: &[Block], out: &mut [Block]) {
                assert_eq!(w.len(), out.len(), "one output an input");
                let keys = CountingGids { start, first: first_gid };
                let groups = CotReceiver { keys, w: w.as_ptr(), out: out.as_mut_ptr() };
                // SAFETY: this function's features are the vector's; there are as many outputs as inputs.
                unsafe { rekeyed_groups::<$vector, _>(&groups, w.len(), 1) }
            }
        }
    };
}
entry_points!(wide128, V128, "sse2,ssse3,sse4.1,aes,pclmulqdq");
entry_points!(wide256, V256, "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq");
entry_points!(
    wide512,
    V512,
    "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni"
);
