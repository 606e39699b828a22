//! A party of either security: IKNP's or KOS', over any columns.

use super::columns::{ReceivingColumns, SendingColumns};
use super::{IknpReceiver, IknpSender, KosReceiver, KosSender};
use crate::{CotReceiver, CotSender, Result};
use tacit_crypto::Block;
use tacit_net::Channel;

/// Streams of one setup.
pub(crate) trait Streams {
    /// An independent stream of the same Δ; the peer forks in step.
    fn branch(&mut self) -> Self;
}

macro_rules! streams {
    ($($party:ident: $columns:ident),*) => {$(
        impl<C: $columns + 'static> Streams for $party<C> {
            fn branch(&mut self) -> Self {
                self.fork()
            }
        }
    )*};
}
streams!(
    IknpSender: SendingColumns,
    KosSender: SendingColumns,
    IknpReceiver: ReceivingColumns,
    KosReceiver: ReceivingColumns
);

/// One side's party, of either security.
pub(crate) enum Either<I, K> {
    SemiHonest(Box<I>),
    Malicious(Box<K>),
}

/// What an expression gives of whichever party there is.
macro_rules! of_either {
    ($either:expr, $party:ident => $result:expr) => {
        match $either {
            $crate::extension::either::Either::SemiHonest($party) => $result,
            $crate::extension::either::Either::Malicious($party) => $result,
        }
    };
}
pub(crate) use of_either;

impl<I: Streams, K: Streams> Either<I, K> {
    /// An independent stream of the same Δ; the peer forks in step.
    pub(crate) fn fork(&mut self) -> Self {
        match self {
            Either::SemiHonest(party) => Either::SemiHonest(party.branch().into()),
            Either::Malicious(party) => Either::Malicious(party.branch().into()),
        }
    }
}

impl<I: CotSender, K: CotSender> CotSender for Either<I, K> {
    fn delta(&self) -> Block {
        of_either!(self, party => party.delta())
    }

    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        of_either!(self, party => party.extend(channel, out))
    }
}

impl<I: CotReceiver, K: CotReceiver> CotReceiver for Either<I, K> {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<()> {
        of_either!(self, party => party.extend(channel, out))
    }
}
