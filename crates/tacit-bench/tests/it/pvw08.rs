//! PVW08: through its trait, against a naive second implementation, malformed messages, and the wire's
//! digests.

use crate::base::naive::{self, Oracle, encode, point, scalar};
use crate::base::{self, Honest, assert_transferred, assert_unrelated, prg, run};
use tacit_bench::base::pvw08::{self, Pvw08};
use tacit_crypto::{BitVec, Block};
use tacit_ot::Result;
use tacit_ot::base::Run;

#[test]
fn it_transfers_and_checks_its_caller_and_its_peer() {
    for n in base::SIZES {
        base::assert_transfers(&Pvw08, n);
    }
    base::assert_length_is_checked(&Pvw08);
    base::assert_a_leaving_peer_is_noticed(&Pvw08);
}

fn honest(run: &Run, choices: &BitVec, seed: u128) -> Result<Honest> {
    let n = run.len();
    let (mut for_sender, mut for_receiver) = (prg(seed), prg(seed + 1));
    let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
    let (receiver, first) = pvw08::Receiver::start(run, choices, &mut for_receiver)?;
    let second = pvw08::send(run, &first, &mut for_sender, &mut pairs)?;
    receiver.finish(&second, &mut chosen)?;
    Ok(Honest { messages: vec![first, second], pairs, chosen })
}

#[test]
fn it_speaks_with_a_naive_peer() {
    for n in [0, 1, 9, 129] {
        let key = naive::run_key(pvw08::NAME, n);
        let crs = [0, 1, 2, 3].map(|i| Oracle::new(&key, "pvw crs", &[]).point(i, 0, b""));
        let ([g0, g1], [h0, h1]) = ([crs[0], crs[1]], [crs[2], crs[3]]);
        let choices = BitVec::random(n, &mut prg(1));
        let run = run(pvw08::NAME, n);
        let half = 32 * n;
        let element = |message: &[u8], i: usize| point(&message[32 * i..32 * i + 32]);

        // Naive receiver, library sender.
        let mut pairs = vec![[Block::ZERO; 2]; n];
        let mut rng = prg(2);
        let secrets: Vec<_> = (0..n).map(|_| scalar(&mut rng)).collect();
        let pick = |i: usize, a, b| secrets[i] * if choices.get(i) { b } else { a };
        let mut first: Vec<u8> = (0..n).flat_map(|i| encode(pick(i, g0, g1))).collect();
        first.extend((0..n).flat_map(|i| encode(pick(i, h0, h1))));
        let second = pvw08::send(&run, &first, &mut prg(3), &mut pairs).unwrap();
        let pads = Oracle::new(&key, "pad", &[&first, &second]);
        let theirs: Vec<_> = (0..n)
            .map(|i| {
                let c = choices.get(i);
                pads.pad(i, c as u8, secrets[i] * element(&second[if c { half } else { 0 }..], i))
            })
            .collect();
        assert_transferred(pvw08::NAME, &pairs, &theirs, &choices);

        // Library receiver, naive sender.
        let mut chosen = vec![Block::ZERO; n];
        let (receiver, first) = pvw08::Receiver::start(&run, &choices, &mut prg(4)).unwrap();
        let (mut second, mut keys) = (Vec::new(), Vec::new());
        for (g_b, h_b) in [(g0, h0), (g1, h1)] {
            for i in 0..n {
                let (s, t) = (scalar(&mut rng), scalar(&mut rng));
                second.extend(encode(s * g_b + t * h_b));
                keys.push(s * element(&first, i) + t * element(&first[half..], i));
            }
        }
        let pads = Oracle::new(&key, "pad", &[&first, &second]);
        let theirs: Vec<_> = (0..n).map(|i| [pads.pad(i, 0, keys[i]), pads.pad(i, 1, keys[n + i])]).collect();
        receiver.finish(&second, &mut chosen).unwrap();
        assert_transferred(pvw08::NAME, &theirs, &chosen, &choices);
    }
}

#[test]
fn malformed_messages_are_errors_and_leave_no_output() {
    let n = 5;
    let choices = BitVec::random(n, &mut prg(1));
    let run = run(pvw08::NAME, n);
    let good = honest(&run, &choices, 40).unwrap().messages;
    let feed = |step, bad: &[u8]| {
        let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
        let result = match step {
            0 => pvw08::send(&run, bad, &mut prg(40), &mut pairs).map(drop),
            _ => pvw08::Receiver::start(&run, &choices, &mut prg(41))?.0.finish(bad, &mut chosen),
        };
        let nothing = pairs.as_flattened().iter().chain(&chosen).all(|b| *b == Block::ZERO);
        assert!(result.is_ok() || nothing, "output before a check");
        result
    };
    base::assert_malformed_are_refused(pvw08::NAME, &good, feed, |_| vec![0, 32 * n, 64 * n - 32]);
}

#[test]
fn a_run_s_number_session_and_direction_change_every_message() {
    let n = 40;
    let choices = BitVec::random(n, &mut prg(1));
    let runs = base::neighbours(pvw08::NAME, n);
    let all: Vec<_> = runs.iter().flat_map(|run| honest(run, &choices, 60).unwrap().pairs).collect();
    assert_unrelated(pvw08::NAME, &all);
}

#[test]
fn the_wire_format_and_outputs_are_the_recorded_ones() {
    let mut lines = String::new();
    for n in [1, 128] {
        let choices = BitVec::random(n, &mut prg(1));
        let honest = honest(&run(pvw08::NAME, n), &choices, 500).unwrap();
        assert_transferred(pvw08::NAME, &honest.pairs, &honest.chosen, &choices);
        lines += &base::digest_line(pvw08::NAME, n, &honest);
    }
    let recorded = include_str!("../pvw08.digests");
    assert_eq!(lines, recorded, "the wire format changed; if on purpose, raise the version");
}
