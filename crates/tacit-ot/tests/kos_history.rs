//! KOS by Fiat–Shamir binds what its seeds were made by: one bit of the base OTs that the two sides saw
//! differently, or of what a caller binds, and the check fails, although the seeds themselves are right.

mod common;

use common::{Dealer, assert_correlated, prg};
use std::io::{IoSlice, IoSliceMut};
use std::time::Duration;
use tacit_crypto::{BitVec, Block};
use tacit_net::link::{Arrival, Interest};
use tacit_net::{Channel, Link, LinkModel, Party, SessionId, memory};
use tacit_ot::extension::kos::SEEDS;
use tacit_ot::extension::{KosReceiver, KosSender};
use tacit_ot::{BaseOt, CotReceiver, CotSender, Error, Result, RotReceiver, RotSender, Security};

const SAID: usize = 32;
const HEADER: usize = 4;

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

/// A link on which one bit of what is written changes.
struct Flip {
    link: Box<dyn Link>,
    written: usize,
    at: Option<usize>,
}

impl Link for Flip {
    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> tacit_net::Result<usize> {
        let mut bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        if let Some(at) = self.at
            && (self.written..self.written + bytes.len()).contains(&at)
        {
            bytes[at - self.written] ^= 0x10;
        }
        let n = self.link.try_write(&[IoSlice::new(&bytes)])?;
        self.written += n;
        Ok(n)
    }

    fn try_flush(&mut self) -> tacit_net::Result<bool> {
        self.link.try_flush()
    }

    fn try_read(&mut self, slices: &mut [IoSliceMut<'_>]) -> tacit_net::Result<Arrival> {
        self.link.try_read(slices)
    }

    fn wait(&mut self, interest: Interest, timeout: Duration) -> tacit_net::Result<bool> {
        self.link.wait(interest, timeout)
    }

    fn wire_bytes(&self) -> (u64, u64) {
        self.link.wire_bytes()
    }

    fn finish(&mut self) {
        self.link.finish();
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
        let link = Flip { link, written: 0, at: flip.map(|at| HEADER + at) };
        Channel::new(Box::new(link), party, SessionId([3; 32]))
    };
    let (mut a, mut b) = (channel(a, flips[0], Party::First), channel(b, flips[1], Party::Second));
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            let mut w = vec![Block::ZERO; 1000];
            receiver(&mut b).unwrap().extend(&mut b, &mut w).unwrap();
            w
        });
        let mut v = vec![Block::ZERO; 1000];
        let mut sender = sender(&mut a).unwrap();
        let result = sender.extend(&mut a, &mut v);
        let w = other.join().unwrap();
        match result {
            Ok(()) => assert_correlated(sender.delta(), &v, &w),
            Err(_) => assert!(v.iter().all(|block| *block == Block::ZERO), "something was left in out"),
        }
        result
    })
}

fn assert_cheated(result: Result<()>) {
    assert!(matches!(result, Err(Error::Cheated { protocol: "kos", .. })), "{result:?}");
}

const FLIPS: [[Option<usize>; 2]; 4] =
    [[Some(0), None], [Some(SAID - 1), None], [None, Some(0)], [None, Some(SAID - 1)]];

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
