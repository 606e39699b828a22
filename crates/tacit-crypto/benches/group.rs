//! The group's operations on 128 points, on every backend: `cargo bench -p tacit-crypto --bench group`.
//! Throughput counts points, so the time per point is the inverse of what criterion prints.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tacit_crypto::group::{Points, Scalars, Table};
use tacit_crypto::simd::{Backend, Level};
use tacit_crypto::{Block, Prg};

fn operations(c: &mut Criterion) {
    const N: usize = 128;
    let mut prg = Prg::from_seed(Block::new(1));
    let mut uniform = vec![[0u8; 64]; N];
    prg.fill_bytes(uniform.as_flattened_mut());
    let scalars = Scalars::random(N, &mut prg);
    let one = Scalars::random(1, &mut prg);
    for backend in [Level::Portable, Level::Avx512].into_iter().filter_map(Backend::detect) {
        let points = Points::from_uniform_on(backend, &uniform);
        let bytes = points.encode();
        let table = Table::new(&Points::mul_base_on(backend, &one), N);
        let mut group = c.benchmark_group(format!("ristretto/{}", backend.name()));
        group.throughput(Throughput::Elements(N as u64)).sample_size(20);
        group.bench_function("mul", |b| b.iter(|| points.mul(black_box(&scalars))));
        group.bench_function("mul_base", |b| b.iter(|| Points::mul_base_on(backend, black_box(&scalars))));
        group.bench_function("mul_table", |b| b.iter(|| table.mul(black_box(&scalars))));
        group.bench_function("encode", |b| b.iter(|| black_box(&points).encode()));
        group.bench_function("decode", |b| {
            b.iter(|| Points::decode_on(backend, black_box(bytes.as_flattened())))
        });
        group.bench_function("from_uniform", |b| {
            b.iter(|| Points::from_uniform_on(backend, black_box(&uniform)))
        });
        group.bench_function("add", |b| b.iter(|| points.add(black_box(&points))));
        group.throughput(Throughput::Elements(1));
        let single = Points::mul_base_on(backend, &one);
        group.bench_function("new_table", |b| b.iter(|| Table::new(black_box(&single), N)));
        group.finish();
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
