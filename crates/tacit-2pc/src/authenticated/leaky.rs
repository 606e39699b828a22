//! Leaky AND triples: authenticated x, y, z with z = x·y, of which a cheater may guess x (2018/578, section 3).
//!
//! With C = y·Δ ⊕ K\[y\] ⊕ M\[y\] on either side, C_A ⊕ C_B = y·(Δ_A ⊕ Δ_B). A party sends
//! G = H(K\[x\]) ⊕ H(K\[x\] ⊕ Δ) ⊕ C, from which the peer gets H(K\[x\]) ⊕ x·C with its own share x. Then
//! S_A ⊕ S_B = (x·y ⊕ z)·(Δ_A ⊕ Δ_B), whose lowest bit d both show, and z becomes z ⊕ d. What is left after d·Δ is
//! added must be the same on both sides; a party that sent another G passes only if it guesses the peer's x.
//!
//! Here both Δ have lowest bit 1, where the paper has 1 and 0: every block under Δ_B enters with its lowest bit
//! cleared, which is linear and turns Δ_B into one of lowest bit 0.

use super::bits::{Shares, zeros};
use super::deviation::deviate;
use super::opening::{MacHash, receive_bits, send_bits};
use crate::Result;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block};
use tacit_net::Channel;

/// Triples hashed at a time, in the nearest cache.
const TILE: usize = 256;
/// Triples whose messages cross at a time.
const BATCH: usize = 1 << 16;

/// What stays the same for all triples of a party.
pub(super) struct Maker {
    pub(super) garbler: bool,
    pub(super) delta: Block,
    /// The hash of the own keys, and of the peer's.
    pub(super) own: Mitccrh,
    pub(super) peer: Mitccrh,
    /// Triples made so far: the hashes' next number.
    pub(super) made: u64,
}

impl Drop for Maker {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.delta);
    }
}

impl Maker {
    /// What of blocks under the own Δ counts, and under the peer's.
    fn masks(&self) -> [Block; 2] {
        let without_lowest = Block::ONES ^ Block::ONE;
        if self.garbler { [Block::ONES, without_lowest] } else { [without_lowest, Block::ONES] }
    }

    /// Makes `n` triples of the first 3·n of `bits`: all x, all y, all z. What must be alike on both sides goes into
    /// `alike`.
    pub(super) fn make(
        &mut self,
        channel: &mut Channel,
        bits: &mut Shares,
        n: usize,
        alike: &mut MacHash,
    ) -> Result<()> {
        let (mut sums, mut messages) = (zeros(BATCH.min(n)), zeros(BATCH.min(n)));
        for start in (0..n).step_by(BATCH) {
            let len = BATCH.min(n - start);
            let (sums, messages) = (&mut sums[..len], &mut messages[..len]);
            self.messages(bits, n, start, sums, messages);
            deviate(|script| script.leaky(self.delta, messages, sums));
            channel.send_blocks(messages)?;
            channel.recv_blocks(messages)?;
            self.sums(bits, start, messages, sums);
            self.made += len as u64;
            let mut mine = BitVec::from_lsbs(sums);
            deviate(|script| script.products(&mut mine));
            send_bits(channel, &mine)?;
            let mut d = receive_bits(channel, len)?;
            d.xor_assign(&mine);
            self.correct(bits, 2 * n + start, &d, sums);
            alike.update(sums);
        }
        Ok(())
    }

    /// G of some triples, and what S has of the party's own.
    fn messages(&self, bits: &Shares, n: usize, start: usize, sums: &mut [Block], messages: &mut [Block]) {
        let ([own, peer], delta) = (self.masks(), self.delta);
        let mut pads = zeroize::Zeroizing::new([[Block::ZERO; 2]; TILE]);
        for tile in (0..sums.len()).step_by(TILE) {
            let len = TILE.min(sums.len() - tile);
            let at = start + tile;
            let pads = &mut pads[..len];
            self.own.cot_to_rot_sender(self.made + tile as u64, delta, &bits.keys[at..at + len], pads);
            let of = |part: usize| {
                let range = part * n + at..part * n + at + len;
                (&bits.macs[range.clone()], &bits.keys[range])
            };
            let ((x, _), y, z) = (of(0), of(1), of(2));
            let (sums, messages) = (&mut sums[tile..][..len], &mut messages[tile..][..len]);
            let product = |(macs, keys): (&[Block], &[Block]), i: usize| {
                let times_delta = keys[i] ^ (delta & Block::mask(macs[i].lsb()));
                (times_delta & own) ^ (macs[i] & peer)
            };
            for i in 0..len {
                let c = product(y, i);
                messages[i] = pads[i][0] ^ pads[i][1] ^ c;
                sums[i] = pads[i][0] ^ product(z, i) ^ (c & Block::mask(x[i].lsb()));
            }
        }
    }

    /// Adds to S what the peer's G gives.
    fn sums(&self, bits: &Shares, start: usize, messages: &[Block], sums: &mut [Block]) {
        let mut pads = zeroize::Zeroizing::new([Block::ZERO; TILE]);
        for tile in (0..sums.len()).step_by(TILE) {
            let len = TILE.min(sums.len() - tile);
            let x = &bits.macs[start + tile..][..len];
            self.peer.cot_to_rot_receiver(self.made + tile as u64, x, &mut pads[..len]);
            for i in 0..len {
                sums[tile + i] ^= pads[i] ^ (messages[tile + i] & Block::mask(x[i].lsb()));
            }
        }
    }

    /// Adds d to z, which stands at `z`: to the garbler's share. And d·Δ to S.
    fn correct(&self, bits: &mut Shares, z: usize, d: &BitVec, sums: &mut [Block]) {
        let delta = self.delta & self.masks()[0];
        let (shares, change) = match self.garbler {
            true => (&mut bits.macs, Block::ONE),
            false => (&mut bits.keys, self.delta ^ Block::ONE),
        };
        let shares = &mut shares[z..z + sums.len()];
        for (i, (sum, share)) in sums.iter_mut().zip(shares).enumerate() {
            let d = Block::mask(d.get(i));
            *sum ^= delta & d;
            *share ^= change & d;
        }
    }
}
