//! The base OTs from message to message: against a naive second implementation, malformed messages, cheaters, and
//! the wire format's digests.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Party, SessionId};
use tacit_ot::base::{Run, co15, csw20, mr19, mrr21, pvw08};
use tacit_ot::{Error, Result};

const SESSION: SessionId = SessionId([7; 32]);
const NAMES: [&str; 5] = [co15::NAME, csw20::NAME, mr19::NAME, mrr21::NAME, pvw08::NAME];

fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

fn run(protocol: &'static str, n: usize) -> Run {
    Run::new(protocol, SESSION, Party::First, 3, n)
}

/// All messages of one honest run by the library, and both outputs.
struct Honest {
    messages: Vec<Vec<u8>>,
    pairs: Vec<[Block; 2]>,
    chosen: Vec<Block>,
}

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
        csw20::NAME => {
            let (receiver, first) = csw20::Receiver::start(run, choices, &mut for_receiver)?;
            let (sender, second) = csw20::Sender::start(run, &first, &mut for_sender)?;
            let third = receiver.finish(&second, &mut chosen)?;
            sender.finish(&third, &mut pairs)?;
            vec![first, second, third]
        }
        _ => {
            let (receiver, first) = pvw08::Receiver::start(run, choices, &mut for_receiver)?;
            let second = pvw08::send(run, &first, &mut for_sender, &mut pairs)?;
            receiver.finish(&second, &mut chosen)?;
            vec![first, second]
        }
    };
    Ok(Honest { messages, pairs, chosen })
}

/// The same protocols written down a second time: one OT after the other, with curve25519-dalek alone.
mod naive {
    use super::*;

    pub fn run_key(protocol: &str, n: usize) -> [u8; 32] {
        let mut bytes = SESSION.0.to_vec();
        bytes.extend((protocol.len() as u64).to_le_bytes());
        bytes.extend(protocol.as_bytes());
        for number in [1u64, 1, 3, n as u64] {
            bytes.extend(number.to_le_bytes());
        }
        blake3::derive_key("tacit 2026 base ot run v1", &bytes)
    }

    pub struct Oracle([u8; 32]);

    impl Oracle {
        pub fn new(run_key: &[u8; 32], label: &str, messages: &[&[u8]]) -> Self {
            let mut bytes = Vec::new();
            for part in [&[label.as_bytes()], messages].concat() {
                bytes.extend((part.len() as u64).to_le_bytes());
                bytes.extend(part);
            }
            Oracle(*blake3::keyed_hash(run_key, &bytes).as_bytes())
        }

        pub fn bytes<const N: usize>(&self, i: usize, branch: u8, data: &[u8]) -> [u8; N] {
            let mut hasher = blake3::Hasher::new_keyed(&self.0);
            hasher.update(&[&(i as u64).to_le_bytes()[..], &[branch], data].concat());
            let mut out = [0; N];
            hasher.finalize_xof().fill(&mut out);
            out
        }

        pub fn point(&self, i: usize, branch: u8, data: &[u8]) -> RistrettoPoint {
            RistrettoPoint::from_uniform_bytes(&self.bytes(i, branch, data))
        }

        pub fn pad(&self, i: usize, branch: u8, key: RistrettoPoint) -> Block {
            Block::from_bytes(self.bytes(i, branch, key.compress().as_bytes()))
        }
    }

    pub fn scalar(prg: &mut Prg) -> Scalar {
        let mut wide = [0; 64];
        prg.fill_bytes(&mut wide);
        Scalar::from_bytes_mod_order_wide(&wide)
    }

    pub fn point(bytes: &[u8]) -> RistrettoPoint {
        CompressedRistretto::from_slice(bytes).unwrap().decompress().unwrap()
    }

    pub fn encode(p: RistrettoPoint) -> [u8; 32] {
        p.compress().to_bytes()
    }

    pub fn xor<const N: usize>(a: [u8; N], b: &[u8]) -> [u8; N] {
        core::array::from_fn(|i| a[i] ^ b[i])
    }
}
use naive::{Oracle, encode, point, scalar, xor};

/// The naive receiver of a protocol whose sender speaks first or at the same time: its message and its output.
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

fn assert_transferred(name: &str, pairs: &[[Block; 2]], chosen: &[Block], choices: &BitVec) {
    assert_eq!(pairs.len(), chosen.len());
    for (i, (pair, chosen)) in pairs.iter().zip(chosen).enumerate() {
        assert!(*chosen == pair[choices.get(i) as usize], "{name}: OT {i}");
        assert!(*chosen != pair[!choices.get(i) as usize], "{name}: OT {i}");
    }
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

#[test]
fn pvw08_speaks_with_a_naive_peer() {
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
        (csw20::NAME, _) => csw20::Sender::start(&run, &good[0], &mut for_sender)?.0.finish(bad, &mut pairs),
        (_, 0) => pvw08::send(&run, bad, &mut for_sender, &mut pairs).map(drop),
        (_, _) => pvw08::Receiver::start(&run, choices, &mut for_receiver)?.0.finish(bad, &mut chosen),
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
        (mr19::NAME, _) | (pvw08::NAME, _) => vec![0, 32 * n, 64 * n - 32],
        (mrr21::NAME, _) => vec![0, 80 * (n - 1)],
        (csw20::NAME, 0) => vec![32, 32 * n.max(80)],
        _ => vec![],
    }
}

#[test]
fn malformed_messages_are_errors_and_leave_no_output() {
    let n = 5;
    let choices = BitVec::random(n, &mut prg(1));
    let minus_one_field = {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (0xec, 0x7f);
        bytes
    };
    let mut not_reduced = [0xff; 32];
    not_reduced[31] = 0x7f;
    let mut of_order_two = [0u8; 32];
    of_order_two[0] = 1;
    let bad_elements = [[0u8; 32], [0xff; 32], not_reduced, minus_one_field, of_order_two];
    for name in NAMES {
        let good = honest(&run(name, n), name, &choices, 40).unwrap().messages;
        for (step, message) in good.iter().enumerate() {
            feed(name, step, message, &choices).unwrap();
            let mut longer = message.clone();
            longer.push(0);
            let truncated = [&message[..0], &message[..message.len() - 1], &message[1..], &longer];
            for bad in truncated {
                let error = feed(name, step, bad, &choices).unwrap_err();
                assert!(matches!(error, Error::Malformed { .. }), "{name}, message {step}: {error}");
            }
            for place in element_places(name, step, n) {
                for element in bad_elements {
                    let mut bad = message.clone();
                    bad[place..place + 32].copy_from_slice(&element);
                    let error = feed(name, step, &bad, &choices).unwrap_err();
                    assert!(matches!(error, Error::Malformed { .. }), "{name}, message {step}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_receiver_that_repeats_its_element_gets_unrelated_messages() {
    // Copying OT 0's element (and its negative) to all OTs is what makes pads equal when a hash forgets the index.
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

/// No two messages are equal, and no two pairs have the same difference.
fn assert_unrelated(name: &str, pairs: &[[Block; 2]]) {
    let mut messages: Vec<_> = pairs.as_flattened().iter().map(|b| b.to_u128()).collect();
    let mut differences: Vec<_> = pairs.iter().map(|p| (p[0] ^ p[1]).to_u128()).collect();
    for values in [&mut messages, &mut differences] {
        let n = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), n, "{name}: related messages");
    }
}

#[test]
fn a_run_s_number_session_and_direction_change_every_message() {
    let n = 40;
    let choices = BitVec::random(n, &mut prg(1));
    for name in NAMES {
        let runs = [
            Run::new(name, SESSION, Party::First, 3, n),
            Run::new(name, SESSION, Party::First, 4, n),
            Run::new(name, SESSION, Party::Second, 3, n),
            Run::new(name, SessionId([8; 32]), Party::First, 3, n),
        ];
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

#[test]
fn csw20_s_selective_failure_shows_the_guessed_bit_and_nothing_else() {
    // The leak that the functionality allows: a wrong challenge at place j aborts exactly the receivers with c_j = 1.
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
            let mut hasher = blake3::Hasher::new();
            for message in &honest.messages {
                hasher.update(&(message.len() as u64).to_le_bytes()).update(message);
            }
            hasher.update(Block::as_bytes(honest.pairs.as_flattened()));
            let bytes: Vec<_> = honest.messages.iter().map(|m| m.len().to_string()).collect();
            lines += &format!("{name} {n} {} {}\n", bytes.join("+"), hasher.finalize().to_hex());
        }
    }
    assert_eq!(
        lines,
        include_str!("base_ot.digests"),
        "the wire format changed; if on purpose, raise the version"
    );
}
