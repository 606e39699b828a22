//! Authenticated triples by themselves, for a protocol of the caller's own.

use super::{Demand, Independent, Session};
use super::{bits::Stock, buckets};
use crate::Result;
use tacit_crypto::Block;
use tacit_net::Channel;
use tacit_ot::{CotReceiver, CotSender};
use zeroize::Zeroize;

/// One party's part of many triples of bits a, b and c, where c = a·b of both parties' sums.
///
/// A party's share of a bit is its MAC's lowest bit, and the MAC is the peer's key, plus the peer's Δ where the
/// share is 1. A key's lowest bit is 0.
pub struct Triples {
    delta: Block,
    gates: Stock,
    count: usize,
}

impl Triples {
    /// This party's Δ, with which its keys go.
    pub fn delta(&self) -> Block {
        self.delta
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The MACs of this party's shares: all of a, of b and of c.
    pub fn macs(&self) -> [&[Block]; 3] {
        self.gates.gates().part(0..self.count).macs
    }

    /// The keys of the peer's shares, likewise.
    pub fn keys(&self) -> [&[Block]; 3] {
        self.gates.gates().part(0..self.count).keys
    }
}

impl Drop for Triples {
    fn drop(&mut self) {
        self.delta.zeroize();
    }
}

impl<S: CotSender, R: CotReceiver> Session<S, R> {
    /// The most triples that are made at a time.
    pub const MOST_TRIPLES: usize = buckets::WINDOW;

    /// Makes `count` triples, all of whose checks have passed; at most [`MOST_TRIPLES`](Self::MOST_TRIPLES).
    ///
    /// Both parties call it with the same number. Errors as of [`independent`](Session::independent).
    pub fn triples(&mut self, channel: &mut Channel, count: usize) -> Result<Triples> {
        if count > Self::MOST_TRIPLES {
            return super::usage("at most 500,000 triples at a time");
        }
        let made = self.independent(channel, Demand::of_triples(count))?;
        Ok(made.into_triples())
    }
}

impl Demand {
    /// What so many triples for a protocol of the caller's own need.
    pub fn of_triples(count: usize) -> Self {
        Demand { ands: count, garbler_inputs: 0, evaluator_inputs: 0 }
    }
}

impl Independent {
    /// The triples, of which none has served.
    fn into_triples(mut self) -> Triples {
        let gates = std::mem::replace(&mut self.gates, Stock::zeros(0));
        Triples { delta: self.delta, gates, count: self.demand.ands }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Owner;
    use tacit_crypto::Prg;
    use tacit_net::{LinkModel, memory};
    use tacit_ot::base;

    fn made(counts: &[usize]) -> [Vec<Triples>; 2] {
        let side = |channel: &mut Channel, role| {
            let config = Demand::of_triples(1000).ferret(&LinkModel::LOOPBACK, buckets::Level::ALONE);
            let mut prg = Prg::from_os();
            let mut session = Session::setup(channel, role, &*base::default(), config, &mut prg).unwrap();
            let made = counts.iter().map(|count| session.triples(channel, *count).unwrap()).collect();
            channel.flush().unwrap();
            made
        };
        let (one, two) =
            memory::run(|channel| side(channel, Owner::Garbler), |channel| side(channel, Owner::Evaluator));
        [one, two]
    }

    #[test]
    fn triples_multiply_and_their_macs_hold_for_every_count() {
        let counts = [0, 1, 7, 8, 65, buckets::LEAST, 1000];
        let [one, two] = made(&counts);
        let mut ones = [0u32; 2];
        for ((a, b), count) in one.iter().zip(&two).zip(counts) {
            assert_eq!(
                (a.count(), b.count(), a.macs()[0].len(), b.keys()[2].len()),
                (count, count, count, count)
            );
            assert!(a.delta().lsb() && b.delta().lsb() && a.delta() != b.delta());
            assert!(a.delta() == one[0].delta() && b.delta() == two[0].delta(), "one Δ a session");
            for i in 0..count {
                let [x, y, z] = [0, 1, 2].map(|part| {
                    for (mine, theirs) in [(a, b), (b, a)] {
                        let (mac, key) = (mine.macs()[part][i], theirs.keys()[part][i]);
                        assert!(!key.lsb() && mac == key ^ (theirs.delta() & Block::mask(mac.lsb())));
                    }
                    a.macs()[part][i].lsb() ^ b.macs()[part][i].lsb()
                });
                assert_eq!(x & y, z, "triple {i} of {count}");
                ones[0] += u32::from(a.macs()[0][i].lsb());
                ones[1] += u32::from(b.macs()[1][i].lsb());
            }
        }
        // Of 1530, within seven standard deviations.
        assert!(ones.iter().all(|ones| ones.abs_diff(765) < 137), "{ones:?}");
    }

    #[test]
    fn too_many_at_a_time_are_refused_before_anything_is_sent() {
        let (refused, ()) = memory::run(
            |channel| {
                let config = Demand::of_triples(1).ferret(&LinkModel::LOOPBACK, buckets::Level::ALONE);
                let mut prg = Prg::from_os();
                let mut session =
                    Session::setup(channel, Owner::Garbler, &*base::default(), config, &mut prg).unwrap();
                let sent = channel.stats().bytes_sent;
                let refused = session.triples(channel, buckets::WINDOW + 1).is_err();
                refused && channel.stats().bytes_sent == sent
            },
            |channel| {
                let config = Demand::of_triples(1).ferret(&LinkModel::LOOPBACK, buckets::Level::ALONE);
                Session::setup(channel, Owner::Evaluator, &*base::default(), config, &mut Prg::from_os())
                    .map(drop)
                    .unwrap();
            },
        );
        assert!(refused);
    }
}
