//! Correlated OT both ways from one base OT.
//!
//! The garbler receives in the base OT, from which KOS makes the first direction's correlations. The other direction's KOS
//! takes its seeds from 128 of these, as random OTs: their choices, the evaluator's, become its Δ. Each KOS is the
//! source of a Ferret of its direction.

use super::{DOMAIN, Session};
use crate::{Owner, Result};
use tacit_crypto::Prg;
use tacit_crypto::transcript::Transcript;
use tacit_net::{Channel, Recording};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::kos::{KosReceiver, KosSender};
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender};
use tacit_ot::{BaseOt, CotReceiver, CotSender, Security};

impl Session<FerretSender, FerretReceiver> {
    /// A session of the party `role` from a base OT against malicious parties, over Ferret with `config` both ways.
    ///
    /// Errors: `Usage` for a base OT or a Ferret that protects less; those of the OTs and the link.
    pub fn setup(
        channel: &mut Channel,
        role: Owner,
        base: &dyn BaseOt,
        config: Config,
        prg: &mut Prg,
    ) -> Result<Self> {
        if config.protects() != Some(Security::Malicious) {
            return super::usage("Ferret with a check of consistency, for a malicious peer");
        }
        let mut passed = Recording::new(channel);
        let (sender, receiver) = match role {
            Owner::Garbler => {
                let mut one = channel
                    .record(&mut passed, |channel| KosSender::begin_by_hash(channel, base, prg)?(channel))?;
                let before = before(channel, &passed);
                let back = KosReceiver::from_rot(channel, &mut CotToRot::new(&mut one), &before, prg)?;
                let mut back = back.by_hash(channel);
                let sender = sender(channel, config, &mut one, prg)?;
                (sender, receiver(channel, config, &mut back, prg)?)
            }
            Owner::Evaluator => {
                let mut one = channel.record(&mut passed, |channel| {
                    KosReceiver::begin_by_hash(channel, base, prg)?(channel)
                })?;
                let before = before(channel, &passed);
                let back = KosSender::from_rot(channel, &mut CotToRot::new(&mut one), &before, prg)?;
                let mut back = back.by_hash(channel);
                let receiver = receiver(channel, config, &mut one, prg)?;
                (sender(channel, config, &mut back, prg)?, receiver)
            }
        };
        Ok(Session::new(role, sender, receiver, prg))
    }
}

/// What the seeds of the second KOS hang on: the session, which is in the hash that makes random OTs, and what passed.
fn before(channel: &Channel, passed: &Recording) -> [u8; 32] {
    let mut transcript = Transcript::new(DOMAIN);
    transcript.append("session", &channel.session_id().0);
    transcript.append("first direction", &passed.digest());
    let mut before = [0u8; 32];
    transcript.challenge_bytes("before", &mut before);
    before
}

fn sender(
    channel: &mut Channel,
    config: Config,
    source: &mut dyn CotSender,
    prg: &mut Prg,
) -> Result<FerretSender> {
    Ok(match config.small(1) {
        None => FerretSender::setup(channel, prg.fork(), config, source)?,
        Some(small) => {
            let mut between = FerretSender::setup(channel, prg.fork(), small, source)?;
            FerretSender::setup(channel, prg.fork(), config, &mut between)?
        }
    })
}

fn receiver(
    channel: &mut Channel,
    config: Config,
    source: &mut dyn CotReceiver,
    prg: &mut Prg,
) -> Result<FerretReceiver> {
    Ok(match config.small(1) {
        None => FerretReceiver::setup(channel, prg.fork(), config, source)?,
        Some(small) => {
            let mut between = FerretReceiver::setup(channel, prg.fork(), small, source)?;
            FerretReceiver::setup(channel, prg.fork(), config, &mut between)?
        }
    })
}
