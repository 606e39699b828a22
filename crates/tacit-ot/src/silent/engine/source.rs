//! What silent protocols start from: parameters that both sides agree on, commitments to seeds, and
//! correlated OTs by IKNP, or by KOS where the peer may be malicious.

use super::seeds::{Pledge, Seeds};
use crate::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, Setup};
use crate::{BaseOt, CotReceiver, CotSender, Result, Security};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg};
use tacit_net::Channel;

/// Ends a source's setup, and meanwhile compares what `context` holds with the peer's and exchanges
/// commitments to seeds.
///
/// Errors: those of the link and the base OT; `Malformed` when the peer's parameters are others.
pub(crate) fn agree<S>(
    channel: &mut Channel,
    source: Setup<S>,
    context: &Transcript,
    prg: &mut Prg,
    sends: bool,
    protocol: &'static str,
) -> Result<(S, Seeds)> {
    // Along with the base OTs' first message, where theirs cross.
    let pledge = Pledge::send(channel, context, prg, sends, protocol)?;
    let source = source(channel)?;
    Ok((source, pledge.receive(channel)?))
}

macro_rules! source {
    ($name:ident, $iknp:ident, $kos:ident) => {
        pub(crate) enum $name {
            SemiHonest(Box<$iknp>),
            Malicious(Box<$kos>),
        }

        impl $name {
            /// Begins the setup. KOS takes its weights from a hash, so that a request is one message.
            pub(crate) fn begin(
                channel: &mut Channel,
                base: &dyn BaseOt,
                prg: &mut Prg,
                security: Security,
            ) -> Result<Setup<Self>> {
                Ok(match security {
                    Security::SemiHonest => {
                        let rest = $iknp::begin(channel, base, prg)?;
                        Box::new(|channel| Ok($name::SemiHonest(rest(channel)?.into())))
                    }
                    Security::Malicious => {
                        let rest = $kos::begin_by_hash(channel, base, prg)?;
                        Box::new(|channel| Ok($name::Malicious(rest(channel)?.into())))
                    }
                })
            }

            /// An independent stream of the same Δ; the peer forks in step.
            pub(crate) fn fork(&mut self) -> Self {
                match self {
                    $name::SemiHonest(source) => $name::SemiHonest(source.fork().into()),
                    $name::Malicious(source) => $name::Malicious(source.fork().into()),
                }
            }
        }
    };
}

source!(SourceSender, IknpSender, KosSender);
source!(SourceReceiver, IknpReceiver, KosReceiver);

impl CotSender for SourceSender {
    fn delta(&self) -> Block {
        match self {
            SourceSender::SemiHonest(source) => source.delta(),
            SourceSender::Malicious(source) => source.delta(),
        }
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        match self {
            SourceSender::SemiHonest(source) => CotSender::extend(&mut **source, channel, out),
            SourceSender::Malicious(source) => CotSender::extend(&mut **source, channel, out),
        }
    }
}

impl CotReceiver for SourceReceiver {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        match self {
            SourceReceiver::SemiHonest(source) => CotReceiver::extend(&mut **source, channel, out),
            SourceReceiver::Malicious(source) => CotReceiver::extend(&mut **source, channel, out),
        }
    }
}
