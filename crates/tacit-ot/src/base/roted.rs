//! ROTed over a channel: post-quantum base OT, and random OT with uniform bits.
//!
//! The protocol itself, figure 1 with its repair, stands in [`tacit_roted::roted`] as functions from message
//! to message, because it also has to build without an operating system. Realises: random OT with uniform
//! messages and, by [`Sender`] and [`Receiver`], uniform bits against the sender; as a [`BaseOt`] the
//! receiver brings its bits. Security: malicious, universally composable, static corruption, in the
//! random-oracle model. A malicious receiver's choice is extracted late ([`Extraction::Late`]): the simulator
//! learns which slot it can open only when it asks for the pad, though it can open one slot alone.
//! Assumptions: decisional module-RLWE, and against a malicious receiver a stronger one
//! (`docs/proofs/roted.md`, 4.3). Rounds: three messages. Bytes with the default set: 1,248 and 32 an OT to
//! the sender, 1,312 to the receiver, 96 a batch.

use super::Run;
use crate::{BaseOt, Error, Extraction, Functionality, Result, RotReceiver, RotSender, Security};
use tacit_crypto::ring::XofBlocks;
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::{Channel, Party, SessionId};
use tacit_roted::roted::{self, Choices, Mode};
#[doc(hidden)]
pub use tacit_roted::set;
use tacit_roted::set::Set;
use tacit_roted::{Instance, Role};
use zeroize::Zeroize;

/// The protocol's short name.
pub const NAME: &str = "roted";

/// OTs that share messages; a longer run is several such batches, so that memory stays bounded.
const BATCH: usize = 1024;

/// The parameter sets. Both ends must take the same one; every hash binds it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ParameterSet {
    /// Module of rank 3 over degree 256, q = 7681: 162 bits classical, 147 quantum.
    #[default]
    Module,
    /// Degree 1024, q = 12289: 216 bits classical, 196 quantum.
    Large,
    /// The paper's, degree 512, q = 13313: 110 bits classical, 100 quantum, under the bar. For its tables.
    Paper,
}

/// Runs `$body` with `$set` bound to the parameters that `$which` names.
#[doc(hidden)]
#[macro_export]
macro_rules! with_set {
    ($which:expr, $set:ident => $body:expr) => {
        match $which {
            $crate::base::roted::ParameterSet::Module => {
                let $set = &$crate::base::roted::set::MODULE;
                $body
            }
            $crate::base::roted::ParameterSet::Large => {
                let $set = &$crate::base::roted::set::LARGE;
                $body
            }
            $crate::base::roted::ParameterSet::Paper => {
                let $set = &$crate::base::roted::set::PAPER;
                $body
            }
        }
    };
}
/// The protocol of this module.
#[derive(Clone, Copy, Default, Debug)]
pub struct Roted {
    /// Its parameters.
    pub set: ParameterSet,
}

/// The instance of `batch` of a run, with hashes that bind the run.
#[doc(hidden)]
pub fn instance<const N: usize, const K: usize>(
    set: &Set<N, K>,
    run: &Run,
    protocol: &str,
    batch: usize,
    role: Role,
) -> Instance<N, K> {
    // proof: roted 2.1, 5.2
    let mut binding = [0u8; 32];
    run.oracle("instance").fill(batch, 0, b"", &mut binding);
    Instance::new(set, protocol, &binding, role)
}

/// The error of the message functions, with the protocol's name.
#[doc(hidden)]
pub fn fault(protocol: &'static str, error: tacit_roted::Error) -> Error {
    match error {
        tacit_roted::Error::Cheated(what) => Error::Cheated { protocol, what },
        tacit_roted::Error::Malformed(what) => Error::Malformed { protocol, what },
        _ => Error::Malformed { protocol, what: "not of the protocol's form" },
    }
}

fn label(mode: Mode) -> &'static str {
    match mode {
        Mode::Random => "roted 1, random choices",
        Mode::Chosen => "roted 1, chosen choices",
    }
}

/// One whole run, `set` being the parameters: fills `out`.
fn send<const N: usize, const K: usize>(
    set: &Set<N, K>,
    channel: &mut Channel,
    mode: Mode,
    prg: &mut Prg,
    out: &mut [[Block; 2]],
) -> Result<()> {
    let run = Run::sending(NAME, channel, out.len());
    let whole = out.len();
    let random = &mut XofBlocks::from_prg(prg);
    // proof: roted 2.9
    let result = out.chunks_mut(BATCH).enumerate().try_for_each(|(batch, out)| {
        let instance = instance(set, &run, label(mode), batch, Role::Sender);
        let mut first = vec![0u8; roted::first_len(&instance, out.len())];
        channel.recv(&mut first)?;
        let mut second = Vec::new();
        let state = roted::Sender::answer(&instance, mode, out.len(), &first, random, &mut second)
            .map_err(|e| fault(NAME, e))?;
        channel.send(&second)?;
        let mut third = vec![0u8; roted::third_len(out.len())];
        channel.recv(&mut third)?;
        state.finish(&instance, &third, out).map_err(|e| fault(NAME, e))
    });
    if result.is_err() && whole > BATCH {
        out.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
    result
}

/// One whole run of `out.len()` OTs with the given or random choices; gives the bits.
fn receive<const N: usize, const K: usize>(
    set: &Set<N, K>,
    channel: &mut Channel,
    choices: Option<&BitVec>,
    prg: &mut Prg,
    out: &mut [Block],
) -> Result<BitVec> {
    if choices.is_some_and(|c| c.len() != out.len()) {
        return Err(Error::Usage { protocol: NAME, what: "as many choices as messages are needed" });
    }
    let run = Run::receiving(NAME, channel, out.len());
    let whole = out.len();
    let random = &mut XofBlocks::from_prg(prg);
    let mut bits = BitVec::zeros(out.len());
    // proof: roted 2.9
    let result = out.chunks_mut(BATCH).enumerate().try_for_each(|(batch, messages)| {
        let from = batch * BATCH;
        let mut given: Vec<u8> =
            choices.map_or(vec![], |c| (0..messages.len()).map(|i| c.get(from + i) as u8).collect());
        let wanted = if choices.is_some() { Choices::Given(&given) } else { Choices::Random };
        let instance = instance(set, &run, label(wanted.mode()), batch, Role::Receiver);
        let mut message = Vec::new();
        let state = roted::Receiver::offer(&instance, wanted, messages.len(), random, &mut message);
        channel.send(&message)?;
        let mut second = vec![0u8; roted::second_len(&instance, wanted.mode(), messages.len())];
        channel.recv(&mut second)?;
        message.clear();
        let got = state.open(&instance, &second, random, messages, &mut message);
        given.zeroize();
        let mut got = got.map_err(|e| fault(NAME, e))?;
        channel.send(&message)?;
        for (i, bit) in got.iter().enumerate() {
            bits.set(from + i, *bit == 1);
        }
        got.zeroize();
        Ok(())
    });
    if let Err(error) = result.and_then(|()| Ok(channel.flush()?)) {
        if whole > BATCH {
            out.iter_mut().for_each(Zeroize::zeroize);
        }
        return Err(error);
    }
    Ok(bits)
}

impl BaseOt for Roted {
    fn name(&self) -> &'static str {
        NAME
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn functionality(&self) -> Functionality {
        Functionality::Uniform
    }

    fn extraction(&self) -> Extraction {
        Extraction::Late
    }

    fn bytes(&self, n: usize) -> Option<[usize; 2]> {
        let run = Run::new(NAME, SessionId([0; 32]), Party::First, 0, n);
        let mode = Mode::Chosen;
        Some(with_set!(self.set, set => {
            let instance = instance(set, &run, label(mode), 0, Role::Sender);
            let sizes = (0..n).step_by(BATCH).map(|from| (n - from).min(BATCH)).map(|size| {
                let receiver = roted::first_len(&instance, size) + roted::third_len(size);
                [roted::second_len(&instance, mode, size), receiver]
            });
            sizes.fold([0, 0], |sum, size| [sum[0] + size[0], sum[1] + size[1]])
        }))
    }

    fn send(&self, channel: &mut Channel, prg: &mut Prg, out: &mut [[Block; 2]]) -> Result<()> {
        with_set!(self.set, set => send(set, channel, Mode::Chosen, prg, out))
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        with_set!(self.set, set => receive(set, channel, Some(choices), prg, out)).map(|_| ())
    }
}

/// The sender of random OT whose bits are uniform whatever the sender does. Each `extend` is a run of its
/// own.
pub struct Sender {
    /// The parameters.
    pub set: ParameterSet,
    /// The source of randomness.
    pub prg: Prg,
}

impl RotSender for Sender {
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()> {
        with_set!(self.set, set => send(set, channel, Mode::Random, &mut self.prg, out))
    }
}

/// The receiver of random OT whose bits are uniform whatever the sender does.
pub struct Receiver {
    /// The parameters.
    pub set: ParameterSet,
    /// The source of randomness.
    pub prg: Prg,
}

impl RotReceiver for Receiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec> {
        with_set!(self.set, set => receive(set, channel, None, &mut self.prg, out))
    }
}
