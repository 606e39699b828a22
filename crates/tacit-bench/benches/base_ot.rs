//! The base OTs, 128 at a time: `cargo bench -p tacit-bench --bench base_ot`.
//!
//! `cpu/…` runs both parties after each other in one thread, from message to message: both sides' work
//! together. `wall/…` runs the two parties in two threads over an in-memory channel. `TACIT_SIMD` picks the
//! kernel.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tacit_bench::base::{self, pvw08};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Party, SessionId, memory};
use tacit_ot::base::{Run, co15, csw20, mr19, mrr21};

const N: usize = 128;

/// One batch by both parties; panics when it fails.
fn both_sides(
    name: &'static str,
    choices: &BitVec,
    prg: &mut Prg,
    pairs: &mut [[Block; 2]],
    out: &mut [Block],
) {
    let run = Run::new(name, SessionId([1; 32]), Party::First, 0, N);
    match name {
        co15::NAME => {
            let (sender, first) = co15::Sender::start(&run, prg);
            let second = co15::receive(&run, &first, choices, prg, out).unwrap();
            sender.finish(&second, pairs).unwrap();
        }
        mr19::NAME => {
            let (sender, first) = mr19::Sender::start(&run, prg);
            let (receiver, second) = mr19::Receiver::start(&run, choices, prg).unwrap();
            sender.finish(&second, pairs).unwrap();
            receiver.finish(&first, out).unwrap();
        }
        mrr21::NAME => {
            let (sender, first) = mrr21::Sender::start(&run, prg);
            let (receiver, second) = mrr21::Receiver::start(&run, choices, prg).unwrap();
            sender.finish(&second, pairs).unwrap();
            receiver.finish(&first, out).unwrap();
        }
        csw20::NAME => {
            let (receiver, first) = csw20::Receiver::start(&run, choices, prg).unwrap();
            let (sender, second) = csw20::Sender::start(&run, &first, prg).unwrap();
            let third = receiver.finish(&second, out).unwrap();
            sender.finish(&third, pairs).unwrap();
        }
        _ => {
            let (receiver, first) = pvw08::Receiver::start(&run, choices, prg).unwrap();
            let second = pvw08::send(&run, &first, prg, pairs).unwrap();
            receiver.finish(&second, out).unwrap();
        }
    }
}

fn base_ot(c: &mut Criterion) {
    let mut prg = Prg::from_seed(Block::new(1));
    let choices = BitVec::random(N, &mut prg);
    let (mut pairs, mut out) = (vec![[Block::ZERO; 2]; N], vec![Block::ZERO; N]);
    let names = [co15::NAME, csw20::NAME, mr19::NAME, mrr21::NAME, pvw08::NAME];
    let mut group = c.benchmark_group("base_ot");
    group.throughput(Throughput::Elements(N as u64)).sample_size(20);
    for name in names {
        group.bench_function(format!("cpu/{name}"), |b| {
            b.iter(|| both_sides(name, &choices, &mut prg, &mut pairs, &mut out))
        });
    }
    for name in names {
        let ot = base::by_name(name).unwrap();
        group.bench_function(format!("wall/{name}"), |b| {
            b.iter(|| {
                let (sent, received) = memory::run(
                    |channel| ot.send(channel, &mut Prg::from_os(), &mut pairs),
                    |channel| ot.receive(channel, &mut Prg::from_os(), &choices, &mut out),
                );
                sent.unwrap();
                received.unwrap();
            })
        });
    }
    group.finish();
}

criterion_group!(benches, base_ot);
criterion_main!(benches);
