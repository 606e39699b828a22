//! OT from dual-mode encryption, decisional Diffie–Hellman form (Peikert–Vaikuntanathan–Waters, 2007/348,
//! section 5), over Ristretto.
//!
//! Realises: random OT whose messages a malicious sender chooses. Security: malicious, static corruption,
//! universally composable with a common reference string; against the receiver it is statistical (the string
//! is of the messy kind). Assumptions: decisional Diffie–Hellman; the string (g_0, h_0, g_1, h_1) is hashed
//! to the group from the [`Run`], for which the random oracle must be programmable. Rounds: two messages.
//! Bytes: 64 an OT each way.
//!
//! Deviations: the sender's messages are random, so instead of a group element that hides an encoded message
//! the key itself is hashed, which saves 64 bytes an OT and the encoding into the group;
//! [`standard`](super::standard) gives chosen messages. Hashes bind the [`Run`], both messages, index and
//! branch; the identity is refused.

use tacit_crypto::group::{POINT_BYTES, Points, Scalars, Table};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::base::Run;
use tacit_ot::{BaseOt, Extraction, Functionality, Result, Security};
use zeroize::Zeroizing;

/// The protocol's short name.
pub const NAME: &str = "pvw08";

/// Bytes of one OT in either message.
const PAIR_BYTES: usize = 2 * POINT_BYTES;

/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pvw08;

/// The common reference string: four elements without known relation, hashed from the run.
struct Crs {
    g: [Table; 2],
    h: [Table; 2],
}

impl Crs {
    fn new(run: &Run) -> Self {
        let oracle = run.oracle("pvw crs");
        let table = |i| Table::new(&Points::from_uniform(&[oracle.uniform(i, 0, b"")]), run.len());
        Crs { g: [table(0), table(1)], h: [table(2), table(3)] }
    }
}

/// The receiver between its message and its output.
pub struct Receiver {
    run: Run,
    secrets: Scalars,
    choices: BitVec,
    message: Vec<u8>,
}

impl Receiver {
    /// KeyGen(σ): the public key (g, h) = (r·g_σ, r·h_σ); all g, then all h.
    ///
    /// Errors when `choices` does not have the batch's length.
    pub fn start(run: &Run, choices: &BitVec, prg: &mut Prg) -> Result<(Self, Vec<u8>)> {
        run.expect_buffer(choices.len())?;
        let secrets = Scalars::random(run.len(), prg);
        let crs = Crs::new(run);
        // Both branches from tables, then a selection, is faster than one product of a selected base.
        let mut message = Vec::with_capacity(run.len() * PAIR_BYTES);
        for [zero, one] in [&crs.g, &crs.h] {
            let keys = Points::select(&zero.mul(&secrets), &one.mul(&secrets), choices);
            message.extend_from_slice(keys.encode().as_flattened());
        }
        let state =
            Receiver { run: run.clone(), secrets, choices: choices.clone(), message: message.clone() };
        Ok((state, message))
    }

    /// Dec: the message hashes r·u_σ.
    ///
    /// Errors when `from_sender` is not two canonical group elements an OT; `out` is untouched then.
    pub fn finish(self, from_sender: &[u8], out: &mut [Block]) -> Result<()> {
        let (run, n) = (&self.run, self.run.len());
        run.expect_buffer(out.len())?;
        run.expect_len(from_sender, n * PAIR_BYTES)?;
        let (zero, one) = from_sender.split_at(n * POINT_BYTES);
        let chosen = Points::select(&run.decode(zero, n)?, &run.decode(one, n)?, &self.choices);
        let keys = Zeroizing::new(chosen.mul(&self.secrets).encode());
        let pads = run.oracle_over("pad", &[&self.message, from_sender]);
        for (i, (out, key)) in out.iter_mut().zip(keys.iter()).enumerate() {
            *out = pads.block(i, self.choices.get(i) as u8, key);
        }
        Ok(())
    }
}

/// The sender's answer to the receiver's message: its output and the bytes to send (all u_0, then all u_1).
///
/// Enc under both keys: for random s, t, u_b = s·g_b + t·h_b, and message b hashes s·g + t·h.
/// Errors when `from_receiver` is not two canonical group elements an OT; `out` is untouched then.
pub fn send(run: &Run, from_receiver: &[u8], prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<Vec<u8>> {
    let n = run.len();
    run.expect_buffer(out.len())?;
    run.expect_len(from_receiver, n * PAIR_BYTES)?;
    let (g, h) = from_receiver.split_at(n * POINT_BYTES);
    let (g, h) = (run.decode(g, n)?, run.decode(h, n)?);
    let crs = Crs::new(run);
    let mut message = Vec::with_capacity(n * PAIR_BYTES);
    let mut keys = Vec::with_capacity(2);
    for b in 0..2 {
        let (s, t) = (Scalars::random(n, prg), Scalars::random(n, prg));
        let u = crs.g[b].mul(&s).add(&crs.h[b].mul(&t));
        message.extend_from_slice(u.encode().as_flattened());
        keys.push(Zeroizing::new(g.mul(&s).add(&h.mul(&t)).encode()));
    }
    let pads = run.oracle_over("pad", &[from_receiver, &message]);
    for (b, keys) in keys.iter().enumerate() {
        for (i, (pair, key)) in out.iter_mut().zip(keys.iter()).enumerate() {
            pair[b] = pads.block(i, b as u8, key);
        }
    }
    Ok(message)
}

impl BaseOt for Pvw08 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn functionality(&self) -> Functionality {
        Functionality::SenderChosen
    }

    fn extraction(&self) -> Extraction {
        Extraction::Early
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        let run = Run::sending(NAME, channel, out.len());
        let mut first = vec![0u8; out.len() * PAIR_BYTES];
        channel.recv(&mut first)?;
        let reply = send(&run, &first, prg, out)?;
        channel.send(&reply)?;
        Ok(channel.flush()?)
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
        let mut reply = vec![0u8; out.len() * PAIR_BYTES];
        channel.recv(&mut reply)?;
        receiver.finish(&reply, out)
    }
}
