//! The base OTs from message to message: against a naive second implementation, malformed messages, cheaters,
//! and the wire format's digests.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::RistrettoPoint;
use curve25519_dalek::scalar::Scalar;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_ot::base::{Run, co15, csw20, mr19, mrr21};
use tacit_ot::{Error, Result};

const NAMES: [&str; 4] = [co15::NAME, csw20::NAME, mr19::NAME, mrr21::NAME];

fn honest(run: &Run, protocol: &str, choices: &BitVec, seed: u128) -> Result<Honest> {
    let n = run.len();
    let (mut for_sender, mut for_receiver) = (prg(seed), prg(seed + 1));
    let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
    let messages = match protocol {
        co15::NAME => {
            let (sender, first) = co15::Sender::start(run, &mut for_sender);
            let second = co15::receive(run, &first, choices, &mut for_receiver, &mut chosen)?;
            sender.finish(&second, &mut pairs)?;
            vec![first, second]
        }
        mr19::NAME => {
            let (sender, first) = mr19::Sender::start(run, &mut for_sender);
            let (receiver, second) = mr19::Receiver::start(run, choices, &mut for_receiver)?;
            sender.finish(&second, &mut pairs)?;
            receiver.finish(&first, &mut chosen)?;
            vec![first, second]
        }
        mrr21::NAME => {
            let (sender, first) = mrr21::Sender::start(run, &mut for_sender);
            let (receiver, second) = mrr21::Receiver::start(run, choices, &mut for_receiver)?;
            sender.finish(&second, &mut pairs)?;
            receiver.finish(&first, &mut chosen)?;
            vec![first, second]
        }
        _ => {
            let (receiver, first) = csw20::Receiver::start(run, choices, &mut for_receiver)?;
            let (sender, second) = csw20::Sender::start(run, &first, &mut for_sender)?;
            let third = receiver.finish(&second, &mut chosen)?;
            sender.finish(&third, &mut pairs)?;
            vec![first, second, third]
        }
    };
    Ok(Honest { messages, pairs, chosen })
}

use crate::base::naive::{self, Oracle, encode, point, scalar, xor};
use crate::base::{self, Honest, assert_transferred, assert_unrelated, prg, run};

/// The naive receiver of a protocol whose sender speaks first or at the same time: its message and its
/// output.
fn naive_receive(name: &'static str, a: &[u8], choices: &BitVec, prg: &mut Prg) -> (Vec<u8>, Vec<Block>) {
    let (n, key) = (choices.len(), naive::run_key(name, choices.len()));
    let secrets: Vec<Scalar> = (0..n).map(|_| scalar(prg)).collect();
    let mut message = Vec::new();
    for (i, b) in secrets.iter().enumerate() {
        let c = choices.get(i);
        match name {
            co15::NAME => message.extend(encode(if c { b * G + point(a) } else { b * G })),
            mr19::NAME => {
                let other = encode(scalar(prg) * G);
                let own = encode(b * G - Oracle::new(&key, "endemic H", &[]).point(i, c as u8, &other));
                message.extend(if c { [other, own] } else { [own, other] }.concat());
            }
            _ => {
                let mut r = [0; 48];
                prg.fill_bytes(&mut r);
                let s = encode(b * G - Oracle::new(&key, "popf H", &[]).point(i, c as u8, &r));
                message.extend(s);
                message.extend(xor::<48>(r, &Oracle::new(&key, "popf H'", &[]).bytes::<48>(i, c as u8, &s)));
            }
        }
    }
    let pads = Oracle::new(&key, "pad", &[a, &message]);
    let out = (0..n).map(|i| pads.pad(i, choices.get(i) as u8, secrets[i] * point(a))).collect();
    (message, out)
}

/// The naive sender's output in the same protocols.
fn naive_pairs(name: &'static str, n: usize, secret: Scalar, message: &[u8]) -> Vec<[Block; 2]> {
    let key = naive::run_key(name, n);
    let a = encode(secret * G);
    let pads = Oracle::new(&key, "pad", &[&a, message]);
    let base = |i: usize, x: u8| match name {
        co15::NAME => {
            let b = point(&message[32 * i..32 * i + 32]);
            if x == 0 { b } else { b - secret * G }
        }
        mr19::NAME => {
            let pair = &message[64 * i..64 * i + 64];
            let (own, other) = if x == 0 { pair.split_at(32) } else { (&pair[32..], &pair[..32]) };
            point(own) + Oracle::new(&key, "endemic H", &[]).point(i, x, other)
        }
        _ => {
            let (s, t) = message[80 * i..80 * i + 80].split_at(32);
            let r = xor::<48>(Oracle::new(&key, "popf H'", &[]).bytes(i, x, s), t);
            point(s) + Oracle::new(&key, "popf H", &[]).point(i, x, &r)
        }
    };
    (0..n).map(|i| [0, 1].map(|x| pads.pad(i, x, secret * base(i, x)))).collect()
}

#[test]
fn key_agreement_protocols_speak_with_a_naive_peer() {
    for n in [0, 1, 9, 129] {
        let choices = BitVec::random(n, &mut prg(1));
        for name in [co15::NAME, mr19::NAME, mrr21::NAME] {
            let run = run(name, n);
            let mut pairs = vec![[Block::ZERO; 2]; n];
            let mut chosen = vec![Block::ZERO; n];

            // Library sender, naive receiver.
            let theirs = match name {
                co15::NAME => {
                    let (sender, a) = co15::Sender::start(&run, &mut prg(2));
                    let (message, theirs) = naive_receive(name, &a, &choices, &mut prg(3));
                    sender.finish(&message, &mut pairs).unwrap();
                    theirs
                }
                mr19::NAME => {
                    let (sender, a) = mr19::Sender::start(&run, &mut prg(2));
                    let (message, theirs) = naive_receive(name, &a, &choices, &mut prg(3));
                    sender.finish(&message, &mut pairs).unwrap();
                    theirs
                }
                _ => {
                    let (sender, a) = mrr21::Sender::start(&run, &mut prg(2));
                    let (message, theirs) = naive_receive(name, &a, &choices, &mut prg(3));
                    sender.finish(&message, &mut pairs).unwrap();
                    theirs
                }
            };
            assert_transferred(name, &pairs, &theirs, &choices);

            // Naive sender, library receiver.
            let secret = scalar(&mut prg(4));
            let a = encode(secret * G);
            let message = match name {
                co15::NAME => co15::receive(&run, &a, &choices, &mut prg(5), &mut chosen).unwrap(),
                mr19::NAME => {
                    let (receiver, message) = mr19::Receiver::start(&run, &choices, &mut prg(5)).unwrap();
                    receiver.finish(&a, &mut chosen).unwrap();
                    message
                }
                _ => {
                    let (receiver, message) = mrr21::Receiver::start(&run, &choices, &mut prg(5)).unwrap();
                    receiver.finish(&a, &mut chosen).unwrap();
                    message
                }
            };
            assert_transferred(name, &naive_pairs(name, n, secret, &message), &chosen, &choices);
        }
    }
}

/// CSW20's sender, naively: its message, the response that it expects, and all pairs (padding included).
fn naive_csw_sender(n: usize, first: &[u8], prg: &mut Prg) -> (Vec<u8>, [u8; 32], Vec<[Block; 2]>) {
    let key = naive::run_key(csw20::NAME, n);
    let t = Oracle::new(&key, "csw H1", &[]).point(0, 0, &first[..32]);
    let r = scalar(prg);
    let mut message = encode(r * G).to_vec();
    let pads = Oracle::new(&key, "pad", &[first, &message]);
    let short = Oracle::new(&key, "csw H3", &[first, &message]);
    let answer = Oracle::new(&key, "csw answer", &[first, &message]);
    let mut pairs = Vec::new();
    let mut answers = Vec::new();
    for (i, b) in first[32..].chunks(32).enumerate() {
        let pair = [pads.pad(i, 0, r * point(b)), pads.pad(i, 1, r * (point(b) - t))];
        let h0 = short.bytes::<16>(i, 0, &pair[0].to_bytes());
        message.extend(xor(h0, &short.bytes::<16>(i, 1, &pair[1].to_bytes())));
        answers.extend(h0);
        pairs.push(pair);
    }
    let response = answer.bytes::<32>(0, 0, &answers);
    message.extend(answer.bytes::<32>(0, 1, &response));
    (message, response, pairs)
}

/// CSW20's receiver, naively: its first message and secrets; then its response and output.
fn naive_csw_first(n: usize, choices: &BitVec, prg: &mut Prg) -> (Vec<u8>, Vec<Scalar>) {
    let key = naive::run_key(csw20::NAME, n);
    let mut message = vec![0; 32];
    prg.fill_bytes(&mut message);
    let t = Oracle::new(&key, "csw H1", &[]).point(0, 0, &message);
    let secrets: Vec<_> = (0..n.max(80)).map(|_| scalar(prg)).collect();
    for (i, b) in secrets.iter().enumerate() {
        let choice = i < n && choices.get(i);
        message.extend(encode(if choice { b * G + t } else { b * G }));
    }
    (message, secrets)
}

fn naive_csw_finish(
    n: usize,
    choices: &BitVec,
    secrets: &[Scalar],
    first: &[u8],
    second: &[u8],
) -> (Vec<u8>, Vec<Block>) {
    let key = naive::run_key(csw20::NAME, n);
    let z = &second[..32];
    let pads = Oracle::new(&key, "pad", &[first, z]);
    let short = Oracle::new(&key, "csw H3", &[first, z]);
    let (mut answers, mut out) = (Vec::new(), Vec::new());
    for (i, b) in secrets.iter().enumerate() {
        let choice = i < n && choices.get(i);
        let pad = pads.pad(i, choice as u8, b * point(z));
        let own = short.bytes::<16>(i, choice as u8, &pad.to_bytes());
        answers.extend(if choice { xor(own, &second[32 + 16 * i..48 + 16 * i]) } else { own });
        out.push(pad);
    }
    out.truncate(n);
    let response = Oracle::new(&key, "csw answer", &[first, z]).bytes::<32>(0, 0, &answers);
    (response.to_vec(), out)
}

#[test]
fn csw20_speaks_with_a_naive_peer() {
    for n in [0, 1, 79, 80, 129] {
        let choices = BitVec::random(n, &mut prg(1));
        let run = run(csw20::NAME, n);
        let mut pairs = vec![[Block::ZERO; 2]; n];
        let mut chosen = vec![Block::ZERO; n];
        let (first, secrets) = naive_csw_first(n, &choices, &mut prg(2));
        let (sender, second) = csw20::Sender::start(&run, &first, &mut prg(3)).unwrap();
        let (response, theirs) = naive_csw_finish(n, &choices, &secrets, &first, &second);
        sender.finish(&response, &mut pairs).unwrap();
        assert_transferred(csw20::NAME, &pairs, &theirs, &choices);

        let (receiver, first) = csw20::Receiver::start(&run, &choices, &mut prg(4)).unwrap();
        let (second, expected, theirs) = naive_csw_sender(n, &first, &mut prg(5));
        let response = receiver.finish(&second, &mut chosen).unwrap();
        assert_eq!(response, expected);
        assert_transferred(csw20::NAME, &theirs[..n], &chosen, &choices);
    }
}

/// Feeds `bad` to the party that receives message `step` of `protocol`, all before it being honest.
fn feed(protocol: &'static str, step: usize, bad: &[u8], choices: &BitVec) -> Result<()> {
    let n = choices.len();
    let run = run(protocol, n);
    let good = honest(&run, protocol, choices, 40)?.messages;
    let (mut for_sender, mut for_receiver) = (prg(40), prg(41));
    let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
    let result = match (protocol, step) {
        (co15::NAME, 0) => co15::receive(&run, bad, choices, &mut for_receiver, &mut chosen).map(drop),
        (co15::NAME, _) => co15::Sender::start(&run, &mut for_sender).0.finish(bad, &mut pairs),
        (mr19::NAME, 0) => {
            mr19::Receiver::start(&run, choices, &mut for_receiver)?.0.finish(bad, &mut chosen)
        }
        (mr19::NAME, _) => mr19::Sender::start(&run, &mut for_sender).0.finish(bad, &mut pairs),
        (mrr21::NAME, 0) => {
            mrr21::Receiver::start(&run, choices, &mut for_receiver)?.0.finish(bad, &mut chosen)
        }
        (mrr21::NAME, _) => mrr21::Sender::start(&run, &mut for_sender).0.finish(bad, &mut pairs),
        (csw20::NAME, 0) => csw20::Sender::start(&run, bad, &mut for_sender).map(drop),
        (csw20::NAME, 1) => {
            let (receiver, _) = csw20::Receiver::start(&run, choices, &mut for_receiver)?;
            receiver.finish(bad, &mut chosen).map(drop)
        }
        (_, _) => csw20::Sender::start(&run, &good[0], &mut for_sender)?.0.finish(bad, &mut pairs),
    };
    if result.is_err() {
        assert!(pairs.as_flattened().iter().all(|b| *b == Block::ZERO), "{protocol}: output before a check");
        assert!(chosen.iter().all(|b| *b == Block::ZERO), "{protocol}: output before a check");
    }
    result
}

/// Where a group element stands in a message: of some, the first and the last.
fn element_places(protocol: &str, step: usize, n: usize) -> Vec<usize> {
    match (protocol, step) {
        (co15::NAME | mr19::NAME | mrr21::NAME, 0) | (csw20::NAME, 1) => vec![0],
        (co15::NAME, _) => vec![0, 32 * (n - 1)],
        (mr19::NAME, _) => vec![0, 32 * n, 64 * n - 32],
        (mrr21::NAME, _) => vec![0, 80 * (n - 1)],
        (csw20::NAME, 0) => vec![32, 32 * n.max(80)],
        _ => vec![],
    }
}

/// proof: base-ot 2.3
#[test]
fn malformed_messages_are_errors_and_leave_no_output() {
    let n = 5;
    let choices = BitVec::random(n, &mut prg(1));
    for name in NAMES {
        let good = honest(&run(name, n), name, &choices, 40).unwrap().messages;
        let feed = |step, bad: &[u8]| feed(name, step, bad, &choices);
        base::assert_malformed_are_refused(name, &good, feed, |step| element_places(name, step, n));
    }
}

/// proof: base-ot 4.3
#[test]
fn a_receiver_that_repeats_its_element_gets_unrelated_messages() {
    // Copying OT 0's element (and its negative) to all OTs is what makes pads equal when a hash forgets the
    // index.
    let n = 64;
    let choices = BitVec::zeros(n);
    for name in [co15::NAME, mr19::NAME, mrr21::NAME] {
        for seed in 0..4 {
            let run = run(name, n);
            let good = honest(&run, name, &choices, seed).unwrap().messages;
            let each = good[1].len() / n;
            let repeated = good[1][..each].repeat(n);
            let mut pairs = vec![[Block::ZERO; 2]; n];
            match name {
                co15::NAME => co15::Sender::start(&run, &mut prg(seed)).0.finish(&repeated, &mut pairs),
                mr19::NAME => mr19::Sender::start(&run, &mut prg(seed)).0.finish(&repeated, &mut pairs),
                _ => mrr21::Sender::start(&run, &mut prg(seed)).0.finish(&repeated, &mut pairs),
            }
            .unwrap();
            assert_unrelated(name, &pairs);
        }
    }
    let run_csw = run(csw20::NAME, n);
    let (receiver, mut first) = csw20::Receiver::start(&run_csw, &choices, &mut prg(9)).unwrap();
    drop(receiver);
    let element: [u8; 32] = first[32..64].try_into().unwrap();
    first[32..].copy_from_slice(&element.repeat(80));
    // The naive sender computes what the library's would output after the check.
    let (_, _, pairs) = naive_csw_sender(n, &first, &mut prg(10));
    assert_unrelated(csw20::NAME, &pairs);
}

#[test]
fn a_run_s_number_session_and_direction_change_every_message() {
    let n = 40;
    let choices = BitVec::random(n, &mut prg(1));
    for name in NAMES {
        let runs = base::neighbours(name, n);
        let mut all = Vec::new();
        for run in &runs {
            all.extend(honest(run, name, &choices, 60).unwrap().pairs);
        }
        assert_unrelated(name, &all);
        // A receiver's message replayed in another run gives nothing that its secrets open.
        if name == mrr21::NAME {
            let (receiver, message) = mrr21::Receiver::start(&runs[0], &choices, &mut prg(70)).unwrap();
            let (sender, a) = mrr21::Sender::start(&runs[1], &mut prg(71));
            let (mut pairs, mut chosen) = (vec![[Block::ZERO; 2]; n], vec![Block::ZERO; n]);
            sender.finish(&message, &mut pairs).unwrap();
            receiver.finish(&a, &mut chosen).unwrap();
            assert!(pairs.iter().zip(&chosen).all(|(p, c)| p[0] != *c && p[1] != *c));
        }
    }
}

/// proof: base-ot 5.4
#[test]
fn csw20_catches_a_receiver_that_does_not_know_a_message_of_every_pair() {
    let n = 80;
    let choices = BitVec::random(n, &mut prg(1));
    let run = run(csw20::NAME, n);
    for attempt in 0..32 {
        // One element without a known discrete logarithm to either base; the best response is then a guess.
        let mut rng = prg(100 + attempt);
        let (mut first, secrets) = naive_csw_first(n, &choices, &mut rng);
        let mut uniform = [0; 64];
        rng.fill_bytes(&mut uniform);
        let at = 32 + 32 * (attempt as usize % n);
        first[at..at + 32].copy_from_slice(&encode(RistrettoPoint::from_uniform_bytes(&uniform)));
        let (sender, second) = csw20::Sender::start(&run, &first, &mut rng).unwrap();
        let (response, _) = naive_csw_finish(n, &choices, &secrets, &first, &second);
        let mut pairs = vec![[Block::ZERO; 2]; n];
        let caught = sender.finish(&response, &mut pairs);
        assert!(matches!(caught, Err(Error::Cheated { protocol: csw20::NAME, .. })));
        assert!(pairs.as_flattened().iter().all(|b| *b == Block::ZERO));
    }
}

/// proof: base-ot 5.3
#[test]
fn csw20_s_selective_failure_shows_the_guessed_bit_and_nothing_else() {
    // The leak that the functionality allows: a wrong challenge at place j aborts exactly the receivers with
    // c_j = 1.
    let n = 80;
    let run = run(csw20::NAME, n);
    let mut aborts = 0;
    for attempt in 0..64u128 {
        let choices = BitVec::random(n, &mut prg(200 + attempt));
        let (receiver, first) = csw20::Receiver::start(&run, &choices, &mut prg(300 + attempt)).unwrap();
        let (_, mut second) = csw20::Sender::start(&run, &first, &mut prg(400 + attempt)).unwrap();
        let j = attempt as usize;
        second[32 + 16 * j] ^= 1;
        let mut chosen = vec![Block::ZERO; n];
        let result = receiver.finish(&second, &mut chosen);
        assert_eq!(result.is_err(), choices.get(j));
        aborts += result.is_err() as usize;
        if result.is_err() {
            assert!(matches!(result, Err(Error::Cheated { .. })));
            assert!(chosen.iter().all(|b| *b == Block::ZERO));
        }
    }
    // Fair coins: five standard deviations of 4 either side of 32.
    assert!((12..=52).contains(&aborts), "{aborts} of 64");
}

#[test]
fn the_wire_format_and_outputs_are_the_recorded_ones() {
    let mut lines = String::new();
    for name in NAMES {
        for n in [1, 128] {
            let choices = BitVec::random(n, &mut prg(1));
            let honest = honest(&run(name, n), name, &choices, 500).unwrap();
            assert_transferred(name, &honest.pairs, &honest.chosen, &choices);
            lines += &base::digest_line(name, n, &honest);
        }
    }
    assert_eq!(
        lines,
        include_str!("../base_ot.digests"),
        "the wire format changed; if on purpose, raise the version"
    );
}
