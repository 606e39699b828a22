//! Where silent protocols take their first correlated OTs: IKNP, or KOS where the peer may be malicious.

use crate::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, Setup};
use crate::{BaseOt, CotReceiver, CotSender, Result, Security};
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;

/// An OT extension's party, whose requests are one message each.
pub(crate) trait Extension: Sized {
    /// Begins its setup; see [`BaseOt::begin_receive`].
    fn start(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>>;
    /// An independent stream of the same Δ; the peer forks in step.
    fn branch(&mut self) -> Self;
}

impl Extension for IknpSender {
    fn start(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin(channel, base, prg)
    }

    fn branch(&mut self) -> Self {
        self.fork()
    }
}

impl Extension for IknpReceiver {
    fn start(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin(channel, base, prg)
    }

    fn branch(&mut self) -> Self {
        self.fork()
    }
}

/// By hash, which takes one message in place of three, for two bytes in a hundred more.
impl Extension for KosSender {
    fn start(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin_by_hash(channel, base, prg)
    }

    fn branch(&mut self) -> Self {
        self.fork()
    }
}

/// As for the sender.
impl Extension for KosReceiver {
    fn start(channel: &mut Channel, base: &dyn BaseOt, prg: &mut Prg) -> Result<Setup<Self>> {
        Self::begin_by_hash(channel, base, prg)
    }

    fn branch(&mut self) -> Self {
        self.fork()
    }
}

/// One side's, of either security.
pub(crate) enum Source<I, K> {
    SemiHonest(Box<I>),
    Malicious(Box<K>),
}

pub(crate) type SourceSender = Source<IknpSender, KosSender>;
pub(crate) type SourceReceiver = Source<IknpReceiver, KosReceiver>;

impl<I: Extension + 'static, K: Extension + 'static> Source<I, K> {
    /// Begins the setup, which the peer begins likewise.
    ///
    /// Errors: those of the link and the base OT; `Usage` for a base OT that protects less than `security`.
    pub(crate) fn begin(
        channel: &mut Channel,
        base: &dyn BaseOt,
        prg: &mut Prg,
        security: Security,
    ) -> Result<Setup<Self>> {
        Ok(match security {
            Security::SemiHonest => {
                let rest = I::start(channel, base, prg)?;
                Box::new(|channel| Ok(Source::SemiHonest(rest(channel)?.into())))
            }
            Security::Malicious => {
                let rest = K::start(channel, base, prg)?;
                Box::new(|channel| Ok(Source::Malicious(rest(channel)?.into())))
            }
        })
    }

    /// An independent stream of the same Δ; the peer forks in step.
    pub(crate) fn fork(&mut self) -> Self {
        match self {
            Source::SemiHonest(source) => Source::SemiHonest(source.branch().into()),
            Source::Malicious(source) => Source::Malicious(source.branch().into()),
        }
    }
}

impl<I: CotSender, K: CotSender> CotSender for Source<I, K> {
    fn delta(&self) -> Block {
        match self {
            Source::SemiHonest(source) => source.delta(),
            Source::Malicious(source) => source.delta(),
        }
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        match self {
            Source::SemiHonest(source) => source.extend(channel, out),
            Source::Malicious(source) => source.extend(channel, out),
        }
    }
}

impl<I: CotReceiver, K: CotReceiver> CotReceiver for Source<I, K> {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        match self {
            Source::SemiHonest(source) => source.extend(channel, out),
            Source::Malicious(source) => source.extend(channel, out),
        }
    }
}
