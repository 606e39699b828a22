//! Every kernel on every backend of this processor against the definitions, on random input and all edge
//! sizes.

use crate::common::{self, SIZES, blocks, hex};
use proptest::prelude::*;
use tacit_crypto::simd::{self, Backend, Feature, Level, SelectError};
use tacit_crypto::{Block, Prg, aes::Aes128, gf128, hash::Mitccrh, transpose};

#[test]
fn selection_follows_the_name_or_says_why_not() {
    assert_eq!(simd::select("portable").unwrap().level(), Level::Portable);
    assert_eq!(simd::select("").unwrap(), Backend::best());
    assert_eq!(simd::select("avx1024"), Err(SelectError::Unknown("avx1024".into())));
    for level in Level::ALL {
        match Backend::detect(level) {
            Some(backend) => assert_eq!(simd::select(level.name()), Ok(backend)),
            None => {
                let wanted = SelectError::Unavailable { wanted: level, best: Backend::best().level() };
                assert_eq!(simd::select(level.name()), Err(wanted));
            }
        }
    }
    assert!(Backend::available().contains(&Backend::active()));
}

/// The switches, one by one and together, choose the code that they say.
#[test]
fn a_feature_can_be_done_without() {
    let kernel = |value: &str, name: &str| {
        let all = simd::select(value).unwrap().kernels();
        all.into_iter().find(|(kernel, _)| *kernel == name).map(|(_, which)| which).unwrap()
    };
    for feature in Feature::ALL {
        let without = simd::select(&format!("-{}", feature.name())).unwrap();
        assert!(without.level() <= Backend::best().level());
        if feature.is_detected() && *feature != Feature::Avx512ifma {
            assert!(without != Backend::best() || Backend::best().level() == Level::Portable);
        }
    }
    assert_eq!(kernel("-aes", "aes"), "fixsliced AES");
    assert_eq!(simd::select("-sse2,-avx512ifma"), Ok(Backend::PORTABLE));
    if Backend::detect(Level::Avx2).is_some() {
        assert_eq!(simd::select("avx2,-vaes").unwrap().name(), "avx2,-vaes");
        assert_eq!((kernel("avx2,-vaes", "aes"), kernel("-avx2", "aes")), ("AES-NI", "AES-NI"));
        assert_eq!(kernel("avx2, -vpclmulqdq", "gf128"), "PCLMULQDQ");
        assert_eq!(kernel("avx2,-vaes", "transpose"), "AVX2 unpack");
    }
    if Backend::detect(Level::Avx512).is_some() {
        assert_eq!(kernel("-gfni", "aes"), "VAES-256");
        assert_eq!(kernel("-gfni", "gf256"), "AVX2 shuffles");
        assert_eq!(kernel("-avx512ifma", "ristretto"), "curve25519-dalek");
        assert_eq!(kernel("-avx512ifma", "aes"), "VAES-512");
        assert_eq!(
            simd::select("avx512,-vaes"),
            Err(SelectError::Unavailable { wanted: Level::Avx512, best: Level::Avx2 })
        );
    }
    for value in ["-avx1024", "avx2,aesni", "vaes", "-"] {
        assert_eq!(simd::select(value), Err(SelectError::Unknown(value.into())));
    }
    for backend in Backend::available() {
        assert_eq!(simd::select(backend.name()).map(Backend::kernels), Ok(backend.kernels()));
    }
}

/// The variable itself, read by a process of its own.
#[test]
fn the_environment_chooses() {
    const CHILD: &str = "TACIT_TEST_PRINT_BACKEND";
    if std::env::var_os(CHILD).is_some() {
        return println!("active: {}", Backend::active().name());
    }
    for backend in Backend::available() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "backends::the_environment_chooses", "--nocapture"])
            .env(CHILD, "1")
            .env("TACIT_SIMD", backend.name())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(said.contains(&format!("active: {}\n", backend.name())), "{said}");
    }
}

#[test]
fn fixed_key_kernels_at_every_size() {
    let key = blocks(1, 1)[0];
    for n in SIZES {
        let input = blocks(2 + n as u64, n);
        let encrypted: Vec<Block> = input.iter().map(|&x| common::aes128(key, x)).collect();
        let hashed: Vec<Block> = input.iter().map(|&x| common::ccr(x)).collect();
        let first = 1000u64;
        let counted: Vec<Block> =
            (0..n as u64).map(|i| common::aes128(key, Block::new((first + i) as u128))).collect();
        for backend in Backend::available() {
            let keys = simd::aes::expand(backend, key);
            let pi = simd::aes::expand(backend, Block::ZERO);
            let name = format!("{} {n}", backend.name());
            let mut out = input.clone();
            simd::aes::encrypt_blocks(backend, &keys, &mut out);
            assert_eq!(hex(&out), hex(&encrypted), "encrypt {name}");
            simd::aes::counter(backend, &keys, first, &mut out);
            assert_eq!(hex(&out), hex(&counted), "counter {name}");
            simd::aes::counter_xor(backend, &keys, first, &mut out);
            assert_eq!(hex(&out), hex(&vec![Block::ZERO; n]), "counter_xor {name}");
            simd::aes::ccr(backend, &pi, &input, &mut out);
            assert_eq!(hex(&out), hex(&hashed), "ccr {name}");
            out.copy_from_slice(&input);
            simd::aes::ccr_in_place(backend, &pi, &mut out);
            assert_eq!(hex(&out), hex(&hashed), "ccr in place {name}");
        }
    }
}

#[test]
fn tccr_tweaks_carry_over_64_and_128_bits() {
    let n = 75;
    let input = blocks(9, n);
    for first in [0, 7, u64::MAX as u128 - 40, (5 << 64) - 1, u128::MAX - 33] {
        let expected: Vec<Block> = (input.iter().enumerate())
            .map(|(i, &x)| common::tccr(x, first.wrapping_add(i as u128)))
            .collect();
        for backend in Backend::available() {
            let mut out = input.clone();
            simd::aes::tccr(backend, &simd::aes::expand(backend, Block::ZERO), &mut out, first);
            assert_eq!(hex(&out), hex(&expected), "{} from {first:x}", backend.name());
        }
    }
}

#[test]
fn mitccrh_with_any_number_of_blocks_a_gid() {
    let start = blocks(3, 1)[0];
    for per_gid in [1, 2, 3, 4, 5, 8, 9] {
        for groups in [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33] {
            // Two blocks more than whole groups make, where a group holds more than two.
            let n = groups * per_gid + if per_gid > 2 { 2 } else { 0 };
            let input = blocks(n as u64, n);
            let first = u64::MAX - 5;
            let expected: Vec<Block> = (input.iter().enumerate())
                .map(|(i, &x)| common::mitccrh(start, first.wrapping_add((i / per_gid) as u64), x))
                .collect();
            for backend in Backend::available() {
                let name = format!("{} {per_gid} x {groups}", backend.name());
                let mut out = input.clone();
                simd::aes::mitccrh(backend, start, first, per_gid, &mut out);
                assert_eq!(hex(&out), hex(&expected), "{name}");
            }
        }
    }
}

#[test]
fn pads_of_random_ots_on_both_sides() {
    let (start, delta) = (blocks(4, 1)[0], blocks(5, 1)[0]);
    for n in SIZES {
        let v = blocks(6, n);
        let first = 77;
        let expected: Vec<[Block; 2]> = (v.iter().enumerate())
            .map(|(i, &x)| [x, x ^ delta].map(|x| common::mitccrh(start, first + i as u64, x)))
            .collect();
        for backend in Backend::available() {
            let mut pairs = vec![[Block::ONES; 2]; n];
            simd::aes::cot_sender(backend, start, first, delta, &v, &mut pairs);
            assert_eq!(hex(pairs.as_flattened()), hex(expected.as_flattened()), "{} {n}", backend.name());
            let mut single = vec![Block::ONES; n];
            simd::aes::cot_receiver(backend, start, first, &v, &mut single);
            assert!(single.iter().zip(&expected).all(|(s, e)| *s == e[0]), "{} {n}", backend.name());
        }
    }
}

#[test]
fn the_public_hash_agrees_with_its_parts() {
    let hash = Mitccrh::new(blocks(7, 1)[0]);
    let (delta, v) = (blocks(8, 1)[0], blocks(9, 10));
    let mut pairs = vec![[Block::ZERO; 2]; 10];
    hash.cot_to_rot_sender(3, delta, &v, &mut pairs);
    for (i, pair) in pairs.iter().enumerate() {
        assert_eq!(hash.hash(3 + i as u64, v[i]), pair[0]);
        assert_eq!(hash.hash(3 + i as u64, v[i] ^ delta), pair[1]);
    }
}

#[test]
fn a_stream_is_the_same_however_it_is_drawn() {
    let seed = blocks(10, 1)[0];
    let mut whole = vec![Block::ZERO; 300];
    Prg::from_seed(seed).fill_blocks(&mut whole);
    assert_eq!(whole[299], Aes128::new(seed).encrypt(Block::new(299)));
    let mut prg = Prg::from_seed(seed);
    let mut at = 0;
    for n in [1, 0, 2, 31, 33, 64, 100, 69] {
        let mut part = vec![Block::ZERO; n];
        prg.fill_blocks(&mut part);
        assert_eq!(hex(&part), hex(&whole[at..at + n]));
        at += n;
    }
    let mut twice = whole.clone();
    Prg::from_seed(seed).xor_blocks(&mut twice);
    assert!(twice.iter().all(|b| *b == Block::ZERO));
    let mut bytes = vec![0; 4999];
    Prg::from_seed(seed).fill_bytes(&mut bytes);
    assert_eq!(bytes[..4800], *Block::as_bytes(&whole));
}

fn naive_inner_product(a: &[Block], b: &[Block]) -> Block {
    a.iter().zip(b).fold(Block::ZERO, |sum, (&a, &b)| sum ^ common::gf128_mul(a, b))
}

#[test]
fn products_of_extreme_elements() {
    let edges = [0, 1, 2, 1 << 63, 1 << 64, 1 << 127, u64::MAX as u128, (u64::MAX as u128) << 64, u128::MAX];
    for a in edges.map(Block::new) {
        for b in edges.map(Block::new) {
            for backend in Backend::available() {
                let product = simd::gf128::mul(backend, a, b);
                assert_eq!(product.to_hex(), common::gf128_mul(a, b).to_hex(), "{}", backend.name());
            }
        }
    }
}

#[test]
fn field_kernels_at_every_size() {
    let factor = blocks(20, 1)[0];
    for n in SIZES {
        let (a, b) = (blocks(21, n), blocks(22, n));
        let mut power = Block::ONE;
        let powers: Vec<Block> = (0..n)
            .map(|_| {
                power = common::gf128_mul(power, factor);
                power
            })
            .collect();
        let scaled: Vec<Block> = a.iter().map(|&a| common::gf128_mul(a, factor)).collect();
        let added: Vec<Block> = b.iter().zip(&scaled).map(|(&b, &s)| b ^ s).collect();
        for backend in Backend::available() {
            let name = format!("{} {n}", backend.name());
            let sum = simd::gf128::reduce(simd::gf128::accumulate(backend, &a, &b));
            assert_eq!(sum.to_hex(), naive_inner_product(&a, &b).to_hex(), "inner product {name}");
            let mut out = vec![Block::ONES; n];
            simd::gf128::powers(backend, factor, &mut out);
            assert_eq!(hex(&out), hex(&powers), "powers {name}");
            let mut out = a.clone();
            simd::gf128::scale(backend, &mut out, factor);
            assert_eq!(hex(&out), hex(&scaled), "scale {name}");
            let mut out = b.clone();
            simd::gf128::multiply_add(backend, &mut out, &a, factor);
            assert_eq!(hex(&out), hex(&added), "multiply_add {name}");
            let mut out = a.clone();
            simd::gf128::multiply_each(backend, &mut out, &b);
            let products: Vec<Block> = a.iter().zip(&b).map(|(&a, &b)| common::gf128_mul(a, b)).collect();
            assert_eq!(hex(&out), hex(&products), "multiply_each {name}");
        }
    }
}

#[test]
fn monomials_are_the_products_of_subsets() {
    for n in 0..=7 {
        let variables = blocks(27, n);
        let product = |q: usize| {
            let chosen = (0..n).filter(|i| q >> i & 1 == 1);
            chosen.fold(Block::ONE, |product, i| common::gf128_mul(product, variables[i]))
        };
        let expected: Vec<Block> = (0..1 << n).map(product).collect();
        for backend in Backend::available() {
            let mut out = vec![Block::ZERO; 1 << n];
            simd::gf128::monomials(backend, &variables, &mut out);
            assert_eq!(hex(&out), hex(&expected), "{} {n}", backend.name());
        }
        assert_eq!(hex(&tacit_crypto::gf128::monomials(&variables)), hex(&expected));
    }
}

#[test]
fn sums_of_columns_piece_by_piece() {
    let (columns, stride, len) = (130, 23, 21);
    let matrix = blocks(23, columns * stride);
    let weights = blocks(24, len);
    let expected: Vec<Block> =
        matrix.chunks(stride).map(|column| naive_inner_product(&column[..len], &weights)).collect();
    for backend in Backend::available() {
        let mut sums = vec![[Block::ZERO; 3]; columns];
        simd::gf128::accumulate_columns(backend, &matrix, stride, &weights, &mut sums);
        let sums: Vec<Block> = sums.into_iter().map(simd::gf128::reduce).collect();
        assert_eq!(hex(&sums), hex(&expected), "{}", backend.name());
    }
    let mut pieces = gf128::ColumnSums::new(columns);
    let mut single = gf128::Accumulator::new();
    for (at, size) in [(0, 1), (1, 4), (5, 0), (5, 16)] {
        pieces.add(&matrix[at..], stride, &weights[at..at + size]);
        single.add(&matrix[at..at + size], &weights[at..at + size]);
    }
    assert_eq!(hex(&pieces.finish()), hex(&expected));
    assert_eq!(single.finish(), expected[0]);
}

#[test]
#[should_panic(expected = "columns too short")]
fn sums_of_columns_refuse_a_short_matrix() {
    gf128::ColumnSums::new(128).add(&blocks(1, 128 * 5 - 1), 5, &[Block::ONE; 5]);
}

/// Bit `j` of the column that starts at `columns[start]`.
fn column_bit(columns: &[Block], start: usize, j: usize) -> bool {
    columns[start + j / 128].bit(j % 128)
}

#[test]
fn transpose_of_tiles_at_any_distance() {
    for (from, to) in [([1, 128], [3, 1]), ([3, 1], [1, 128]), ([5, 1], [2, 256]), ([1, 130], [1, 128])] {
        for count in [0, 1, 2, 3] {
            let input = blocks(count as u64, 128 * from[0] + 3 * from[1]);
            let before = vec![Block::ONES; 128 * to[0] + 3 * to[1]];
            let mut expected = before.clone();
            for tile in 0..count {
                for j in 0..128 {
                    let bits = (0..128)
                        .fold(0, |acc, i| acc | (input[tile * from[1] + i * from[0]].bit(j) as u128) << i);
                    expected[tile * to[1] + j * to[0]] = Block::new(bits);
                }
            }
            for backend in Backend::available() {
                let mut out = before.clone();
                simd::transpose::tiles(backend, &input, from, &mut out, to, count);
                assert_eq!(hex(&out), hex(&expected), "{} {from:?} {to:?} {count}", backend.name());
            }
        }
    }
}

#[test]
#[should_panic(expected = "input too short")]
fn transpose_refuses_tiles_outside_the_input() {
    simd::transpose::tiles(
        Backend::active(),
        &[Block::ZERO; 255],
        [2, 1],
        &mut [Block::ZERO; 256],
        [1, 128],
        2,
    );
}

#[test]
fn transpose_of_any_number_of_rows_and_back() {
    for n in SIZES.into_iter().chain([1000, 1024, 2500]) {
        for width in [1, 6] {
            let stride = n.div_ceil(128) + n % 3;
            let columns = blocks(n as u64, 128 * stride * width);
            let mut rows = vec![Block::ONES; n * width];
            transpose::columns_to_wide_rows(&columns, stride, width, &mut rows);
            for (j, row) in rows.chunks(width).enumerate() {
                for i in 0..128 * width {
                    assert_eq!(row[i / 128].bit(i % 128), column_bit(&columns, i * stride, j), "{n} {i} {j}");
                }
            }
            if width == 1 {
                let mut back = vec![Block::ONES; columns.len()];
                transpose::rows_to_columns(&rows, &mut back, stride);
                for (column, old) in back.chunks(stride.max(1)).zip(columns.chunks(stride.max(1))) {
                    for j in 0..n.next_multiple_of(128) {
                        assert_eq!(column_bit(column, 0, j), j < n && column_bit(old, 0, j));
                    }
                    assert!(column[n.div_ceil(128)..].iter().all(|b| *b == Block::ONES));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_keys_and_blocks(seed: u64, n in 0usize..200) {
        let (keys, input) = (blocks(seed, n), blocks(!seed, n));
        let expected: Vec<Block> = keys.iter().zip(&input).map(|(&k, &x)| common::aes128(k, x)).collect();
        for backend in Backend::available() {
            let mut out = input.clone();
            simd::aes::rekeyed(backend, &keys, &mut out);
            prop_assert_eq!(hex(&out), hex(&expected), "{}", backend.name());
        }
    }

    #[test]
    fn field_laws(seed: u64) {
        let [a, b, c] = blocks(seed, 3)[..] else { unreachable!() };
        prop_assert_eq!(gf128::mul(a, b), gf128::mul(b, a));
        prop_assert_eq!(gf128::mul(a ^ b, c), gf128::mul(a, c) ^ gf128::mul(b, c));
        prop_assert_eq!(gf128::mul(gf128::mul(a, b), c), gf128::mul(a, gf128::mul(b, c)));
        for backend in Backend::available() {
            prop_assert_eq!(simd::gf128::mul(backend, a, b), common::gf128_mul(a, b));
        }
    }
}
