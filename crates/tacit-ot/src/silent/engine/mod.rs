//! What all silent protocols do alike, over whatever field: Ferret in both forms, BCGIKRS19, and VOLE over
//! subfields of GF(2^128), over GF(2^128) and over prime fields.
//!
//! A protocol makes correlations in *runs*, each an interaction of a few messages. An [`Engine`] holds what
//! binds a stream's runs: parameters and session, the joint seed, the run's number, and whether a run has
//! failed. A [`Stream`] is one party of a protocol: a request takes what earlier runs left over, then begins
//! runs until it is served ([`Stream::fill`]), and fills a [`Sink`] of its protocol's elements. When a run
//! fails, nothing provisional stays anywhere, and no stream of the setup goes on. What a run puts aside for
//! the next one is a [`Carry`](carry::Carry) of secrets, or a [`Stock`](stock::Stock) of results.

pub(crate) mod carry;
pub(crate) mod seeds;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod stock;

use crate::extension::Setup;
use crate::silent::tree::opening::{DIGEST, check_digests};
use crate::spent::Spent;
use crate::{Result, Security};
use seeds::{Pledge, Seeds};
use sink::Sink;
use tacit_crypto::Prg;
use tacit_crypto::transcript::Transcript;
use tacit_net::Channel;

/// What binds the runs of one stream; both parties have the same.
pub(crate) struct Engine {
    protocol: &'static str,
    /// Session and parameters.
    context: Transcript,
    seeds: Seeds,
    /// Number of the run at work, the first one being 1.
    run: u64,
    streams: u64,
    spent: Spent,
}

impl Engine {
    /// Ends the setup of `source`, and meanwhile compares `context` with the peer's and exchanges commitments
    /// to seeds. `context` must name protocol, version, session and parameters.
    ///
    /// Errors: those of the link and the base OT; `Malformed` when the peer's parameters are others.
    pub(crate) fn agree<S>(
        channel: &mut Channel,
        protocol: &'static str,
        context: Transcript,
        source: Setup<S>,
        prg: &mut Prg,
        sends: bool,
    ) -> Result<(Self, S)> {
        // Along with the base OTs' first message, where theirs cross.
        // proof: vole 2.1
        let pledge = Pledge::send(channel, &context, prg, sends, protocol)?;
        let source = source(channel)?;
        let seeds = pledge.receive(channel)?;
        Ok((Engine { protocol, context, seeds, run: 0, streams: 0, spent: Spent::default() }, source))
    }

    /// That of a stream whose joint seed is known.
    pub(crate) fn new(protocol: &'static str, context: Transcript, joint: [u8; 32]) -> Self {
        let (seeds, spent) = (Seeds::Joint(joint), Spent::default());
        Engine { protocol, context, seeds, run: 0, streams: 0, spent }
    }

    /// Another stream's, whose runs have codes and keys of their own. When one stream fails, both are spent.
    pub(crate) fn fork(&mut self) -> Self {
        self.streams += 1;
        let mut context = self.context.clone();
        context.append_u64("stream", self.streams);
        let Engine { protocol, ref seeds, ref spent, .. } = *self;
        Engine { protocol, context, seeds: seeds.clone(), run: 0, streams: 0, spent: spent.clone() }
    }

    /// Ties this stream to `other`: when one fails, both are spent.
    pub(crate) fn tie(&mut self, other: &Self) {
        self.spent = other.spent.clone();
    }

    /// Passes the verdict of a check of the run at work, in turn with those of the setup's other streams; see
    /// [`Spent::settle`].
    pub(crate) fn settle(&self, verdict: impl FnOnce() -> Result<()>) -> Result<()> {
        self.spent.settle(self.protocol, verdict)
    }

    /// Receives the sender's digest of a check, which is right if it is `expected`.
    pub(crate) fn receive_digest(&self, channel: &mut Channel, expected: &[u8; DIGEST]) -> Result<()> {
        let mut digest = [0; DIGEST];
        channel.recv(&mut digest)?;
        // proof: vole 2.8
        self.settle(|| check_digests(self.protocol, &digest, expected))
    }

    /// Goes on to the next run.
    pub(crate) fn next(&mut self) {
        self.run += 1;
    }

    /// The number of the run at work.
    pub(crate) fn number(&self) -> u64 {
        self.run
    }

    /// Begins again with the first run.
    pub(crate) fn restart(&mut self) {
        self.run = 0;
    }

    /// Session, parameters and the run's number, which the protocol calls `label`.
    pub(crate) fn of_run(&self, label: &str) -> Transcript {
        let mut context = self.context.clone();
        context.append_u64(label, self.run);
        context
    }

    /// Sends this party's part of the joint seed, if the peer does not have it yet.
    pub(crate) fn open(&self, channel: &mut Channel) -> Result<()> {
        self.seeds.open(channel)
    }

    /// After [`open`](Self::open): appends the joint seed to `context`, the peer's part being received where
    /// it is not known yet.
    ///
    /// Errors: those of the link; `Cheated` when the peer opens another seed than it committed to.
    pub(crate) fn join(&mut self, channel: &mut Channel, context: &mut Transcript) -> Result<()> {
        self.seeds.join(channel, context)
    }

    /// Appends the joint seed, which is known, to `context`.
    pub(crate) fn append_seed(&self, context: &mut Transcript) {
        self.seeds.append(context);
    }

    /// Learns the joint seed.
    pub(crate) fn joined(&mut self, joint: [u8; 32]) {
        self.seeds = Seeds::Joint(joint);
    }

    /// The check of the run at work, of session, parameters, joint seed and the run's number, where
    /// `security` asks for one.
    pub(crate) fn check<C>(&self, security: Security, new: impl FnOnce(&Transcript, u64) -> C) -> Option<C> {
        (security == Security::Malicious).then(|| {
            let mut context = self.context.clone();
            self.append_seed(&mut context);
            new(&context, self.run)
        })
    }
}

/// One party's stream of correlations.
pub(crate) trait Stream {
    /// What a request fills.
    type Sink<'a>: Sink;

    fn engine(&self) -> &Engine;

    /// Hands out what earlier runs left over, without the peer.
    ///
    /// Errors: `Exhausted` where no run can follow and less is left; nothing is taken then.
    fn serve(&mut self, _: &mut Self::Sink<'_>) -> Result<()> {
        Ok(())
    }

    /// One run, which serves `sink` as far as it reaches. What it puts there is provisional until it returns.
    fn run(&mut self, channel: &mut Channel, sink: &mut Self::Sink<'_>) -> Result<()>;

    /// After a failure: wipes all that was kept for later.
    fn wipe(&mut self) {}

    /// Whether no run may follow.
    fn spent(&self) -> Result<()> {
        self.engine().spent.check(self.engine().protocol)
    }

    /// After a failure: no run follows, and nothing is kept.
    fn give_up(&mut self) {
        self.engine().spent.set();
        self.wipe();
    }

    /// Serves a request: what is left over first, then as many runs as it takes.
    ///
    /// When a run fails, nothing of it is left in `sink`, and all streams of the setup are spent: also those
    /// whose runs have passed their checks and not yet returned.
    fn fill(&mut self, channel: &mut Channel, mut sink: Self::Sink<'_>) -> Result<()> {
        self.spent()?;
        self.serve(&mut sink)?;
        while sink.left() > 0 {
            self.run(channel, &mut sink).and_then(|()| self.spent()).inspect_err(|_| {
                self.give_up();
                sink.wipe();
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::sink::Memory;
    use super::*;
    use crate::Error;
    use tacit_crypto::Block;
    use tacit_net::memory;

    /// A stream whose runs' checks pass, while one of another stream fails where `fails` says so.
    struct Passing {
        engine: Engine,
        other: Engine,
        fails: bool,
    }

    impl Stream for Passing {
        type Sink<'a> = Memory<'a, Block>;

        fn engine(&self) -> &Engine {
            &self.engine
        }

        fn run(&mut self, _: &mut Channel, sink: &mut Memory<'_, Block>) -> Result<()> {
            let cheated = || Err(Error::Cheated { protocol: "test", what: "a check" });
            self.engine.settle(|| Ok(()))?;
            if self.fails {
                assert!(matches!(self.other.settle(cheated), Err(Error::Cheated { .. })));
                // Whatever it is asked, no later check passes.
                assert!(matches!(self.engine.settle(|| Ok(())), Err(Error::Spent("test"))));
            }
            let n = sink.left();
            sink.rest().fill(Block::ONES);
            sink.advance(n);
            Ok(())
        }
    }

    /// A check of another stream that fails while a run is on its way takes what the run has made.
    #[test]
    fn a_run_that_passed_gives_nothing_once_another_stream_has_failed() {
        for fails in [false, true] {
            let mut other = Engine::new("test", Transcript::new("test"), [0; 32]);
            let mut stream = Passing { engine: other.fork(), other, fails };
            let (mut channel, _peer) = memory::pair();
            let mut out = [Block::ZERO; 5];
            let result = stream.fill(&mut channel, Memory::new(&mut out));
            match fails {
                false => assert!(result.is_ok() && out == [Block::ONES; 5]),
                true => assert!(matches!(result, Err(Error::Spent("test"))) && out == [Block::ZERO; 5]),
            }
        }
    }
}
