//! KOS by Fiat–Shamir binds what its seeds were made by: one bit of the base OTs that the two sides saw
//! differently, or of what a caller binds, and the check fails, although the seeds themselves are right.

use crate::common::{Dealer, assert_correlated, prg};
use tacit_crypto::{BitVec, Block};
use tacit_net::testing::Tap;
use tacit_net::{Channel, LinkModel, Party, SessionId, memory};
use tacit_ot::extension::kos::SEEDS;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::{BaseOt, CotReceiver, CotSender, Error, Result, RotReceiver, RotSender, Security};

const SAID: usize = 32;

/// The dealer's OTs, for which both sides also say something that does not bear on the messages.
struct Talking;

fn talk(channel: &mut Channel, word: u8) -> Result<()> {
    channel.send(&[word; SAID])?;
    Ok(channel.recv(&mut [0; SAID])?)
}

impl BaseOt for Talking {
    fn name(&self) -> &'static str {
        "talking"
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn send(&self, channel: &mut Channel, prg: &mut tacit_crypto::Prg, out: &mut [[Block; 2]]) -> Result<()> {
        talk(channel, 1)?;
        Dealer(1).send(channel, prg, out)
    }

    fn receive(
        &self,
        channel: &mut Channel,
        prg: &mut tacit_crypto::Prg,
        choices: &BitVec,
        out: &mut [Block],
    ) -> Result<()> {
        talk(channel, 2)?;
        Dealer(1).receive(channel, prg, choices, out)
    }
}

impl RotSender for Talking {
    fn extend(&mut self, channel: &mut Channel, out: &mut [[Block; 2]]) -> Result<()> {
        self.send(channel, &mut prg(0), out)
    }
}

impl RotReceiver for Talking {
    fn extend(&mut self, channel: &mut Channel, out: &mut [Block]) -> Result<BitVec> {
        let choices = BitVec::random(out.len(), &mut prg(9));
        self.receive(channel, &mut prg(0), &choices, out)?;
        Ok(choices)
    }
}

/// 1,000 correlations of a sender and a receiver made so, with a bit of each side's first words changed; the
/// sender's result.
fn extended(
    flips: [Option<usize>; 2],
    sender: impl FnOnce(&mut Channel) -> Result<KosSender> + Send,
    receiver: impl FnOnce(&mut Channel) -> Result<KosReceiver> + Send,
) -> Result<()> {
    let (a, b) = memory::links(LinkModel::LOOPBACK);
    let channel = |link, flip: Option<usize>, party| {
        let tap = Tap::default();
        flip.into_iter().for_each(|at| tap.flip(at, 0x10));
        Channel::new(tap.of(link), party, SessionId([3; 32]))
    };
    let ((delta, v, result), w) = memory::join(
        channel(a, flips[0], Party::First),
        channel(b, flips[1], Party::Second),
        |ch| {
            let mut v = vec![Block::ZERO; 1000];
            let mut sender = sender(ch).unwrap();
            let result = sender.extend(ch, &mut v);
            (sender.delta(), v, result)
        },
        |ch| {
            let mut w = vec![Block::ZERO; 1000];
            receiver(ch).unwrap().extend(ch, &mut w).unwrap();
            w
        },
    );
    match result {
        Ok(()) => assert_correlated(delta, &v, &w),
        Err(_) => assert!(v.iter().all(|block| *block == Block::ZERO), "something was left in out"),
    }
    result
}

fn assert_cheated(result: Result<()>) {
    assert!(matches!(result, Err(Error::Cheated { protocol: "kos", .. })), "{result:?}");
}

const FLIPS: [[Option<usize>; 2]; 4] =
    [[Some(0), None], [Some(SAID - 1), None], [None, Some(0)], [None, Some(SAID - 1)]];

/// proof: kos 5.2
#[test]
fn a_bit_of_the_base_ots_changes_the_challenge() {
    let begun = |flips| {
        extended(
            flips,
            |c| KosSender::begin_by_hash(c, &Talking, &mut prg(2))?(c),
            |c| KosReceiver::begin_by_hash(c, &Talking, &mut prg(3))?(c),
        )
    };
    let set_up = |flips| {
        extended(
            flips,
            |c| Ok(KosSender::setup(c, &Talking, &mut prg(2))?.by_hash(c)),
            |c| Ok(KosReceiver::setup(c, &Talking, &mut prg(3))?.by_hash(c)),
        )
    };
    begun([None; 2]).unwrap();
    set_up([None; 2]).unwrap();
    for flips in FLIPS {
        assert_cheated(begun(flips));
        assert_cheated(set_up(flips));
        // What was changed bears on nothing else: with χ from the sender the same run passes.
        extended(
            flips,
            |c| KosSender::setup(c, &Talking, &mut prg(2)),
            |c| KosReceiver::setup(c, &Talking, &mut prg(3)),
        )
        .unwrap();
    }
}

/// proof: kos 5.2
#[test]
fn a_bit_of_the_random_ots_or_of_their_setup_changes_the_challenge() {
    let from_rot = |flips, before: [[u8; 32]; 2]| {
        extended(
            flips,
            move |c| Ok(KosSender::from_rot(c, &mut Talking, &before[0], &mut prg(2))?.by_hash(c)),
            move |c| Ok(KosReceiver::from_rot(c, &mut Talking, &before[1], &mut prg(3))?.by_hash(c)),
        )
    };
    from_rot([None; 2], [[5; 32]; 2]).unwrap();
    for flips in FLIPS {
        assert_cheated(from_rot(flips, [[5; 32]; 2]));
    }
    let mut other = [5; 32];
    other[31] ^= 1;
    assert_cheated(from_rot([None; 2], [[5; 32], other]));
}

/// proof: kos 5.2
#[test]
fn a_bit_of_what_the_caller_binds_changes_the_challenge() {
    let from_seeds = |made: [[u8; 32]; 2]| {
        let choices = BitVec::random(SEEDS, &mut prg(4));
        let mut pairs = vec![[Block::ZERO; 2]; SEEDS];
        prg(5).fill_blocks(pairs.as_flattened_mut());
        let chosen: Vec<Block> = (0..SEEDS).map(|i| pairs[i][choices.get(i) as usize]).collect();
        extended(
            [None; 2],
            move |c| Ok(KosSender::from_seeds(&choices, &chosen, &made[0], &mut prg(2))?.by_hash(c)),
            move |c| Ok(KosReceiver::from_seeds(&pairs, &made[1], &mut prg(3))?.by_hash(c)),
        )
    };
    from_seeds([[6; 32]; 2]).unwrap();
    for (byte, bit) in [(0, 1), (13, 0x40), (31, 0x80)] {
        let mut other = [6; 32];
        other[byte] ^= bit;
        assert_cheated(from_seeds([[6; 32], other]));
    }
}
