//! Openings of authenticated bits, with MACs compared in batches.
//!
//! A party sends its shares; half of each MAC goes into a running hash, of which 32 bytes follow later. The
//! peer knows of each MAC what it must be (key ⊕ share·Δ), so the hash tells it nothing, and a wrong share
//! needs a MAC that differs by the peer's Δ. Nothing that depends on an input is sent before the hashes were
//! compared.

use super::bits::{with_masks, zeros};
use super::deviation::{deviate, passes};
use super::hash::MacHash;
use super::oracle::Oracle;
use super::reduced::reduced;
use super::{Result, cheated};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;

/// Batches that are on their way before the first of them is waited for: the more, the less of a line's delay
/// is seen; the fewer, the more of them is still in the cache when it is used. So there are twice as many
/// whenever one is waited for longer than a peer's computing takes, up to a bound. That changes nothing of
/// what is sent, nor its order, so that the parties need not agree on it.
pub(super) struct Ahead {
    batches: usize,
    most: usize,
}

/// Batches on the way before any was waited for.
pub(super) const FIRST_AHEAD: usize = 8;
/// Found by waiting, at most.
const MOST_AHEAD: usize = 64;
/// Where the link is known to be long: all of a window.
pub(super) const LONG_AHEAD: usize = 128;
pub(super) const LONG: Duration = Duration::from_millis(2);

impl Ahead {
    /// From `first` batches up to `most`.
    pub(super) fn between(first: usize, most: usize) -> Self {
        Ahead { batches: first, most }
    }

    /// Batches on the way by now.
    pub(super) fn batches(&self) -> usize {
        self.batches
    }

    /// What `receive` gives of the first of them.
    pub(super) fn receive<T>(&mut self, receive: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let received = receive();
        if start.elapsed() > LONG && !reduced().patient {
            self.batches = self.most.min(self.batches.saturating_mul(2));
        }
        received
    }
}

/// Sends bits, packed.
pub(super) fn send_bits(channel: &mut Channel, bits: &BitVec) -> Result<()> {
    Ok(channel.send(&bits.as_bytes()[..bits.len().div_ceil(8)])?)
}

/// Receives `n` bits.
pub(super) fn receive_bits(channel: &mut Channel, n: usize) -> Result<BitVec> {
    let mut bytes = vec![0u8; n.div_ceil(8)];
    channel.recv(&mut bytes)?;
    Ok(BitVec::from_bytes(&bytes, n))
}

/// The MACs that the peer must hold of shares `bits`, under `keys`; the lowest bits are the shares.
pub(super) fn expected(keys: &mut [Block], bits: &BitVec, delta: Block) {
    with_masks(keys, bits, |key, bit| *key ^= delta & bit);
}

/// Openings whose MACs are still to be compared.
pub(super) struct Openings {
    delta: Block,
    own: MacHash,
    peer: MacHash,
    ahead: Ahead,
}

impl Drop for Openings {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.delta);
    }
}

impl Openings {
    /// Openings of the phase `label` by the party that garbles or not, whose Δ is `delta`; with `ahead`
    /// batches on the way at first, as an earlier phase found it.
    pub(super) fn new(oracle: &Oracle, label: &str, garbler: bool, delta: Block, ahead: usize) -> Self {
        let [own, peer] = [garbler, !garbler].map(|garbler| MacHash::new(oracle, label, garbler));
        Openings { delta, own, peer, ahead: Ahead::between(ahead, MOST_AHEAD.max(ahead)) }
    }

    /// Batches to offer before the first of them is taken.
    pub(super) fn on_the_way(&self) -> usize {
        self.ahead.batches()
    }

    /// Shows the own shares, whose MACs are given.
    pub(super) fn offer(&mut self, channel: &mut Channel, macs: &[Block]) -> Result<BitVec> {
        let mut mine = BitVec::from_lsbs(macs);
        deviate(|script| script.opened(&mut mine));
        send_bits(channel, &mine)?;
        channel.flush()?;
        self.own.update_halves(macs);
        Ok(mine)
    }

    /// The bits themselves, provisionally, from the own shares `mine` and those that the peer shows, whose
    /// `keys` are used up.
    pub(super) fn take(
        &mut self,
        channel: &mut Channel,
        mut mine: BitVec,
        keys: &mut [Block],
    ) -> Result<BitVec> {
        let theirs = self.ahead.receive(|| receive_bits(channel, keys.len()))?;
        expected(keys, &theirs, self.delta);
        self.peer.update_halves(keys);
        mine.xor_assign(&theirs);
        Ok(mine)
    }

    /// Compares the MACs of all that was opened.
    pub(super) fn check(mut self, channel: &mut Channel) -> Result<()> {
        // proof: authenticated-run 2.3
        let mut mine = self.own.digest();
        deviate(|script| script.mac_digest(&mut mine));
        channel.send(&mine)?;
        let mut theirs = [0u8; 32];
        channel.recv(&mut theirs)?;
        if !passes(theirs.ct_eq(&self.peer.digest())) {
            return cheated("a MAC of an opened bit is wrong");
        }
        Ok(())
    }
}

/// Shows the peer this party's shares of some bits, with their MACs.
pub(super) fn show(
    channel: &mut Channel,
    oracle: &Oracle,
    label: &str,
    garbler: bool,
    macs: &[Block],
) -> Result<()> {
    // proof: authenticated-run 2.9, 2.10
    let mut mine = BitVec::from_lsbs(macs);
    let mut hash = MacHash::new(oracle, label, garbler);
    hash.update(macs);
    let mut digest = hash.digest();
    deviate(|script| script.shown(&mut mine, &mut digest));
    send_bits(channel, &mine)?;
    Ok(channel.send(&digest)?)
}

/// The peer's shares of bits of which this party has the keys.
pub(super) fn see(
    channel: &mut Channel,
    oracle: &Oracle,
    label: &str,
    peer_garbles: bool,
    keys: &[Block],
    delta: Block,
) -> Result<BitVec> {
    let bits = receive_bits(channel, keys.len())?;
    let mut digest = [0u8; 32];
    channel.recv(&mut digest)?;
    let mut macs = zeros(keys.len());
    macs.copy_from_slice(keys);
    expected(&mut macs, &bits, delta);
    let mut hash = MacHash::new(oracle, label, peer_garbles);
    hash.update(&macs);
    if !passes(digest.ct_eq(&hash.digest())) {
        return cheated("a MAC of an output's mask is wrong");
    }
    Ok(bits)
}
