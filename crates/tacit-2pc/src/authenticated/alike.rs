//! Compares what the parties' leaky triples must have in common, and draws what puts them together.

use super::deviation::{deviate, passes};
use super::hash::MacHash;
use super::opening::{expected, receive_bits, send_bits};
use super::oracle::Oracle;
use super::{Result, cheated};
use subtle::ConstantTimeEq;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// The garbler's authenticated bits that a comparison takes: as many as a digest has.
pub(super) const COMPARED: usize = 256;

const UNLIKE: &str = "a triple is wrong, or a bit of it was guessed";

/// Compares what must be alike, and draws randomness that neither party chose, after all that it is for was
/// fixed.
///
/// A digest is never shown, for a cheater might lack no more than some 43 bits of the other's. The garbler pads
/// its own by fresh bits u, so that for the evaluator, who has their keys, they become bits of which the sum with
/// its own digest is zero if the two are the same. Both then show a hash of u's MACs, the evaluator first.
///
/// - The evaluator can make the MACs of the digest that it takes for the garbler's, and of one alone: it guesses
///   before it has heard anything.
/// - The garbler hears whether the digest that it padded is the evaluator's, and cannot change it any more: its
///   hash is of MACs that the evaluator knows only if it is. Of another digest's it lacks all of the peer's Δ.
///
/// The garbler commits to its part of the randomness before it sees the evaluator's, and opens it only if the
/// digests agree. `bits` are the MACs of u, or their keys, and are used up.
pub(super) fn agree_alike(
    channel: &mut Channel,
    oracle: &Oracle,
    (garbler, delta): (bool, Block),
    number: usize,
    mut digest: Zeroizing<[u8; 32]>,
    bits: &mut [Block],
    prg: &mut Prg,
) -> Result<Prg> {
    let mut context = [0u8; 32];
    let mut transcript = oracle.transcript("equality");
    transcript.append_u64("check", number as u64);
    transcript.challenge_bytes("context", &mut context);
    let proof_of = |garbler: bool, macs: &[Block]| {
        let mut hash = MacHash::new(oracle, &format!("proof {number}"), garbler);
        hash.update(macs);
        hash.digest()
    };
    let (mut random, mut theirs, mut proof) = ([0u8; 32], [0u8; 32], [0u8; 32]);
    prg.fill_bytes(&mut random);
    if garbler {
        deviate(|script| script.alike(&mut digest));
        // proof: authenticated 2.3
        let (commitment, opening) = commit(&context, &random, prg);
        channel.send(&commitment.0)?;
        let mut padded = BitVec::from_lsbs(bits);
        padded.xor_assign(&BitVec::from_bytes(&*digest, COMPARED));
        send_bits(channel, &padded)?;
        channel.recv(&mut proof)?;
        channel.recv(&mut theirs)?;
        // proof: authenticated 2.5
        let right = proof.ct_eq(&proof_of(false, bits));
        deviate(|script| script.second(right.into(), bits, &mut digest));
        if !passes(right) {
            return cheated(UNLIKE);
        }
        let mut mine = proof_of(true, bits);
        deviate(|script| script.proof(&mut mine));
        channel.send(&mine)?;
        deviate(|script| script.opened_commitment(&mut random));
        channel.send(&random)?;
        channel.send(&opening.0)?;
    } else {
        let (mut commitment, mut opening) = (Commitment([0; 32]), Opening([0; 32]));
        channel.recv(&mut commitment.0)?;
        let mut padded = receive_bits(channel, COMPARED)?;
        deviate(|script| script.alike(&mut digest));
        padded.xor_assign(&BitVec::from_bytes(&*digest, COMPARED));
        // proof: authenticated 2.4
        expected(bits, &padded, delta);
        let mut mine = proof_of(false, bits);
        deviate(|script| script.proof(&mut mine));
        channel.send(&mine)?;
        channel.send(&random)?;
        channel.recv(&mut proof)?;
        channel.recv(&mut theirs)?;
        channel.recv(&mut opening.0)?;
        // proof: authenticated 2.6
        if !verify(&context, &theirs, &commitment, &opening) {
            return cheated("a commitment is opened to something else");
        }
        if !passes(proof.ct_eq(&proof_of(true, bits))) {
            return cheated(UNLIKE);
        }
    }
    // proof: authenticated 2.7
    let (of_garbler, of_evaluator) = if garbler { (&random, &theirs) } else { (&theirs, &random) };
    transcript.append("alike", &*digest);
    transcript.append("garbler", of_garbler);
    transcript.append("evaluator", of_evaluator);
    Ok(transcript.challenge_prg("shifts"))
}
