//! Tables 2 and 3 of the ROTed paper on this machine: µs an OT, both sides in one thread, no network,
//! randomness inside the timed region. `cargo bench -p tacit-bench --bench roted_tables`
//!
//! Each vector width runs in a process of its own, which `TACIT_SIMD` sets. Medians of batches of 128, the
//! unit of an OT extension's base OTs; the paper times single transfers a thousand at a time.

use std::process::Command;
use std::time::Instant;
use tacit_bench::base::{bdgm19, pvw08, roted_paper};
use tacit_crypto::ring::XofBlocks;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Party, SessionId};
use tacit_ot::base::{Run, co15, mr19};
use tacit_roted::roted::{Choices, Mode, Receiver, Sender};
use tacit_roted::set::{self, Set};
use tacit_roted::{Instance, Role};

const COUNT: usize = 128;
const LEVELS: [&str; 3] = ["portable", "avx2", "avx512"];

/// Median, least and most of `repeat` runs of a batch, in µs an OT.
fn measure(repeat: usize, mut batch: impl FnMut()) -> [f64; 3] {
    batch();
    let mut times: Vec<f64> = (0..repeat)
        .map(|_| {
            let start = Instant::now();
            batch();
            start.elapsed().as_secs_f64() * 1e6 / COUNT as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[repeat / 2], times[0], times[repeat - 1]]
}

fn row(table: &str, name: &str, security: &str, [median, least, most]: [f64; 3]) {
    let level = tacit_crypto::simd::Backend::active().name();
    println!(
        "| {table} | {name} | {level} | {security} | {median:.2} | {least:.2}–{most:.2} | {:.0} |",
        1e6 / median
    );
}

fn instances<const N: usize, const K: usize>(set: &Set<N, K>) -> [Instance<N, K>; 2] {
    [Role::Sender, Role::Receiver].map(|role| Instance::new(set, "tables", b"session", role))
}

fn roted<const N: usize, const K: usize>(set: &Set<N, K>) -> [f64; 3] {
    let (mut received, mut sent) = (vec![Block::ZERO; COUNT], vec![[Block::ZERO; 2]; COUNT]);
    measure(60, || {
        let mut prg = Prg::from_os();
        let (mut a, mut b) = (XofBlocks::from_prg(&mut prg), XofBlocks::from_prg(&mut prg));
        let [ours, theirs] = instances(set);
        let (mut m1, mut m2, mut m3) = (vec![], vec![], vec![]);
        let receiver = Receiver::offer(&theirs, Choices::Random, COUNT, &mut b, &mut m1);
        let sender = Sender::answer(&ours, Mode::Random, COUNT, &m1, &mut a, &mut m2).expect("honest");
        let bits = receiver.open(&theirs, &m2, &mut b, &mut received, &mut m3).expect("honest");
        sender.finish(&ours, &m3, &mut sent).expect("honest");
        assert!((0..COUNT).all(|i| received[i] == sent[i][bits[i] as usize]));
    })
}

fn bdgm<const N: usize, const K: usize>(set: &Set<N, K>) -> [f64; 3] {
    let (mut received, mut sent) = (vec![Block::ZERO; COUNT], vec![[Block::ZERO; 2]; COUNT]);
    measure(60, || {
        let mut prg = Prg::from_os();
        let bits: Vec<u8> = (0..COUNT).map(|_| prg.bit() as u8).collect();
        let (mut a, mut b) = (XofBlocks::from_prg(&mut prg), XofBlocks::from_prg(&mut prg));
        let [ours, theirs] = instances(set);
        let (receiver, m1) = bdgm19::Receiver::offer(&theirs, &bits, &mut b);
        let (sender, m2) = bdgm19::Sender::challenge(&ours, COUNT, &m1, &mut a).expect("honest");
        let m3 = receiver.respond(&theirs, &m2, &mut b, &mut received).expect("honest");
        sender.finish(&m3, &mut sent).expect("honest");
        assert!((0..COUNT).all(|i| received[i] == sent[i][bits[i] as usize]));
    })
}

/// The figure as printed.
fn figure() -> [f64; 3] {
    let [ours, theirs] = instances(&set::PAPER);
    let mut prg = Prg::from_os();
    measure(40, || {
        for index in 0..COUNT as u64 {
            let (receiver, first) = roted_paper::Receiver::offer(&theirs, index, &mut prg);
            let (sender, second) =
                roted_paper::Sender::answer(&ours, index, &first, &mut prg).expect("honest");
            let ((b, message), t) = receiver.open(&theirs, &second, &mut prg).expect("honest");
            let pair = sender.finish(&ours, t).expect("honest");
            assert!(pair[b as usize] == message);
        }
    })
}

fn run(protocol: &'static str, number: u64) -> Run {
    Run::new(protocol, SessionId([7; 32]), Party::First, number, COUNT)
}

fn elliptic(name: &'static str) -> [f64; 3] {
    let mut prg = Prg::from_os();
    let (mut received, mut sent) = (vec![Block::ZERO; COUNT], vec![[Block::ZERO; 2]; COUNT]);
    let mut number = 0;
    measure(30, || {
        number += 1;
        let run = run(name, number);
        let choices = BitVec::random(COUNT, &mut prg);
        match name {
            co15::NAME => {
                let (sender, first) = co15::Sender::start(&run, &mut prg);
                let reply = co15::receive(&run, &first, &choices, &mut prg, &mut received).expect("honest");
                sender.finish(&reply, &mut sent).expect("honest");
            }
            mr19::NAME => {
                let (sender, from_sender) = mr19::Sender::start(&run, &mut prg);
                let (receiver, from_receiver) =
                    mr19::Receiver::start(&run, &choices, &mut prg).expect("honest");
                sender.finish(&from_receiver, &mut sent).expect("honest");
                receiver.finish(&from_sender, &mut received).expect("honest");
            }
            _ => {
                let (receiver, first) = pvw08::Receiver::start(&run, &choices, &mut prg).expect("honest");
                let reply = pvw08::send(&run, &first, &mut prg, &mut sent).expect("honest");
                receiver.finish(&reply, &mut received).expect("honest");
            }
        }
        assert!((0..COUNT).all(|i| received[i] == sent[i][choices.get(i) as usize]));
    })
}

fn rows() {
    row("2", "PVW08", "OT, UC", elliptic(pvw08::NAME));
    row("2", "MR19", "endemic OT, UC", elliptic(mr19::NAME));
    row("2", "CO15", "OT, standalone", elliptic(co15::NAME));
    row("2", "BDGM19, paper's set", "OT, sender may guess", bdgm(&set::PAPER));
    row("2", "BDGM19, default set", "OT, sender may guess", bdgm(&set::MODULE));
    row("3", "ROTed, figure as printed, paper's set", "broken", figure());
    row("3", "ROTed, paper's set", "ROT, UC", roted(&set::PAPER));
    row("3", "ROTed, default set", "ROT, UC", roted(&set::MODULE));
    row("3", "ROTed, degree 1024", "ROT, UC", roted(&set::LARGE));
}

fn main() {
    if std::env::var_os("TACIT_ROTED_TABLES_CHILD").is_some() {
        return rows();
    }
    println!("| table | protocol | kernels | security | µs an OT | range | OTs a second |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for level in LEVELS {
        let here = tacit_crypto::simd::Backend::available().iter().any(|b| b.name() == level);
        if !here {
            println!("| | (this processor has no {level}) | | | | | |");
            continue;
        }
        let me = std::env::current_exe().expect("this program");
        let child = Command::new(me).env("TACIT_SIMD", level).env("TACIT_ROTED_TABLES_CHILD", "1").status();
        assert!(child.expect("a child").success(), "the rows of {level} failed");
    }
}
