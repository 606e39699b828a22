//! Half-tree levels and the local code on every backend of this machine against a naive reading of the
//! definition.

use proptest::prelude::*;
use tacit_crypto::aes::Aes128;
use tacit_crypto::ggm::{self, Children, Fix};
use tacit_crypto::lpn::LocalCode;
use tacit_crypto::simd::{Backend, scatter};
use tacit_crypto::{Block, Buffer, Prg, gf128};

fn random(n: usize, seed: u64) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    Prg::from_seed(Block::new(seed as u128)).fill_blocks(&mut out);
    out
}

fn hex(blocks: &[Block]) -> Vec<String> {
    blocks.iter().map(|b| b.to_hex()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn levels(log_n in 0usize..8, wide: bool, fixed: bool, seed: u64) {
        let (n, period) = (1usize << log_n, if wide { 32 } else { 4 });
        let cipher = Aes128::new(Block::new(seed as u128));
        let parents = random(n * period, seed);
        let sibling = random(period, !seed);
        let path: Vec<u64> = random(period, seed ^ 5).iter().map(|b| b.low() % n as u64).collect();
        let top_bit = (n / 2) as u64;
        let fix = (fixed && n > 1).then_some(Fix { path: &path, sibling: &sibling, top_bit });
        let value = |i: usize, p: usize| match &fix {
            Some(_) if path[p] == i as u64 => Block::ZERO,
            Some(_) if path[p] ^ top_bit == i as u64 => sibling[p],
            _ => parents[i * period + p],
        };
        let mut expected = vec![Block::ZERO; 2 * n * period];
        let mut expected_sums = vec![Block::ZERO; period];
        for i in 0..n {
            for p in 0..period {
                let left = ggm::ccr_keyed(&cipher, value(i, p));
                expected[i * period + p] = left;
                expected[(i + n) * period + p] = left ^ value(i, p);
                expected_sums[p] ^= left;
            }
        }
        for backend in Backend::available() {
            let mut nodes = Buffer::zeros(2 * n * period);
            nodes[..n * period].copy_from_slice(&parents);
            let mut sums = vec![Block::ONES; period];
            ggm::expand_level_on(backend, &cipher, &mut nodes, n, period, fix.as_ref(), &mut sums);
            prop_assert_eq!(hex(&nodes), hex(&expected), "{}", backend.name());
            prop_assert_eq!(hex(&sums), hex(&expected_sums), "{}", backend.name());

            let mut leaves = parents.clone();
            let punctured = random(period, seed ^ 9);
            ggm::finish_leaves_on(backend, &mut leaves, n, period, fix.as_ref(), &punctured);
            for i in 0..n {
                for p in 0..period {
                    let on_path = fix.is_some() && path[p] == i as u64;
                    let leaf = if on_path { punctured[p] } else { value(i, p) }.with_lsb(on_path);
                    prop_assert_eq!(leaves[i * period + p].to_hex(), leaf.to_hex());
                }
            }
        }
    }

    #[test]
    fn last_levels(log_n in 0usize..7, fixed: bool, apart: bool, to in 0usize..3, seed: u64) {
        let n = 1usize << log_n;
        let cipher = Aes128::new(Block::new(seed as u128));
        let stride = if apart { 1 + seed as usize % 5 } else { 1 };
        let parents = random(((n - 1) * stride + 1) * 4, seed);
        let line = |seed: u64| -> [Block; 4] { random(4, seed).try_into().unwrap() };
        let (sibling, values) = (line(!seed), [line(seed ^ 7), line(seed ^ 8)]);
        // Some paths pass the nodes by.
        let path = line(seed ^ 3).map(|b| (b.low() % n as u64) | if b.lsb() { 0 } else { 1 << 40 });
        let top_bit = n as u64 / 2;
        let fix = (fixed && n > 1).then_some(Fix { path: &path, sibling: &sibling, top_bit });
        let summed = to >= 1;
        let on_path = |i: usize, p: usize| fix.is_some() && path[p] == i as u64;
        let value = |i: usize, p: usize| match &fix {
            Some(_) if path[p] ^ top_bit == i as u64 => sibling[p],
            Some(_) if path[p] == i as u64 => Block::ZERO,
            _ => parents[4 * i * stride + p],
        };
        let mut expected = vec![Block::ZERO; 8 * n];
        let (mut sums, mut moments) = ([Block::ZERO; 4], [Block::ZERO; 4]);
        for i in 0..n {
            for p in 0..4 {
                let left = ggm::ccr_keyed(&cipher, value(i, p));
                for (side, child) in [left, left ^ value(i, p)].into_iter().enumerate() {
                    let leaf = if on_path(i, p) { values[side][p] } else { child.with_lsb(false) };
                    expected[4 * (i + side * n) + p] = leaf;
                }
                sums[p] ^= left;
                moments[p] ^= gf128::mul(left, Block::new((n + i) as u128));
            }
        }
        for backend in Backend::available() {
            let mut nodes = Buffer::zeros(8 * n);
            if !apart {
                nodes[..4 * n].copy_from_slice(&parents);
            }
            let (mut got_sums, mut got_moments) = ([Block::ONES; 4], [Block::ONES; 4]);
            let children = match to {
                0 => Children::Leaves(fixed.then_some(&values)),
                1 => Children::Summed { sums: &mut got_sums, moments: None },
                _ => Children::Summed { sums: &mut got_sums, moments: Some(&mut got_moments) },
            };
            let from = apart.then_some((&parents[..], stride));
            ggm::expand_last_on(backend, &cipher, from, &mut nodes, n, fix.as_ref(), children);
            if !summed {
                prop_assert_eq!(hex(&nodes), hex(&expected), "{}", backend.name());
            }
            if summed {
                prop_assert_eq!(hex(&got_sums), hex(&sums), "{}", backend.name());
            }
            if to == 2 {
                prop_assert_eq!(hex(&got_moments), hex(&moments), "{}", backend.name());
            }
        }
    }

    #[test]
    fn subtrees(levels in 0usize..6, fixed: bool, seed: u64) {
        let cipher = Aes128::new(Block::new(seed as u128));
        let roots = random(32, seed);
        let siblings: Vec<_> = (0..levels as u64).map(|level| random(32, seed ^ level << 20)).collect();
        let paths: Vec<Vec<u64>> = (0..levels)
            .map(|level| random(32, !seed ^ level as u64).iter().map(|b| b.low() % (2 << level)).collect())
            .collect();
        let top_bit = |level: usize| (1u64 << level) / 2;
        let mut expected = roots.clone();
        for level in 0..levels {
            let mut rights = Vec::new();
            for (i, node) in expected.iter_mut().enumerate() {
                if fixed && paths[level][i % 32] ^ top_bit(level) == i as u64 / 32 {
                    *node = siblings[level][i % 32];
                }
                let left = ggm::ccr_keyed(&cipher, *node);
                rights.push(*node ^ left);
                *node = left;
            }
            expected.extend(rights);
        }
        for backend in Backend::available() {
            let mut nodes = Buffer::zeros(32 << levels);
            nodes[..32].copy_from_slice(&roots);
            let fix = |l: usize| Fix { path: &paths[l], sibling: &siblings[l], top_bit: top_bit(l) };
            let fixes: Vec<_> = (0..levels).map(|l| fixed.then(|| fix(l))).collect();
            ggm::expand_subtrees_on(backend, &cipher, &mut nodes, &fixes);
            prop_assert_eq!(hex(&nodes), hex(&expected), "{}", backend.name());
        }
    }

    #[test]
    fn level_moments(log_n in 0usize..10, wide: bool, seed: u64) {
        let (n, period) = (1usize << log_n, if wide { 32 } else { 4 });
        let nodes = random(n * period, seed);
        let mut expected = vec![Block::ZERO; period];
        for (i, node) in nodes.iter().enumerate() {
            expected[i % period] ^= gf128::mul(*node, Block::new((n + i / period) as u128));
        }
        for backend in Backend::available() {
            let mut moments = vec![Block::ONES; period];
            ggm::moments_on(backend, &nodes, n, period, &mut moments);
            prop_assert_eq!(hex(&moments), hex(&expected), "{}", backend.name());
        }
    }

    #[test]
    fn local_code(k in 1usize..5000, power: bool, four: bool, rows in 0usize..300, first in 0u64..1000, seed: u64) {
        let k = if power { k.next_power_of_two() } else { k };
        let lanes = if four { 4 } else { 1 };
        let code = LocalCode::new(Block::new(seed as u128), k);
        let secret = random(k * lanes, seed);
        let noise = random(rows * lanes, !seed);
        let mut expected = noise.clone();
        for row in 0..rows {
            for index in code.row(first + row as u64) {
                for lane in 0..lanes {
                    expected[row * lanes + lane] ^= secret[index as usize * lanes + lane];
                }
            }
        }
        for backend in Backend::available() {
            let (mut in_place, mut apart) = (noise.clone(), vec![Block::ONES; noise.len()]);
            code.rows_on(backend, first, &secret, lanes, None, &mut in_place);
            code.rows_on(backend, first, &secret, lanes, Some(&noise), &mut apart);
            prop_assert_eq!(hex(&in_place), hex(&expected), "{}", backend.name());
            prop_assert_eq!(hex(&apart), hex(&expected), "{}, into other memory", backend.name());
        }
    }
}

#[test]
fn lines_are_added_where_they_stand() {
    for (width, rows, first) in [(4, 3, 1), (5, 40, 4), (39, 200, 37), (1000, 77, 0), (1000, 77, 996)] {
        let offsets: Vec<u32> = (0..rows as u32).map(|r| (r * 7919 + r * r) % width as u32).collect();
        let lines: Vec<[Block; 4]> = random(4 * rows, 5).as_chunks().0.to_vec();
        let matrix = random(width * rows, 6);
        let mut expected = matrix.clone();
        for r in 0..rows {
            for lane in 0..4 {
                expected[r * width + (first + width - offsets[r] as usize + lane) % width] ^= lines[r][lane];
            }
        }
        for backend in Backend::available() {
            let mut out = matrix.clone();
            scatter::add_lines(backend, &mut out, width, first, &offsets, &lines);
            assert_eq!(hex(&out), hex(&expected), "{} at width {width}", backend.name());
        }
    }
}

/// Large buffers of a process serve again: whoever gets one sees zeros, also past what the one before had.
#[test]
fn buffers_that_serve_again_are_zero() {
    for len in [(2 << 20) / 16, (3 << 20) / 16 + 5, (9 << 20) / 16, (9 << 20) / 16 - 77] {
        for _ in 0..3 {
            let mut buffers = [Buffer::zeros(len), Buffer::zeros(len - 1)];
            for buffer in &mut buffers {
                assert!(buffer.iter().all(|block| *block == Block::ZERO), "{len}");
                buffer.fill(Block::ONES);
            }
            assert!(buffers[0].as_ptr() != buffers[1].as_ptr());
        }
    }
}

#[test]
fn buffers_are_zero_aligned_and_writable() {
    for len in [0, 1, 3, 1000, 1 << 17, (1 << 17) + 1] {
        let mut buffer = Buffer::zeros(len);
        assert_eq!(buffer.len(), len);
        assert!(buffer.iter().all(|b| *b == Block::ZERO));
        assert_eq!(buffer.as_ptr() as usize % 64, 0);
        buffer.fill(Block::ONES);
        assert!(buffer.iter().all(|b| *b == Block::ONES));
    }
}
