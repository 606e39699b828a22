//! Endemic OT from Diffie–Hellman (Masny–Rindal, 2019/706), over Ristretto.
//!
//! Realises: endemic random OT, in a batch. A malicious sender may choose its pairs, a malicious receiver the
//! messages it receives. Security: malicious, static corruption, universally composable. Assumptions:
//! programmable random oracle; Diffie–Hellman with the sender's one key used for the whole batch (oracle
//! Diffie–Hellman). Rounds: one; both messages cross. Bytes: 32 to the receiver, 64 an OT to the sender.
//!
//! Deviations: one sender's key a batch instead of one an OT, for which every hash binds the [`Run`] and the
//! OT's index and pads bind both messages (2021/682 shows that without such tags the reuse is unsafe); the
//! identity is refused.

use super::one_key::{ReceiverKeys, SenderKey};
use super::{OneRound, Oracle, Run};
use crate::{Extraction, Result};
use subtle::{Choice, ConditionallySelectable};
use tacit_crypto::group::{Encoding, POINT_BYTES, Points, Scalars, UNIFORM_BYTES};
use tacit_crypto::{BitVec, Block, Prg};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "mr19";

/// Bytes of one receiver's pair (r_0, r_1).
const PAIR_BYTES: usize = 2 * POINT_BYTES;

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Mr19;

fn to_group(run: &Run) -> Oracle {
    run.oracle("endemic H")
}

/// The sender between its message and its output.
pub struct Sender(SenderKey);

impl Sender {
    /// First message of the sender: A = a·G, one for the whole batch.
    pub fn start(run: &Run, prg: &mut Prg) -> (Self, Vec<u8>) {
        let (key, message) = SenderKey::draw(run, prg);
        (Sender(key), message)
    }

    /// Output from the receiver's message: message x of pair i is a hash of a·(r_x + H_x(r_{1−x})).
    ///
    /// Errors when `from_receiver` is not two canonical group elements an OT; `out` is untouched then.
    pub fn finish(self, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()> {
        let (run, n) = (&self.0.run, self.0.run.len());
        run.expect_buffer(out.len())?;
        let points = run.decode(from_receiver, 2 * n)?;
        let (encodings, _) = from_receiver.as_chunks::<POINT_BYTES>();
        let h = to_group(run);
        // Entry 2i + x goes with r_x of OT i, so its hash takes the neighbour, r_{1−x}.
        let uniform: Vec<[u8; UNIFORM_BYTES]> =
            (0..2 * n).map(|j| h.uniform(j / 2, (j % 2) as u8, &encodings[j ^ 1])).collect();
        let keys = self.0.multiples(&points.add(&Points::from_uniform(&uniform)));
        let keys = Zeroizing::new(keys.encode());
        let pads = self.0.pads(from_receiver);
        for (j, (message, key)) in out.as_flattened_mut().iter_mut().zip(keys.iter()).enumerate() {
            *message = pads.block(j / 2, (j % 2) as u8, key);
        }
        Ok(())
    }
}

/// The receiver between its message and its output.
pub struct Receiver(ReceiverKeys);

impl Receiver {
    /// First message of the receiver: r_{1−c} a random element, r_c = b·G − H_c(r_{1−c}). It does not wait
    /// for the sender's.
    ///
    /// Errors when `choices` does not have the batch's length.
    pub fn start(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        let n = run.len();
        run.expect_buffer(choices.len())?;
        let secrets = Scalars::random(n, prg);
        // Hashed to the group, so that nobody, the receiver included, knows a discrete logarithm.
        let mut uniform = Zeroizing::new(vec![[0u8; UNIFORM_BYTES]; n]);
        prg.fill_bytes(uniform.as_flattened_mut());
        let others = Zeroizing::new(Points::from_uniform(&uniform).encode());
        let h = to_group(run);
        for (i, (u, other)) in uniform.iter_mut().zip(others.iter()).enumerate() {
            *u = h.uniform(i, choices.get(i) as u8, other);
        }
        let chosen = Points::mul_base(&secrets).sub(&Points::from_uniform(&uniform));
        let chosen = Zeroizing::new(chosen.encode());
        let mut message = Vec::with_capacity(n * PAIR_BYTES);
        for (i, (chosen, other)) in chosen.iter().zip(others.iter()).enumerate() {
            let choice = Choice::from(choices.get(i) as u8);
            message.extend_from_slice(&Encoding::conditional_select(chosen, other, choice));
            message.extend_from_slice(&Encoding::conditional_select(other, chosen, choice));
        }
        Ok((Receiver(ReceiverKeys::new(run, secrets, choices, &message)), message))
    }

    /// Output from the sender's message: a hash of b_i·A.
    ///
    /// Errors when `from_sender` is not one canonical group element; `out` is untouched then.
    pub fn finish(self, from_sender: &[u8], out: &mut [Block]) -> Result<()> {
        self.0.finish(from_sender, out)
    }
}

impl OneRound for Mr19 {
    const NAME: &'static str = NAME;
    const EXTRACTION: Extraction = Extraction::Early;
    const SENDER_BYTES: usize = POINT_BYTES;
    const RECEIVER_BYTES: usize = PAIR_BYTES;
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
