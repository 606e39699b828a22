//! Kernels on every backend of this processor: `cargo bench -p tacit-crypto --bench kernels [-- FILTER]`.
//!
//! Working sets lie in the first-level cache, so that the figures are those of the arithmetic.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use tacit_crypto::simd::{self, Backend};
use tacit_crypto::{BitVec, Block, Prg};

/// Blocks in one run: 16 KiB.
const BLOCKS: usize = 1024;

fn random(count: usize) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; count];
    Prg::from_seed(Block::ONE).fill_blocks(&mut blocks);
    blocks
}

/// Benchmarks `run` on every backend; one run handles `elements` elements.
fn on_each(c: &mut Criterion, kernel: &str, elements: usize, mut run: impl FnMut(Backend)) {
    let mut group = c.benchmark_group(kernel);
    group.throughput(Throughput::Elements(elements as u64));
    for backend in Backend::available() {
        group.bench_function(backend.name(), |b| b.iter(|| run(backend)));
    }
    group.finish();
}

fn aes(c: &mut Criterion) {
    let keys = simd::aes::expand(Backend::active(), Block::ONES);
    let mut blocks = random(BLOCKS);
    let input = random(BLOCKS);
    on_each(c, "aes/fixed_key", BLOCKS, |b| simd::aes::encrypt_blocks(b, &keys, black_box(&mut blocks)));
    on_each(c, "aes/counter", BLOCKS, |b| simd::aes::counter(b, &keys, 5, black_box(&mut blocks)));
    on_each(c, "aes/counter_xor", BLOCKS, |b| simd::aes::counter_xor(b, &keys, 5, black_box(&mut blocks)));
    on_each(c, "aes/counter_16_blocks", 16, |b| {
        simd::aes::counter(b, &keys, 5, black_box(&mut blocks[..16]))
    });
    on_each(c, "aes/counter_1_block", 1, |b| simd::aes::counter(b, &keys, 5, black_box(&mut blocks[..1])));
    on_each(c, "aes/rekeyed", BLOCKS, |b| simd::aes::rekeyed(b, &input, black_box(&mut blocks)));
    on_each(c, "hash/ccr", BLOCKS, |b| simd::aes::ccr_in_place(b, &keys, black_box(&mut blocks)));
    on_each(c, "hash/tccr", BLOCKS, |b| simd::aes::tccr(b, &keys, black_box(&mut blocks), 9));
}

fn mitccrh(c: &mut Criterion) {
    let mut blocks = random(BLOCKS);
    for per_gid in [1, 2, 3, 4, 8] {
        on_each(c, &format!("hash/mitccrh_{per_gid}_blocks_a_gid"), BLOCKS, |b| {
            simd::aes::mitccrh(b, Block::ONE, 7, per_gid, black_box(&mut blocks));
        });
    }
    let mut pairs = vec![[Block::ZERO; 2]; BLOCKS];
    let input = random(BLOCKS);
    on_each(c, "hash/cot_to_rot_sender", BLOCKS, |b| {
        simd::aes::cot_sender(b, Block::ONE, 7, Block::ONES, &input, black_box(&mut pairs));
    });
    on_each(c, "hash/cot_to_rot_receiver", BLOCKS, |b| {
        simd::aes::cot_receiver(b, Block::ONE, 7, &input, black_box(&mut blocks));
    });
}

fn transpose(c: &mut Criterion) {
    let columns = random(BLOCKS);
    let mut rows = random(BLOCKS);
    on_each(c, "transpose/columns_to_rows", BLOCKS, |b| {
        simd::transpose::tiles(b, &columns, [BLOCKS / 128, 1], black_box(&mut rows), [1, 128], BLOCKS / 128);
    });
    on_each(c, "transpose/rows_to_columns", BLOCKS, |b| {
        simd::transpose::tiles(b, &columns, [1, 128], black_box(&mut rows), [BLOCKS / 128, 1], BLOCKS / 128);
    });
}

fn gf128(c: &mut Criterion) {
    let (a, b) = (random(BLOCKS), random(BLOCKS));
    let mut out = random(BLOCKS);
    on_each(c, "gf128/mul", 1, |backend| {
        black_box(simd::gf128::mul(backend, black_box(a[0]), black_box(b[0])));
    });
    on_each(c, "gf128/inner_product", BLOCKS, |backend| {
        black_box(simd::gf128::accumulate(backend, black_box(&a), &b));
    });
    let mut sums = vec![[Block::ZERO; 3]; 128];
    for len in [8, 16, 64] {
        let columns = random(128 * len);
        on_each(c, &format!("gf128/columns_of_{len}"), 128 * len, |backend| {
            simd::gf128::accumulate_columns(backend, black_box(&columns), len, &b[..len], &mut sums);
        });
    }
    on_each(c, "gf128/scale", BLOCKS, |backend| simd::gf128::scale(backend, black_box(&mut out), a[0]));
    on_each(c, "gf128/powers", BLOCKS, |backend| simd::gf128::powers(backend, a[0], black_box(&mut out)));
}

fn bits(c: &mut Criterion) {
    let blocks = random(BLOCKS);
    let mut group = c.benchmark_group("bits");
    group.throughput(Throughput::Elements(BLOCKS as u64));
    group.bench_function("from_lsbs", |b| b.iter(|| BitVec::from_lsbs(black_box(&blocks))));
    group.finish();
}

criterion_group! {
    name = kernels;
    config = Criterion::default()
        .without_plots()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(20))
        .measurement_time(Duration::from_millis(100));
    targets = aes, mitccrh, transpose, gf128, bits
}
criterion_main!(kernels);
