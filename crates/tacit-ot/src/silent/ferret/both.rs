//! Ferret in both directions at once, on one channel and one thread.
//!
//! Each party sends in one Ferret and receives in another, of its own Δ and the peer's. Setups, iterations
//! and checks of the two go step by step together, so that whatever a party waits for was sent while it
//! computed the same for the other direction. Nothing else changes: the two share no secret, and all that
//! they hash is bound to instances of their own.

use super::params::{Config, REGULAR as NAME};
use super::regular::{FerretReceiver, FerretSender, checked_delta, context};
use crate::silent::engine::Stream;
use crate::silent::engine::seeds::{Pledge, Toss};
use crate::silent::engine::sink::{Cots, Sink};
use crate::{Error, Result};
use tacit_crypto::{Block, Buffer, Prg};
use tacit_net::Channel;

/// What makes correlations both ways: fills keys, then MACs.
pub type ExtendBothWays<'a> = &'a mut dyn FnMut(&mut Channel, &mut [Block], &mut [Block]) -> Result<()>;

/// Sets up both directions from correlations that `extend` makes, keys of this side's Δ and MACs under the
/// peer's, `config.reserve()` of each. The two parties differ in `first`, whether the direction in which this
/// side sends is the first.
///
/// Errors: those of the link and of `extend`; `Usage` when `delta` has bit 0 clear; `Malformed` when the
/// peer's parameters are others, `Cheated` when it opens another seed than it committed to.
pub fn setup_both_ways(
    channel: &mut Channel,
    prg: &mut Prg,
    config: Config,
    first: bool,
    delta: Block,
    extend: ExtendBothWays<'_>,
) -> Result<(FerretSender, FerretReceiver)> {
    config.validate()?;
    let delta = checked_delta(delta)?;
    let contexts = [context(config, channel, 0), context(config, channel, 0)];
    let [of_sender, of_receiver] = if first { contexts } else { [contexts[1].clone(), contexts[0].clone()] };
    let (mut sends, mut receives) = (prg.fork(), prg.fork());
    let pledge = Pledge::send(channel, &of_receiver, &mut receives, false, NAME)?;
    let toss = Toss::receive(channel, &of_sender, &mut sends, NAME)?;
    let (mut keys, mut macs) = (Buffer::zeros(config.reserve()), Buffer::zeros(config.reserve()));
    extend(channel, &mut keys, &mut macs)?;
    toss.contribute(channel)?;
    let receiver = FerretReceiver::with(config, of_receiver, pledge.toss(channel)?, macs, receives);
    let sender = FerretSender::with(config, of_sender, toss.finish(channel)?, keys, delta, sends);
    Ok((sender, receiver))
}

/// Fills `keys` with correlations of `sender` and `macs` with some of `receiver`, one part after the other.
/// The peer calls this with as many of each, the other way round.
///
/// Errors: those of the link; `Cheated` when a check failed, which leaves nothing in either, and spends both
/// streams.
pub fn extend_both_ways(
    channel: &mut Channel,
    (sender, keys): (&mut FerretSender, Vec<&mut [Block]>),
    (receiver, macs): (&mut FerretReceiver, Vec<&mut [Block]>),
) -> Result<()> {
    let [sends, receives] = [sender.spent(), receiver.spent()];
    sends.and(receives)?;
    let (mut to, mut from) = (Cots::parts(keys), Cots::parts(macs));
    let made = make(channel, (sender, &mut to), (receiver, &mut from));
    // Streams on other channels that share Δ may have failed meanwhile.
    let made = made.and_then(|()| sender.spent()).and_then(|()| receiver.spent());
    made.inspect_err(|error| {
        if !matches!(error, Error::Exhausted { .. }) {
            sender.give_up();
            receiver.give_up();
        }
        to.wipe();
        from.wipe();
    })
}

fn make(
    channel: &mut Channel,
    (sender, to): (&mut FerretSender, &mut Cots<'_>),
    (receiver, from): (&mut FerretReceiver, &mut Cots<'_>),
) -> Result<()> {
    sender.serve(to)?;
    receiver.serve(from)?;
    while to.left() > 0 && from.left() > 0 {
        receiver.choose(channel)?;
        let asked = sender.deal(channel, to)?;
        let expected = receiver.solve(channel, from)?;
        sender.answer(channel, to, asked)?;
        if from.left() > 0 && to.left() > 0 {
            receiver.choose(channel)?;
        }
        receiver.compare(channel, from, expected)?;
    }
    // Where one direction takes an iteration more: the sender's side and the receiver's are the same one's.
    while to.left() > 0 {
        sender.run(channel, to)?;
    }
    while from.left() > 0 {
        receiver.run(channel, from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::dealing::Dealer;
    use super::super::params::{Lanes, Params};
    use super::*;
    use crate::{CotReceiver, CotSender, Security};
    use tacit_net::memory;

    const CONFIG: Config = Config {
        params: Params { name: "tiny", k: 256, t: 24, depth: 6, security_bits: 0 },
        lanes: Lanes::One,
        security: Security::Malicious,
    };

    const FOUR: Config = Config { lanes: Lanes::Four, ..CONFIG };

    /// `all` in three parts.
    fn parts(all: &mut [Block]) -> Vec<&mut [Block]> {
        all.chunks_mut(all.len().div_ceil(3).max(1)).collect()
    }

    /// One party: several requests, [keys, MACs] each, and what they gave.
    fn party(
        channel: &mut Channel,
        config: Config,
        first: bool,
        requests: &[[usize; 2]],
        lie: bool,
    ) -> Result<(Block, Vec<[Vec<Block>; 2]>)> {
        let (mut one, mut two) = (Dealer::pair(1), Dealer::pair(2));
        let (source, other) = if first { (&mut one.0, &mut two.1) } else { (&mut two.0, &mut one.1) };
        let delta = CotSender::delta(source);
        let mut prg = Prg::from_seed(Block::new(10 + u128::from(first)));
        let (mut sender, mut receiver) =
            setup_both_ways(channel, &mut prg, config, first, delta, &mut |channel, keys, macs| {
                CotSender::extend(source, channel, keys)?;
                if lie {
                    keys[config.secret() + 3] ^= Block::new(1 << 9);
                }
                CotReceiver::extend(other, channel, macs)
            })?;
        let mut all = Vec::new();
        for &[keys, macs] in requests {
            let mut made = [keys, macs].map(|n| vec![Block::ONES; n]);
            let [keys, macs] = &mut made;
            let result = extend_both_ways(channel, (&mut sender, parts(keys)), (&mut receiver, parts(macs)));
            if let Err(error) = result {
                assert!(made.iter().flatten().all(|block| *block == Block::ZERO), "something is left");
                let [keys, macs] = &mut made;
                let again =
                    extend_both_ways(channel, (&mut sender, parts(keys)), (&mut receiver, parts(macs)));
                assert!(matches!(again, Err(Error::Spent(_))), "goes on after a failure");
                return Err(error);
            }
            all.push(made);
        }
        Ok((delta, all))
    }

    #[test]
    fn both_directions_give_what_each_alone_does_for_any_requests() {
        for config in [CONFIG, FOUR] {
            let net = config.net();
            let requests = [[10, 10], [net, net], [3 * net + 7, 3 * net + 7], [5, 0], [0, 2 * net], [net, 1]];
            let turned = requests.map(|[keys, macs]| [macs, keys]);
            let (one, two) = memory::run(
                |channel| party(channel, config, true, &requests, false).unwrap(),
                |channel| party(channel, config, false, &turned, false).unwrap(),
            );
            let mut seen = std::collections::HashSet::new();
            for ((delta, ours), (_, theirs)) in [(&one, &two), (&two, &one)] {
                for ([keys, _], [_, macs]) in ours.iter().zip(theirs) {
                    assert_eq!(keys.len(), macs.len());
                    for (key, mac) in keys.iter().zip(macs) {
                        assert!(*mac == *key ^ (*delta & Block::mask(mac.lsb())));
                        assert!(seen.insert(key.to_u128()), "a correlation came twice");
                    }
                }
            }
        }
    }

    #[test]
    fn a_direction_that_cheats_spends_both() {
        let requests = [[CONFIG.net() + 3; 2]; 1];
        let (one, _) = memory::run(
            |channel| party(channel, CONFIG, true, &requests, false).map(drop),
            |channel| party(channel, CONFIG, false, &requests, true).map(drop),
        );
        assert!(matches!(one, Err(Error::Cheated { .. })), "{one:?}");
    }
}
