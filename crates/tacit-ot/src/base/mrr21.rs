//! Batched base OT from a programmable-once public function (McQuoid–Rosulek–Roy, "Batching Base Oblivious
//! Transfers", 2021/682), over Ristretto.
//!
//! Realises: endemic random OT, in a batch. A malicious sender may bias its pairs, a malicious receiver the
//! messages it receives; nobody learns what it should not. That seeds OT extension; `rot_from_ot` of
//! `tacit-bench` makes messages uniform. Security: malicious, static corruption, universally composable.
//! Assumptions: programmable random oracle; Diffie–Hellman with the sender's one key used for the whole batch
//! (oracle Diffie–Hellman, as in the paper's tagged key agreement). Rounds: one; both messages cross. Bytes:
//! 32 to the receiver, 80 an OT to the sender.
//!
//! The function is the paper's two-round Feistel one: φ = (s, t) with s a group element and t of 3κ bits,
//! `Eval(φ, x) = s + H(x, t ⊕ H'(x, s))`.
//!
//! Deviations: every hash binds the [`Run`] and the OT's index, pads bind both messages too (the tags that
//! the paper asks for); the identity is refused as a group element, which an honest party sends with
//! probability 2^-252.

use super::one_key::{ReceiverKeys, SenderKey};
use super::{OneRound, Oracle, Run};
use crate::{Extraction, Result};
use tacit_crypto::group::{Encoding, POINT_BYTES, Points, Scalars, UNIFORM_BYTES};
use tacit_crypto::{BitVec, Block, Prg};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "mrr21";

/// Bytes of t, 3κ bits (McQuoid–Rosulek–Roy 2020/1043, section 6.1: the simulator's bad events are collisions
/// on t).
// proof: base-ot 6.1
const T_BYTES: usize = 48;
/// Bytes of one φ = (s, t).
const PHI_BYTES: usize = POINT_BYTES + T_BYTES;

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mrr21;

/// The programmable-once public function of one batch.
struct Feistel {
    to_group: Oracle,
    to_t: Oracle,
}

impl Feistel {
    fn new(run: &Run) -> Self {
        Feistel { to_group: run.oracle("popf H"), to_t: run.oracle("popf H'") }
    }

    /// Program(x_i, y_i): writes φ_i with Eval(φ_i, x_i) = y_i and any other value random.
    fn program(&self, x: &BitVec, y: &Points, prg: &mut Prg) -> Vec<u8> {
        let mut r = Zeroizing::new(vec![[0u8; T_BYTES]; x.len()]);
        prg.fill_bytes(r.as_flattened_mut());
        let inputs = r.iter().zip(x.iter()).enumerate();
        let uniform: Zeroizing<Vec<_>> =
            Zeroizing::new(inputs.map(|(i, (r, x))| self.to_group.uniform(i, x as u8, r)).collect());
        // proof: base-ot 2.2
        let s = y.sub(&Points::from_uniform(&uniform)).encode();
        let mut phi = Vec::with_capacity(x.len() * PHI_BYTES);
        for (i, (s, r)) in s.iter().zip(r.iter()).enumerate() {
            phi.extend_from_slice(s);
            phi.extend_from_slice(&self.mask(i, x.get(i) as u8, s, r));
        }
        phi
    }

    /// What of Eval(φ_i, x) is to be hashed to the group: t ⊕ H'(x, s), hashed by H.
    fn uniform_part(&self, i: usize, x: u8, s: &Encoding, t: &[u8; T_BYTES]) -> [u8; UNIFORM_BYTES] {
        self.to_group.uniform(i, x, &self.mask(i, x, s, t))
    }

    fn mask(&self, i: usize, x: u8, s: &Encoding, t: &[u8; T_BYTES]) -> [u8; T_BYTES] {
        let mut out = [0u8; T_BYTES];
        self.to_t.fill(i, x, s, &mut out);
        out.iter_mut().zip(t).for_each(|(o, t)| *o ^= t);
        out
    }
}

/// The sender between its message and its output.
pub struct Sender(SenderKey);

impl Sender {
    /// First message of the sender: A = a·G, one for the whole batch.
    pub fn start(run: &Run, prg: &mut Prg) -> (Self, Vec<u8>) {
        let (key, message) = SenderKey::draw(run, prg);
        (Sender(key), message)
    }

    /// Output from the receiver's message: message x of pair i is a hash of a·Eval(φ_i, x).
    ///
    /// Errors when `from_receiver` is not 80 bytes an OT or holds no canonical group element; `out` is
    /// untouched then.
    pub fn finish(self, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()> {
        let (run, n) = (&self.0.run, self.0.run.len());
        run.expect_buffer(out.len())?;
        run.expect_len(from_receiver, n * PHI_BYTES)?;
        let (phi, _) = from_receiver.as_chunks::<PHI_BYTES>();
        let s: Vec<u8> = phi.iter().flat_map(|phi| phi[..POINT_BYTES].iter().copied()).collect();
        let s_points = run.decode(&s, n)?;
        let (s, _) = s.as_chunks::<POINT_BYTES>();

        let feistel = Feistel::new(run);
        let pads = self.0.pads(from_receiver);
        for x in 0..2u8 {
            let mut uniform = vec![[0u8; UNIFORM_BYTES]; n];
            for (i, (u, phi)) in uniform.iter_mut().zip(phi).enumerate() {
                if let Some(t) = phi.last_chunk::<T_BYTES>() {
                    *u = feistel.uniform_part(i, x, &s[i], t);
                }
            }
            let keys = self.0.multiples(&s_points.add(&Points::from_uniform(&uniform)));
            let keys = Zeroizing::new(keys.encode());
            for (i, (pair, key)) in out.iter_mut().zip(keys.iter()).enumerate() {
                pair[x as usize] = pads.block(i, x, key);
            }
        }
        Ok(())
    }
}

/// The receiver between its message and its output.
pub struct Receiver(ReceiverKeys);

impl Receiver {
    /// First message of the receiver: φ_i = Program(c_i, b_i·G) for every OT. It does not wait for the
    /// sender's.
    ///
    /// Errors when `choices` does not have the batch's length.
    pub fn start(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        run.expect_buffer(choices.len())?;
        let secrets = Scalars::random(run.len(), prg);
        let message = Feistel::new(run).program(choices, &Points::mul_base(&secrets), prg);
        Ok((Receiver(ReceiverKeys::new(run, secrets, choices, &message)), message))
    }

    /// Output from the sender's message: a hash of b_i·A.
    ///
    /// Errors when `from_sender` is not one canonical group element; `out` is untouched then.
    pub fn finish(self, from_sender: &[u8], out: &mut [Block]) -> Result<()> {
        self.0.finish(from_sender, out)
    }
}

impl OneRound for Mrr21 {
    const NAME: &'static str = NAME;
    const EXTRACTION: Extraction = Extraction::Early;
    const SENDER_BYTES: usize = POINT_BYTES;
    const RECEIVER_BYTES: usize = PHI_BYTES;
    type Sender = Sender;
    type Receiver = Receiver;

    fn start_sender(run: &Run, prg: &mut Prg) -> (Sender, Vec<u8>) {
        Sender::start(run, prg)
    }

    fn start_receiver(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Receiver, Vec<u8>)> {
        Receiver::start(run, choices, prg)
    }

    fn finish_sender(sender: Sender, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()> {
        sender.finish(from_receiver, out)
    }

    fn finish_receiver(receiver: Receiver, from_sender: &[u8], out: &mut [Block]) -> Result<()> {
        receiver.finish(from_sender, out)
    }
}
