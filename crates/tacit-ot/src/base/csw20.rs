//! "Blazing fast" base OT with a challenge, a proof and a response (Canetti–Sarkar–Wang, 2020/110), over
//! Ristretto.
//!
//! Realises: random OT with selective failure, in a batch: a malicious sender may guess choice bits, and the
//! first wrong guess makes the receiver abort. OT extension with a consistency check tolerates that leak;
//! other uses may not. Security: malicious, static corruption, universally composable. Assumptions:
//! observable random oracle, computational Diffie–Hellman. Rounds: three messages. Bytes: 32 and 32 an OT to
//! the sender, 64 and 16 an OT to the receiver, 32 back.
//!
//! Deviations: the paper's hashes forget the OT's index, so that a receiver may send one element for several
//! OTs and get equal messages; here every hash binds the [`Run`], the index and the branch, and pads bind
//! both messages. The argument that extracts a malicious party's inputs needs more than 2ρ OTs, so a smaller
//! batch is padded to 80 with random choices. Seed, response and proof have 2κ bits.

use super::{Oracle, Run};
use crate::{BaseOt, Extraction, Functionality, Result, Security};
use subtle::ConstantTimeEq;
use tacit_crypto::group::{POINT_BYTES, Points, Scalars, Table};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::{Zeroize, Zeroizing};

/// The protocol's short name.
pub const NAME: &str = "csw20";

/// The least number of OTs that a batch really runs, 2ρ.
pub(crate) const MIN_BATCH: usize = 80;

const DIGEST_BYTES: usize = 32;
const CHALLENGE_BYTES: usize = 16;

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Csw20;

/// Number of OTs really run for a batch of `n`.
fn padded(n: usize) -> usize {
    n.max(MIN_BATCH)
}

fn first_bytes(n: usize) -> usize {
    DIGEST_BYTES + padded(n) * POINT_BYTES
}

fn second_bytes(n: usize) -> usize {
    POINT_BYTES + padded(n) * CHALLENGE_BYTES + DIGEST_BYTES
}

/// H_1: the second base T.
fn second_base(run: &Run, seed: &[u8]) -> Points {
    Points::from_uniform(&[run.oracle("csw H1").uniform(0, 0, seed)])
}

/// H_4 and then H_3: the response that both sides must know, and the sender's proof of it.
fn response_and_proof(run: &Run, z: &[u8], first: &[u8], answers: &[Block]) -> ([u8; 32], [u8; 32]) {
    let oracle = run.oracle_over("csw answer", &[first, z]);
    let (mut response, mut proof) = ([0u8; DIGEST_BYTES], [0u8; DIGEST_BYTES]);
    oracle.fill(0, 0, Block::as_bytes(answers), &mut response);
    oracle.fill(0, 1, &response, &mut proof);
    (response, proof)
}

/// The receiver between its first message and its output.
pub struct Receiver {
    run: Run,
    secrets: Scalars,
    choices: BitVec,
    message: Vec<u8>,
}

impl Receiver {
    /// First message: a seed, T = H_1(seed), and B_i = α_i·G + c_i·T.
    ///
    /// Errors when `choices` does not have the batch's length.
    pub fn start(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        run.expect_buffer(choices.len())?;
        let n = padded(run.len());
        let mut padded_choices = BitVec::random(n, prg);
        for (i, choice) in choices.iter().enumerate() {
            padded_choices.set(i, choice);
        }
        let mut message = vec![0u8; DIGEST_BYTES];
        prg.fill_bytes(&mut message);
        let secrets = Scalars::random(n, prg);
        let zero = Points::mul_base(&secrets);
        let one = zero.add(&second_base(run, &message).repeat(n));
        let chosen = Points::select(&zero, &one, &padded_choices);
        message.extend_from_slice(chosen.encode().as_flattened());
        let state = Receiver { run: run.clone(), secrets, choices: padded_choices, message: message.clone() };
        Ok((state, message))
    }

    /// Output and third message: p_i hashes α_i·z; the response is computed from it and the challenges, and
    /// must match the sender's proof.
    ///
    /// Errors when `from_sender` is malformed or its proof is wrong; `out` is untouched then, and nothing may
    /// be sent.
    pub fn finish(self, from_sender: &[u8], out: &mut [Block]) -> Result<Vec<u8>> {
        let (run, n) = (&self.run, self.choices.len());
        run.expect_buffer(out.len())?;
        run.expect_len(from_sender, second_bytes(run.len()))?;
        let (z_bytes, rest) = from_sender.split_at(POINT_BYTES);
        let (challenges, proof) = rest.split_at(n * CHALLENGE_BYTES);
        let z = run.decode(z_bytes, 1)?;
        let keys = Zeroizing::new(Table::new(&z, n).mul(&self.secrets).encode());
        let (pad, short) = oracles(run, z_bytes, &self.message);
        let mut pads = Zeroizing::new(vec![Block::ZERO; n]);
        let mut answers = Zeroizing::new(vec![Block::ZERO; n]);
        let (challenges, _) = challenges.as_chunks::<CHALLENGE_BYTES>();
        for (i, (key, challenge)) in keys.iter().zip(challenges).enumerate() {
            let choice = self.choices.get(i);
            pads[i] = pad.block(i, choice as u8, key);
            let own = short.block(i, choice as u8, &pads[i].to_bytes());
            answers[i] = own ^ (Block::from_bytes(*challenge) & Block::mask(choice));
        }
        let (response, expected) = response_and_proof(run, z_bytes, &self.message, &answers);
        // proof: base-ot 5.3
        if !bool::from(expected[..].ct_eq(proof)) {
            return Err(run.cheated("the sender's proof does not fit its challenges"));
        }
        out.copy_from_slice(&pads[..run.len()]);
        Ok(response.to_vec())
    }
}

/// H_2 for pads and H_3 for challenges.
fn oracles(run: &Run, z: &[u8], first: &[u8]) -> (Oracle, Oracle) {
    (run.oracle_over("pad", &[first, z]), run.oracle_over("csw H3", &[first, z]))
}

/// The sender between its message and the receiver's response.
pub struct Sender {
    run: Run,
    pads: Vec<[Block; 2]>,
    response: [u8; DIGEST_BYTES],
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.pads.zeroize();
        self.response.zeroize();
    }
}

impl Sender {
    /// Second message: z = r·G, the challenges and the proof; p_{i,0} hashes r·B_i and p_{i,1} hashes r·(B_i
    /// − T).
    ///
    /// Errors when `from_receiver` is malformed.
    pub fn start(run: &Run, from_receiver: &[u8], prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        run.expect_len(from_receiver, first_bytes(run.len()))?;
        let n = padded(run.len());
        let (seed, elements) = from_receiver.split_at(DIGEST_BYTES);
        let elements = run.decode(elements, n)?;
        let secret = Scalars::random(1, prg);
        let mut message = Points::mul_base(&secret).encode().concat();
        let first = elements.mul_same(&secret);
        let second = first.sub(&second_base(run, seed).mul_same(&secret).repeat(n));
        let (first, second) = (Zeroizing::new(first.encode()), Zeroizing::new(second.encode()));

        let (pad, short) = oracles(run, &message, from_receiver);
        let mut pads = Vec::with_capacity(n);
        let mut answers = Zeroizing::new(vec![Block::ZERO; n]);
        let mut challenges = Vec::with_capacity(n);
        for (i, (k0, k1)) in first.iter().zip(second.iter()).enumerate() {
            let pair = [pad.block(i, 0, k0), pad.block(i, 1, k1)];
            answers[i] = short.block(i, 0, &pair[0].to_bytes());
            challenges.push(answers[i] ^ short.block(i, 1, &pair[1].to_bytes()));
            pads.push(pair);
        }
        let (response, proof) = response_and_proof(run, &message, from_receiver, &answers);
        message.extend_from_slice(Block::as_bytes(&challenges));
        message.extend_from_slice(&proof);
        Ok((Sender { run: run.clone(), pads, response }, message))
    }

    /// Output, once the receiver's response has shown that it knows one message of every pair.
    ///
    /// Errors when the response is wrong; `out` is untouched then.
    pub fn finish(self, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()> {
        self.run.expect_buffer(out.len())?;
        self.run.expect_len(from_receiver, DIGEST_BYTES)?;
        // proof: base-ot 5.4
        if !bool::from(self.response[..].ct_eq(from_receiver)) {
            return Err(self.run.cheated("the receiver's response is not the challenges' answer"));
        }
        out.copy_from_slice(&self.pads[..out.len()]);
        Ok(())
    }
}

impl BaseOt for Csw20 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn functionality(&self) -> Functionality {
        Functionality::SelectiveFailure
    }

    fn extraction(&self) -> Extraction {
        Extraction::Early
    }

    fn bytes(&self, n: usize) -> Option<[usize; 2]> {
        Some([second_bytes(n), first_bytes(n) + DIGEST_BYTES])
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        let run = Run::sending(NAME, channel, out.len());
        let mut first = vec![0u8; first_bytes(out.len())];
        channel.recv(&mut first)?;
        let (sender, message) = Sender::start(&run, &first, prg)?;
        channel.send(&message)?;
        let mut response = [0u8; DIGEST_BYTES];
        channel.recv(&mut response)?;
        sender.finish(&response, out)
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        let run = Run::receiving(NAME, channel, out.len());
        let (receiver, message) = Receiver::start(&run, choices, prg)?;
        channel.send(&message)?;
        let mut second = vec![0u8; second_bytes(out.len())];
        channel.recv(&mut second)?;
        let response = receiver.finish(&second, out)?;
        channel.send(&response)?;
        Ok(channel.flush()?)
    }
}
