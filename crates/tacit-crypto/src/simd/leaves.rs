//! Sums of many streams of AES in counter mode, by the bits of their numbers: nothing but the sums is stored.

#[cfg(target_arch = "x86_64")]
use super::Level;
use super::{Backend, aes};
use crate::Block;
use zeroize::Zeroize;

/// Bits of a stream's number, at most.
pub const MOST_BITS: usize = 8;

/// Where sums go: for each bit a column of `total`'s length, from one to the next `stride` blocks.
pub struct Sums<'a> {
    /// XORed with all streams.
    pub total: &'a mut [Block],
    /// In place of what it has, column b gets the XOR of the streams whose numbers have bit b, and of what is given it.
    pub columns: &'a mut [Block],
    /// Column b is given the first, of `total`'s length, under mask b of the second.
    pub given: Option<(&'a [Block], &'a [Block])>,
    /// From one column to the next.
    pub stride: usize,
}

/// Adds up streams `first`, `first + 1`, … below 2^`bits`, with these round keys and from block `counter` on.
///
/// Panics unless `first` is 0 or 1, there is a key for each stream, and the columns lie within theirs.
pub fn add(
    backend: Backend,
    keys: &[[Block; 11]],
    bits: usize,
    first: usize,
    counter: u64,
    sums: &mut Sums<'_>,
) {
    let len = sums.total.len();
    assert!((1..=MOST_BITS).contains(&bits) && first <= 1, "streams have numbers of {bits} bits");
    assert_eq!(keys.len() + first, 1 << bits, "one key a stream");
    if let Some((given, masks)) = sums.given {
        assert!(given.len() == len && masks.len() == bits, "a mask a column");
    }
    assert!(len <= sums.stride && (bits - 1) * sums.stride + len <= sums.columns.len(), "columns apart");
    #[cfg(target_arch = "x86_64")]
    {
        let run = x86::Run { keys, first, counter };
        match (backend.level(), backend.vector_aes()) {
            // SAFETY: a backend of this level exists only where all its features were detected; keys and columns are
            // as many as was asserted.
            (Level::Avx512, _) => return unsafe { x86::wide512::add(&run, bits, sums) },
            // SAFETY: as above; `vector_aes` is set only where VAES was detected.
            (Level::Avx2, true) => return unsafe { x86::wide256::add(&run, bits, sums) },
            // SAFETY: as above; AVX2 as a level includes the features of AES-NI as a level.
            (Level::AesNi | Level::Avx2, _) => return unsafe { x86::wide128::add(&run, bits, sums) },
            _ => {}
        }
    }
    portable(backend, keys, first, counter, sums);
}

fn portable(backend: Backend, keys: &[[Block; 11]], first: usize, counter: u64, sums: &mut Sums<'_>) {
    let len = sums.total.len();
    let mut stream = vec![Block::ZERO; len];
    let bits = (keys.len() + first).ilog2() as usize;
    for (bit, column) in sums.columns.chunks_mut(sums.stride).take(bits).enumerate() {
        column[..len].fill(Block::ZERO);
        if let Some((given, masks)) = sums.given {
            column.iter_mut().zip(given).for_each(|(sum, block)| *sum = *block & masks[bit]);
        }
    }
    for (x, keys) in (first..).zip(keys) {
        aes::counter(backend, keys, counter, &mut stream);
        let columns = sums.columns.chunks_mut(sums.stride).take(bits).enumerate();
        let columns = columns.filter(|(bit, _)| x >> bit & 1 == 1).map(|(_, column)| &mut column[..len]);
        for column in std::iter::once(&mut *sums.total).chain(columns) {
            column.iter_mut().zip(&stream).for_each(|(sum, block)| *sum ^= *block);
        }
    }
    stream.zeroize();
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::aes_x86::{count, load, store};
    use super::super::x86::{V128, V256, V512, Vector};
    use super::Sums;
    use crate::Block;

    pub(super) struct Run<'a> {
        pub(super) keys: &'a [[Block; 11]],
        pub(super) first: usize,
        pub(super) counter: u64,
    }

    /// `N` vectors of a stream.
    ///
    /// # Safety
    /// The features of `V`.
    #[inline(always)]
    unsafe fn stream<V: Vector, const N: usize>(keys: &[Block; 11], counter: [V; N]) -> [V; N] {
        // SAFETY: passed on to the caller.
        unsafe {
            let key = V::splat(keys[0]);
            let mut x = counter.map(|x| x.xor(key));
            for key in &keys[1..10] {
                let key = V::splat(*key);
                for x in &mut x {
                    *x = x.aes_round(key);
                }
            }
            let key = V::splat(keys[10]);
            x.map(|x| x.aes_last(key))
        }
    }

    /// What a column is given at `N` vectors from `at` on.
    ///
    /// # Safety
    /// The features of `V`, and a mask for `bit`.
    #[inline(always)]
    unsafe fn given<V: Vector, const N: usize>(sums: &Sums<'_>, bit: usize, at: usize) -> [V; N] {
        // SAFETY: passed on to the caller.
        unsafe {
            match sums.given {
                None => [V::zero(); N],
                Some((given, masks)) => {
                    let mask = V::splat(*masks.get_unchecked(bit));
                    load::<V, N>(given.as_ptr().add(at)).map(|block| block.and(mask))
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn add_to<V: Vector, const N: usize>(sum: &mut [V; N], more: &[V; N]) {
        // SAFETY: passed on to the caller.
        unsafe {
            for (sum, more) in sum.iter_mut().zip(more) {
                *sum = sum.xor(*more);
            }
        }
    }

    /// The sums of `N` vectors from block `at` on, which stay in registers. Four streams at a time, so that the higher
    /// bits' columns get one sum of four.
    ///
    /// # Safety
    /// The features of `V`; `BITS` is 2 at least, keys and columns are as many as it says, and `N` vectors from `at` on.
    #[inline(always)]
    unsafe fn chunk<V: Vector, const BITS: usize, const N: usize>(
        run: &Run<'_>,
        sums: &mut Sums<'_>,
        at: usize,
    ) {
        // SAFETY: passed on to the caller.
        unsafe {
            let counter = count::<V, N>(Block::new(run.counter.wrapping_add(at as u64) as u128));
            let (total, columns, stride) =
                (sums.total.as_mut_ptr().add(at), sums.columns.as_mut_ptr(), sums.stride);
            let column = |bit: usize| columns.add(bit * stride + at);
            let mut all = load::<V, N>(total);
            let mut by = [[V::zero(); N]; BITS];
            for (bit, by) in by.iter_mut().enumerate() {
                *by = given(sums, bit, at);
            }
            for four in 0..1usize << (BITS - 2) {
                let key = |x: usize| run.keys.get_unchecked(4 * four + x - run.first);
                let mut sum = stream(key(1), counter);
                add_to(&mut by[0], &sum);
                let two = stream(key(2), counter);
                add_to(&mut by[1], &two);
                add_to(&mut sum, &two);
                let three = stream(key(3), counter);
                add_to(&mut by[0], &three);
                add_to(&mut by[1], &three);
                add_to(&mut sum, &three);
                if four > 0 || run.first == 0 {
                    add_to(&mut sum, &stream(key(0), counter));
                }
                add_to(&mut all, &sum);
                for (bit, by) in by.iter_mut().enumerate().skip(2) {
                    if four >> (bit - 2) & 1 == 1 {
                        add_to(by, &sum);
                    }
                }
            }
            store(all, total);
            for (bit, by) in by.into_iter().enumerate() {
                store(by, column(bit));
            }
        }
    }

    /// A number of one bit: two streams.
    ///
    /// # Safety
    /// As for [`chunk`].
    #[inline(always)]
    unsafe fn pair<V: Vector>(run: &Run<'_>, sums: &mut Sums<'_>, at: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            let counter = count::<V, 1>(Block::new(run.counter.wrapping_add(at as u64) as u128));
            let (total, column) = (sums.total.as_mut_ptr().add(at), sums.columns.as_mut_ptr().add(at));
            let one = stream(run.keys.get_unchecked(1 - run.first), counter);
            let (mut all, mut by) = (load::<V, 1>(total), given::<V, 1>(sums, 0, at));
            add_to(&mut all, &one);
            add_to(&mut by, &one);
            if run.first == 0 {
                add_to(&mut all, &stream(run.keys.get_unchecked(0), counter));
            }
            store(all, total);
            store(by, column);
        }
    }

    /// # Safety
    /// As for [`chunk`].
    #[inline(always)]
    unsafe fn all<V: Vector, const BITS: usize, const N: usize>(run: &Run<'_>, sums: &mut Sums<'_>) {
        let (len, mut at) = (sums.total.len(), 0);
        // SAFETY: passed on to the caller; each step stays below the length.
        unsafe {
            while len - at >= N * V::LANES {
                chunk::<V, BITS, N>(run, sums, at);
                at += N * V::LANES;
            }
            while len - at >= V::LANES {
                chunk::<V, BITS, 1>(run, sums, at);
                at += V::LANES;
            }
            while at < len {
                chunk::<V128, BITS, 1>(run, sums, at);
                at += 1;
            }
        }
    }

    macro_rules! entry_points {
        ($module:ident, $vector:ty, $features:literal, $few:literal, $many:literal) => {
            pub(super) mod $module {
                use super::*;

                /// # Safety
                /// As for [`chunk`], of numbers with `bits` bits.
                #[target_feature(enable = $features)]
                pub(crate) unsafe fn add(run: &Run<'_>, bits: usize, sums: &mut Sums<'_>) {
                    // SAFETY: this function's features are the vector's; the rest is the caller's.
                    unsafe {
                        match bits {
                            1 => (0..sums.total.len()).for_each(|at| pair::<V128>(run, sums, at)),
                            2 => all::<$vector, 2, $few>(run, sums),
                            3 => all::<$vector, 3, $few>(run, sums),
                            4 => all::<$vector, 4, $few>(run, sums),
                            5 => all::<$vector, 5, $many>(run, sums),
                            6 => all::<$vector, 6, $many>(run, sums),
                            7 => all::<$vector, 7, $many>(run, sums),
                            _ => all::<$vector, 8, $many>(run, sums),
                        }
                    }
                }
            }
        };
    }
    // The last two numbers are vectors in flight: as many as leave their sums in registers.
    entry_points!(wide128, V128, "sse2,ssse3,sse4.1,aes,pclmulqdq", 2, 1);
    entry_points!(wide256, V256, "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq", 2, 1);
    entry_points!(
        wide512,
        V512,
        "sse2,ssse3,sse4.1,aes,pclmulqdq,avx2,vaes,vpclmulqdq,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,gfni",
        4,
        2
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn every_backend_adds_the_streams_that_each_bit_names() {
        let mut prg = Prg::from_seed(Block::new(6));
        for (bits, first, len) in [
            (1, 0, 5),
            (1, 1, 3),
            (2, 0, 64),
            (3, 1, 63),
            (4, 0, 17),
            (5, 1, 9),
            (6, 0, 5),
            (7, 1, 18),
            (8, 0, 9),
            (8, 1, 37),
        ] {
            let seeds: Vec<Block> = (first..1 << bits).map(|_| prg.block()).collect();
            let keys: Vec<_> = seeds.iter().map(|seed| aes::expand(Backend::PORTABLE, *seed)).collect();
            let (stride, counter) = (len + 3, u64::MAX - 20);
            let mut before = vec![Block::ZERO; bits * stride + len];
            prg.fill_blocks(&mut before);
            let (mut blocks, mut masks) = (vec![Block::ZERO; len], vec![Block::ZERO; bits]);
            prg.fill_blocks(&mut blocks);
            masks.iter_mut().for_each(|mask| *mask = Block::mask(prg.bit()));
            let given = prg.bit().then_some((&blocks[..], &masks[..]));
            let mut expected = before.clone();
            for (bit, i) in (0..bits).flat_map(|bit| (0..len).map(move |i| (bit, i))) {
                expected[bit * stride + i] =
                    if given.is_some() { blocks[i] & masks[bit] } else { Block::ZERO };
            }
            for (x, seed) in (first..).zip(&seeds) {
                let mut stream = Prg::from_seed(*seed);
                stream.skip(counter as usize);
                for i in 0..len {
                    let block = stream.block();
                    expected[bits * stride + i] ^= block;
                    (0..bits)
                        .filter(|bit| x >> bit & 1 == 1)
                        .for_each(|bit| expected[bit * stride + i] ^= block);
                }
            }
            for backend in Backend::available() {
                let mut found = before.clone();
                let (columns, total) = found.split_at_mut(bits * stride);
                add(backend, &keys, bits, first, counter, &mut Sums { total, columns, given, stride });
                assert!(found == expected, "{} with {bits} bits", backend.name());
            }
        }
    }
}
