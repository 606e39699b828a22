//! Leaky AND triples: authenticated x, y, z with z = x·y, of which a cheater may guess x (2018/578, section
//! 3).
//!
//! With C = y·Δ ⊕ K\[y\] ⊕ M\[y\] on either side, C_A ⊕ C_B = y·(Δ_A ⊕ Δ_B). A party sends G = H(K\[x\]) ⊕
//! H(K\[x\] ⊕ Δ) ⊕ C, from which the peer gets H(K\[x\]) ⊕ x·C with its own share x. Then S_A ⊕ S_B = (x·y ⊕
//! z)·(Δ_A ⊕ Δ_B), whose lowest bit d both show, and z becomes z ⊕ d. What is left after d·Δ is added must be
//! the same on both sides; a party that sent another G passes only if it guesses the peer's x.
//!
//! Of G, C and S only the lower 44 bits are made, sent and compared, where the paper has whole blocks: all is
//! linear in them, and who shows a wrong d has to guess 43 bits of Δ, once. Of a session that is one of several
//! of a job [some more](super::buckets::Level::message_bits). Two such parts stand in a block.
//!
//! Here both Δ have lowest bit 1, where the paper has 1 and 0: every block under Δ_B enters with its lowest
//! bit cleared, which is linear and turns Δ_B into one of lowest bit 0.

use super::bits::{Gates, GatesMut, Share, ample, with_masks, zeros};
use super::deviation::deviate;
use super::hash::MacHash;
use super::opening::{receive_bits, send_bits};
use super::reduced::reduced;
use crate::Result;
use std::collections::VecDeque;
use std::ops::Range;
use tacit_crypto::hash::Mitccrh;
use tacit_crypto::{BitVec, Block, Buffer};
use tacit_net::Channel;

/// Triples hashed at a time, in the nearest cache.
const TILE: usize = 256;
/// Triples whose messages cross at a time: a batch with all that is read of it stays in the second-level
/// cache.
const BATCH: usize = 1 << 12;
/// Batches that are on their way before the first of them is waited for: half a megabyte, more than lines of
/// 100 Mbit/s hold in 40 ms. In which order G and d go follows from it, for both parties.
const ON_THE_WAY: usize = 16;
/// Batches whose S wait: for G, then for d.
const UNSETTLED: usize = 2 * ON_THE_WAY + 1;

/// The bits that count of a message of `width` bits: all, but where a test lets fewer count.
#[inline(always)]
pub(super) fn counted(width: u32) -> u64 {
    !0 >> (64 - reduced().counted.map_or(width, |bits| bits.min(width)))
}

/// What stays the same for all triples of a party.
pub(super) struct Maker {
    pub(super) garbler: bool,
    pub(super) delta: Block,
    /// Bits of G, C and S.
    pub(super) width: u32,
    /// The hash of the own keys, and of the peer's.
    pub(super) own: Mitccrh,
    pub(super) peer: Mitccrh,
    /// Triples made so far: the hashes' next number.
    pub(super) made: u64,
    pub(super) room: Room,
}

/// Memory that serves one row of triples after the other.
#[derive(Default)]
pub(super) struct Room {
    sums: Option<Buffer>,
    messages: Option<Buffer>,
}

impl Room {
    /// At least `blocks` of `buffer`, whatever they hold.
    fn of(buffer: &mut Option<Buffer>, blocks: usize) -> &mut [Block] {
        if buffer.as_ref().is_none_or(|buffer| buffer.len() < blocks) {
            *buffer = None;
        }
        &mut buffer.get_or_insert_with(|| zeros(ample(blocks)))[..blocks]
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.delta);
    }
}

/// All ones or all zeros by a block's lowest bit.
#[inline(always)]
fn mask(block: Block) -> u64 {
    (block.low() & 1).wrapping_neg()
}

/// Packs G of some triples, two of which have so many bytes.
fn pack(messages: &[Block], bytes: &mut [u8], pair: usize) {
    for (message, bytes) in messages.iter().zip(bytes.chunks_exact_mut(pair)) {
        let both = u128::from(message.low()) | u128::from(message.high()) << (4 * pair);
        bytes.copy_from_slice(&both.to_le_bytes()[..pair]);
    }
}

/// The converse of [`pack`].
fn unpack(bytes: &[u8], messages: &mut [Block], pair: usize) {
    let width = 4 * pair as u32;
    for (message, bytes) in messages.iter_mut().zip(bytes.chunks_exact(pair)) {
        let mut both = [0; 16];
        both[..pair].copy_from_slice(bytes);
        let both = u128::from_le_bytes(both);
        *message = Block::from_halves(both as u64 & (!0 >> (64 - width)), (both >> width) as u64);
    }
}

/// The lowest bits of `n` parts.
fn lowest_bits(sums: &[Block], n: usize) -> BitVec {
    let pair = |sum: &Block| (sum.low() & 1 | (sum.high() & 1) << 1) as u8;
    let byte = |sums: &[Block]| sums.iter().rev().fold(0, |byte, sum| byte << 2 | pair(sum));
    BitVec::from_bytes(&sums.chunks(4).map(byte).collect::<Vec<u8>>(), n)
}

impl Maker {
    /// What of a block under the own Δ counts, and under the peer's.
    fn masks(&self) -> [u64; 2] {
        let counted = counted(self.width);
        if self.garbler { [counted, counted & !1] } else { [counted & !1, counted] }
    }

    /// Makes triples of all bits of `rows`, which are equally long. What must be alike on both sides goes into
    /// `alike`.
    ///
    /// G of [`ON_THE_WAY`] batches are on their way while those of the one before them are used, and so are
    /// d.
    pub(super) fn make(
        &mut self,
        channel: &mut Channel,
        rows: &mut [GatesMut<'_>],
        alike: &mut MacHash,
    ) -> Result<()> {
        let n = rows.first().map_or(0, |row| row.len());
        let of_row = n.div_ceil(BATCH);
        let batches = rows.len() * of_row;
        // A batch's row, and its place there.
        let row = |i: usize| i / of_row;
        let batch = |i: usize| i % of_row * BATCH..n.min((i % of_row + 1) * BATCH);
        let number = |i: usize| self.made + (row(i) * n + batch(i).start) as u64;
        let pairs = |range: &Range<usize>| range.len().div_ceil(2);
        let mut room = std::mem::take(&mut self.room);
        let most = BATCH.min(n).div_ceil(2);
        let sums = Room::of(&mut room.sums, batches.min(UNSETTLED) * most);
        let place = |i: usize| i % UNSETTLED * most..i % UNSETTLED * most + pairs(&batch(i));
        let messages = Room::of(&mut room.messages, most);
        let bytes = self.width as usize / 4;
        let mut packed = vec![0; bytes * messages.len()];
        let mut shown = VecDeque::with_capacity(ON_THE_WAY);
        for i in 0..batches + 2 * ON_THE_WAY {
            if i < batches {
                let (range, sums) = (batch(i), &mut sums[place(i)]);
                let (messages, packed) = (&mut messages[..sums.len()], &mut packed[..bytes * sums.len()]);
                self.messages(rows[row(i)].shared().part(range), number(i), sums, messages);
                deviate(|script| script.leaky(messages, sums));
                pack(messages, packed, bytes);
                channel.send(packed)?;
            }
            let [of_g, of_d] =
                [ON_THE_WAY, 2 * ON_THE_WAY].map(|ahead| i.checked_sub(ahead).filter(|&i| i < batches));
            // All that is waited for comes before the own d, which then leaves with the next G.
            if let Some(i) = of_g {
                let packed = &mut packed[..bytes * pairs(&batch(i))];
                channel.recv(packed)?;
                unpack(packed, messages, bytes);
            }
            if let Some(i) = of_d {
                let (range, sums) = (batch(i), &mut sums[place(i)]);
                let mut d = receive_bits(channel, range.len())?;
                if let Some(own) = shown.pop_front() {
                    d.xor_assign(&own);
                }
                self.correct(&mut rows[row(i)].part(range), &d, sums);
                deviate(|script| script.settled(alike, sums));
                alike.update(sums);
            }
            if let Some(i) = of_g {
                let (range, sums) = (batch(i), &mut sums[place(i)]);
                self.sums(&rows[row(i)].macs[0][range.clone()], number(i), &messages[..sums.len()], sums);
                let mut bits = lowest_bits(sums, range.len());
                deviate(|script| script.products(&mut bits));
                send_bits(channel, &bits)?;
                shown.push_back(bits);
            }
        }
        self.made += (rows.len() * n) as u64;
        self.room = room;
        Ok(())
    }

    /// G of some triples, the first of which has this number, and what S has of the party's own.
    fn messages(&self, triples: Gates<'_>, number: u64, sums: &mut [Block], messages: &mut [Block]) {
        let ([own, peer], delta, counted) = (self.masks(), self.delta, counted(self.width));
        let mut pads = zeroize::Zeroizing::new([[Block::ZERO; 2]; TILE]);
        let mut parts = zeroize::Zeroizing::new([[0; 2]; TILE]);
        let all = triples.macs[0].len();
        for tile in (0..all).step_by(TILE) {
            let len = TILE.min(all - tile);
            let pads = &mut pads[..len];
            let Gates { macs, keys } = triples.part(tile..tile + len);
            self.own.cot_to_rot_sender(number + tile as u64, delta, keys[0], pads);
            let product = |(mac, key): (&Block, &Block)| {
                let times_delta = key.low() ^ (delta.low() & mask(*mac));
                (times_delta & own) ^ (mac.low() & peer)
            };
            let products = macs[1].iter().zip(keys[1]).zip(macs[2].iter().zip(keys[2]));
            let all = pads.iter().zip(macs[0]).zip(products);
            for (parts, ((pads, x), (y, z))) in parts.iter_mut().zip(all) {
                let (c, [pad, other]) = (product(y), pads.map(|pad| pad.low() & counted));
                *parts = [pad ^ other ^ c, pad ^ product(z) ^ (c & mask(*x))];
            }
            if len % 2 == 1 {
                parts[len] = [0; 2];
            }
            let at = tile / 2;
            let both = messages[at..].iter_mut().zip(&mut sums[at..]);
            let pairs = parts.as_chunks::<2>().0[..len.div_ceil(2)].iter();
            for ([first, second], (message, sum)) in pairs.zip(both) {
                *message = Block::from_halves(first[0], second[0]);
                *sum = Block::from_halves(first[1], second[1]);
            }
        }
    }

    /// Adds to S of triples with these `x`, the first of which has this number, what the peer's G gives.
    fn sums(&self, x: &[Block], number: u64, messages: &[Block], sums: &mut [Block]) {
        let counted = counted(self.width);
        let mut pads = zeroize::Zeroizing::new([Block::ZERO; TILE]);
        for (tile, x) in x.chunks(TILE).enumerate() {
            let (tile, pads) = (tile * TILE, &mut pads[..x.len()]);
            self.peer.cot_to_rot_receiver(number + tile as u64, x, pads);
            let at = tile / 2;
            let mut both = messages[at..].iter().zip(&mut sums[at..]);
            let (pairs, rest) = pads.as_chunks::<2>();
            let (choices, last) = x.as_chunks::<2>();
            // Pairs come first, or their end would take a message with it.
            for ((pads, x), (message, sum)) in pairs.iter().zip(choices).zip(both.by_ref()) {
                let first = (pads[0].low() & counted) ^ (message.low() & mask(x[0]));
                let second = (pads[1].low() & counted) ^ (message.high() & mask(x[1]));
                *sum ^= Block::from_halves(first, second);
            }
            if let ([pad], [x], Some((message, sum))) = (rest, last, both.next()) {
                *sum ^= Block::from_halves((pad.low() & counted) ^ (message.low() & mask(*x)), 0);
            }
        }
    }

    /// Adds d to the triples' z, and d·Δ to S.
    fn correct(&self, triples: &mut GatesMut<'_>, d: &BitVec, sums: &mut [Block]) {
        let delta = self.delta.low() & self.masks()[0];
        for (sums, byte) in sums.chunks_mut(4).zip(d.as_bytes()) {
            for (i, sum) in sums.iter_mut().enumerate() {
                let of = |i: usize| delta & u64::from(byte >> i & 1).wrapping_neg();
                *sum ^= Block::from_halves(of(2 * i), of(2 * i + 1));
            }
        }
        let z = if self.garbler { &mut triples.macs[2] } else { &mut triples.keys[2] };
        let one = Share::default().plus(Block::ONES, self.garbler, self.delta);
        let change = one.mac ^ one.key;
        with_masks(z, d, |z, d| *z ^= change & d);
    }
}
