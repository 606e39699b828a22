//! Private equality of many pairs of strings: both parties get a share of whether they are equal.
//!
//! - Source: Couteau, "New protocols for secure equality test and comparison" (2016/544), with 1-out-of-16
//!   OTs on bits in place of its table look-ups.
//! - Realises, against parties that keep to the protocol: for pairs (x_i, y_i) of ℓ bits, random bits a_i and
//!   b_i with a_i ⊕ b_i = \[x_i = y_i\].
//! - Assumption: that of the random OT below.
//! - Rounds: one there and back for each level; 60 bits take three. Random OTs: 4 a nibble of each level,
//!   80 a pair of 60 bits. Bytes: half a byte a nibble there and 2 back, 50 a pair of 60 bits.
//!
//! A level cuts the strings into nibbles. For each the sender draws a bit r and the receiver fetches entry
//! y of the table T\[v\] = r ⊕ \[v = x\] by an OT on 16 bits, made of four random OTs (Naor and Pinkas):
//! entry v's pad is the XOR of bit v of the four messages that v's bits choose, so no bit of a message
//! masks two entries. The random choice c is turned by d = c ⊕ y, which the receiver sends: entry v ⊕ d
//! goes under pad v. A pair is equal if all its nibbles' shares differ; so if the receiver flips its own,
//! they make new strings, of a quarter of the length, that are equal exactly when the old ones are.

use crate::{Error, Result};
use tacit_crypto::{BitVec, Block, Prg};
use tacit_net::Channel;
use tacit_ot::{RotReceiver, RotSender};
use zeroize::Zeroizing;

/// Nibbles whose random OTs are made at a time.
const PIECE: usize = 1 << 15;
/// Nibbles whose answers wait for one round, at most: a level of so many is one message each way.
const BATCH: usize = 1 << 21;
/// Bit i of v, for every v.
const MASKS: [u16; 4] = [0xaaaa, 0xcccc, 0xf0f0, 0xff00];

/// Strings by nibbles, all of one length.
struct Nibbles {
    nibbles: Zeroizing<Vec<u8>>,
    /// Nibbles of a string.
    each: usize,
}

impl Nibbles {
    /// The lowest `bits` bits of each block.
    fn new(strings: &[Block], bits: u32) -> Self {
        let each = bits.div_ceil(4).max(1) as usize;
        let mut nibbles = Zeroizing::new(Vec::with_capacity(strings.len() * each));
        for string in strings {
            let string = string.to_u128() & (u128::MAX >> (128 - bits));
            nibbles.extend((0..each).map(|i| (string >> (4 * i)) as u8 & 15));
        }
        Nibbles { nibbles, each }
    }

    /// The next level's strings from a bit a nibble.
    fn next(&self, bits: &[u8]) -> Self {
        let each = self.each.div_ceil(4);
        let mut nibbles = Zeroizing::new(Vec::with_capacity(bits.len() / self.each * each));
        for string in bits.chunks_exact(self.each) {
            let nibble = |four: &[u8]| four.iter().rev().fold(0, |nibble, bit| nibble << 1 | bit);
            nibbles.extend(string.chunks(4).map(nibble));
        }
        Nibbles { nibbles, each }
    }
}

fn last(bits: &[u8]) -> BitVec {
    let mut shares = BitVec::zeros(bits.len());
    bits.iter().enumerate().for_each(|(i, bit)| shares.set(i, *bit == 1));
    shares
}

fn check(bits: u32) -> Result<()> {
    if (1..=128).contains(&bits) {
        Ok(())
    } else {
        Err(Error::Usage("strings of 1 to 128 bits are compared"))
    }
}

/// The sender: shares of whether the lowest `bits` bits of each string equal the receiver's.
pub(crate) fn send(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    strings: &[Block],
    bits: u32,
    prg: &mut Prg,
) -> Result<BitVec> {
    check(bits)?;
    let mut level = Nibbles::new(strings, bits);
    loop {
        let shares = send_level(channel, rot, &level.nibbles, prg)?;
        if level.each == 1 {
            return Ok(last(&shares));
        }
        level = level.next(&shares);
    }
}

/// The receiver; see [`send`].
pub(crate) fn receive(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    strings: &[Block],
    bits: u32,
) -> Result<BitVec> {
    check(bits)?;
    let mut level = Nibbles::new(strings, bits);
    loop {
        let mut shares = receive_level(channel, rot, &level.nibbles)?;
        if level.each == 1 {
            return Ok(last(&shares));
        }
        shares.iter_mut().for_each(|share| *share ^= 1);
        level = level.next(&shares);
    }
}

fn send_level(
    channel: &mut Channel,
    rot: &mut dyn RotSender,
    nibbles: &[u8],
    prg: &mut Prg,
) -> Result<Zeroizing<Vec<u8>>> {
    let mut shares = Zeroizing::new(vec![0; nibbles.len()]);
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; 4 * nibbles.len().min(PIECE)]);
    let mut turns = vec![0; nibbles.len().min(PIECE).div_ceil(2)];
    let mut answers = Vec::with_capacity(2 * nibbles.len().min(BATCH));
    for (nibbles, shares) in nibbles.chunks(BATCH).zip(shares.chunks_mut(BATCH)) {
        answers.clear();
        prg.fill_bytes(shares);
        for (nibbles, shares) in nibbles.chunks(PIECE).zip(shares.chunks_mut(PIECE)) {
            let pairs = &mut pairs[..4 * nibbles.len()];
            rot.extend(channel, pairs)?;
            let turns = &mut turns[..nibbles.len().div_ceil(2)];
            channel.recv(turns)?;
            let (fours, _) = pairs.as_chunks::<4>();
            for (i, ((nibble, share), four)) in nibbles.iter().zip(shares.iter_mut()).zip(fours).enumerate() {
                *share &= 1;
                let turn = turns[i / 2] >> (4 * (i % 2)) & 15;
                let pad = four.iter().zip(MASKS).fold(0, |pad, ([zero, one], mask)| {
                    pad ^ (zero.low() as u16 & !mask) ^ (one.low() as u16 & mask)
                });
                let answer = pad ^ Block::mask(*share == 1).low() as u16 ^ 1 << (nibble ^ turn);
                answers.extend_from_slice(&answer.to_le_bytes());
            }
        }
        channel.send(&answers)?;
        channel.flush()?;
    }
    Ok(shares)
}

fn receive_level(
    channel: &mut Channel,
    rot: &mut dyn RotReceiver,
    nibbles: &[u8],
) -> Result<Zeroizing<Vec<u8>>> {
    let mut shares = Zeroizing::new(vec![0; nibbles.len()]);
    let mut messages = Zeroizing::new(vec![Block::ZERO; 4 * nibbles.len().min(PIECE)]);
    let mut turns = vec![0; nibbles.len().min(PIECE).div_ceil(2)];
    let mut choices = Zeroizing::new(vec![0u8; nibbles.len().min(BATCH)]);
    let mut answers = vec![0; 2 * nibbles.len().min(PIECE)];
    for (nibbles, shares) in nibbles.chunks(BATCH).zip(shares.chunks_mut(BATCH)) {
        let choices = &mut choices[..nibbles.len()];
        let pieces = nibbles.chunks(PIECE).zip(shares.chunks_mut(PIECE)).zip(choices.chunks_mut(PIECE));
        for ((nibbles, shares), choices) in pieces {
            let messages = &mut messages[..4 * nibbles.len()];
            let random = rot.extend(channel, messages)?;
            let turns = &mut turns[..nibbles.len().div_ceil(2)];
            turns.fill(0);
            let (fours, _) = messages.as_chunks::<4>();
            let random = random.as_bytes();
            for (i, ((nibble, share), four)) in nibbles.iter().zip(shares.iter_mut()).zip(fours).enumerate() {
                let choice = random[i / 2] >> (4 * (i % 2)) & 15;
                choices[i] = choice;
                turns[i / 2] |= (choice ^ nibble) << (4 * (i % 2));
                let pad = four.iter().fold(0, |pad, message| pad ^ message.low() as u16);
                *share = (pad >> choice) as u8 & 1;
            }
            channel.send(turns)?;
        }
        channel.flush()?;
        for (shares, choices) in shares.chunks_mut(PIECE).zip(choices.chunks(PIECE)) {
            let answers = &mut answers[..2 * shares.len()];
            channel.recv(answers)?;
            let (words, _) = answers.as_chunks::<2>();
            for ((share, choice), word) in shares.iter_mut().zip(choices).zip(words) {
                *share ^= (u16::from_le_bytes(*word) >> choice) as u8 & 1;
            }
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacit_net::memory;
    use tacit_ot::base;
    use tacit_ot::convert::CotToRot;
    use tacit_ot::extension::{IknpReceiver, IknpSender};

    /// Shares of the two parties for pairs of strings.
    fn shares(x: &[Block], y: &[Block], bits: u32) -> [BitVec; 2] {
        let (a, b) = memory::run(
            |channel| {
                let mut prg = Prg::from_os();
                let cot = IknpSender::setup(channel, &*base::default(), &mut prg).unwrap();
                send(channel, &mut CotToRot::new(cot), x, bits, &mut prg).unwrap()
            },
            |channel| {
                let cot = IknpReceiver::setup(channel, &*base::default(), &mut Prg::from_os()).unwrap();
                receive(channel, &mut CotToRot::new(cot), y, bits).unwrap()
            },
        );
        [a, b]
    }

    #[test]
    fn shares_differ_where_strings_are_equal() {
        let mut prg = Prg::from_seed(Block::new(5));
        for bits in [1, 3, 4, 5, 16, 17, 57, 60, 64, 65, 128] {
            let mut x = vec![Block::ZERO; 300];
            prg.fill_blocks(&mut x);
            // Equal, different in one bit within the length, different beyond it, and random.
            let y: Vec<Block> = (0u32..)
                .zip(&x)
                .map(|(i, x)| match i % 4 {
                    0 => *x,
                    1 => *x ^ Block::new(1 << (i % bits)),
                    2 => *x ^ Block::new(u128::MAX.checked_shl(bits).unwrap_or(0)),
                    _ => prg.block(),
                })
                .collect();
            let mask = u128::MAX >> (128 - bits);
            let [a, b] = shares(&x, &y, bits);
            for i in 0..x.len() {
                let equal = (x[i] ^ y[i]).to_u128() & mask == 0;
                assert_eq!(a.get(i) ^ b.get(i), equal, "{bits} bits, pair {i}");
            }
            // Each party's own are fair coins, whatever the strings: 300 ones of 600, six deviations.
            let ones = a.iter().chain(b.iter()).filter(|bit| *bit).count();
            assert!((200..400).contains(&ones), "{ones} of 600");
        }
    }

    /// Random strings of few bits are equal as often as their length says: what `circuit::failure_log2`
    /// counts with, at lengths where it shows.
    #[test]
    fn random_strings_are_equal_as_often_as_their_length_says() {
        let mut prg = Prg::from_seed(Block::new(6));
        for bits in [4, 6, 8, 10] {
            let [mut x, mut y] = [(); 2].map(|()| vec![Block::ZERO; 20_000]);
            prg.fill_blocks(&mut x);
            prg.fill_blocks(&mut y);
            let [a, b] = shares(&x, &y, bits);
            let equal = a.iter().zip(b.iter()).filter(|(a, b)| a != b).count() as f64;
            let expected = 20_000.0 / f64::from(1 << bits);
            println!("{bits} bits: {equal} of 20000 equal, {expected} expected");
            assert!((equal - expected).abs() <= 5.0 * expected.sqrt(), "{bits} bits: {equal}");
        }
    }

    #[test]
    fn more_nibbles_than_a_piece() {
        let x: Vec<Block> = (0..9_000).map(|i| Block::new(i / 2)).collect();
        let y: Vec<Block> = (0..9_000).map(|i| Block::new(i / 3)).collect();
        let [a, b] = shares(&x, &y, 60);
        for i in 0..x.len() {
            assert_eq!(a.get(i) ^ b.get(i), i / 2 == i / 3, "{i}");
        }
    }
}
