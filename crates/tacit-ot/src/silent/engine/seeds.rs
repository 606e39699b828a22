//! Public seeds that both parties contribute to, none of which is chosen after another is known: both commit
//! before either opens, or one of them commits, the other one answers, and the first opens.
//!
//! From such a seed follow a session's codes, matrices and hash keys. If contributions were exchanged in
//! clear, the party that moves second could try many of its own until the code is a bad one; here whoever
//! opens is bound to what it chose before it knew anything of the other's, so the seed is uniform as soon as
//! one party is honest, whatever the other computes. A party that stops instead of opening ends the session,
//! and learns a seed that serves for nothing. It can so refuse a seed: a party that opens last has the best of n
//! seeds after n sessions, of which the other saw all but one fail. Whatever it gains on the average seed, it
//! gains n times that at most: log2(n) bits (docs/security-notes.md). In Ferret the receiver opens last, whose
//! secret the codes protect, and nobody can refuse one to its harm.
//!
//! A commitment is that of [`tacit_crypto::commit`] under the protocol's parameters, the session and the
//! role, so that neither can be sent back; what opens it, 256 random bits, is the contribution.

use crate::{Error, Result};
use tacit_crypto::commit::{Commitment, Opening, commit, verify};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;

/// A contribution to which this party has committed; the peer's commitment is still to come.
pub(crate) struct Pledge(Committed);

/// Both parties' commitments.
#[derive(Clone)]
pub(crate) struct Committed {
    protocol: &'static str,
    context: Transcript,
    sends: bool,
    mine: Opening,
    theirs: Commitment,
}

/// What the commitment of the sender, or else of the receiver, is bound to.
fn binding(context: &Transcript, sender: bool) -> [u8; 32] {
    let mut binding = [0; 32];
    context.clone().challenge_bytes(if sender { "sender's seed" } else { "receiver's seed" }, &mut binding);
    binding
}

fn parameters(context: &Transcript) -> Block {
    context.clone().challenge_block("parameters")
}

impl Pledge {
    /// Sends a commitment with a digest of `context`, which must name session, protocol, version and
    /// parameters. Nothing is waited for, so it travels along with what follows.
    pub(crate) fn send(
        channel: &mut Channel,
        context: &Transcript,
        prg: &mut Prg,
        sends: bool,
        protocol: &'static str,
    ) -> Result<Self> {
        let (commitment, mine) = commit(&binding(context, sends), &[], prg);
        channel.send_block(parameters(context))?;
        channel.send(&commitment.0)?;
        let theirs = Commitment([0; 32]);
        Ok(Pledge(Committed { protocol, context: context.clone(), sends, mine, theirs }))
    }

    /// Receives the peer's commitment; from here on either party may open.
    ///
    /// Errors: `Malformed` when the peer's parameters are others.
    pub(crate) fn receive(mut self, channel: &mut Channel) -> Result<Seeds> {
        self.0.theirs = receive_commitment(channel, &self.0.context, self.0.protocol)?;
        Ok(Seeds::Committed(Box::new(self.0)))
    }
}

impl Committed {
    /// Sends what opens this party's commitment.
    fn open(&self, channel: &mut Channel) -> Result<()> {
        Ok(channel.send(&self.mine.0)?)
    }

    /// Receives what opens the peer's: the joint seed, after the peer has been sent [`open`](Self::open) as
    /// well.
    ///
    /// Errors: `Cheated` when it is not what the peer committed to.
    fn receive(&self, channel: &mut Channel) -> Result<[u8; 32]> {
        let theirs = receive_opening(channel, &self.context, !self.sends, &self.theirs, self.protocol)?;
        let (sender, receiver) = if self.sends { (&self.mine, &theirs) } else { (&theirs, &self.mine) };
        Ok(joint(&self.context, &sender.0, &receiver.0))
    }
}

fn receive_commitment(
    channel: &mut Channel,
    context: &Transcript,
    protocol: &'static str,
) -> Result<Commitment> {
    if channel.recv_block()? != parameters(context) {
        return Err(Error::mismatch(protocol));
    }
    let mut theirs = Commitment([0; 32]);
    channel.recv(&mut theirs.0)?;
    Ok(theirs)
}

/// What opens `commitment`, which is the sender's or the receiver's.
fn receive_opening(
    channel: &mut Channel,
    context: &Transcript,
    sender: bool,
    commitment: &Commitment,
    protocol: &'static str,
) -> Result<Opening> {
    let mut theirs = Opening([0; 32]);
    channel.recv(&mut theirs.0)?;
    if !verify(&binding(context, sender), &[], commitment, &theirs) {
        let what = "the peer's seed is not the one that it committed to";
        return Err(Error::Cheated { protocol, what });
    }
    Ok(theirs)
}

/// The joint seed of two contributions of 32 bytes.
fn joint(context: &Transcript, sender: &[u8; 32], receiver: &[u8; 32]) -> [u8; 32] {
    let mut context = context.clone();
    context.append("sender's seed", sender);
    context.append("receiver's seed", receiver);
    let mut joint = [0; 32];
    context.challenge_bytes("seed", &mut joint);
    joint
}

impl Pledge {
    /// The receiver's half of a toss in which it alone commits: takes the sender's contribution, which was
    /// chosen under the commitment, and opens. The joint seed.
    pub(crate) fn toss(self, channel: &mut Channel) -> Result<[u8; 32]> {
        let Committed { context, mine, .. } = &self.0;
        let mut theirs = [0; 32];
        channel.recv(&mut theirs)?;
        channel.send(&mine.0)?;
        channel.flush()?;
        Ok(joint(context, &theirs, &mine.0))
    }
}

/// The sender's half of a toss in which the receiver alone commits. The sender waits for the receiver's first
/// message anyway, so that a toss takes no message more than two contributions in clear.
pub(crate) struct Toss {
    protocol: &'static str,
    context: Transcript,
    theirs: Commitment,
    mine: [u8; 32],
}

impl Toss {
    /// Receives the commitment, the first of what the receiver sends.
    ///
    /// Errors: `Malformed` when the peer's parameters are others.
    pub(crate) fn receive(
        channel: &mut Channel,
        context: &Transcript,
        prg: &mut Prg,
        protocol: &'static str,
    ) -> Result<Self> {
        let theirs = receive_commitment(channel, context, protocol)?;
        let mut mine = [0; 32];
        prg.fill_bytes(&mut mine);
        Ok(Toss { protocol, context: context.clone(), theirs, mine })
    }

    /// Sends this party's contribution.
    pub(crate) fn contribute(&self, channel: &mut Channel) -> Result<()> {
        Ok(channel.send(&self.mine)?)
    }

    /// After [`contribute`](Self::contribute): receives what opens the commitment. The joint seed.
    ///
    /// Errors: `Cheated` when it is not what the peer committed to.
    pub(crate) fn finish(self, channel: &mut Channel) -> Result<[u8; 32]> {
        let theirs = receive_opening(channel, &self.context, false, &self.theirs, self.protocol)?;
        Ok(joint(&self.context, &self.mine, &theirs.0))
    }
}

/// The joint seed of a setup or of one of its streams, each of which opens it along with its first run.
#[derive(Clone)]
pub(crate) enum Seeds {
    /// Before that.
    Committed(Box<Committed>),
    /// From then on.
    Joint([u8; 32]),
}

impl Seeds {
    /// Sends this party's part, if the peer does not have it yet.
    pub(crate) fn open(&self, channel: &mut Channel) -> Result<()> {
        match self {
            Seeds::Committed(committed) => committed.open(channel),
            Seeds::Joint(_) => Ok(()),
        }
    }

    /// After [`open`](Self::open): appends the joint seed to `context`, the peer's part being received where
    /// it is not known yet.
    pub(crate) fn join(&mut self, channel: &mut Channel, context: &mut Transcript) -> Result<()> {
        if let Seeds::Committed(committed) = self {
            *self = Seeds::Joint(committed.receive(channel)?);
        }
        self.append(context);
        Ok(())
    }

    /// Appends the joint seed to `context`; only once it is known.
    pub(crate) fn append(&self, context: &mut Transcript) {
        if let Seeds::Joint(joint) = self {
            context.append("joint seed", joint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;

    const NAME: &str = "seeds";

    fn context(parameter: u64) -> Transcript {
        let mut context = Transcript::new("test");
        context.append_u64("parameter", parameter);
        context
    }

    /// One party's honest run.
    fn agree(channel: &mut Channel, sends: bool, parameter: u64, seed: u128) -> Result<Block> {
        let (mut prg, mut context) = (Prg::from_seed(Block::new(seed)), context(parameter));
        let pledge = Pledge::send(channel, &context, &mut prg, sends, NAME)?;
        let mut seeds = pledge.receive(channel)?;
        seeds.open(channel)?;
        seeds.join(channel, &mut context)?;
        Ok(context.challenge_block("joint"))
    }

    #[test]
    fn both_parties_come_to_one_seed_that_each_of_them_changes() {
        let seed = |ours: u128, theirs: u128| {
            let (a, b) = memory::run(|ch| agree(ch, true, 1, ours), |ch| agree(ch, false, 1, theirs));
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(a.to_hex(), b.to_hex());
            a.to_u128()
        };
        let seeds = [seed(1, 2), seed(3, 2), seed(1, 4), seed(2, 1)];
        assert_eq!(std::collections::HashSet::from(seeds).len(), 4);
    }

    /// A party that waits for the other's opening, then tries openings until the joint seed begins with a
    /// zero byte, is refused: whichever it takes, and also the peer's own commitment and opening sent back.
    ///
    /// proof: vole 3.5
    #[test]
    fn a_contribution_chosen_after_the_peers_is_refused() {
        for (sends, reflects) in [(true, false), (false, false), (true, true), (false, true)] {
            let cheat = |ch: &mut Channel| -> Result<()> {
                let mut prg = Prg::from_seed(Block::new(5));
                let (digest, mut theirs) = (ch.recv_block()?, [0; 32]);
                ch.recv(&mut theirs)?;
                let (own, _) = commit(&binding(&context(1), !sends), &[], &mut prg);
                ch.send_block(digest)?;
                ch.send(if reflects { &theirs } else { &own.0 })?;
                let mut opening = Opening([0; 32]);
                ch.recv(&mut opening.0)?;
                let joint = |mine: &Opening| {
                    let (first, second) = if sends { (&opening, mine) } else { (mine, &opening) };
                    joint(&context(1), &first.0, &second.0)
                };
                let mut mine = opening.clone();
                while !reflects && joint(&mine)[0] != 0 {
                    prg.fill_bytes(&mut mine.0);
                }
                ch.send(&mine.0)?;
                ch.flush()?;
                Ok(())
            };
            let (honest, cheated) = memory::run(|ch| agree(ch, sends, 1, 7), cheat);
            cheated.unwrap();
            assert!(matches!(honest, Err(Error::Cheated { protocol: NAME, .. })), "{:?}", honest.err());
        }
    }

    /// A party that opens last and leaves where it does not like the seed: it sees one seed a session, the honest side
    /// has an error and no seed from each that it refused, and it finds what one seed in 8 has after 8 on average.
    #[test]
    fn refusing_a_seed_costs_a_session() {
        let (mut sessions, mut found) = (0u32, 0);
        for seed in 0..400u64 {
            let picky = |ch: &mut Channel| -> Result<Option<Block>> {
                let (mut prg, mut context) = (Prg::from_seed(Block::new(u128::from(2 * seed))), context(1));
                let mut seeds = Pledge::send(ch, &context, &mut prg, true, NAME)?.receive(ch)?;
                ch.flush()?;
                let Seeds::Committed(committed) = &seeds else { panic!("opened") };
                let committed = committed.clone();
                seeds.join(ch, &mut context)?;
                let joint = context.challenge_block("joint");
                if joint.to_u128() & 7 != 0 {
                    return Ok(None);
                }
                committed.open(ch)?;
                ch.flush()?;
                Ok(Some(joint))
            };
            let (liked, honest) = memory::run(picky, |ch| {
                let honest = agree(ch, false, 1, u128::from(2 * seed + 1));
                honest.ok().map(Block::to_u128)
            });
            let liked = liked.unwrap();
            assert_eq!(liked.map(Block::to_u128), honest);
            sessions += 1;
            found += u32::from(liked.is_some());
        }
        // Mean 50, deviation 6.6.
        assert!((30..=70).contains(&found), "{found} of {sessions}");
    }

    /// A toss: both come to the same; a receiver that opens something else once it has the sender's
    /// contribution is refused.
    #[test]
    fn one_commitment_binds_whoever_speaks_last() {
        for cheats in [false, true] {
            let (sender, receiver) = memory::run(
                |ch| -> Result<[u8; 32]> {
                    let toss = Toss::receive(ch, &context(1), &mut Prg::from_seed(Block::new(1)), NAME)?;
                    toss.contribute(ch)?;
                    toss.finish(ch)
                },
                |ch| -> Result<[u8; 32]> {
                    let mut prg = Prg::from_seed(Block::new(2));
                    let mut pledge = Pledge::send(ch, &context(1), &mut prg, false, NAME)?;
                    if cheats {
                        prg.fill_bytes(&mut pledge.0.mine.0);
                    }
                    pledge.toss(ch)
                },
            );
            match cheats {
                false => assert_eq!(sender.unwrap(), receiver.unwrap()),
                true => assert!(matches!(sender, Err(Error::Cheated { protocol: NAME, .. })), "{sender:?}"),
            }
        }
        let (sender, _) = memory::run(
            |ch| Toss::receive(ch, &context(2), &mut Prg::from_seed(Block::new(1)), NAME).map(drop),
            |ch| {
                Pledge::send(ch, &context(1), &mut Prg::from_seed(Block::new(2)), false, NAME)?;
                Ok::<_, Error>(ch.flush()?)
            },
        );
        assert!(matches!(sender, Err(Error::Malformed { protocol: NAME, .. })), "{sender:?}");
    }

    #[test]
    fn other_parameters_are_refused_before_anything_is_opened() {
        let (a, b) = memory::run(|ch| agree(ch, true, 1, 1), |ch| agree(ch, false, 2, 2));
        for result in [a, b] {
            assert!(matches!(result, Err(Error::Malformed { protocol: NAME, .. })), "{:?}", result.err());
        }
    }
}
