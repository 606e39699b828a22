//! The "simplest OT" (Chou–Orlandi, 2015/267), over Ristretto.
//!
//! Realises: random OT, in a batch. Security: semi-honest, standalone. It is *not* universally composable (a
//! simulator cannot extract a malicious receiver's choices in time), so no malicious protocol may be seeded
//! with it. Assumptions: random oracle, (gap) Diffie–Hellman. Rounds: two messages. Bytes: 32 to the
//! receiver, 32 an OT to the sender.
//!
//! Deviations: pads hash the [`Run`], both messages, the OT's index and the point, because with the paper's
//! hash alone a batch lets the receiver make messages of several OTs equal or correlated; A is never used for
//! a second batch; the paper's encryption of chosen messages is `standard` of `tacit-bench`.

use super::Run;
use super::one_key::{ReceiverKeys, SenderKey};
use crate::{BaseOt, Functionality, Result, Security};
use tacit_crypto::group::{POINT_BYTES, Points, Scalars};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "co15";

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Co15;

/// The sender between its message and its output.
pub struct Sender(SenderKey);

impl Sender {
    /// Setup: A = a·G, fresh for this batch.
    pub fn start(run: &Run, prg: &mut Prg) -> (Self, Vec<u8>) {
        let (key, message) = SenderKey::draw(run, prg);
        (Sender(key), message)
    }

    /// Key derivation: messages of pair i hash a·B_i and a·(B_i − A).
    ///
    /// Errors when `from_receiver` is not one canonical group element an OT; `out` is untouched then.
    pub fn finish(self, from_receiver: &[u8], out: &mut [[Block; 2]]) -> Result<()> {
        let Sender(key) = self;
        let n = key.run.len();
        key.run.expect_buffer(out.len())?;
        let first = key.multiples(&key.run.decode(from_receiver, n)?);
        let second = first.sub(&key.multiples(&key.public).repeat(n));
        let pads = key.pads(from_receiver);
        let (first, second) = (Zeroizing::new(first.encode()), Zeroizing::new(second.encode()));
        for (i, (pair, keys)) in out.iter_mut().zip(first.iter().zip(second.iter())).enumerate() {
            *pair = [pads.block(i, 0, keys.0), pads.block(i, 1, keys.1)];
        }
        Ok(())
    }
}

/// The receiver's answer to the sender's message: its output and the bytes to send.
///
/// Choose: B_i = b_i·G + c_i·A; key derivation: the message is a hash of b_i·A.
/// Errors when `from_sender` is not one canonical group element; `out` is untouched then.
pub fn receive(
    run: &Run,
    from_sender: &[u8],
    choices: &BitVec,
    prg: &mut Prg,
    out: &mut [Block],
) -> Result<Vec<u8>> {
    let n = run.len();
    run.expect_buffer(out.len())?;
    run.expect_buffer(choices.len())?;
    let big_a = run.decode(from_sender, 1)?;
    let secrets = Scalars::random(n, prg);
    let zero = Points::mul_base(&secrets);
    let one = zero.add(&big_a.repeat(n));
    let message = Points::select(&zero, &one, choices).encode().concat();
    ReceiverKeys::new(run, secrets, choices, &message).finish(from_sender, out)?;
    Ok(message)
}

impl BaseOt for Co15 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn functionality(&self) -> Functionality {
        Functionality::Standalone
    }

    fn bytes(&self, n: usize) -> Option<[usize; 2]> {
        Some([POINT_BYTES, n * POINT_BYTES])
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        let run = Run::sending(NAME, channel, out.len());
        let (sender, message) = Sender::start(&run, prg);
        channel.send(&message)?;
        let mut reply = vec![0u8; out.len() * POINT_BYTES];
        channel.recv(&mut reply)?;
        sender.finish(&reply, out)
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        let run = Run::receiving(NAME, channel, out.len());
        run.expect_buffer(choices.len())?;
        let mut first = [0u8; POINT_BYTES];
        channel.recv(&mut first)?;
        let reply = receive(&run, &first, choices, prg, out)?;
        channel.send(&reply)?;
        Ok(channel.flush()?)
    }
}
