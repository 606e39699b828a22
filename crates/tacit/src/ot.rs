//! Oblivious transfer between two parties, by any protocol of the [`catalogue`], over any number of
//! channels.

mod own;

pub use self::own::{Choices, Form, Layout, MOST_MESSAGE, Messages, Own};
use crate::catalogue::{self, Runs};
pub use crate::catalogue::{
    AnyReceiver, AnySender, Choice, Kind, Pick, Sets, check, extensions, names, protocol,
};
pub(crate) use crate::catalogue::{DEALT, POOL};
use crate::{Error, Result};
use tacit_crypto::near::one_of;
use tacit_crypto::{BitVec, Block, Buffer, Prg};
use tacit_net::{Agreement, Channel};
pub use tacit_ot::convert::{CotToRot, RotToOt};
pub use tacit_ot::{BaseOt, CotReceiver, CotSender, OtReceiver, OtSender, RotReceiver, RotSender, Security};
use zeroize::Zeroizing;

/// The base OT of that name (`None`: the default), refused if it protects less than `security`.
pub fn base_ot(name: Option<&str>, security: Security) -> Result<Box<dyn BaseOt + Send + Sync>> {
    let name = name.unwrap_or(tacit_ot::base::DEFAULT);
    let Some(Runs::BaseOt(new)) = catalogue::find(name).map(|entry| entry.runs) else {
        let what = format!("there is no base OT `{name}`; {}", one_of(name, tacit_ot::base::NAMES));
        return Err(Error::Parameter { name: "base-ot", what });
    };
    let base = new();
    protects(&*base, security)?;
    Ok(base)
}

/// As [`base_ot`], where `post_quantum` asks for what stands against a quantum computer: [`tacit_ot::base::roted`]
/// unless a name is given, which is refused if it falls.
pub fn base_ot_among(
    name: Option<&str>,
    post_quantum: bool,
    security: Security,
) -> Result<Box<dyn BaseOt + Send + Sync>> {
    let base = base_ot(name.or(post_quantum.then_some(tacit_ot::base::roted::NAME)), security)?;
    if post_quantum {
        catalogue::require_post_quantum(base.name())?;
    }
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
    /// Of chosen OT on messages that are no blocks: how many pairs have been sent.
    Own(usize),
}

/// A piece of the receiver's output, in order; secret.
pub enum Received<'a> {
    /// How the messages of chosen OT lie, before a choice is sent: the time to refuse them.
    Opens(Layout),
    /// Choices, and the message of each, or w of correlated OT.
    Blocks(&'a BitVec, &'a [Block]),
    /// Choices, and the message of each as it travels, one after the other: of messages that are no blocks.
    Own(&'a BitVec, &'a [u8]),
}

/// Takes a piece of `WIDTH` blocks an OT, and the choices.
type Take<'a, const WIDTH: usize> = dyn FnMut(&[[Block; WIDTH]], &BitVec) -> Result<()> + 'a;

/// Bytes of messages that a lane sends or receives at a time, unless one alone has more.
const PIECE_BYTES: usize = 16 << 20;

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
        self.send_own(channels, base, &Own::Drawn, each)
    }

    /// As [`send`](Self::send), on messages of its own. An error unless they are as many as the job has OTs.
    pub fn send_own(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        own: &Own,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.pick.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.pick.senders(first, base, &mut prg, lanes)?;
        self.send_from(channels, cots, &mut prg, own, each)
    }

    /// As [`send_own`](Self::send_own), out of correlations that are set up already, one source for each
    /// channel.
    pub fn send_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnySender>,
        prg: &mut Prg,
        own: &Own,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        let delta = cots.first().map_or(Block::ZERO, |cot| cot.delta());
        match self.kind {
            Kind::Cot => {
                // Even a run of none has a Δ.
                each(Sent::Cot(delta, &[]))?;
                self.pieces(
                    channels,
                    cots,
                    |cot, channel, _, out: &mut [[Block; 1]]| {
                        Ok(cot.extend(channel, out.as_flattened_mut()).map(|()| BitVec::default())?)
                    },
                    &mut |v, _| each(Sent::Cot(delta, v.as_flattened())),
                )
            }
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, _, out: &mut [[Block; 2]]| {
                    Ok(rot.extend(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
            Kind::Ot => self.send_chosen(channels, cots, prg, own, each),
        }
    }

    fn send_chosen(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnySender>,
        prg: &mut Prg,
        own: &Own,
        each: &mut dyn FnMut(Sent<'_>) -> Result<()>,
    ) -> Result<()> {
        own.fits(self, true)?;
        let messages = match own {
            Own::Messages(messages) => Some(messages),
            _ => None,
        };
        let layout = messages.map_or(Layout::BLOCKS, Messages::layout);
        layout.announce(channels.first_mut().ok_or_else(no_channel)?)?;
        let ots = cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork()));
        match messages {
            Some(messages) if layout != Layout::BLOCKS => self.each_lane(
                channels,
                ots.map(|ot| (ot, ())).collect(),
                self.share(channels.len(), layout),
                |((ot, _), ()), channel, first, size| {
                    ot.send_rows(channel, layout.width, messages.pairs(first, size))?;
                    Ok(BitVec::default())
                },
                &mut |(), size, _| each(Sent::Own(size)),
            ),
            messages => self.pieces(
                channels,
                ots.collect(),
                |(ot, prg), channel, first, out: &mut [[Block; 2]]| {
                    match messages {
                        Some(messages) => messages.fill(first, out),
                        None => prg.fill_blocks(out.as_flattened_mut()),
                    }
                    Ok(ot.send(channel, out).map(|()| BitVec::default())?)
                },
                &mut |pairs, _| each(Sent::Pairs(pairs)),
            ),
        }
    }

    /// Runs the receiver over `channels`, or as many of them as [serve](Pick::streams), one thread each, and
    /// hands choices and messages on piece by piece. For chosen OT the choices are drawn at random, and
    /// messages that are no blocks are refused.
    pub fn receive(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        each: &mut dyn FnMut(&BitVec, &[Block]) -> Result<()>,
    ) -> Result<()> {
        self.receive_own(channels, base, &Own::Drawn, &mut |part| match part {
            Received::Blocks(choices, messages) => each(choices, messages),
            Received::Opens(Layout::BLOCKS) => Ok(()),
            _ => Err(Error::Peer(
                "the sender's messages are not blocks of 16 bytes, and only those are accepted here".into(),
            )),
        })
    }

    /// As [`receive`](Self::receive), with choices of its own, of messages of every form. An error unless
    /// the choices are as many as the job has OTs.
    pub fn receive_own(
        &self,
        channels: &mut [Channel],
        base: &dyn BaseOt,
        own: &Own,
        each: &mut dyn FnMut(Received<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut prg = Prg::from_os();
        let lanes = self.pick.streams(self.count, channels.len());
        let channels = &mut channels[..lanes];
        let Some(first) = channels.first_mut() else { return Err(no_channel()) };
        let cots = self.pick.receivers(first, base, &mut prg, lanes)?;
        self.receive_from(channels, cots, &mut prg, own, each)
    }

    /// As [`receive_own`](Self::receive_own), out of correlations that are set up already, one source for
    /// each channel.
    pub fn receive_from(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnyReceiver>,
        prg: &mut Prg,
        own: &Own,
        each: &mut dyn FnMut(Received<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut blocks = |messages: &[[Block; 1]], choices: &BitVec| {
            each(Received::Blocks(choices, messages.as_flattened()))
        };
        match self.kind {
            Kind::Cot => self.pieces(
                channels,
                cots,
                |cot, channel, _, out: &mut [[Block; 1]]| {
                    let out = out.as_flattened_mut();
                    cot.extend(channel, out)?;
                    Ok(BitVec::from_lsbs(out))
                },
                &mut blocks,
            ),
            Kind::Rot => self.pieces(
                channels,
                cots.into_iter().map(CotToRot::new).collect(),
                |rot, channel, _, out: &mut [[Block; 1]]| Ok(rot.extend(channel, out.as_flattened_mut())?),
                &mut blocks,
            ),
            Kind::Ot => self.receive_chosen(channels, cots, prg, own, each),
        }
    }

    fn receive_chosen(
        &self,
        channels: &mut [Channel],
        cots: Vec<AnyReceiver>,
        prg: &mut Prg,
        own: &Own,
        each: &mut dyn FnMut(Received<'_>) -> Result<()>,
    ) -> Result<()> {
        own.fits(self, false)?;
        let (bits, most) = match own {
            Own::Choices(choices) => (Some(&choices.bits), choices.most),
            _ => (None, MOST_MESSAGE),
        };
        let layout = Layout::taken(channels.first_mut().ok_or_else(no_channel)?, most, |layout| {
            each(Received::Opens(layout))
        })?;
        let lanes = channels.len();
        let share = self.share(lanes, layout);
        let own = bits.map(|bits| own::cut(bits, share));
        // The choices of a piece: those of the user, or drawn. In the last round some lanes have none.
        let choose = |prg: &mut Prg, first: u64, size: usize| match &own {
            Some(parts) if size > 0 => parts[first as usize / share].clone(),
            _ => BitVec::random(size, prg),
        };
        let ots = cots.into_iter().map(|cot| (RotToOt::new(CotToRot::new(cot)), prg.fork()));
        if layout == Layout::BLOCKS {
            return self.pieces(
                channels,
                ots.collect(),
                |(ot, prg), channel, first, out: &mut [[Block; 1]]| {
                    let choices = choose(prg, first, out.len());
                    ot.receive(channel, &choices, out.as_flattened_mut())?;
                    Ok(choices)
                },
                &mut |messages, choices| each(Received::Blocks(choices, messages.as_flattened())),
            );
        }
        let width = layout.width;
        self.each_lane(
            channels,
            ots.map(|ot| (ot, Zeroizing::new(vec![0u8; share * width]))).collect(),
            share,
            |((ot, prg), rows), channel, first, size| {
                let choices = choose(prg, first, size);
                ot.receive_rows(channel, width, &choices, &mut rows[..size * width])?;
                Ok(choices)
            },
            &mut |rows, size, choices| each(Received::Own(choices, &rows[..size * width])),
        )
    }

    /// Bytes that a receiver of messages of `layout` works with and keeps.
    pub(crate) fn memory_of_own(&self, layout: Layout, lanes: usize) -> u64 {
        let pieces = (self.share(lanes, layout) * lanes) as u64;
        self.count.saturating_add(pieces).saturating_mul(layout.width as u64)
    }

    /// How many OTs on messages of `layout` each of `lanes` makes at a time.
    fn share(&self, lanes: usize, layout: Layout) -> usize {
        let piece = self.piece(lanes);
        if layout == Layout::BLOCKS { piece } else { piece.min(PIECE_BYTES / layout.width).max(1) }
    }

    /// Every lane fills a piece at the same time, `WIDTH` blocks an OT; then the pieces are handed on in
    /// order. `fill` is told the number of its piece's first OT.
    fn pieces<S: Send, const WIDTH: usize>(
        &self,
        channels: &mut [Channel],
        states: Vec<S>,
        fill: impl Fn(&mut S, &mut Channel, u64, &mut [[Block; WIDTH]]) -> Result<BitVec> + Sync,
        each: &mut Take<'_, WIDTH>,
    ) -> Result<()> {
        let share = self.piece(channels.len());
        self.each_lane(
            channels,
            states.into_iter().map(|state| (state, Buffer::zeros(share * WIDTH))).collect(),
            share,
            |(state, piece), channel, first, size| {
                fill(state, channel, first, &mut piece.as_chunks_mut().0[..size])
            },
            &mut |piece, size, choices| each(&piece.as_chunks().0[..size], choices),
        )
    }

    /// Every lane makes a piece of at most `share` OTs at the same time; then they are handed on in order:
    /// what a lane keeps of its piece, how many OTs these are, and the choices.
    fn each_lane<S: Send, B: Send>(
        &self,
        channels: &mut [Channel],
        states: Vec<(S, B)>,
        share: usize,
        fill: impl Fn(&mut (S, B), &mut Channel, u64, usize) -> Result<BitVec> + Sync,
        each: &mut dyn FnMut(&B, usize, &BitVec) -> Result<()>,
    ) -> Result<()> {
        let mut lanes: Vec<_> = channels.iter_mut().zip(states).collect();
        let mut next = 0;
        while next < self.count {
            let mut parts = Vec::with_capacity(lanes.len());
            for _ in &lanes {
                let size = (self.count - next).min(share as u64);
                parts.push((next, size as usize));
                next += size;
            }
            let choices = in_parallel(&mut lanes, |index, (channel, state)| {
                let (first, size) = parts[index];
                let choices = fill(state, channel, first, size)?;
                channel.flush()?;
                Ok(choices)
            })?;
            for (((_, (_, piece)), choices), (_, size)) in lanes.iter().zip(&choices).zip(parts) {
                each(piece, size, choices)?;
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
        let lost = || Error::Net(tacit_net::Error::Closed { cause: None });
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
