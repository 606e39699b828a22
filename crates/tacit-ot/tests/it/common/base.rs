//! Base OTs from message to message and through their trait: what the tests of every protocol share.
#![allow(dead_code)]

use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Party, SessionId, memory};
use tacit_ot::base::Run;
use tacit_ot::{BaseOt, Error, Result};

pub(crate) const SESSION: SessionId = SessionId([7; 32]);

pub(crate) fn prg(seed: u128) -> Prg {
    Prg::from_seed(Block::new(seed))
}

pub(crate) fn run(protocol: &'static str, n: usize) -> Run {
    Run::new(protocol, SESSION, Party::First, 3, n)
}

/// All messages of one honest run by the library, and both outputs.
pub(crate) struct Honest {
    pub messages: Vec<Vec<u8>>,
    pub pairs: Vec<[Block; 2]>,
    pub chosen: Vec<Block>,
}

/// The same protocols written down a second time: one OT after the other, with curve25519-dalek alone.
pub(crate) mod naive {
    use super::{Block, Prg, SESSION};
    use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
    use curve25519_dalek::scalar::Scalar;

    pub(crate) fn run_key(protocol: &str, n: usize) -> [u8; 32] {
        let mut bytes = SESSION.0.to_vec();
        bytes.extend((protocol.len() as u64).to_le_bytes());
        bytes.extend(protocol.as_bytes());
        for number in [1u64, 1, 3, n as u64] {
            bytes.extend(number.to_le_bytes());
        }
        blake3::derive_key("tacit 2026 base ot run v1", &bytes)
    }

    pub(crate) struct Oracle([u8; 32]);

    impl Oracle {
        pub(crate) fn new(run_key: &[u8; 32], label: &str, messages: &[&[u8]]) -> Self {
            let mut bytes = Vec::new();
            for part in [&[label.as_bytes()], messages].concat() {
                bytes.extend((part.len() as u64).to_le_bytes());
                bytes.extend(part);
            }
            Oracle(*blake3::keyed_hash(run_key, &bytes).as_bytes())
        }

        pub(crate) fn bytes<const N: usize>(&self, i: usize, branch: u8, data: &[u8]) -> [u8; N] {
            let mut hasher = blake3::Hasher::new_keyed(&self.0);
            hasher.update(&[&(i as u64).to_le_bytes()[..], &[branch], data].concat());
            let mut out = [0; N];
            hasher.finalize_xof().fill(&mut out);
            out
        }

        pub(crate) fn point(&self, i: usize, branch: u8, data: &[u8]) -> RistrettoPoint {
            RistrettoPoint::from_uniform_bytes(&self.bytes(i, branch, data))
        }

        pub(crate) fn pad(&self, i: usize, branch: u8, key: RistrettoPoint) -> Block {
            Block::from_bytes(self.bytes(i, branch, key.compress().as_bytes()))
        }
    }

    pub(crate) fn scalar(prg: &mut Prg) -> Scalar {
        let mut wide = [0; 64];
        prg.fill_bytes(&mut wide);
        Scalar::from_bytes_mod_order_wide(&wide)
    }

    pub(crate) fn point(bytes: &[u8]) -> RistrettoPoint {
        CompressedRistretto::from_slice(bytes).unwrap().decompress().unwrap()
    }

    pub(crate) fn encode(p: RistrettoPoint) -> [u8; 32] {
        p.compress().to_bytes()
    }

    pub(crate) fn xor<const N: usize>(a: [u8; N], b: &[u8]) -> [u8; N] {
        core::array::from_fn(|i| a[i] ^ b[i])
    }
}

pub(crate) fn assert_transferred(name: &str, pairs: &[[Block; 2]], chosen: &[Block], choices: &BitVec) {
    assert_eq!(pairs.len(), chosen.len());
    for (i, (pair, chosen)) in pairs.iter().zip(chosen).enumerate() {
        assert!(*chosen == pair[choices.get(i) as usize], "{name}: OT {i}");
        assert!(*chosen != pair[!choices.get(i) as usize], "{name}: OT {i}");
    }
}

/// No two messages are equal, and no two pairs have the same difference.
pub(crate) fn assert_unrelated(name: &str, pairs: &[[Block; 2]]) {
    let mut messages: Vec<_> = pairs.as_flattened().iter().map(|b| b.to_u128()).collect();
    let mut differences: Vec<_> = pairs.iter().map(|p| (p[0] ^ p[1]).to_u128()).collect();
    for values in [&mut messages, &mut differences] {
        let n = values.len();
        values.sort_unstable();
        values.dedup();
        assert_eq!(values.len(), n, "{name}: related messages");
    }
}

/// Every message of `good`, damaged: cut, longer, or with what is no group element at one of its `places`.
/// `feed` hands a message to whoever receives the step's.
pub(crate) fn assert_malformed_are_refused(
    name: &str,
    good: &[Vec<u8>],
    feed: impl Fn(usize, &[u8]) -> Result<()>,
    places: impl Fn(usize) -> Vec<usize>,
) {
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
    for (step, message) in good.iter().enumerate() {
        feed(step, message).unwrap();
        let mut longer = message.clone();
        longer.push(0);
        let truncated = [&message[..0], &message[..message.len() - 1], &message[1..], &longer];
        for bad in truncated {
            let error = feed(step, bad).unwrap_err();
            assert!(matches!(error, Error::Malformed { .. }), "{name}, message {step}: {error}");
        }
        for place in places(step) {
            for element in bad_elements {
                let mut bad = message.clone();
                bad[place..place + 32].copy_from_slice(&element);
                let error = feed(step, &bad).unwrap_err();
                assert!(matches!(error, Error::Malformed { .. }), "{name}, message {step}: {error}");
            }
        }
    }
}

/// Runs of `n` that differ in the run's number, the direction or the session alone.
pub(crate) fn neighbours(name: &'static str, n: usize) -> [Run; 4] {
    [
        Run::new(name, SESSION, Party::First, 3, n),
        Run::new(name, SESSION, Party::First, 4, n),
        Run::new(name, SESSION, Party::Second, 3, n),
        Run::new(name, SessionId([8; 32]), Party::First, 3, n),
    ]
}

/// One line of the recorded digests: the messages' lengths, and a digest of them and of the sender's output.
pub(crate) fn digest_line(name: &str, n: usize, honest: &Honest) -> String {
    let mut hasher = blake3::Hasher::new();
    for message in &honest.messages {
        hasher.update(&(message.len() as u64).to_le_bytes()).update(message);
    }
    hasher.update(Block::as_bytes(honest.pairs.as_flattened()));
    let bytes: Vec<_> = honest.messages.iter().map(|m| m.len().to_string()).collect();
    format!("{name} {n} {} {}\n", bytes.join("+"), hasher.finalize().to_hex())
}

/// The sizes that every protocol is run with.
pub(crate) const SIZES: [usize; 7] = [0, 1, 2, 127, 128, 129, 768];

/// Runs `n` OTs over a channel; the chosen message comes out, and no other.
pub(crate) fn assert_transfers(ot: &(dyn BaseOt + Send + Sync), n: usize) {
    let (name, seed) = (ot.name(), 77 + n as u128);
    let choices = BitVec::random(n, &mut prg(seed));
    let mut pairs = vec![[Block::ZERO; 2]; n];
    let mut chosen = vec![Block::ZERO; n];
    let (sent, received) = memory::run(
        |channel| ot.send(channel, &mut prg(seed + 1), &mut pairs),
        |channel| ot.receive(channel, &mut prg(seed + 2), &choices, &mut chosen),
    );
    sent.unwrap();
    received.unwrap();
    assert_transferred(name, &pairs, &chosen, &choices);
    let mut all: Vec<_> = pairs.as_flattened().iter().map(|b| b.to_u128()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * n, "{name}: messages repeat");
}

/// Choice bits of another length than the output's are the caller's error.
pub(crate) fn assert_length_is_checked(ot: &dyn BaseOt) {
    let (mut channel, _peer) = memory::pair();
    let mut out = vec![Block::ZERO; 4];
    let result = ot.receive(&mut channel, &mut Prg::from_os(), &BitVec::zeros(3), &mut out);
    assert!(matches!(result, Err(Error::Usage { .. })), "{}", ot.name());
}

/// A peer that leaves is an error, and nothing is put out.
pub(crate) fn assert_a_leaving_peer_is_noticed(ot: &dyn BaseOt) {
    let (mut channel, peer) = memory::pair();
    drop(peer);
    let mut out = vec![Block::ZERO; 4];
    assert!(ot.receive(&mut channel, &mut Prg::from_os(), &BitVec::zeros(4), &mut out).is_err());
    let (mut channel, peer) = memory::pair();
    drop(peer);
    assert!(ot.send(&mut channel, &mut Prg::from_os(), &mut [[Block::ZERO; 2]; 4]).is_err());
    assert!(out.iter().all(|b| *b == Block::ZERO), "{}: output without a peer", ot.name());
}

/// Polynomials with coefficients of q and more, in a first message of `bytes`, are refused.
pub(crate) fn assert_polynomials_are_checked(ot: &(dyn BaseOt + Send + Sync), bytes: usize) {
    let mut out = [[Block::ZERO; 2]; 2];
    let (result, ()) = memory::run(
        |channel| ot.send(channel, &mut Prg::from_os(), &mut out),
        // All ones: every coefficient is 8191, which is not below q = 7681.
        |channel| {
            channel.send(&vec![0xff; bytes]).unwrap();
            channel.flush().unwrap();
        },
    );
    let name = ot.name();
    assert!(matches!(result, Err(Error::Malformed { protocol, .. }) if protocol == name), "{name}");
    assert!(out == [[Block::ZERO; 2]; 2]);
}

/// χ² of one degree of freedom; 30 is 10^-7.
pub(crate) fn assert_fair(ones: u64, runs: u64) {
    let half = runs as f64 / 2.0;
    let chi = 2.0 * (ones as f64 - half).powi(2) / half;
    assert!(chi < 30.0, "{ones} ones of {runs}");
}
