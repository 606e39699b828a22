//! One comparison of digests by itself, against a peer written by hand: what each side has seen when it chooses.

use super::*;
use crate::authenticated::alike::{COMPARED, agree_alike};
use crate::authenticated::hash::MacHash;
use crate::authenticated::oracle::Oracle;
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// The check that is played.
const NUMBER: usize = 3;
type Digest = [u8; 32];

/// The bits u of a comparison: the garbler's MACs, and the evaluator's keys and Δ.
struct Bits {
    macs: Vec<Block>,
    keys: Vec<Block>,
    delta: Block,
}

impl Bits {
    fn new(seed: u64) -> Self {
        let mut prg = Prg::from_seed(Block::from_halves(seed, 77));
        let delta = prg.block().with_lsb(true);
        let keys: Vec<Block> = (0..COMPARED).map(|_| prg.block().with_lsb(false)).collect();
        let macs = keys.iter().map(|key| *key ^ (delta & Block::mask(prg.bit()))).collect();
        Bits { macs, keys, delta }
    }

    /// The same to the garbler, under another Δ.
    fn under(&self, delta: Block) -> Self {
        let keys = self.macs.iter().map(|mac| *mac ^ (delta & Block::mask(mac.lsb()))).collect();
        Bits { macs: self.macs.clone(), keys, delta }
    }

    /// What X is for an evaluator that takes c for `padded` and has this digest.
    fn expected(&self, padded: &Digest, digest: &Digest) -> Vec<Block> {
        let bit = |i: usize| (padded[i / 8] ^ digest[i / 8]) >> (i % 8) & 1 == 1;
        let keys = self.keys.iter().enumerate();
        keys.map(|(i, key)| *key ^ (self.delta & Block::mask(bit(i)))).collect()
    }

    /// u as bytes.
    fn choices(&self) -> Digest {
        let mut out = [0; 32];
        self.macs.iter().enumerate().for_each(|(i, mac)| out[i / 8] |= u8::from(mac.lsb()) << (i % 8));
        out
    }
}

fn oracle() -> Oracle {
    Oracle([5; 32])
}

fn proof(garbler: bool, macs: &[Block]) -> Digest {
    let mut hash = MacHash::new(&oracle(), &format!("proof {NUMBER}"), garbler);
    hash.update(macs);
    hash.digest()
}

/// An honest side with the randomness of `seed`.
fn honest(channel: &mut Channel, garbler: bool, digest: Digest, bits: &Bits, seed: u64) -> Result<Prg> {
    let mut own = if garbler { bits.macs.clone() } else { bits.keys.clone() };
    let delta = if garbler { Block::ZERO } else { bits.delta };
    let mut prg = Prg::from_seed(Block::from_halves(seed, 78));
    let digest = Zeroizing::new(digest);
    agree_alike(channel, &oracle(), (garbler, delta), NUMBER, digest, &mut own, &mut prg)
}

fn array(channel: &mut Channel) -> Result<Digest> {
    let mut bytes = [0; 32];
    channel.recv(&mut bytes)?;
    Ok(bytes)
}

fn xor(one: &Digest, other: &Digest) -> Digest {
    std::array::from_fn(|i| one[i] ^ other[i])
}

fn flipped(digest: &Digest, bit: usize) -> Digest {
    let mut out = *digest;
    out[bit / 8] ^= 1 << (bit % 8);
    out
}

/// What a garbler written by hand hears: it pads `padded`, hears p_B, and answers by `answer`.
fn against_evaluator(
    bits: &Bits,
    digest: Digest,
    padded: Digest,
    answer: impl Fn(&Digest) -> Digest + Sync,
) -> (Digest, Result<()>) {
    let (heard, result) = memory::run(
        |channel| {
            let mut prg = Prg::from_seed(Block::new(1));
            // Opens to nothing: the evaluator looks at that first, so the proof is tried with an opened one too.
            let mut context = [0; 32];
            let mut transcript = oracle().transcript("equality");
            transcript.append_u64("check", NUMBER as u64);
            transcript.challenge_bytes("context", &mut context);
            let (commitment, opening) = tacit_crypto::commit::commit(&context, &[7; 32], &mut prg);
            channel.send(&commitment.0).unwrap();
            channel.send(&xor(&padded, &bits.choices())).unwrap();
            let heard = array(channel).unwrap();
            array(channel).unwrap();
            for part in [answer(&heard), [7; 32], opening.0] {
                channel.send(&part).unwrap();
            }
            channel.flush().unwrap();
            heard
        },
        |channel| honest(channel, false, digest, bits, 2).map(drop),
    );
    (heard, result)
}

/// Where the garbler padded the evaluator's digest, it has all that the evaluator sends and expects.
///
/// proof: authenticated 3.1
#[test]
fn with_the_right_digest_the_garbler_can_make_all_that_it_hears() {
    for seed in 0..20 {
        let (bits, digest) = (Bits::new(seed), [seed as u8; 32]);
        let (heard, result) = against_evaluator(&bits, digest, digest, |_| proof(true, &bits.macs));
        assert_eq!(heard, proof(false, &bits.macs));
        result.unwrap();
    }
}

/// With another digest, off by one bit or by many, what the garbler hears follows from a Δ that it does not have,
/// another for each; and nothing that it has is the answer. With Δ it is, so it is for want of that.
///
/// proof: authenticated 3.2
#[test]
fn with_a_wrong_digest_what_the_garbler_hears_and_must_say_depends_on_the_other_delta() {
    let (bits, digest) = (Bits::new(1), [0x5a; 32]);
    let mut prg = Prg::from_seed(Block::new(9));
    for padded in [flipped(&digest, 0), flipped(&digest, 255), [0xa5; 32]] {
        let mut all = std::collections::HashSet::new();
        for _ in 0..40 {
            // All the same to the garbler.
            let bits = bits.under(prg.block().with_lsb(true));
            let own = proof(true, &bits.macs);
            let (heard, result) = against_evaluator(&bits, digest, padded, |_| own);
            assert!(matches!(result, Err(Error::Cheated { .. })));
            assert!(heard != proof(false, &bits.macs) && all.insert(heard), "a proof that says nothing of Δ");
            let (_, result) = against_evaluator(&bits, digest, padded, |heard| *heard);
            assert!(matches!(result, Err(Error::Cheated { .. })), "the evaluator's own proof sent back");
            let x = bits.expected(&xor(&padded, &bits.choices()), &digest);
            let (_, result) = against_evaluator(&bits, digest, padded, |_| proof(true, &x));
            result.unwrap();
        }
    }
}

/// The shifts follow from the digest and both sides' bytes; a garbler that opens other bytes once it has seen the
/// evaluator's is caught.
///
/// proof: authenticated 2.7, 3.4
#[test]
fn shifts_are_of_both_sides_bytes_and_the_garblers_were_fixed_first() {
    struct Reopened(Arc<Mutex<bool>>);
    impl Script for Reopened {
        fn opened_commitment(&mut self, message: &mut Digest) {
            message[31] ^= 1;
            *self.0.lock().unwrap() = true;
        }
    }
    let run = |digest: Digest, seeds: [u64; 2], script: Option<Box<dyn Script + Send>>| {
        let bits = Bits::new(4);
        memory::run(
            |channel| {
                let script = script.map(|script| script as Box<dyn Script>);
                scripted(script, || honest(channel, true, digest, &bits, seeds[0]))
            },
            |channel| honest(channel, false, digest, &Bits::new(4), seeds[1]),
        )
    };
    let mut seen = std::collections::HashSet::new();
    for (digest, seeds) in [([1; 32], [1, 2]), ([1; 32], [3, 2]), ([1; 32], [1, 4]), ([2; 32], [1, 2])] {
        let (one, two) = run(digest, seeds, None);
        let [one, two] = [one, two].map(|prg| prg.unwrap().block().to_u128());
        assert!(one == two && seen.insert(one), "{seeds:?}");
    }
    let reopened = Arc::new(Mutex::new(false));
    let (_, caught) = run([1; 32], [1, 2], Some(Box::new(Reopened(reopened.clone()))));
    assert!(*reopened.lock().unwrap());
    assert!(matches!(caught, Err(Error::Cheated { .. })));
}

/// What an evaluator written by hand sees and does: it hears the commitment and c, answers by `answer`, and hears
/// the rest, or nothing.
fn against_garbler(
    bits: &Bits,
    digest: Digest,
    answer: impl Fn(&Digest) -> Digest + Sync,
) -> ([Digest; 2], Option<Digest>, bool) {
    let (result, (seen, said)) = memory::run(
        |channel| honest(channel, true, digest, bits, 6).map(drop),
        |channel| {
            let seen = [array(channel).unwrap(), array(channel).unwrap()];
            channel.send(&answer(&seen[1])).unwrap();
            channel.send(&[8; 32]).unwrap();
            channel.flush().unwrap();
            (seen, array(channel).ok())
        },
    );
    (seen, said, result.is_ok())
}

/// All that an evaluator sees before its proof is the same for every digest of the garbler's: for each there are
/// bits u, equally likely, that make it so.
///
/// proof: authenticated 4.1
#[test]
fn what_the_evaluator_sees_before_its_proof_fits_every_digest() {
    let bits = Bits::new(11);
    let (digest, other) = ([0x33; 32], [0xc4; 32]);
    let (seen, ..) = against_garbler(&bits, digest, |_| [0; 32]);
    let difference = xor(&digest, &other);
    let moved: Vec<Block> = (bits.macs.iter().enumerate())
        .map(|(i, mac)| *mac ^ (bits.delta & Block::mask(difference[i / 8] >> (i % 8) & 1 == 1)))
        .collect();
    let (again, ..) = against_garbler(&Bits { macs: moved, ..Bits::new(11) }, other, |_| [0; 32]);
    assert_eq!(seen, again);
    assert_eq!(seen[1], xor(&digest, &bits.choices()));
    // And u is as random as correlated OT: each bit of c is 1 about half of the time.
    let mut ones = [0u32; 256];
    for seed in 0..400 {
        let (seen, ..) = against_garbler(&Bits::new(100 + seed), digest, |_| [0; 32]);
        ones.iter_mut().enumerate().for_each(|(i, ones)| *ones += u32::from(seen[1][i / 8] >> (i % 8) & 1));
    }
    assert!(ones.iter().all(|ones| (140..=260).contains(ones)), "{ones:?}");
}

/// An evaluator that waits for c has one guess all the same, and each of these is wrong but the digest itself.
/// What it hears then it can make; of a wrong guess it hears nothing at all.
///
/// proof: authenticated 4.2, 4.3
#[test]
fn an_evaluator_proves_one_digest_and_hears_what_it_has_or_nothing() {
    let (bits, digest) = (Bits::new(12), [0x77; 32]);
    let wrong: [fn(&Digest) -> Digest; 5] = [
        |c| *c,
        |c| c.map(|byte| !byte),
        |_| [0; 32],
        |_| flipped(&[0x77; 32], 0),
        |_| flipped(&[0x77; 32], 200),
    ];
    for guess in wrong {
        let (_, said, passed) =
            against_garbler(&bits, digest, |c| proof(false, &bits.expected(c, &guess(c))));
        assert!(!passed && said.is_none());
    }
    let (seen, said, passed) =
        against_garbler(&bits, digest, |c| proof(false, &bits.expected(c, &[0x77; 32])));
    assert!(passed);
    assert_eq!(said, Some(proof(true, &bits.expected(&seen[1], &digest))));
    // Not the other side's proof, nor one of another check's.
    for label in ["proof 2", "proof 3"] {
        let (_, said, passed) = against_garbler(&bits, digest, |c| {
            let mut hash = MacHash::new(&oracle(), label, label == "proof 3");
            hash.update(&bits.expected(c, &digest));
            hash.digest()
        });
        assert!(!passed && said.is_none(), "{label}");
    }
}

/// No check takes bits that another one took: what pads one digest pads no other.
///
/// proof: authenticated 2.1
#[test]
fn each_comparison_takes_bits_of_its_own() {
    struct Seen(Arc<Mutex<Vec<Vec<u128>>>>);
    impl Script for Seen {
        fn second(&mut self, _: bool, macs: &mut [Block], _: &mut Digest) {
            self.0.lock().unwrap().push(macs.iter().map(|mac| mac.to_u128()).collect());
        }
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let script = Seen(seen.clone());
    let sizes = Reduced { least: Some(1), bucket: Some(4), rows: Some(1), ..Reduced::default() };
    let demand = Demand { ands: 5, garbler_inputs: 1, evaluator_inputs: 1 };
    let made = super::rates::against(Owner::Garbler, script, 3, sizes, |channel, session| {
        session.independent(channel, demand).map(drop)
    });
    made.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    let all: std::collections::HashSet<u128> = seen.iter().flatten().copied().collect();
    assert_eq!(all.len(), 3 * COMPARED);
}
