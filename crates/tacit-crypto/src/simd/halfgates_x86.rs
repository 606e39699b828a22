//! Half-gates with AES-NI and VAES: key schedules, hashes and ciphertexts in one pass.

use super::gates::{Gates, Op};
use super::x86::{V128, V256, V512, Vector, next_words};
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
                add_round(round == 9, keys[n], &mut x[n]);
            }
        }
    }
}

/// An AES round of one vector of gates, with the round's two keys.
#[inline(always)]
unsafe fn add_round<V: Vector, const BLOCKS: usize>(last: bool, keys: [V; 2], x: &mut [V; BLOCKS]) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        for (j, x) in x.iter_mut().enumerate() {
            let key = keys[2 * j / BLOCKS];
            *x = if last { x.aes_last(key) } else { x.aes_round(key) };
        }
    }
}

/// The rounds with the key schedule on transposed keys: the four words of four keys stand in a vector each,
/// so one S-box step serves four keys and the running sums need no shifts. Transposing a round's keys back
/// costs two shuffles a vector. The next round's keys are made beside a round, which hides the S-box step's
/// latency. `N` is even.
#[inline(always)]
unsafe fn rounds_transposed<V: Vector, const N: usize, const BLOCKS: usize>(
    keys: [[V; 2]; N],
    x: &mut [[V; BLOCKS]; N],
) {
    // SAFETY: the caller has the features of `V`.
    unsafe {
        let mut words = [[V::zero(); 4]; N];
        for n in 0..N / 2 {
            let [[a, b], [c, d]] = [keys[2 * n], keys[2 * n + 1]];
            words[n] = next_words(V::transpose_words([a, b, c, d]), RCON[0]);
        }
        // Unrolled, the compiler would begin rounds early and run out of registers.
        for rcon in core::hint::black_box(&RCON[1..]) {
            for n in 0..N / 2 {
                let now = words[n];
                words[n] = next_words(now, *rcon);
                let [a, b, c, d] = V::transpose_words(now);
                add_round(false, [a, b], &mut x[2 * n]);
                add_round(false, [c, d], &mut x[2 * n + 1]);
            }
        }
        for n in 0..N / 2 {
            let [a, b, c, d] = V::transpose_words(words[n]);
            add_round(true, [a, b], &mut x[2 * n]);
            add_round(true, [c, d], &mut x[2 * n + 1]);
        }
    }
}

/// Where the operands of a run of gates stand that fill vectors: gates of one copy, or a gate of many copies.
///
/// # Safety
/// Every method needs the features of `V` and as many gates from `at` on as `V` has lanes.
trait Operands {
    unsafe fn keys<V: Vector>(&self, at: usize) -> V;
    unsafe fn deltas<V: Vector>(&self, at: usize) -> V;
    unsafe fn first<V: Vector>(&self, at: usize) -> V;
    unsafe fn second<V: Vector>(&self, at: usize) -> V;
    unsafe fn put<V: Vector>(&self, at: usize, out: V);
    /// The ciphertexts, two a gate.
    fn tables(&self) -> *mut Block;
}

/// Gates of one copy.
struct OneCopy {
    ops: *const Op,
    labels: *mut Block,
    start: Block,
    delta: Block,
    first: u64,
    tables: *mut Block,
}

impl Operands for OneCopy {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe {
            let gate = V::splat(Block::from_halves(2 * (self.first + at as u64), 0));
            V::splat(self.start).xor(gate.add_lane_index().add_lane_index())
        }
    }
    #[inline(always)]
    unsafe fn deltas<V: Vector>(&self, _at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::splat(self.delta) }
    }
    #[inline(always)]
    unsafe fn first<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller; the entry points checked that the slots have labels.
        unsafe { V::collect(|i| self.labels.add((*self.ops.add(at + i)).a as usize)) }
    }
    #[inline(always)]
    unsafe fn second<V: Vector>(&self, at: usize) -> V {
        // SAFETY: as in `first`.
        unsafe { V::collect(|i| self.labels.add((*self.ops.add(at + i)).b as usize)) }
    }
    #[inline(always)]
    unsafe fn put<V: Vector>(&self, at: usize, out: V) {
        // SAFETY: as in `first`.
        unsafe { out.spread(|i| self.labels.add((*self.ops.add(at + i)).out as usize)) }
    }
    #[inline(always)]
    fn tables(&self) -> *mut Block {
        self.tables
    }
}

/// One gate in many copies.
struct Copies {
    a: *const Block,
    b: *const Block,
    out: *mut Block,
    starts: *const Block,
    deltas: *const Block,
    gate: Block,
    tables: *mut Block,
}

impl Operands for Copies {
    #[inline(always)]
    unsafe fn keys<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.starts.add(at)).xor(V::splat(self.gate)) }
    }
    #[inline(always)]
    unsafe fn deltas<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.deltas.add(at)) }
    }
    #[inline(always)]
    unsafe fn first<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.a.add(at)) }
    }
    #[inline(always)]
    unsafe fn second<V: Vector>(&self, at: usize) -> V {
        // SAFETY: passed on to the caller.
        unsafe { V::load(self.b.add(at)) }
    }
    #[inline(always)]
    unsafe fn put<V: Vector>(&self, at: usize, out: V) {
        // SAFETY: passed on to the caller.
        unsafe { out.store(self.out.add(at)) }
    }
    #[inline(always)]
    fn tables(&self) -> *mut Block {
        self.tables
    }
}

/// Vectors of gates that go together.
const TOGETHER: usize = 4;

trait Side {
    /// Handles `N` vectors of gates from gate `at` on.
    ///
    /// # Safety
    /// The features of `V`, and that many gates from `at` on in `o`.
    unsafe fn step<V: Vector, const N: usize>(o: &impl Operands, at: usize);
}

struct Garble;
struct Evaluate;

impl Side for Garble {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(o: &impl Operands, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut keys = [V::zero(); N];
            let mut labels = [[V::zero(); 2]; N];
            let mut x = [[V::zero(); 4]; N];
            for n in 0..N {
                let i = at + n * V::LANES;
                keys[n] = o.keys(i);
                labels[n] = [o.first(i), o.second(i)];
                // σ is linear.
                let (delta, [a, b]) =
                    (o.deltas::<V>(i).sigma(), [labels[n][0].sigma(), labels[n][1].sigma()]);
                x[n] = [a, a.xor(delta), b, b.xor(delta)];
            }
            encrypt::<V, N, 4>(keys, &mut x);
            for n in 0..N {
                let i = at + n * V::LANES;
                let (delta, [a, b]) = (o.deltas::<V>(i), labels[n]);
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
                o.put(i, wg.xor(we));
                let [low, high] = tg.interleave(te);
                low.store(o.tables().add(2 * i));
                high.store(o.tables().add(2 * i + V::LANES));
            }
        }
    }
}

impl Side for Evaluate {
    #[inline(always)]
    unsafe fn step<V: Vector, const N: usize>(o: &impl Operands, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let mut keys = [V::zero(); N];
            let mut labels = [[V::zero(); 2]; N];
            let mut x = [[V::zero(); 2]; N];
            for n in 0..N {
                let i = at + n * V::LANES;
                keys[n] = o.keys(i);
                labels[n] = [o.first(i), o.second(i)];
                x[n] = [labels[n][0].sigma(), labels[n][1].sigma()];
            }
            encrypt::<V, N, 2>(keys, &mut x);
            for n in 0..N {
                let i = at + n * V::LANES;
                let [a, b] = labels[n];
                let pair = [V::load(o.tables().add(2 * i)), V::load(o.tables().add(2 * i + V::LANES))];
                let [tg, te] = V::deinterleave(pair);
                let wg = x[n][0].xor(a.sigma()).xor(tg.and(a.lsb_mask()));
                let we = x[n][1].xor(b.sigma()).xor(te.xor(a).and(b.lsb_mask()));
                o.put(i, wg.xor(we));
            }
        }
    }
}

/// Runs `S` over `count` gates, many vectors at a time while there are so many. The last ones overlap gates
/// that were done before: operands are never results, so the same comes out.
///
/// # Safety
/// The features of `V`, and `count` gates in `o`.
#[inline(always)]
unsafe fn drive<S: Side, V: Vector>(o: &impl Operands, count: usize) {
    // SAFETY: passed on to the caller; no step begins before gate 0 or ends past `count`.
    unsafe {
        let mut at = 0;
        while count - at >= TOGETHER * V::LANES {
            S::step::<V, TOGETHER>(o, at);
            at += TOGETHER * V::LANES;
        }
        // Pairs of vectors share a key schedule, so they cost less than twice one.
        while count - at >= 2 * V::LANES {
            S::step::<V, 2>(o, at);
            at += 2 * V::LANES;
        }
        if count - at > V::LANES && count >= 2 * V::LANES {
            return S::step::<V, 2>(o, count - 2 * V::LANES);
        }
        while count - at >= V::LANES {
            S::step::<V, 1>(o, at);
            at += V::LANES;
        }
        if at < count && count >= V::LANES {
            return S::step::<V, 1>(o, count - V::LANES);
        }
        while at < count {
            S::step::<V128, 1>(o, at);
            at += 1;
        }
    }
}

/// All of `gates`, whose slots the entry points checked.
///
/// # Safety
/// The features of `V`; a start point a copy and, for garbling, as many Δ; labels of all slots; two blocks of
/// `tables` an AND gate and copy.
#[inline(always)]
unsafe fn execute<S: Side, V: Vector>(
    gates: Gates<'_>,
    starts: &[Block],
    deltas: *const Block,
    labels: *mut Block,
    mut tables: *mut Block,
) {
    let lanes = starts.len();
    let mut first = gates.first;
    for (xor, and) in gates.runs() {
        // SAFETY: passed on to the caller.
        unsafe {
            if lanes == 1 {
                xors_of_one(xor, labels);
                let delta = if deltas.is_null() { Block::ZERO } else { *deltas };
                let ops = and.as_ptr();
                let copy = OneCopy { ops, labels, start: starts[0], delta, first, tables };
                drive::<S, V>(&copy, and.len());
                tables = tables.add(2 * and.len());
            } else {
                xors::<V>(xor, lanes, labels);
                for (gate, op) in (first..).zip(and) {
                    let [a, b, out] = [op.a, op.b, op.out].map(|slot| labels.add(slot as usize * lanes));
                    let gate = Block::from_halves(2 * gate, 0);
                    let starts = starts.as_ptr();
                    drive::<S, V>(&Copies { a, b, out, starts, deltas, gate, tables }, lanes);
                    tables = tables.add(2 * lanes);
                }
            }
        }
        first += and.len() as u64;
    }
}

/// The XOR gates `ops`, whose slots the entry points checked; the last vector overlaps as in [`drive`].
///
/// # Safety
/// The features of `V`, and `lanes` labels of all slots.
#[inline(always)]
unsafe fn xors<V: Vector>(ops: &[Op], lanes: usize, labels: *mut Block) {
    // SAFETY: passed on to the caller.
    unsafe {
        for op in ops {
            let [a, b, out] = [op.a, op.b, op.out].map(|slot| labels.add(slot as usize * lanes));
            let mut at = 0;
            while lanes - at >= V::LANES {
                V::load(a.add(at)).xor(V::load(b.add(at))).store(out.add(at));
                at += V::LANES;
            }
            if at < lanes && lanes >= V::LANES {
                at = lanes - V::LANES;
                V::load(a.add(at)).xor(V::load(b.add(at))).store(out.add(at));
                continue;
            }
            while at < lanes {
                V128::load(a.add(at)).xor(V128::load(b.add(at))).store(out.add(at));
                at += 1;
            }
        }
    }
}

/// The XOR gates `ops` of one copy.
///
/// # Safety
/// SSE2, and labels of all slots.
#[inline(always)]
unsafe fn xors_of_one(ops: &[Op], labels: *mut Block) {
    for op in ops {
        let [a, b, out] = [op.a, op.b, op.out].map(|slot| labels.wrapping_add(slot as usize));
        // SAFETY: passed on to the caller.
        unsafe { V128::load(a).xor(V128::load(b)).store(out) }
    }
}

/// Adds picked rows, as the entry points' caller checked that they exist.
///
/// # Safety
/// The features of `V`, `lanes` labels for each pick from `out` on, and as many in each row picked from
/// `rows` on.
#[inline(always)]
unsafe fn picked<V: Vector>(lanes: usize, rows: *const Block, picks: &[u8], out: *mut Block) {
    // SAFETY: passed on to the caller.
    unsafe {
        for (r, &pick) in picks.iter().enumerate() {
            let (row, out) = (rows.add(usize::from(pick) * lanes), out.add(r * lanes));
            let mut at = 0;
            while lanes - at >= V::LANES {
                V::load(row.add(at)).xor(V::load(out.add(at))).store(out.add(at));
                at += V::LANES;
            }
            while at < lanes {
                V128::load(row.add(at)).xor(V128::load(out.add(at))).store(out.add(at));
                at += 1;
            }
        }
    }
}

macro_rules! entry_points {
    ($module:ident, $vector:ident, $features:literal) => {
        pub(super) mod $module {
            use super::*;

            #[target_feature(enable = $features)]
            pub(crate) fn garble(
                gates: Gates<'_>,
                starts: &[Block],
                deltas: &[Block],
                labels: &mut [Block],
                tables: &mut [[Block; 2]],
            ) {
                gates.check(starts.len(), labels);
                let (deltas, labels, tables) =
                    (deltas.as_ptr(), labels.as_mut_ptr(), tables.as_mut_ptr().cast());
                // SAFETY: this function's features are the vector's; the slots have labels, and the caller
                // checked lengths.
                unsafe { execute::<Garble, $vector>(gates, starts, deltas, labels, tables) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn evaluate(
                gates: Gates<'_>,
                starts: &[Block],
                labels: &mut [Block],
                tables: &[[Block; 2]],
            ) {
                gates.check(starts.len(), labels);
                let (labels, tables) = (labels.as_mut_ptr(), tables.as_ptr().cast_mut().cast());
                // SAFETY: as above; an evaluation reads no Δ and writes no table.
                unsafe { execute::<Evaluate, $vector>(gates, starts, core::ptr::null(), labels, tables) }
            }

            #[target_feature(enable = $features)]
            pub(crate) fn xor_picked(lanes: usize, rows: &[Block], picks: &[u8], out: &mut [Block]) {
                // SAFETY: this function's features are the vector's; the caller checked the rows.
                unsafe { picked::<$vector>(lanes, rows.as_ptr(), picks, out.as_mut_ptr()) }
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
