//! One table of every kernel, run on every backend against the portable twin.

use super::*;
use crate::group::{Points, Scalars};
use crate::ring::{Poly, RING_512_13313};
use crate::{Block, Prg};

/// What a kernel makes of random input of a length, on a backend.
type Case = fn(Backend, &mut Prg, usize) -> Vec<u8>;

fn blocks(prg: &mut Prg, n: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    prg.fill_blocks(&mut out);
    out
}

fn bytes(blocks: &[Block]) -> Vec<u8> {
    Block::as_bytes(blocks).to_vec()
}

fn round_keys(prg: &mut Prg) -> [Block; 11] {
    aes::expand(Backend::PORTABLE, prg.block())
}

/// Every kernel that [`Backend::kernels`] lists, in its order.
const CASES: [(&str, Case); 17] = [
    ("accumulate", |backend, prg, n| {
        let keys = core::array::from_fn(|_| prg.u64() as u32);
        let mut images = vec![0; n];
        let feistel = accumulate::Feistel { a: 1500, log_b: 11, keys };
        accumulate::images(backend, &feistel, n as u32, &mut images);
        let matrix = core::array::from_fn(|_| prg.u64());
        let (mut input, mut out) = ([Block::ZERO; accumulate::SIGMA], [Block::ONES; accumulate::SIGMA]);
        prg.fill_blocks(&mut input);
        accumulate::add_product(backend, &matrix, &input, &mut out);
        [bytes(&out), images.into_iter().flat_map(u32::to_le_bytes).collect()].concat()
    }),
    ("aes", |backend, prg, n| {
        let (keys, mut out, first) = (round_keys(prg), blocks(prg, n), prg.u64());
        aes::encrypt_blocks(backend, &keys, &mut out);
        aes::counter_xor(backend, &keys, first, &mut out);
        aes::mitccrh(backend, keys[0], first, 3, &mut out);
        bytes(&out)
    }),
    ("blake3", |backend, prg, n| {
        let (mut key, mut messages, mut out) = ([0; 32], vec![[0; 64]; n], vec![[0; 32]; n]);
        prg.fill_bytes(&mut key);
        prg.fill_bytes(messages.as_flattened_mut());
        blake3::keyed(backend, &key, 64, &messages, &mut out);
        out.concat()
    }),
    ("gf128", |backend, prg, n| {
        let (mut a, b, factor) = (blocks(prg, n), blocks(prg, n), prg.block());
        gf128::multiply_add(backend, &mut a, &b, factor);
        gf128::multiply_each(backend, &mut a, &b);
        let sum = gf128::reduce(gf128::accumulate(backend, &a, &b));
        let mut powers = vec![Block::ZERO; n];
        gf128::powers(backend, sum, &mut powers);
        [bytes(&a), bytes(&powers)].concat()
    }),
    ("gf256", |backend, prg, n| {
        let mut entries = vec![0; 3 * 5];
        prg.fill_bytes(&mut entries);
        let (input, mut out) = (blocks(prg, 5 * n), vec![Block::ONES; 3 * n]);
        crate::gf256::Matrix::new(3, entries).apply_on(backend, &input, &mut out);
        bytes(&out)
    }),
    ("gf2x", |backend, prg, n| {
        let (twiddles, coset) = (gf2x::Twiddles::new(), gf2x::Coset::new(n));
        let (mut data, values) = (blocks(prg, 256), blocks(prg, 64));
        gf2x::forward(backend, &mut data, &twiddles, &coset);
        gf2x::multiply(backend, &mut data, &values);
        gf2x::inverse(backend, &mut data, &twiddles, &coset);
        let (mut left, right) = (blocks(prg, n), blocks(prg, n));
        gf2x::add_product(backend, &mut left, &right, &gf2x::factor(n));
        [bytes(&data), bytes(&left)].concat()
    }),
    ("ggm", |backend, prg, n| {
        let (keys, lines) = (round_keys(prg), n.next_power_of_two());
        let mut nodes = blocks(prg, 2 * lines * ggm::LANES);
        let (mut sums, mut moments) = ([Block::ZERO; ggm::LANES], [Block::ZERO; ggm::LANES]);
        ggm::level(backend, &keys, &mut nodes, lines, ggm::LANES, None, &mut sums);
        ggm::moments(backend, &nodes, lines, ggm::LANES, &mut moments);
        ggm::lines(backend, &keys, None, &mut nodes, lines, None, ggm::Children::Leaves(None));
        [bytes(&nodes), bytes(&sums), bytes(&moments)].concat()
    }),
    ("halfgates", |backend, prg, n| {
        let (starts, deltas) = (blocks(prg, n), blocks(prg, n));
        let (mut labels, mut tables) = (blocks(prg, 4 * n), vec![[Block::ZERO; 2]; n]);
        let ops = [(0, 1, 2), (2, 1, 3)].map(|(a, b, out)| gates::Op { a, b, out });
        let steps = [gates::Step { xors: 1, ands: 1 }];
        let gates = gates::Gates { steps: &steps, ops: &ops, first: 7 };
        halfgates::garble(backend, gates, &starts, &deltas, &mut labels, &mut tables);
        let garbled = bytes(&labels);
        halfgates::evaluate(backend, gates, &starts, &mut labels, &tables);
        [garbled, bytes(&labels), bytes(tables.as_flattened())].concat()
    }),
    ("leaves", |backend, prg, n| {
        let keys: Vec<_> = (0..15).map(|_| round_keys(prg)).collect();
        let (mut total, mut columns, counter) = (blocks(prg, n), blocks(prg, 4 * n), prg.u64());
        let (given, masks) = (blocks(prg, n), blocks(prg, 4));
        let given = (n % 2 == 1).then_some((&given[..], &masks[..]));
        let mut sums = leaves::Sums { total: &mut total, columns: &mut columns, given, stride: n };
        leaves::add(backend, &keys, 4, 1, counter, &mut sums);
        [bytes(&total), bytes(&columns)].concat()
    }),
    ("lpn", |backend, prg, n| {
        let (keys, secret) = (round_keys(prg), blocks(prg, 4 * 1000));
        let mut indices = lpn::Indices::new(1000);
        indices.draw(backend, &keys, n as u64);
        let mut out = vec![Block::ZERO; 4 * (n % lpn::ROWS)];
        lpn::fold(backend, &indices, 0, &secret, 4, None, &mut out, None);
        bytes(&out)
    }),
    ("lsbs", |backend, prg, n| {
        let (input, mut out) = (blocks(prg, 64 * n), vec![u64::MAX; n]);
        lsbs::pack(backend, &input, &mut out);
        out.into_iter().flat_map(u64::to_le_bytes).collect()
    }),
    #[cfg(target_arch = "x86_64")]
    ("ntt", |backend, prg, _| {
        use super::ntt::{Active, of};
        use super::ntt_portable::Kernels;
        let mut poly: Poly<512> = Poly(core::array::from_fn(|_| prg.below(13313) as i16));
        match of(backend) {
            Active::Portable(kernels) => kernels.forward(&RING_512_13313, &mut poly.0),
            Active::Avx2(kernels) => kernels.forward(&RING_512_13313, &mut poly.0),
            Active::Avx512(kernels) => kernels.forward(&RING_512_13313, &mut poly.0),
        }
        poly.0.iter().flat_map(|x| x.to_le_bytes()).collect()
    }),
    #[cfg(not(target_arch = "x86_64"))]
    ("ntt", |_, prg, _| {
        let mut poly: Poly<512> = Poly(core::array::from_fn(|_| prg.below(13313) as i16));
        RING_512_13313.forward(&mut poly);
        poly.0.iter().flat_map(|x| x.to_le_bytes()).collect()
    }),
    ("ristretto", |backend, prg, n| {
        let n = n % 20;
        let mut uniform = vec![[0; 64]; n];
        prg.fill_bytes(uniform.as_flattened_mut());
        let scalars = Scalars::random(n, prg);
        let points = Points::from_uniform_on(backend, &uniform);
        [points.encode(), Points::mul_base_on(backend, &scalars).encode()].concat().concat()
    }),
    ("route", |backend, prg, n| {
        let (mut from, mut to) = (route::Slots::new(2 * n, n), route::Slots::new(2 * n, n));
        // Items that move by their places' bits and do not meet.
        (0..n).for_each(|i| from.set(i, 1 + i as u32 + (n as u32).next_power_of_two(), prg.block()));
        from.step(backend, 1 << n.ilog2(), &mut to);
        let mut nodes = vec![Block::ZERO; 2 * n];
        to.merge(&mut nodes);
        bytes(&nodes)
    }),
    ("scan", |backend, prg, n| {
        let mut table: Vec<u64> = (0..n).map(|_| prg.u64() >> 1).collect();
        let at = prg.below(n as u64);
        let (picked, known) = (scan::pick(backend, &table, at), table[n / 2]);
        let found = scan::contains(backend, &table, known);
        let swapped = scan::swap(backend, &mut table, at, found >> 1);
        table.extend([picked, found, swapped]);
        table.into_iter().flat_map(u64::to_le_bytes).collect()
    }),
    ("scatter", |backend, prg, n| {
        let width = n.max(scatter::LINE);
        let (mut matrix, mut lines) = (blocks(prg, 6 * width), [[Block::ZERO; scatter::LINE]; 6]);
        prg.fill_blocks(lines.as_flattened_mut());
        let offsets: Vec<u32> = (0..6).map(|_| prg.below(width as u64) as u32).collect();
        scatter::add_lines(backend, &mut matrix, width, width - 1, &offsets, &lines);
        bytes(&matrix)
    }),
    ("transpose", |backend, prg, n| {
        let (input, mut out) = (blocks(prg, 128 * n), vec![Block::ZERO; 128 * n]);
        transpose::tiles(backend, &input, [n, 1], &mut out, [1, 128], n);
        bytes(&out)
    }),
];

#[test]
fn every_kernel_on_every_backend_gives_its_portable_twins_bytes() {
    for backend in Backend::available() {
        let listed = backend.kernels().map(|(name, _)| name);
        assert_eq!(CASES.map(|(name, _)| name), listed, "the table has every kernel");
        for (name, case) in CASES {
            // Lengths that leave rests in vectors of every width; few of them where each step takes a thousand.
            let lengths: &[usize] = if cfg!(miri) { &[3, 17] } else { &[1, 2, 3, 7, 8, 17, 33, 64, 77] };
            for &n in lengths {
                let run = |backend| case(backend, &mut Prg::from_seed(Block::new(n as u128)), n);
                let (found, expected) = (run(backend), run(Backend::PORTABLE));
                assert!(!expected.is_empty() || name == "lpn" || name == "ristretto");
                assert!(found == expected, "{name} on {} differs at {n}", backend.name());
            }
        }
    }
}

#[test]
fn every_file_of_a_kernel_is_in_the_list() {
    // What serves several kernels, or is none.
    const OTHERS: [&str; 11] = [
        "backend",
        "every_kernel",
        "gates",
        "gf2x_tables",
        "hidden",
        "mod",
        "pages",
        "pod",
        "x86",
        "zeroising",
        "ntt",
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/simd");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let kernel =
            ["_portable", "_x86", "_ifma"].iter().fold(&*stem, |name, end| name.trim_end_matches(end));
        let known = CASES.iter().any(|(name, _)| *name == kernel) || OTHERS.contains(&kernel);
        assert!(known, "{} is a kernel that no table lists", path.display());
    }
}
