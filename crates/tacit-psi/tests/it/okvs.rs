//! The PaXoS key-value store: right on every key, random elsewhere, and as unlikely to fail as its docs say.

use proptest::prelude::*;
use tacit_crypto::{Block, Prg};
use tacit_psi::{
    Error,
    okvs::paxos::{DENSE, Decoder, Shape},
};

fn keys(n: usize, prg: &mut Prg) -> Vec<Block> {
    let mut keys = vec![Block::ZERO; n];
    prg.fill_blocks(&mut keys);
    keys
}

fn values<const W: usize>(n: usize, prg: &mut Prg) -> Vec<[Block; W]> {
    let mut values = vec![[Block::ZERO; W]; n];
    prg.fill_blocks(values.as_flattened_mut());
    values
}

fn holds<const W: usize>(shape: Shape, seed: u128) {
    let mut prg = Prg::from_seed(Block::new(seed));
    let (keys, values) = (keys(shape.keys(), &mut prg), values::<W>(shape.keys(), &mut prg));
    let table = shape.encode(&keys, |i| values[i], &mut prg).unwrap();
    assert_eq!(table.len(), shape.slots());
    let decoder = Decoder::new(shape, &table).unwrap();
    for (key, value) in keys.iter().zip(&values) {
        assert!(decoder.get(*key) == *value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_key_gets_its_value(n in 0usize..600, seed: u128) {
        holds::<2>(Shape::paper(n).unwrap(), seed);
        holds::<1>(Shape::compact(n).unwrap(), seed);
    }

    #[test]
    fn decoding_is_linear(n in 1usize..80, seed: u128) {
        let shape = Shape::for_keys(n).unwrap();
        let mut prg = Prg::from_seed(Block::new(seed));
        let (one, two) = (values::<3>(shape.slots(), &mut prg), values::<3>(shape.slots(), &mut prg));
        let sum: Vec<[Block; 3]> =
            one.iter().zip(&two).map(|(a, b)| core::array::from_fn(|w| a[w] ^ b[w])).collect();
        let [one, two, sum] = [&one, &two, &sum].map(|table| Decoder::new(shape, table).unwrap());
        for key in keys(20, &mut prg) {
            let (a, b) = (one.get(key), two.get(key));
            let expected: [Block; 3] = core::array::from_fn(|w| a[w] ^ b[w]);
            prop_assert!(sum.get(key) == expected);
        }
    }

    #[test]
    fn a_duplicate_key_is_refused(n in 2usize..400, at: prop::sample::Index, seed: u128) {
        let mut prg = Prg::from_seed(Block::new(seed));
        let mut keys = keys(n, &mut prg);
        let at = at.index(n - 1);
        keys[n - 1] = keys[at];
        let encoded = Shape::for_keys(n).unwrap().encode(&keys, |i| [Block::new(i as u128)], &mut prg);
        prop_assert!(matches!(encoded, Err(Error::DuplicateElement)));
    }
}

#[test]
fn large_sets_in_the_compact_shape() {
    holds::<2>(Shape::for_keys(1 << 17).unwrap(), 1);
    holds::<2>(Shape::for_keys(300_001).unwrap(), 2);
}

#[test]
fn the_papers_shape_at_2048_keys() {
    let shape = Shape::for_keys(2048).unwrap();
    assert_eq!((shape.side(), shape.slots()), (2549, 2 * 2549 + 60));
}

#[test]
fn lengths_are_checked() {
    let shape = Shape::for_keys(3).unwrap();
    let mut prg = Prg::from_seed(Block::ONE);
    let two = keys(2, &mut prg);
    assert!(matches!(shape.encode(&two, |_| [Block::ZERO], &mut prg), Err(Error::Usage(_))));
    assert!(Decoder::new(shape, &[[Block::ZERO]; 3]).is_err());
    assert!(matches!(Shape::for_keys(usize::MAX), Err(Error::TooManyElements { .. })));
}

/// The table must be uniform among the solutions: over many encodings of one set, every bit of every slot is
/// balanced, and so is what an absent key decodes to.
#[test]
fn free_slots_are_random() {
    let (n, runs) = (24, 2000);
    let mut prg = Prg::from_seed(Block::new(77));
    let shape = Shape::paper(n).unwrap();
    let (keys, absent) = (keys(n, &mut prg), Block::new(0x1234_5678_9abc << 50));
    let mut ones = vec![0u32; 128 * (shape.slots() + 1)];
    for _ in 0..runs {
        let table = shape.encode(&keys, |_| [Block::ONES], &mut prg).unwrap();
        let other = Decoder::new(shape, &table).unwrap().get(absent);
        for (i, slot) in table.iter().chain([&other]).enumerate() {
            for bit in 0..128 {
                ones[128 * i + bit] += slot[0].bit(bit) as u32;
            }
        }
    }
    // Standard deviation √2000/2 = 22.4; 7 of them over 16,000 counters: false alarm below 2^-24.
    for count in ones {
        assert!(count.abs_diff(runs / 2) < 157, "{count} ones of {runs}");
    }
}

/// ln Γ(x + 1) by Stirling's series, which is below the true value by less than 1e-9 for x ≥ 8.
fn ln_factorial(x: f64) -> f64 {
    if x < 8.0 {
        return (2..=x as u64).map(|i| (i as f64).ln()).sum();
    }
    x * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI * x).ln() + 1.0 / (12.0 * x)
        - 1.0 / (360.0 * x.powi(3))
        + 1.0 / (1260.0 * x.powi(5))
}

/// log2 of Σ_{j even} C(n, j)·p_j²·(1 + side²/2^64)^j, with p_j ≤ j!·cosh(x)^s / (s·x)^j for the x that
/// minimises it (p_j = j!·[x^j] cosh(x)^s / s^j, and all coefficients of cosh are ≥ 0).
fn log2_expected_dependencies(shape: Shape) -> f64 {
    let (n, s) = (shape.keys() as f64, shape.side() as f64);
    let skew = (s * s / 2f64.powi(64)).ln_1p();
    let (mut sum, mut x) = (0f64, (2.0 / s).sqrt());
    let mut j = 2f64;
    while j <= n {
        let y = j / s;
        for _ in 0..4 {
            let t = x.tanh();
            x = (x - (x * t - y) / (t + x * (1.0 - t * t))).max(1e-9);
        }
        let ln_cosh = x + (-2.0 * x).exp().ln_1p() - 2f64.ln();
        let ln_even = (ln_factorial(j) + s * ln_cosh - j * (s * x).ln()).min(0.0);
        let ln_choose = ln_factorial(n) - ln_factorial(j) - ln_factorial(n - j);
        sum += (ln_choose + 2.0 * ln_even + j * skew).exp();
        j += 2.0;
    }
    sum.log2()
}

#[test]
fn failure_stays_below_two_to_the_minus_40() {
    for n in (2..200).chain([256, 1000, 2048, 4095, 4096]) {
        let bound = log2_expected_dependencies(Shape::paper(n).unwrap()) - DENSE as f64;
        assert!(bound < -56.0, "paper, {n}: {bound}");
    }
    for n in [4097, 10_000, 1 << 16, 1_000_003, 1 << 20, 1 << 22, 1 << 24] {
        let bound = log2_expected_dependencies(Shape::for_keys(n).unwrap()) - DENSE as f64;
        assert!(bound < -51.0, "compact, {n}: {bound}");
    }
}

/// The bound against the graph itself: the number of cycle-space elements of sampled graphs, 2^(edges −
/// rank), averages below the bound. Counted from outside, by union–find over the same addresses that decoding
/// reveals.
#[test]
fn sampled_graphs_obey_the_bound() {
    for (n, runs) in [(64, 4000), (2048, 400), (20_000, 60)] {
        let shape = Shape::for_keys(n).unwrap();
        let mut prg = Prg::from_seed(Block::new(n as u128));
        let (mut total, mut most) = (0f64, 0u32);
        for _ in 0..runs {
            let mut parent: Vec<u32> = (0..2 * shape.side() as u32).collect();
            let mut cycles = 0u32;
            for key in keys(n, &mut prg) {
                let (left, right) = addresses(shape, key);
                let (a, b) = (root(&mut parent, left), root(&mut parent, right));
                if a == b {
                    cycles += 1;
                } else {
                    parent[a as usize] = b;
                }
            }
            total += 2f64.powi(cycles as i32);
            most = most.max(cycles);
        }
        let bound = 1.0 + log2_expected_dependencies(shape).exp2();
        assert!(total / runs as f64 <= bound, "{n}: mean {} over {bound}", total / runs as f64);
        assert!(most <= 20, "{n}: {most} cycles");
    }
}

/// The two sparse slots of a key, found by decoding tables that hold one set bit a slot.
fn addresses(shape: Shape, key: Block) -> (u32, u32) {
    let side = shape.side() as u128;
    let scaled = key.high() as u128 * side;
    (((scaled >> 64) as u32), (((scaled as u64 as u128) * side) >> 64) as u32 + shape.side() as u32)
}

fn root(parent: &mut [u32], mut vertex: u32) -> u32 {
    while parent[vertex as usize] != vertex {
        parent[vertex as usize] = parent[parent[vertex as usize] as usize];
        vertex = parent[vertex as usize];
    }
    vertex
}

/// The addresses used above are the store's own.
#[test]
fn addresses_match_decoding() {
    let shape = Shape::for_keys(50).unwrap();
    let table: Vec<[Block; 1]> = (0..shape.slots()).map(|i| [Block::new(1u128 << (i % 128))]).collect();
    let mut prg = Prg::from_seed(Block::new(5));
    for key in keys(200, &mut prg) {
        let key = Block::from_halves(0, key.high());
        let (left, right) = addresses(shape, key);
        let expected = table[left as usize][0] ^ table[right as usize][0];
        assert!(Decoder::new(shape, &table).unwrap().get(key)[0] == expected);
    }
}
