//! Oblivious transfer between two parties, by any protocol of the [`catalogue`], over any number of
//! channels.

use crate::catalogue::{self, Runs};
pub use crate::catalogue::{
    AnyReceiver, AnySender, Choice, Kind, Pick, Sets, check, extensions, names, protocol,
};
pub(crate) use crate::catalogue::{DEALT, POOL};
use crate::{Error, Result};
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::{Agreement, Channel};
pub use tacit_ot::convert::{CotToRot, RotToOt};
pub use tacit_ot::{BaseOt, CotReceiver, CotSender, OtReceiver, OtSender, RotReceiver, RotSender, Security};

/// The base OT of that name (`None`: the default), refused if it protects less than `security`.
pub fn base_ot(name: Option<&str>, security: Security) -> Result<Box<dyn BaseOt + Send + Sync>> {
    let name = name.unwrap_or(tacit_ot::base::DEFAULT);
    let Some(Runs::BaseOt(new)) = catalogue::find(name).map(|entry| entry.runs) else {
        let known = tacit_ot::base::NAMES.join(", ");
        let what = format!("there is no base OT `{name}`; choose one of {known}");
        return Err(Error::Parameter { name: "base-ot", what });
    };
    let base = new();
    protects(&*base, security)?;
    Ok(base)
}

/// Refuses a base OT that protects less than `security`.
pub fn protects(base: &dyn BaseOt, security: Security) -> Result<()> {
    if security == Security::Malicious && base.security() == Security::SemiHonest {
        let what = format!(
            "{} protects against a semi-honest peer only; choose another or ask for semi-honest security",
            base.name()
        );
        return Err(Error::Parameter { name: "base-ot", what });
    }
    Ok(())
}

/// A run that both parties agreed on: by what, which kind, how many.
#[derive(Clone, Debug)]
pub struct Job {
    /// The protocol with its parameters.
    pub pick: Pick,
    /// What it makes.
    pub kind: Kind,
    /// How many.
    pub count: u64,
}

/// A piece of the sender's output, in order; secret.
pub enum Sent<'a> {
    /// Of correlated OT: Δ and the next v.
    Cot(Block, &'a [Block]),
    /// Of random and chosen OT: the next pairs of messages.
    Pairs(&'a [[Block; 2]]),
}

/// Takes a piece of `WIDTH` blocks an OT, and the choices.
type Take<'a, const WIDTH: usize> = dyn FnMut(&[[Block; WIDTH]], &BitVec) -> Result<()> + 'a;

impl Job {
    /// What both parties must agree on; `sender` says which side this is.
    pub fn agreement(&self, base: &dyn BaseOt, sender: bool) -> Agreement {
        let (role, peer) = if sender { ("sender", "receiver") } else { ("receiver", "sender") };
        let agreement = Agreement::new("ot", role, peer)
            .with("protocol", self.pick.protocol.name)
            .with("base-ot", base.name())
            .with("kind", self.kind.name())
            .with("count", self.count);
        self.pick.extension().terms(agreement)
    }

    /// The same job with all traffic up front: every stream makes ahead what it will need, and the rest needs
    /// no peer.
    ///
    /// An error unless the protocol can, and the kind takes no messages of its own.
    pub fn up_front(mut self, streams: usize) -> Result<Self> {
        let piece = self.piece(streams) as u64;
        let most = self.count.div_ceil((piece * streams as u64).max(1)) * piece;
        match self.pick.up_front(most).filter(|_| self.kind != Kind::Ot) {
            Some(pick) => self.pick = pick,
            None => {
                let what = "goes with protocol ferret and correlated or random OT".to_owned();
                return Err(Error::Parameter { name: "up-front", what });
            }
        }
        Ok(self)
    }

    /// How many OTs each of `streams` makes at a time.
    pub(crate) fn piece(&self, streams: usize) -> usize {
        self.pick.piece(self.count, streams)
    }

    /// Runs the sender over `channels`, or as many of them as [serve](Pick::streams), one thread each, and
    /// hands the output on piece by piece. For chosen OT the messages are drawn at random.
    pub fn send(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.pick.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.pick.senders(first, base, &mut prg, lanes)?;
        self.send_from(channels, cots, &mut prg, each)
    }

    /// As [`send`](Self::send), out of correlations that are set up already, one source for each channel.
    pub fn send_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnySender>,
        prg: &mut Prg,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let delta = cots.first().map_or(Block::ZERO, |cot| cot.delta());
        if self.kind == Kind::Cot {
            // Even a run of none has a Δ.
            each(Sent::Cot(delta, &[]))?;
        }
        match self.kind {
            Kind::Cot => self.pieces(
                channels,
                cots,
                |cot, channel, out: &mut [[Block; 1]]| {
                    Ok(cot.extend(channel, out.as_flattened_mut()).map(|()| BitVec::default())?)
                },
                &mut |v, _| each(Sent::Cot(delta, v.as_flattened())),
            ),
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, out: &mut [[Block; 2]]| {
                    Ok(rot.extend(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
            Kind::Ot => self.pieces(
                channels,
                cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork())).collect(),
                |(ot, prg), channel, out: &mut [[Block; 2]]| {
                    prg.fill_blocks(out.as_flattened_mut());
                    Ok(ot.send(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
        }
    }

    /// Runs the receiver over `channels`, or as many of them as [serve](Pick::streams), one thread each, and
    /// hands choices and messages on piece by piece. For chosen OT the choices are drawn at random.
    pub fn receive(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        each: &mut dyn FnMut(&BitVec, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.pick.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.pick.receivers(first, base, &mut prg, lanes)?;
        self.receive_from(channels, cots, &mut prg, each)
    }

    /// As [`receive`](Self::receive), out of correlations that are set up already, one source for each
    /// channel.
    pub fn receive_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnyReceiver>,
        prg: &mut Prg,
        each: &mut dyn FnMut(&BitVec, &[Block]) -> Result<()>,
    ) -> Result<()> {
        let mut each = |messages: &[[Block; 1]], choices: &BitVec| each(choices, messages.as_flattened());
        match self.kind {
            Kind::Cot => self.pieces(
                channels,
                cots,
                |cot, channel, out: &mut [[Block; 1]]| {
                    let out = out.as_flattened_mut();
                    cot.extend(channel, out)?;
                    Ok(BitVec::from_lsbs(out))
                },
                &mut each,
            ),
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, out: &mut [[Block; 1]]| Ok(rot.extend(channel, out.as_flattened_mut())?),
                &mut each,
            ),
            Kind::Ot => self.pieces(
                channels,
                cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork())).collect(),
                |(ot, prg), channel, out: &mut [[Block; 1]]| {
                    let choices = BitVec::random(out.len(), prg);
                    ot.receive(channel, &choices, out.as_flattened_mut())?;
                    Ok(choices)
                },
                &mut each,
            ),
        }
    }

    /// Every lane fills a piece at the same time, `WIDTH` blocks an OT; then the pieces are handed on in
    /// order.
    fn pieces<S: Send, const WIDTH: usize>(
        &self,
        channels: &mut [Channel],
        states: Vec<S>,
        fill: impl Fn(&mut S, &mut Channel, &mut [[Block; WIDTH]]) -> Result<BitVec> + Sync,
        each: &mut Take<'_, WIDTH>,
    ) -> Result<()> {
        struct Lane<'a, S> {
            channel: &'a mut Channel,
            state: S,
            piece: Buffer,
        }
        let share = self.piece(channels.len());
        let mut lanes: Vec<_> = channels
            .iter_mut()
            .zip(states)
            .map(|(channel, state)| Lane { channel, state, piece: Buffer::zeros(share * WIDTH) })
            .collect();
        let mut left = self.count;
        while left > 0 {
            let mut sizes = Vec::with_capacity(lanes.len());
            for _ in &lanes {
                let size = left.min(share as u64);
                left -= size;
                sizes.push(size as usize);
            }
            let choices = in_parallel(&mut lanes, |index, lane| {
                let piece = &mut lane.piece.as_chunks_mut().0[..sizes[index]];
                let choices = fill(&mut lane.state, lane.channel, piece)?;
                lane.channel.flush()?;
                Ok(choices)
            })?;
            for ((lane, choices), size) in lanes.iter().zip(&choices).zip(sizes) {
                each(&lane.piece.as_chunks().0[..size], choices)?;
            }
        }
        Ok(())
    }
}

fn no_channel() -> Error {
    Error::Usage("a run needs at least one channel".into())
}

/// Runs `work` on every item in a thread of its own; on a single item in the caller's thread. Of several errors the
/// one that tells most is returned: a failed check is not hidden by a link that another thread lost.
pub fn in_parallel<T: Send, R: Send>(
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if let [only] = items {
        return Ok(vec![work(0, only)?]);
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            items.iter_mut().enumerate().map(|(i, item)| scope.spawn(move || work(i, item))).collect();
        let (mut done, mut worst) = (Vec::new(), None);
        for thread in threads {
            let bug = |_| Err(Error::Other("a thread ended unexpectedly; please report it".into()));
            match (thread.join().unwrap_or_else(bug), worst.take()) {
                (Ok(result), earlier) => {
                    done.push(result);
                    worst = earlier;
                }
                (Err(error), None) => worst = Some(error),
                (Err(error), Some(earlier)) => worst = Some(Error::or_worse(earlier, error)),
            }
        }
        worst.map_or(Ok(done), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_threads_errors_a_failed_check_is_told_before_a_lost_link() {
        let lost = || Error::Net(tacit_net::Error::Closed);
        let failed =
            || Error::Ot(tacit_ot::Error::Cheated { protocol: "test", what: "the check that fails" });
        let spent = || Error::Ot(tacit_ot::Error::Spent("test"));
        let ran = |order: [u8; 4]| {
            let mut lanes = order;
            let ran = in_parallel(&mut lanes, |_, lane| match *lane {
                0 => Err(lost()),
                1 => Err(failed()),
                2 => Err(spent()),
                _ => Ok(()),
            });
            ran.unwrap_err()
        };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 2, 0, 3], [2, 0, 3, 1]] {
            assert!(matches!(ran(order), Error::Ot(tacit_ot::Error::Cheated { .. })), "{order:?}");
        }
        // A setup is spent by a lost link too: that is no cheat.
        for order in [[0, 2, 2, 3], [2, 2, 3, 0]] {
            assert!(ran(order).is_lost_link(), "{order:?}");
        }
    }
}
