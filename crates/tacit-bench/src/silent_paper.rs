//! Silent OT as the paper has it (Boyle–Couteau–Gilboa–Ishai–Kohl–Rindal–Scholl, CCS '19, figures 6, 13, 16
//! and 20 with p = 2): GGM trees over t·ℓ random OTs of any source, made malicious in four rounds, or in two
//! by Fiat–Shamir. It exists to be compared: `cargo bench -p tacit-bench --bench silent_paper` holds it
//! against the library's [`bcgikrs19`], which is smaller and faster. [`nisc`](tacit_ot::silent::nisc) is the
//! form whose two messages hold the base OTs too.
//!
//! - **Realises** one batch of random correlated OTs with a Δ of the sender's, against semi-honest or
//!   malicious parties, in the random-oracle and ideal-permutation models, under dual LPN with regular noise,
//!   and with malicious security with one bit of static leakage.
//! - **Messages**, given the random OTs: the receiver's t·ℓ bits, the sender's 32 bytes an OT and 64 a tree
//!   (16 semi-honest), and with four rounds the receiver's challenge of 16 bytes and the sender's answer of
//!   32, which with two rounds goes along.
//! - One batch a call: between batches nothing would hold a malicious sender to its Δ.
//!
//! Deviations from the paper: see [`tpprf`](tacit_ot::silent::tpprf).

use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::{Channel, Party};
use tacit_ot::convert::{chosen_messages, chosen_pairs};
use tacit_ot::silent::bcgikrs19::{self, Code};
use tacit_ot::silent::tpprf::{Received, SenderTrees, Setup};
use tacit_ot::{Error, Result, RotReceiver, RotSender, Security};

/// The name in errors.
pub const NAME: &str = "silent paper";

/// Where the challenges of malicious security come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rounds {
    /// From a hash of what was said (section 6.6).
    Two,
    /// τ from the receiver (section 6.3); the weights, drawn after X, from a hash of it and of what was said.
    Four,
}

/// What both parties must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The public matrix.
    pub code: Code,
    /// Whether the sender proves that it did as told.
    pub security: Security,
    /// How it proves it.
    pub rounds: Rounds,
    /// Number of correlations, from 1 to 2^24.
    pub count: usize,
}

impl Config {
    fn malicious(&self) -> bool {
        self.security == Security::Malicious
    }

    fn setup(&self, channel: &mut Channel, receives: bool) -> Result<Setup> {
        if !(1..=bcgikrs19::LARGEST_RUN).contains(&self.count) {
            let what = "the number of correlations must be from 1 to 2^24";
            return Err(Error::Usage { protocol: NAME, what });
        }
        let mut context = Transcript::new("tacit silent paper v4");
        context.append("session", &channel.session_id().0);
        context.append_u64("receiver", ((channel.party() == Party::First) == receives) as u64);
        context.append_u64("instance", channel.next_instance());
        context.append("code", self.code.name().as_bytes());
        context.append_u64("malicious", self.malicious() as u64);
        context.append_u64("rounds", (self.rounds == Rounds::Four) as u64);
        context.append_u64("count", self.count as u64);
        Ok(Setup::new(NAME, self.code, self.count, self.security, context))
    }

    /// The correlations that the leaves give.
    fn compress(&self, setup: &Setup, leaves: Buffer) -> Vec<Block> {
        let mut out = Vec::with_capacity(self.count);
        setup.encode(self.code, leaves, self.count, &mut |piece| out.extend_from_slice(piece));
        out
    }
}

fn parameters(setup: &Setup) -> [u8; 32] {
    let mut digest = [0; 32];
    setup.context.clone().challenge_bytes("parameters", &mut digest);
    digest
}

/// The sender's side of a batch, out of random OTs of `rot`, in which it sends: Δ, and a block for each
/// correlation.
///
/// Errors: those of the link and of `rot`; `Usage` for a count out of range; `Malformed` when the peer's
/// configuration is another.
pub fn send(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    config: Config,
    prg: &mut Prg,
) -> Result<(Block, Vec<Block>)> {
    send_with(channel, rot, config, prg, |_| ())
}

/// [`send`]; `change` sees message and answer before they go, and before challenges come from a hash.
fn send_with(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    config: Config,
    prg: &mut Prg,
    change: impl Fn(&mut [u8]),
) -> Result<(Block, Vec<Block>)> {
    let mut setup = config.setup(channel, false)?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    if theirs != parameters(&setup) {
        let what =
            "the peer's parameters are others; give both sides the same code, security, rounds and count";
        return Err(Error::Malformed { protocol: NAME, what });
    }
    let (pads, bits) = chosen_pairs(channel, rot, setup.ots())?;
    setup.context.append("choices", bits.as_bytes());
    let delta = prg.block().with_lsb(true);
    let trees = SenderTrees::draw(&setup, delta, prg);
    let mut message = trees.message(&setup, &pads);
    change(&mut message);
    channel.send(&message)?;
    if config.malicious() {
        let mut transcript = setup.context.clone();
        transcript.append("message", &message);
        if config.rounds == Rounds::Four {
            channel.flush()?;
            transcript.append_blocks("challenge", &[channel.recv_block()?]);
        }
        let proof = trees.prove(&setup, setup.challenge(transcript));
        let mut proof = Block::as_bytes(&proof).to_vec();
        change(&mut proof);
        channel.send(&proof)?;
    }
    channel.flush()?;
    Ok((delta, config.compress(&setup, trees.expand(&setup))))
}

/// The receiver's side of a batch, out of random OTs of `rot`, in which it receives: a block for each
/// correlation, whose lowest bit is its choice.
///
/// Errors: those of [`send`], and `Cheated` when the sender's trees do not agree.
pub fn receive(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    config: Config,
    prg: &mut Prg,
) -> Result<Vec<Block>> {
    let mut setup = config.setup(channel, true)?;
    channel.send(&parameters(&setup))?;
    channel.flush()?;
    let points = setup.points(prg);
    let choices = setup.choices(&points);
    let (pads, bits) = chosen_messages(channel, rot, &choices)?;
    setup.context.append("choices", bits.as_bytes());
    let mut message = vec![0; setup.message_len()];
    channel.recv(&mut message)?;
    let received = Received::new(&setup, &points, &pads, &message);
    let noise = if config.malicious() {
        let mut transcript = setup.context.clone();
        transcript.append("message", &message);
        if config.rounds == Rounds::Four {
            let seed = prg.block();
            channel.send_block(seed)?;
            channel.flush()?;
            transcript.append_blocks("challenge", &[seed]);
        }
        let mut proof = [Block::ZERO; 2];
        channel.recv_blocks(&mut proof)?;
        received.checked(&setup, setup.challenge(transcript), proof)?
    } else {
        received.trusted(&setup)
    };
    Ok(config.compress(&setup, noise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_crypto::ggm::LANES;
    use tacit_net::memory;
    use tacit_ot::convert::CotToRot;
    use tacit_ot::silent::dealer;

    const MALICIOUS: [Config; 2] = [config(Rounds::Two), config(Rounds::Four)];

    const fn config(rounds: Rounds) -> Config {
        Config { code: Code::Linear, security: Security::Malicious, rounds, count: 1 }
    }

    fn setup(config: Config) -> Setup {
        config.setup(&mut memory::pair().0, false).unwrap()
    }

    /// A run against a sender that changes its message, over dealt random OTs. `None` when the sender's
    /// changes passed.
    fn cheat(config: Config, seed: u128, change: impl Fn(&mut [u8]) + Send + Sync) -> Option<Error> {
        let params = dealer::Params { code: Code::Linear, count: setup(config).ots() };
        let (s, r) = dealer::deal(params, &mut Prg::from_seed(Block::new(seed))).unwrap();
        let (mut prg_s, mut prg_r) =
            (Prg::from_seed(Block::new(seed + 1)), Prg::from_seed(Block::new(seed + 2)));
        let (_, received) = memory::run(
            |ch| {
                let mut rot = CotToRot::new(dealer::DealtSender::setup(ch, s)?);
                send_with(ch, &mut rot, config, &mut prg_s, change).map(|_| ())
            },
            |ch| {
                let mut rot = CotToRot::new(dealer::DealtReceiver::setup(ch, r)?);
                receive(ch, &mut rot, config, &mut prg_r).map(|_| ())
            },
        );
        let error = received.err();
        assert!(
            error.as_ref().is_none_or(|e| matches!(e, Error::Cheated { protocol: NAME, .. })),
            "{error:?}"
        );
        error
    }

    /// Spoils byte `at` of the message, or of the answer.
    fn spoil(at: usize, answer: bool) -> impl Fn(&mut [u8]) + Send + Sync {
        move |bytes: &mut [u8]| {
            if (bytes.len() == 32) == answer {
                bytes[at] ^= 0x20;
            }
        }
    }

    #[test]
    fn a_guessed_bit_of_a_position_is_right_half_of_the_time() {
        for config in MALICIOUS {
            let trials = 100;
            let passed = (0..trials)
                // One message of one pair: who takes the other does not see it.
                .filter(|&i| cheat(config, 100 + i, spoil(16 * (i as usize * 29 % 2000), false)).is_none())
                .count();
            // 50 expected, with a standard deviation of 5.
            assert!((30..=70).contains(&passed), "{passed} of {trials} guesses of one bit were right");
        }
    }

    #[test]
    fn what_no_guess_helps_is_always_caught() {
        for config in MALICIOUS {
            let setup = setup(config);
            let (tails, hash) = (32 * setup.ots(), setup.message_len() - 32);
            assert!(cheat(config, 1, |_| ()).is_none(), "honest");
            // χ and Δ of one tree, the sums of γ, the hash; then X and V.
            let message =
                [0, 16, 32, 48].map(|line| tails + LANES * line + 3).into_iter().chain([hash, hash + 31]);
            for (i, at) in message.enumerate() {
                assert!(cheat(config, 10 + i as u128, spoil(at, false)).is_some(), "byte {at}");
            }
            for at in [0, 15, 16, 31] {
                assert!(cheat(config, 30 + at as u128, spoil(at, true)).is_some(), "byte {at} of the answer");
            }
        }
    }
}
