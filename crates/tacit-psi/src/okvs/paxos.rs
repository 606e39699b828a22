//! The key-value store of PaXoS: a garbled cuckoo table with two hash functions and a few dense columns.
//!
//! Source: Pinkas, Rosulek, Trieu, Yanai, "PSI from PaXoS" (2020/193), sections 4 and 5. Key k addresses one
//! slot a(k) of the left side, one slot b(k) of the right side, and a subset m(k) of the dense slots; its
//! value is the XOR of the slots it addresses. Looking up is thus linear over GF(2), which is what the
//! intersection protocol needs.
//!
//! **Solving.** Keys are edges of a bipartite graph on the sparse slots. Edges at a vertex of degree one are
//! peeled off; what remains (the 2-core) is spanned by a forest, and every edge outside the forest closes a
//! cycle, which gives one equation in the dense slots alone. Then the forest and the peeled edges are filled
//! in backwards. All linear in the number of keys, but for the dense equations, of which there are a handful.
//!
//! **Failure.** The system is unsolvable only when a nonempty set S of rows sums to zero: every sparse slot
//! is met an even number of times by S (S is an element of the graph's cycle space) and the dense masks of S
//! cancel, which has probability 2^-dense. With s slots a side and n keys the union bound is exact
//! arithmetic: Pr\[failure\] ≤ 2^-dense · Σ_{j≥2} C(n, j)·p_j², p_j the probability that j balls in s bins
//! fill each bin evenly. `tests/it/okvs.rs` recomputes it: below 2^-51 for every shape used here, 2^-56 for the
//! paper's. A failure is reported, not repeated under another seed: a second try would tell the peer that the
//! first one failed, and at 2^-51 no application needs it.
//!
//! **Deviation.** The paper takes s ≈ 1.2446·n. The sum above stays small up to the threshold s = n, so sets
//! of more than [`PAPER_MAX_KEYS`] keys use s = 1.02·n: 18 % fewer rows to transfer, and a smaller set that a
//! cheating receiver could encode.
//!
//! **Side channels.** Values take the same time whatever they are. Addresses depend on the keys, as in every
//! hash-table-shaped store; keys must be outputs of a hash bound to the session, never raw elements.

use super::{MAX_KEYS, Store, unsolvable};
use crate::{Error, Result};
use tacit_crypto::{Block, Prg};
use zeroize::Zeroizing;

/// Dense slots: 20 for the cycles and 40 for the rank (2020/193, section 5, and ROTed, section 6.2).
pub const DENSE: usize = 60;
/// Up to here the sparse sides have the paper's size, 1.2446·n slots each.
pub const PAPER_MAX_KEYS: usize = 4096;

const NIBBLES: usize = DENSE.div_ceil(4);

/// How many slots a store has: two sparse sides and the dense part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    keys: usize,
    side: u32,
}

/// Where a key's value lies: one slot of each side and a subset of the dense slots.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    left: u32,
    right: u32,
    mask: u64,
}

impl Shape {
    /// The paper's shape: s = ⌈1.2446·n⌉ slots a side, so that 2,048 keys have 2 × 2,549 + 60 slots.
    pub fn paper(keys: usize) -> Result<Self> {
        Self::with_ratio(keys, 12_446)
    }

    /// The smaller shape: s = ⌈1.02·n⌉ slots a side, still below the threshold of the cuckoo graph.
    pub fn compact(keys: usize) -> Result<Self> {
        Self::with_ratio(keys, 10_200)
    }

    /// The shape that both parties use for `keys` keys: [`paper`](Self::paper) up to [`PAPER_MAX_KEYS`], else
    /// [`compact`](Self::compact).
    pub fn for_keys(keys: usize) -> Result<Self> {
        if keys <= PAPER_MAX_KEYS { Self::paper(keys) } else { Self::compact(keys) }
    }

    fn with_ratio(keys: usize, per_ten_thousand: u64) -> Result<Self> {
        if keys > MAX_KEYS {
            return Err(Error::TooManyElements { count: keys as u64, allowed: MAX_KEYS as u64 });
        }
        let side = (keys as u64 * per_ten_thousand).div_ceil(10_000).max(1);
        Ok(Shape { keys, side: side as u32 })
    }

    /// Keys that an encoding holds.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Slots of each sparse side.
    pub fn side(&self) -> usize {
        self.side as usize
    }

    /// All slots: two sides and the dense part, which comes last.
    pub fn slots(&self) -> usize {
        2 * self.side as usize + DENSE
    }

    /// The place of `key`: the high half addresses the sides (each pair within 1 + side²/2^64 of uniform),
    /// the low half gives the mask.
    #[inline]
    fn place(&self, key: Block) -> Place {
        let side = self.side as u128;
        let scaled = key.high() as u128 * side;
        let left = (scaled >> 64) as u32;
        let right = ((scaled as u64 as u128 * side) >> 64) as u32 + self.side;
        Place { left, right, mask: key.low() & ((1 << DENSE) - 1) }
    }

    /// Finds a table whose value at `keys[i]` is `value(i)` for every i, uniform among all such tables.
    ///
    /// `keys` are distinct 128-bit hashes, exactly [`keys`](Self::keys) of them; `prg` fills the free slots.
    /// Errors: [`Error::DuplicateElement`] when two keys are equal, [`Error::Unsolvable`] with the
    /// probability in the module's docs.
    pub fn encode<const W: usize>(
        &self,
        keys: &[Block],
        value: impl Fn(usize) -> [Block; W],
        prg: &mut Prg,
    ) -> Result<Zeroizing<Vec<[Block; W]>>> {
        if keys.len() != self.keys {
            return Err(Error::Usage("the store's shape is for another number of keys"));
        }
        let mut table = Zeroizing::new(vec![[Block::ZERO; W]; self.slots()]);
        prg.fill_blocks(table.as_flattened_mut());

        let peeled = self.peel(keys);
        let core = Core::new(self, keys, &peeled, &value);
        let (sparse, dense) = table.split_at_mut(2 * self.side());
        if !core.solve_dense(dense) {
            return Err(unsolvable(keys));
        }
        let sums = DenseSums::new(dense);
        let mut assign = |edge: u32, vertex: u32| {
            let place = self.place(keys[edge as usize]);
            let mut slot = sums.of(place.mask);
            xor_into(&mut slot, &sparse[(place.left ^ place.right ^ vertex) as usize]);
            xor_into(&mut slot, &value(edge as usize));
            sparse[vertex as usize] = slot;
        };
        // Roots of the forest, and vertices that end a peeled path, keep their random fill.
        for &(edge, vertex) in core.tree.iter() {
            assign(edge, vertex);
        }
        for &(edge, vertex) in peeled.order.iter().rev() {
            assign(edge, vertex);
        }
        Ok(table)
    }

    /// Takes edges off at vertices of degree one until none is left.
    fn peel(&self, keys: &[Block]) -> Peeled {
        let mut degree = Zeroizing::new(vec![(0u32, 0u32); 2 * self.side()]);
        for (edge, key) in keys.iter().enumerate() {
            let place = self.place(*key);
            for vertex in [place.left, place.right] {
                let (count, edges) = &mut degree[vertex as usize];
                *count += 1;
                *edges ^= edge as u32;
            }
        }
        let mut order = Zeroizing::new(Vec::with_capacity(keys.len()));
        for start in 0..degree.len() as u32 {
            let mut vertex = start;
            while degree[vertex as usize].0 == 1 {
                let edge = degree[vertex as usize].1;
                let place = self.place(keys[edge as usize]);
                let other = place.left ^ place.right ^ vertex;
                order.push((edge, vertex));
                degree[vertex as usize] = (0, 0);
                let (count, edges) = &mut degree[other as usize];
                *count -= 1;
                *edges ^= edge;
                vertex = other;
            }
        }
        Peeled { order }
    }
}

impl<const W: usize> Store<[Block; W]> for Shape {
    fn keys(&self) -> usize {
        self.keys
    }

    fn slots(&self) -> usize {
        self.slots()
    }

    /// The module's union bound at its worst: 2^-56 for the paper's shape, 2^-51 for the compact one.
    fn failure_log2(&self) -> f64 {
        if self.keys <= PAPER_MAX_KEYS { -56.0 } else { -51.0 }
    }

    fn encode_into(
        &self,
        keys: &[Block],
        value: &(dyn Fn(usize) -> [Block; W] + Sync),
        prg: &mut Prg,
        table: &mut [[Block; W]],
    ) -> Result<()> {
        if table.len() != self.slots() {
            return Err(Error::Usage("the table's length does not fit the store's shape"));
        }
        table.copy_from_slice(&self.encode(keys, value, prg)?);
        Ok(())
    }

    fn decode(&self, table: &[[Block; W]], keys: &[Block], out: &mut [[Block; W]]) -> Result<()> {
        if keys.len() != out.len() {
            return Err(Error::Usage("one value a key"));
        }
        Decoder::new(*self, table)?.get_each(keys, out);
        Ok(())
    }
}

/// Edges in the order in which they were peeled, each with the vertex of degree one that it left by.
struct Peeled {
    order: Zeroizing<Vec<(u32, u32)>>,
}

/// The dense slots of a mask add up to a value.
type Equation<const W: usize> = (u64, [Block; W]);

/// The 2-core, spanned by a forest.
struct Core<const W: usize> {
    /// Forest edges from the roots outwards, each with its outer vertex.
    tree: Zeroizing<Vec<(u32, u32)>>,
    /// One equation in the dense slots for each cycle.
    cycles: Zeroizing<Vec<Equation<W>>>,
}

impl<const W: usize> Core<W> {
    fn new(shape: &Shape, keys: &[Block], peeled: &Peeled, value: &impl Fn(usize) -> [Block; W]) -> Self {
        let mut tree = Zeroizing::new(Vec::new());
        let mut cycles = Zeroizing::new(Vec::new());
        if peeled.order.len() == keys.len() {
            return Core { tree, cycles };
        }
        let mut left = Zeroizing::new(vec![true; keys.len()]);
        for &(edge, _) in peeled.order.iter() {
            left[edge as usize] = false;
        }
        // (vertex, edge), sorted: the core's adjacency lists one after the other.
        let mut ends = Zeroizing::new(Vec::with_capacity(2 * (keys.len() - peeled.order.len())));
        for (edge, _) in left.iter().enumerate().filter(|(_, left)| **left) {
            let place = shape.place(keys[edge]);
            ends.push((place.left, edge as u32));
            ends.push((place.right, edge as u32));
        }
        ends.sort_unstable();
        let mut lists = Zeroizing::new(Vec::new());
        for (at, &(vertex, _)) in ends.iter().enumerate() {
            if at == 0 || ends[at - 1].0 != vertex {
                lists.push((vertex, at as u32));
            }
        }
        let list_of = |vertex: u32| lists.partition_point(|&(v, _)| v < vertex);

        // The sums of masks and of values along the forest's path from the root to each vertex.
        let mut paths = Zeroizing::new(vec![None::<Equation<W>>; lists.len()]);
        let mut queue = Zeroizing::new(Vec::new());
        for root in 0..lists.len() {
            if paths[root].is_some() {
                continue;
            }
            paths[root] = Some((0, [Block::ZERO; W]));
            queue.push((root as u32, u32::MAX));
            while let Some((at, by)) = queue.pop() {
                let (vertex, first) = lists[at as usize];
                let Some((mask, sum)) = paths[at as usize] else { continue };
                for &(_, edge) in ends[first as usize..].iter().take_while(|(v, _)| *v == vertex) {
                    if edge == by || !left[edge as usize] {
                        continue;
                    }
                    // Each edge is walked once, whichever end meets it first.
                    left[edge as usize] = false;
                    let place = shape.place(keys[edge as usize]);
                    let other = place.left ^ place.right ^ vertex;
                    let to = list_of(other);
                    let mut step = (mask ^ place.mask, sum);
                    xor_into(&mut step.1, &value(edge as usize));
                    match paths[to] {
                        None => {
                            paths[to] = Some(step);
                            tree.push((edge, other));
                            queue.push((to as u32, edge));
                        }
                        Some((mask, sum)) => {
                            xor_into(&mut step.1, &sum);
                            cycles.push((step.0 ^ mask, step.1));
                        }
                    }
                }
            }
        }
        Core { tree, cycles }
    }

    /// Solves the cycles' equations for the dense slots, which hold random values on entry; `false` when they
    /// depend on each other. Branches depend on masks only.
    fn solve_dense(&self, dense: &mut [[Block; W]]) -> bool {
        let mut solved: Zeroizing<Vec<Equation<W>>> = Zeroizing::new(Vec::with_capacity(DENSE));
        for &(mut mask, mut sum) in self.cycles.iter() {
            for (pivot_mask, pivot_sum) in solved.iter() {
                if mask & (pivot_mask & pivot_mask.wrapping_neg()) != 0 {
                    mask ^= pivot_mask;
                    xor_into(&mut sum, pivot_sum);
                }
            }
            if mask == 0 {
                return false;
            }
            solved.push((mask, sum));
        }
        // Row i has no bit at the pivots of the rows before it, so the last row is settled first.
        for &(mask, sum) in solved.iter().rev() {
            let pivot = mask.trailing_zeros() as usize;
            let mut slot = sum;
            for (j, other) in dense.iter().enumerate() {
                if j != pivot && mask >> j & 1 == 1 {
                    xor_into(&mut slot, other);
                }
            }
            dense[pivot] = slot;
        }
        true
    }
}

/// All sums of four neighbouring dense slots, so that a mask costs fifteen additions.
struct DenseSums<const W: usize>(Zeroizing<Vec<[[Block; W]; 16]>>);

impl<const W: usize> DenseSums<W> {
    fn new(dense: &[[Block; W]]) -> Self {
        let mut sums = Zeroizing::new(vec![[[Block::ZERO; W]; 16]; NIBBLES]);
        for (table, slots) in sums.iter_mut().zip(dense.chunks(4)) {
            for subset in 1..16usize {
                let lowest = subset.trailing_zeros() as usize;
                let mut sum = table[subset & (subset - 1)];
                if let Some(slot) = slots.get(lowest) {
                    xor_into(&mut sum, slot);
                }
                table[subset] = sum;
            }
        }
        DenseSums(sums)
    }

    #[inline]
    fn of(&self, mask: u64) -> [Block; W] {
        let mut sum = [Block::ZERO; W];
        for (i, table) in self.0.iter().enumerate() {
            xor_into(&mut sum, &table[(mask >> (4 * i)) as usize & 15]);
        }
        sum
    }
}

/// Looks keys up in a table.
pub struct Decoder<'a, const W: usize> {
    shape: Shape,
    sparse: &'a [[Block; W]],
    dense: DenseSums<W>,
}

impl<'a, const W: usize> Decoder<'a, W> {
    /// A decoder of `table`, which has [`Shape::slots`] slots: two sides, then the dense part.
    pub fn new(shape: Shape, table: &'a [[Block; W]]) -> Result<Self> {
        if table.len() != shape.slots() {
            return Err(Error::Usage("the table's length does not fit the store's shape"));
        }
        let (sparse, dense) = table.split_at(2 * shape.side());
        Ok(Decoder { shape, sparse, dense: DenseSums::new(dense) })
    }

    /// The XOR of the slots that `key` addresses: its value, or noise when the key was not encoded.
    pub fn get(&self, key: Block) -> [Block; W] {
        let mut out = [[Block::ZERO; W]];
        self.get_each(&[key], &mut out);
        out[0]
    }

    /// [`get`](Self::get) of each key, into `out` of the same length.
    ///
    /// The table is much larger than the caches: fetching the sparse slots in a short loop of its own lets
    /// the machine wait for many of them at once.
    pub(crate) fn get_each(&self, keys: &[Block], out: &mut [[Block; W]]) {
        assert_eq!(keys.len(), out.len(), "one value a key");
        for (key, sum) in keys.iter().zip(out.iter_mut()) {
            let place = self.shape.place(*key);
            *sum = self.sparse[place.left as usize];
            xor_into(sum, &self.sparse[place.right as usize]);
        }
        for (key, sum) in keys.iter().zip(out) {
            xor_into(sum, &self.dense.of(self.shape.place(*key).mask));
        }
    }
}

#[inline(always)]
fn xor_into<const W: usize>(sum: &mut [Block; W], term: &[Block; W]) {
    for (a, b) in sum.iter_mut().zip(term) {
        *a ^= *b;
    }
}
