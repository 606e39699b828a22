//! Where silent protocols take their first correlated OTs: IKNP, or KOS where the peer may be malicious.

use crate::extension::either::Either;
use crate::extension::{IknpReceiver, IknpSender, KosReceiver, KosSender, Setup};
use crate::{BaseOt, Result, Security};
use tacit_crypto::Prg;
use tacit_net::Channel;

pub(crate) type SourceSender = Either<IknpSender, KosSender>;
pub(crate) type SourceReceiver = Either<IknpReceiver, KosReceiver>;

macro_rules! begin {
    ($source:ident: $plain:ident, $checked:ident) => {
        impl $source {
            /// Begins the setup, which the peer begins likewise. KOS goes by hash, which takes one message in place of
            /// three, for two bytes in a hundred more.
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
                        let rest = $plain::begin(channel, base, prg)?;
                        Box::new(|channel| Ok(Either::SemiHonest(rest(channel)?.into())))
                    }
                    Security::Malicious => {
                        let rest = $checked::begin_by_hash(channel, base, prg)?;
                        Box::new(|channel| Ok(Either::Malicious(rest(channel)?.into())))
                    }
                })
            }
        }
    };
}
begin!(SourceSender: IknpSender, KosSender);
begin!(SourceReceiver: IknpReceiver, KosReceiver);
