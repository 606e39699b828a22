//! Correlated OT both ways from one base OT.
//!
//! The garbler receives in the base OT, from which KOS makes the first direction's correlations. The other
//! direction's KOS takes its seeds from 128 of these, as random OTs: their choices, the evaluator's, become
//! its Δ. Each KOS is the source of a Ferret of its direction; the two Ferrets run step by step together.

use super::session::Extend;
use super::{DOMAIN, Session};
use crate::{Owner, Result};
use tacit_crypto::transcript::Transcript;
use tacit_crypto::{Block, Prg};
use tacit_net::{Channel, Recording};
use tacit_ot::convert::CotToRot;
use tacit_ot::extension::kos::{KosReceiver, KosSender};
use tacit_ot::silent::ferret::{Config, FerretReceiver, FerretSender, extend_both_ways, setup_both_ways};
use tacit_ot::{BaseOt, CotReceiver, CotSender, Security};

impl Session<FerretSender, FerretReceiver> {
    /// A session of the party `role` from a base OT against malicious parties, over Ferret with `config` both
    /// ways.
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
        let (mut sender, mut receiver) = match role {
            Owner::Garbler => {
                let mut one = channel
                    .record(&mut passed, |channel| KosSender::begin_by_hash(channel, base, prg)?(channel))?;
                let before = before(channel, &passed);
                let back = KosReceiver::from_rot(channel, &mut CotToRot::new(&mut one), &before, prg)?;
                let back = back.by_hash(channel);
                (one, back)
            }
            Owner::Evaluator => {
                let mut one = channel.record(&mut passed, |channel| {
                    KosReceiver::begin_by_hash(channel, base, prg)?(channel)
                })?;
                let before = before(channel, &passed);
                let back = KosSender::from_rot(channel, &mut CotToRot::new(&mut one), &before, prg)?;
                (back.by_hash(channel), one)
            }
        };
        let delta = sender.delta();
        // One message each way, which pass each other.
        let mut extend = |channel: &mut Channel, keys: &mut [Block], macs: &mut [Block]| {
            receiver.extend(channel, macs)?;
            sender.extend(channel, keys)
        };
        let first = role == Owner::Garbler;
        let sources = config.small(1).unwrap_or(config);
        let (mut sender, mut receiver) = setup_both_ways(channel, prg, sources, first, delta, &mut extend)?;
        if sources != config {
            let mut extend = |channel: &mut Channel, keys: &mut [Block], macs: &mut [Block]| {
                extend_both_ways(channel, (&mut sender, vec![keys]), (&mut receiver, vec![macs]))
            };
            (sender, receiver) = setup_both_ways(channel, prg, config, first, delta, &mut extend)?;
        }
        let extend: Extend<_, _> = |channel, _, sends, receives| extend_both_ways(channel, sends, receives);
        Ok(Session::extended_by(role, sender, receiver, extend, prg))
    }
}

/// What the seeds of the second KOS depend on: the session, which is in the hash that makes random OTs, and
/// what passed.
fn before(channel: &Channel, passed: &Recording) -> [u8; 32] {
    let mut transcript = Transcript::new(DOMAIN);
    transcript.append("session", &channel.session_id().0);
    transcript.append("first direction", &passed.digest());
    let mut before = [0u8; 32];
    transcript.challenge_bytes("before", &mut before);
    before
}
