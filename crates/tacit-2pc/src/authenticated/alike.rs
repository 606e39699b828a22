//! Compares what the parties' leaky triples must have in common, and draws what puts them together.

use super::bits::Shares;
use super::deviation::{deviate, passes};
use super::opening::{MacHash, expected, receive_bits, send_bits};
use super::oracle::Oracle;
use super::{Result, cheated};
use subtle::ConstantTimeEq;
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// Authenticated bits that compare two digests take, of each party: as many as a digest has.
pub(super) const COMPARED: usize = 256;

/// Compares what must be alike, and draws randomness that neither party chose, after all that it is for was
/// fixed.
///
/// A digest is never shown, for a cheater might lack no more than some 47 bits of the other's. A party pads its
/// own by bits of which only it has the MACs; so these become MACs of the digest, under the peer's Δ. The peer
/// shows a hash of what they must be if its own digest is the same: to make it takes the right digest, and to
/// learn a wrong one from it takes all of the peer's Δ. The garbler commits to its part of the randomness
/// before it sees the evaluator's, and opens it only if the digests agree.
pub(super) fn agree_alike(
    channel: &mut Channel,
    oracle: &Oracle,
    (garbler, delta): (bool, Block),
    number: usize,
    mut digest: Zeroizing<[u8; 32]>,
    bits: &mut Shares,
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
    deviate(|script| script.alike(&mut digest));
    let mine = BitVec::from_bytes(&*digest, COMPARED);
    let mut padded = BitVec::from_lsbs(&bits.macs);
    padded.xor_assign(&mine);
    let expected_proof = proof_of(!garbler, &bits.macs);
    // Of the peer's digest, if it is this one.
    let mut prove = |mut theirs: BitVec| {
        theirs.xor_assign(&mine);
        expected(&mut bits.keys, &theirs, delta);
        let mut proof = proof_of(garbler, &bits.keys);
        deviate(|script| script.proof(&mut proof));
        proof
    };
    let (mut random, mut theirs, mut proof) = ([0u8; 32], [0u8; 32], [0u8; 32]);
    prg.fill_bytes(&mut random);
    const UNLIKE: &str = "a triple is wrong, or a bit of it was guessed";
    if garbler {
        let (commitment, opening) = commit(&context, &random, prg);
        channel.send(&commitment.0)?;
        send_bits(channel, &padded)?;
        let of_peer = receive_bits(channel, COMPARED)?;
        channel.recv(&mut proof)?;
        channel.recv(&mut theirs)?;
        if !passes(proof.ct_eq(&expected_proof)) {
            return cheated(UNLIKE);
        }
        channel.send(&prove(of_peer))?;
        deviate(|script| script.opened_commitment(&mut random));
        channel.send(&random)?;
        channel.send(&opening.0)?;
    } else {
        let (mut commitment, mut opening) = (Commitment([0; 32]), Opening([0; 32]));
        channel.recv(&mut commitment.0)?;
        let of_peer = receive_bits(channel, COMPARED)?;
        send_bits(channel, &padded)?;
        channel.send(&prove(of_peer))?;
        channel.send(&random)?;
        channel.recv(&mut proof)?;
        channel.recv(&mut theirs)?;
        channel.recv(&mut opening.0)?;
        if !verify(&context, &theirs, &commitment, &opening) {
            return cheated("a commitment is opened to something else");
        }
        if !passes(proof.ct_eq(&expected_proof)) {
            return cheated(UNLIKE);
        }
    }
    let (of_garbler, of_evaluator) = if garbler { (&random, &theirs) } else { (&theirs, &random) };
    transcript.append("alike", &*digest);
    transcript.append("garbler", of_garbler);
    transcript.append("evaluator", of_evaluator);
    Ok(transcript.challenge_prg("shifts"))
}
